//! The issuer as a process of the server uses it.

use super::place::Occupancy;
use super::shared::Shared;
use crate::clock::UnixMicros;
use crate::ids::id::Node;
use crate::ids::layout::Layout;

/// What the state lock guards.
#[derive(Debug, Default)]
pub struct Issuing {
    /// The node whose term the generator of the server's own layout has begun; None while it is closed.
    pub node: Option<Node>,
    /// True if the state was taken up since the server's start.
    pub opened: bool,
    /// What the places are used for; those that never were stand at the end.
    pub places: &'static mut [Occupancy],
    /// An instant above all that was issued at places whose layouts have gone, since the server's start.
    pub(super) gone: Option<UnixMicros>,
}

impl Issuing {
    /// Returns what a server with so many places begins with.
    pub fn new(places: &'static mut [Occupancy]) -> Self {
        Self { places, ..Self::default() }
    }

    /// The places that have been used since the server's start.
    pub(super) fn used(&self) -> impl Iterator<Item = &Occupancy> {
        self.places.iter().take_while(|place| place.layout.is_some())
    }

    /// The place that a layout has.
    pub fn place_of(&self, layout: &Layout) -> Option<usize> {
        self.used().position(|place| place.layout == Some(*layout))
    }

    /// The node whose term has begun at a place; None: where ids of the server's own layout come from.
    pub(super) fn node_at(&self, place: Option<usize>) -> Option<Node> {
        match place {
            None => self.node,
            Some(place) => self.places[place].node,
        }
    }

    pub(super) fn node_at_mut(&mut self, place: Option<usize>) -> &mut Option<Node> {
        match place {
            None => &mut self.node,
            Some(place) => &mut self.places[place].node,
        }
    }
}

/// On whose behalf the mark is raised.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Caller,
    Launcher,
}

/// What a process of the server knows of its issuer, and where the rest is.
#[derive(Debug)]
pub struct Issuer<'a, H> {
    /// What all processes of the server share.
    pub shared: &'a Shared,
    /// What it touches.
    pub host: H,
}
