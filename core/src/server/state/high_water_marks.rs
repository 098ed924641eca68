//! The high-water marks of nodes, in the server's own layout and in the layouts of named generators.

use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use serde::{Deserialize, Serialize};

/// The high-water mark of a node that belongs to another server, such as the server from which this server was copied.
pub const OF_ANOTHER: Position = Position::MAX;

/// The largest number of high-water marks that are kept for one layout. Dropping a high-water mark raises the layout's
/// minimum, from which all nodes without a high-water mark begin.
const MAX_HIGH_WATER_MARKS: usize = 256;

/// The largest number of layouts whose high-water marks are kept. Dropping a layout raises the minimum, from which all
/// nodes begin in layouts without an entry.
const MAX_OTHERS: usize = 256;

/// The largest number of slots of a server. Even if there are more layouts than `MAX_OTHERS`, layouts with ids ahead of
/// the clock are kept, up to `MAX_SLOTS` layouts in total. Dropping such a layout would raise the minimum above the
/// clock.
pub const MAX_SLOTS: i32 = 4_096;

/// The high-water mark of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeHighWaterMark {
    /// The node.
    #[serde(flatten)]
    pub node: Node,
    /// The position after the highest position that the node may have issued.
    pub position: Position,
}

impl NodeHighWaterMark {
    /// Returns true if the node belongs to another server.
    pub fn is_of_another(&self) -> bool {
        self.position == OF_ANOTHER
    }
}

/// The high-water marks of all nodes in one layout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeHighWaterMarks {
    /// The high-water marks of single nodes.
    pub high_water_marks: Vec<NodeHighWaterMark>,
    /// The position from which all nodes without a high-water mark begin.
    pub minimum: Position,
}

impl NodeHighWaterMarks {
    /// Returns the position after the highest position that a node may have issued.
    pub fn of(&self, node: Node) -> Position {
        let found = self.high_water_marks.iter().find(|mark| mark.node == node);
        found.map_or(self.minimum, |mark| mark.position)
    }

    /// Returns true if another node's high-water mark would replace a known one.
    pub(super) fn is_full(&self) -> bool {
        self.high_water_marks.len() >= MAX_HIGH_WATER_MARKS
    }

    /// Returns the highest high-water mark of this server's nodes.
    pub fn highest(&self) -> Position {
        let ours = self.high_water_marks.iter().filter(|mark| !mark.is_of_another());
        ours.map(|mark| mark.position).fold(self.minimum, Position::max)
    }

    pub(super) fn set(&mut self, node: Node, position: Position) {
        if !holds(Guard::HighWaterMarksKept) {
            self.high_water_marks.clear();
        }
        match self.high_water_marks.iter_mut().find(|mark| mark.node == node) {
            Some(mark) => mark.position = position,
            None => self.high_water_marks.push(NodeHighWaterMark { node, position }),
        }
        while self.high_water_marks.len() > MAX_HIGH_WATER_MARKS {
            let marks = self.high_water_marks.iter().enumerate();
            let droppable = marks.filter(|(_, mark)| mark.node != node && !mark.is_of_another());
            let Some((index, lowest)) = droppable.min_by_key(|(_, mark)| mark.position) else { return };
            self.raise_minimum(lowest.position);
            self.high_water_marks.swap_remove(index);
        }
    }

    /// Makes each node with a high-water mark begin at or above a position.
    pub(super) fn rise(&mut self, above: Position) {
        for mark in &mut self.high_water_marks {
            mark.position = mark.position.max(above);
        }
    }

    /// Makes each node without a high-water mark begin at or above a position.
    pub(super) fn raise_minimum(&mut self, above: Position) {
        self.minimum = self.minimum.max(above);
    }
}

/// A layout of named generators, other than the server's own layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherLayout {
    /// The layout.
    pub layout: Layout,
    /// The node that this server has chosen for the layout; None if the server's own node fits.
    pub node: Option<Node>,
    /// The rollback value of the node that issues ids of the layout.
    pub rollback: u32,
    /// The time of the last call for ids of the layout.
    pub used: UnixMicros,
    /// The high-water marks of nodes in the layout.
    pub of: NodeHighWaterMarks,
}

impl OtherLayout {
    /// Returns a layout without any known ids. Every node begins at or above `minimum`.
    pub(super) fn new(layout: Layout, minimum: UnixMicros, at: UnixMicros) -> Self {
        let of = NodeHighWaterMarks { high_water_marks: Vec::new(), minimum: layout.position_from(minimum) };
        Self { layout, node: None, rollback: 0, used: at, of }
    }

    /// Returns an instant after all ids that may have been issued in the layout.
    fn end(&self) -> UnixMicros {
        self.layout.instant_above(self.of.highest())
    }
}

/// All layouts other than the server's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    /// The layouts whose high-water marks are kept.
    pub layouts: Vec<OtherLayout>,
    /// The instant from which every node begins in a layout without an entry.
    pub minimum: UnixMicros,
}

impl Others {
    fn position(&self, layout: &Layout) -> Option<usize> {
        self.layouts.iter().position(|other| other.layout == *layout)
    }

    /// Returns a layout's entry.
    pub fn get(&self, layout: &Layout) -> Option<&OtherLayout> {
        Some(&self.layouts[self.position(layout)?])
    }

    /// Returns the time of the last call for ids of a layout; 0 if unknown.
    pub(super) fn used(&self, layout: &Layout) -> UnixMicros {
        self.get(layout).map_or(UnixMicros(0), |other| other.used)
    }

    /// Returns a layout's entry. Adds an entry if the layout has none. `at` is the time of the call for ids.
    pub(super) fn get_mut(&mut self, layout: &Layout, at: UnixMicros) -> &mut OtherLayout {
        let index = self.position(layout).unwrap_or_else(|| {
            self.put(OtherLayout::new(*layout, self.minimum, at), at);
            self.layouts.len() - 1
        });
        &mut self.layouts[index]
    }

    pub(super) fn take(&mut self, layout: &Layout) -> OtherLayout {
        let new = || OtherLayout::new(*layout, self.minimum, UnixMicros(0));
        self.position(layout).map_or_else(new, |index| self.layouts.swap_remove(index))
    }

    /// Adds an entry at the end. If there are too many entries, drops the entries with the lowest ids.
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
        // The nodes of another server belong to that server in every layout, so any entry may record them.
        for mark in of_another {
            self.layouts[0].of.set(mark.node, OF_ANOTHER);
        }
    }

    /// Makes every node that has a high-water mark issue only ids later than an instant.
    pub(super) fn rise(&mut self, last: UnixMicros) {
        for other in &mut self.layouts {
            other.of.rise(other.layout.position_after(last));
        }
    }

    /// Makes every node without a high-water mark issue only ids of an instant or later.
    pub fn raise_minimums(&mut self, at: UnixMicros) {
        self.minimum = self.minimum.max(at);
        for other in &mut self.layouts {
            other.of.raise_minimum(other.layout.position_from(at));
        }
    }
}
