//! The layouts beside the server's own, in which named generators issue: each with marks of its own.

use super::marks::{Mark, Marks, OF_ANOTHER};
use crate::clock::UnixMicros;
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use serde::{Deserialize, Serialize};

/// The layouts whose marks are kept. What has to go of them raises the floor of all that are not there.
const MAX_OTHERS: usize = 256;

/// The most layouts that a server has places for.
pub const MAX_PLACES: i32 = 4_096;

/// The most, where those above [`MAX_OTHERS`] are in use: without them the floor would be ahead of the clock.
const MOST_OTHERS: usize = MAX_PLACES as usize;

/// A layout beside the server's own, in which named generators issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherLayout {
    /// The layout.
    pub layout: Layout,
    /// The worker id that issues in it where it has no room for the server's, which has no registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// The rollback value that issues in it.
    pub rollback: u32,
    /// Time at which ids of it were asked for last.
    pub used: UnixMicros,
    /// How far nodes may have issued in it.
    #[serde(flatten)]
    pub of: Marks,
}

impl OtherLayout {
    /// One in which nothing is known to be issued, where every node begins at or above an instant.
    pub(super) fn new(layout: Layout, floor: UnixMicros, at: UnixMicros) -> Self {
        let of = Marks { marks: Vec::new(), floor: layout.position_from(floor) };
        Self { layout, worker: None, rollback: 0, used: at, of }
    }

    /// An instant at or above all that may have been issued in it.
    pub(super) fn end(&self) -> UnixMicros {
        self.layout.instant_above(self.of.highest())
    }
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    /// Those whose marks are kept.
    #[serde(rename = "others")]
    pub layouts: Vec<OtherLayout>,
    /// An instant at or above which every node begins in a layout that is not among these.
    #[serde(rename = "others_floor")]
    pub floor: UnixMicros,
}

impl Default for Others {
    fn default() -> Self {
        Self { layouts: Vec::new(), floor: UnixMicros(0) }
    }
}

impl Others {
    /// Returns what is kept of a layout.
    pub fn get(&self, layout: &Layout) -> Option<&OtherLayout> {
        self.layouts.iter().find(|other| other.layout == *layout)
    }

    /// The same, from now on; `at`: when ids of it were asked for last.
    pub(super) fn get_mut(&mut self, layout: &Layout, at: UnixMicros) -> &mut OtherLayout {
        let found = self.layouts.iter().position(|other| other.layout == *layout);
        let index = found.unwrap_or_else(|| {
            self.put(OtherLayout::new(*layout, self.floor, at), at);
            self.layouts.len() - 1
        });
        &mut self.layouts[index]
    }

    /// Takes what is kept of a layout, to keep it elsewhere.
    pub(super) fn take(&mut self, layout: &Layout) -> OtherLayout {
        let found = self.layouts.iter().position(|other| other.layout == *layout);
        let new = || OtherLayout::new(*layout, self.floor, UnixMicros(0));
        found.map_or_else(new, |index| self.layouts.swap_remove(index))
    }

    /// Keeps one more, the last, and of all the others those whose ids came furthest.
    pub(super) fn put(&mut self, other: OtherLayout, at: UnixMicros) {
        let mut of_another = Vec::new();
        while self.layouts.len() >= MAX_OTHERS {
            let ends = self.layouts.iter().map(OtherLayout::end).enumerate();
            let Some((index, end)) = ends.min_by_key(|(_, end)| *end) else { break };
            if end > at && self.layouts.len() < MOST_OTHERS {
                break;
            }
            let dropped = self.layouts.swap_remove(index);
            self.floor = self.floor.max(dropped.end());
            of_another.extend(dropped.of.marks.into_iter().filter(Mark::is_of_another));
        }
        self.layouts.push(other);
        // A node that is another server's is that in whatever layout.
        if let Some(first) = self.layouts.first_mut() {
            for mark in of_another {
                first.of.set(mark.node, OF_ANOTHER);
            }
        }
    }

    /// Returns how far a node may have issued in a layout.
    pub(super) fn mark(&self, layout: &Layout, node: Node) -> Position {
        self.get(layout).map_or_else(|| layout.position_from(self.floor), |other| other.of.of(node))
    }

    /// All marks.
    pub(super) fn marks(&self) -> impl Iterator<Item = &Mark> {
        self.layouts.iter().flat_map(|other| &other.of.marks)
    }

    pub(super) fn marks_mut(&mut self) -> impl Iterator<Item = &mut Mark> {
        self.layouts.iter_mut().flat_map(|other| &mut other.of.marks)
    }

    /// Has every node that has a mark begin above an instant.
    pub(super) fn rise(&mut self, last: UnixMicros) {
        for other in &mut self.layouts {
            other.of.rise(other.layout.position_after(last));
        }
    }

    /// Has every node begin at or above an instant that has no mark.
    pub fn raise_floors(&mut self, at: UnixMicros) {
        self.floor = self.floor.max(at);
        for other in &mut self.layouts {
            other.of.raise_floor(other.layout.position_from(at));
        }
    }
}
