//! Places for the layouts of named generators, beside the server's own: each has a generator, and serves one layout at a
//! time.
//!
//! The layout changes under the state lock, while the place's generator is closed, and the place's *incarnation* with it.
//! A session knows the incarnation in which the place was its layout's. It reads it before and after it takes: where it is
//! still the same, what was taken is of that layout; else it is thrown away, and the session asks for a place again.

use crate::clock::UnixMicros;
use crate::generator::snowflake::Generator;
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::sync::{AtomicU64, Ordering};

/// The default of `snowflake_ids.max_generators`.
pub const DEFAULT_PLACES: i32 = 256;

/// A place in shared memory.
#[derive(Debug, Default)]
#[cfg_attr(not(loom), repr(C, align(64)))]
pub struct Place {
    /// Hands out positions of the layout that has the place.
    pub generator: Generator,
    /// Changes with the layout, while the generator is closed; 0: the place was never used.
    pub incarnation: AtomicU64,
}

/// The use of a place.
#[derive(Debug, Default)]
pub struct Occupancy {
    /// The layout that has it; None: it is free.
    pub layout: Option<Layout>,
    /// The database that took it, by its oid. Others may use the layout, too.
    pub(super) database: u32,
    /// The node whose term its generator has begun; None while it is closed.
    pub node: Option<Node>,
    /// The time at which it got the place, in microseconds since the machine's start.
    pub(super) seated: u64,
    /// The next position when that was last seen to have changed, and the time of that.
    pub(super) seen: (Position, u64),
}

/// The data that the state lock guards.
#[derive(Debug, Default)]
pub struct Issuing {
    /// The node whose term the generator of the server's own layout has begun; None while it is closed.
    pub node: Option<Node>,
    /// True if the state was taken up since the server's start.
    pub opened: bool,
    /// The uses of the places; those never used stand at the end.
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

/// The source of a layout's ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// It is the server's own layout.
    Own,
    /// A place, as long as this is its incarnation.
    Place {
        /// Its name.
        index: usize,
        /// Its incarnation.
        incarnation: u64,
    },
}

/// A source of positions for a session.
pub trait Source {
    /// Their layout.
    fn layout(&self) -> &Layout;
    /// Returns what hands them out.
    fn generator(&self) -> &Generator;
    /// Returns whether that still hands out positions of the layout.
    fn is_held(&self) -> bool;
}

/// A layout at its seat.
#[derive(Clone, Copy, Debug)]
pub struct Seated<'a> {
    layout: &'a Layout,
    generator: &'a Generator,
    /// The place's incarnation, and what it is to be.
    place: Option<(&'a AtomicU64, u64)>,
}

impl<'a> Seated<'a> {
    /// The server's own layout, whose place never changes.
    pub(super) fn own(generator: &'a Generator, layout: &'a Layout) -> Self {
        Self { layout, generator, place: None }
    }

    /// A layout at a place.
    #[inline]
    pub fn at(place: &'a Place, incarnation: u64, layout: &'a Layout) -> Self {
        Self { layout, generator: &place.generator, place: Some((&place.incarnation, incarnation)) }
    }
}

impl Source for Seated<'_> {
    #[inline]
    fn layout(&self) -> &Layout {
        self.layout
    }

    #[inline]
    fn generator(&self) -> &Generator {
        self.generator
    }

    #[inline]
    fn is_held(&self) -> bool {
        self.place.is_none_or(|(incarnation, mine)| incarnation.load(Ordering::Acquire) == mine)
    }
}

impl Place {
    /// Returns whether a layout has it, or had.
    pub(super) fn is_used(&self) -> bool {
        self.incarnation.load(Ordering::Acquire) > 0
    }

    /// Gives it to another layout, while its generator is closed.
    pub fn reuse(&self) {
        self.generator.forget();
        self.incarnation.fetch_add(1, Ordering::AcqRel);
    }
}
