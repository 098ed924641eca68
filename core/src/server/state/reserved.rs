//! Reservations of positions. Each reservation raises a layout's high-water mark before ids reach the mark.

use super::high_water_marks::NodeHighWaterMarks;
use super::stored::State;
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::{Field, Layout};
use crate::ids::position::Position;
use std::time::Duration;

impl State {
    /// Returns the position after the highest position that a node may have issued in the server's own layout. The
    /// node's next term begins at or above this position.
    pub fn high_water_mark(&self, node: Node) -> Position {
        self.high_water_mark_in(&self.layout, node)
    }

    /// Raises the high-water mark of the layout's node to the time `ahead` after the clock's time, but not beyond the
    /// lease's expiry. If ids are ahead of the clock, `ahead` counts from `next`, the position after the last issued
    /// position.
    ///
    /// Returns the position below which the node may issue positions once this state is durable; None if no node issues
    /// ids. The result is `next` or lower if the lease's expiry or the layout's end is reached.
    pub fn reserve(
        &mut self,
        layout: &Layout,
        at: UnixMicros,
        next: Position,
        ahead: Duration,
    ) -> Option<Position> {
        let node = self.node_in(layout)?;
        let base = at.max(layout.instant_of(next));
        let request = layout.position_after(base.plus(ahead));
        let lease = self.lease.as_ref().filter(|_| holds(Guard::ExpiryClamps));
        let expiry = lease.map_or(Position::MAX, |lease| layout.position_at(lease.expiry));
        let limit = request.min(expiry).min(layout.end_position());
        let high_water_mark = limit.max(self.high_water_mark_in(layout, node));
        self.set_high_water_mark(layout, node, high_water_mark, at);
        Some(limit)
    }

    /// Records the exact end of a node's positions in a layout, after the node's term has ended.
    pub fn settle(&mut self, layout: &Layout, node: Node, next: Position) {
        self.set_high_water_mark(layout, node, next, self.others.used(layout));
    }

    /// Switches a layout's node to another rollback value whose high-water mark the clock has passed. Returns false if
    /// there is no such value.
    pub fn switch_rollback(&mut self, layout: &Layout, at: UnixMicros) -> bool {
        let Some(node) = self.node_in(layout) else { return false };
        let values = u32::try_from(layout.max(Field::Rollback)).unwrap_or(0) + 1;
        let now = layout.position_at(at);
        if self.begins_above(layout) > now {
            return false;
        }
        let other = (1..values)
            .map(|step| Node { rollback: (node.rollback + step) % values, ..node })
            .find(|other| self.high_water_mark_in(layout, *other) <= now);
        let Some(Node { rollback, .. }) = other else { return false };
        if *layout == self.layout {
            self.node = self.node.map(|node| Node { rollback, ..node });
        } else {
            self.others.get_mut(layout, at).rollback = rollback;
        }
        true
    }

    /// Returns the position after the highest position that a node may have issued in a layout. The node's next term
    /// begins at or above this position.
    pub fn high_water_mark_in(&self, layout: &Layout, node: Node) -> Position {
        let lease = self.lease.as_ref().filter(|lease| lease.is_of(node));
        let is_own = *layout == self.layout;
        let high_water_mark = if is_own {
            self.own.of(node)
        } else {
            let unknown = || layout.position_from(self.others.minimum);
            self.others.get(layout).map_or_else(unknown, |other| other.of.of(node))
        };
        let lease = lease.filter(|_| is_own || holds(Guard::OthersStart));
        high_water_mark.max(lease.map(|lease| lease.start_in(layout)).unwrap_or_default())
    }

    /// Sets a node's high-water mark in a layout. `at` is the time of the last call for ids of the layout.
    fn set_high_water_mark(&mut self, layout: &Layout, node: Node, position: Position, at: UnixMicros) {
        if *layout == self.layout {
            return self.own.set(node, position);
        }
        let other = self.others.get_mut(layout, at);
        other.used = at;
        other.of.set(node, position);
    }

    /// Makes every node begin at or above a position of a layout.
    pub fn begin_above(&mut self, layout: &Layout, above: Position) {
        if *layout == self.layout {
            self.own.raise_minimum(above);
            self.own.rise(above);
        } else if above > Position::ZERO {
            let used = self.others.used(layout);
            self.others.get_mut(layout, used).of.raise_minimum(above);
        }
    }

    /// Returns the high-water marks of a layout; None if the state has no entry for the layout.
    pub fn high_water_marks_of(&self, layout: &Layout) -> Option<&NodeHighWaterMarks> {
        if *layout == self.layout { Some(&self.own) } else { self.others.get(layout).map(|other| &other.of) }
    }

    /// Returns the position at or above which terms of all nodes begin: an upper bound of the safe positions that
    /// readers may have received.
    pub fn begins_above(&self, layout: &Layout) -> Position {
        if *layout == self.layout && holds(Guard::ToldKept) { self.told } else { Position::ZERO }
    }

    /// Returns true if the ids of every worker id begin ahead of the clock. A switch to another worker id then does not
    /// help.
    pub fn blocks_all_worker_ids(&self, at: UnixMicros) -> bool {
        self.begins_above(&self.layout) > self.layout.position_after(at)
            || self.tables().any(|(layout, of)| of.minimum > layout.position_after(at))
    }

    /// Returns true if, in any layout, the node may have issued ids whose time has reached an instant.
    pub fn comes_to(&self, at: UnixMicros) -> bool {
        self.tables().any(|(layout, _)| {
            self.node_in(layout)
                .is_some_and(|node| self.high_water_mark_in(layout, node) >= layout.position_at(at))
        })
    }
}
