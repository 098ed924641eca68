//! The high-water marks of nodes: in the server's own layout, and in each layout beside it in which named generators issue.

use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use serde::{Deserialize, Serialize};

/// The mark of a node that another server issues as: that of a copied directory.
pub const OF_ANOTHER: Position = Position::MAX;

/// The most marks of a layout that are kept one by one. Dropping one raises the floor.
const MAX_HIGH_WATER_MARKS: usize = 256;

/// The layouts whose marks are kept. Dropping one raises the floor of all that are not there.
const MAX_OTHERS: usize = 256;

/// The most layouts that a server has places for, and whose marks are kept where those above `MAX_OTHERS` are in use: without
/// them the floor would be ahead of the clock.
pub const MAX_SLOTS: i32 = 4_096;

/// The high-water mark of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeHighWaterMark {
    /// The node that the mark is of.
    #[serde(flatten)]
    pub node: Node,
    /// The position below which it may have issued.
    pub position: Position,
}

impl NodeHighWaterMark {
    /// Returns whether its node is another server's.
    pub fn is_of_another(&self) -> bool {
        self.position == OF_ANOTHER
    }
}

/// The marks of all nodes in one layout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeHighWaterMarks {
    /// The high-water marks that are kept one by one.
    #[serde(rename = "marks")]
    pub high_water_marks: Vec<NodeHighWaterMark>,
    /// A position at or above which every node begins that has no mark.
    #[serde(rename = "floor")]
    pub minimum: Position,
}

impl NodeHighWaterMarks {
    /// Returns how far a node may have issued.
    pub fn of(&self, node: Node) -> Position {
        self.high_water_marks
            .iter()
            .find(|high_water_mark| high_water_mark.node == node)
            .map_or(self.minimum, |high_water_mark| high_water_mark.position)
    }

    /// The highest of all, those left out that are another server's.
    pub fn highest(&self) -> Position {
        let ours = self.high_water_marks.iter().filter(|high_water_mark| !high_water_mark.is_of_another());
        ours.map(|high_water_mark| high_water_mark.position).fold(self.minimum, Position::max)
    }

    pub(super) fn set(&mut self, node: Node, position: Position) {
        if !holds(Guard::HighWaterMarksKept) {
            self.high_water_marks.clear();
        }
        match self.high_water_marks.iter_mut().find(|high_water_mark| high_water_mark.node == node) {
            Some(high_water_mark) => high_water_mark.position = position,
            None => self.high_water_marks.push(NodeHighWaterMark { node, position }),
        }
        while self.high_water_marks.len() > MAX_HIGH_WATER_MARKS {
            let droppable = |high_water_mark: &NodeHighWaterMark| {
                high_water_mark.node != node && !high_water_mark.is_of_another()
            };
            let others = self
                .high_water_marks
                .iter()
                .enumerate()
                .filter(|(_, high_water_mark)| droppable(high_water_mark));
            let Some((index, lowest)) = others.min_by_key(|(_, high_water_mark)| high_water_mark.position)
            else {
                return;
            };
            self.raise_minimum(lowest.position);
            self.high_water_marks.swap_remove(index);
        }
    }

    /// Has every node that has a mark begin at or above a position.
    pub(super) fn rise(&mut self, above: Position) {
        for high_water_mark in &mut self.high_water_marks {
            high_water_mark.position = high_water_mark.position.max(above);
        }
    }

    /// Has every node begin at or above a position that has no mark.
    pub(super) fn raise_minimum(&mut self, above: Position) {
        self.minimum = self.minimum.max(above);
    }
}

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
    /// The marks of nodes in it.
    #[serde(flatten)]
    pub of: NodeHighWaterMarks,
}

impl OtherLayout {
    /// One in which nothing is known to be issued, where every node begins at or above an instant.
    pub(super) fn new(layout: Layout, minimum: UnixMicros, at: UnixMicros) -> Self {
        let of = NodeHighWaterMarks { high_water_marks: Vec::new(), minimum: layout.position_from(minimum) };
        Self { layout, worker: None, rollback: 0, used: at, of }
    }

    /// An instant at or above all that may have been issued in it.
    fn end(&self) -> UnixMicros {
        self.layout.instant_above(self.of.highest())
    }
}

/// All layouts beside the server's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    /// Those whose marks are kept.
    #[serde(rename = "others")]
    pub layouts: Vec<OtherLayout>,
    /// An instant at or above which every node begins in a layout that is not among these.
    #[serde(rename = "others_floor")]
    pub minimum: UnixMicros,
}

impl Others {
    fn position(&self, layout: &Layout) -> Option<usize> {
        self.layouts.iter().position(|other| other.layout == *layout)
    }

    /// Returns what is kept of a layout.
    pub fn get(&self, layout: &Layout) -> Option<&OtherLayout> {
        Some(&self.layouts[self.position(layout)?])
    }

    /// Returns when ids of a layout were asked for last, as far as is known.
    pub(super) fn used(&self, layout: &Layout) -> UnixMicros {
        self.get(layout).map_or(UnixMicros(0), |other| other.used)
    }

    /// Returns a layout, which is kept from now on; `at`: the time at which ids of it were asked for.
    pub(super) fn get_mut(&mut self, layout: &Layout, at: UnixMicros) -> &mut OtherLayout {
        let index = self.position(layout).unwrap_or_else(|| {
            self.put(OtherLayout::new(*layout, self.minimum, at), at);
            self.layouts.len() - 1
        });
        &mut self.layouts[index]
    }

    /// Takes what is kept of a layout, to keep it elsewhere.
    pub(super) fn take(&mut self, layout: &Layout) -> OtherLayout {
        let new = || OtherLayout::new(*layout, self.minimum, UnixMicros(0));
        self.position(layout).map_or_else(new, |index| self.layouts.swap_remove(index))
    }

    /// Keeps one more, the last, and of all the others those whose ids came furthest.
    pub(super) fn put(&mut self, other: OtherLayout, at: UnixMicros) {
        let mut of_another = Vec::new();
        while self.layouts.len() >= MAX_OTHERS {
            let ends = self.layouts.iter().map(OtherLayout::end).enumerate();
            let Some((index, end)) = ends.min_by_key(|(_, end)| *end) else { break };
            if end > at && self.layouts.len() < MAX_SLOTS as usize {
                break;
            }
            self.minimum = self.minimum.max(end);
            let dropped = self.layouts.swap_remove(index);
            of_another
                .extend(dropped.of.high_water_marks.into_iter().filter(NodeHighWaterMark::is_of_another));
        }
        self.layouts.push(other);
        // A node that is another server's is that in every layout.
        for high_water_mark in of_another {
            self.layouts[0].of.set(high_water_mark.node, OF_ANOTHER);
        }
    }

    /// Has every node that has a mark begin above an instant.
    pub(super) fn rise(&mut self, last: UnixMicros) {
        for other in &mut self.layouts {
            other.of.rise(other.layout.position_after(last));
        }
    }

    /// Has every node begin at or above an instant that has no mark.
    pub fn raise_minimums(&mut self, at: UnixMicros) {
        self.minimum = self.minimum.max(at);
        for other in &mut self.layouts {
            other.of.raise_minimum(other.layout.position_from(at));
        }
    }
}
