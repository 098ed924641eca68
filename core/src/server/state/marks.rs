//! The high-water marks of nodes in one layout.

use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::position::Position;
use serde::{Deserialize, Serialize};

/// The mark of a node that another server issues as: that of a copied directory.
pub const OF_ANOTHER: Position = Position::MAX;

/// The most marks of a layout that are kept one by one. What has to go of them raises the floor.
const MAX_MARKS: usize = 256;

/// The high-water mark of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The node that the mark is of.
    #[serde(flatten)]
    pub node: Node,
    /// The position below which it may have issued.
    pub position: Position,
}

impl Mark {
    /// Returns whether it says that its node is another server's.
    pub fn is_of_another(&self) -> bool {
        self.position == OF_ANOTHER
    }
}

/// The marks of all nodes in one layout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// How far nodes may have issued.
    pub marks: Vec<Mark>,
    /// A position at or above which every node begins that has no mark.
    pub floor: Position,
}

impl Marks {
    /// Returns how far a node may have issued.
    pub fn of(&self, node: Node) -> Position {
        self.marks.iter().find(|mark| mark.node == node).map_or(self.floor, |mark| mark.position)
    }

    /// The highest of all, those left out that are another server's.
    pub fn highest(&self) -> Position {
        self.marks
            .iter()
            .filter(|mark| !mark.is_of_another())
            .map(|mark| mark.position)
            .fold(self.floor, Position::max)
    }

    pub(super) fn set(&mut self, node: Node, position: Position) {
        if !holds(Guard::MarksKept) {
            self.marks.clear();
        }
        match self.marks.iter_mut().find(|mark| mark.node == node) {
            Some(mark) => mark.position = position,
            None => self.marks.push(Mark { node, position }),
        }
        self.drop_lowest(node);
    }

    /// Has every node that has a mark begin at or above a position.
    pub(super) fn rise(&mut self, above: Position) {
        for mark in &mut self.marks {
            mark.position = mark.position.max(above);
        }
    }

    /// Has every node begin at or above a position that has no mark.
    pub(super) fn raise_floor(&mut self, above: Position) {
        self.floor = self.floor.max(above);
    }

    fn drop_lowest(&mut self, keep: Node) {
        while self.marks.len() > MAX_MARKS {
            let droppable = |mark: &Mark| mark.node != keep && !mark.is_of_another();
            let others = self.marks.iter().enumerate().filter(|(_, mark)| droppable(mark));
            let Some((index, lowest)) = others.min_by_key(|(_, mark)| mark.position) else { return };
            self.raise_floor(lowest.position);
            self.marks.swap_remove(index);
        }
    }
}
