//! Marks: raising them ahead of ids, in each layout.

use super::high_water_marks::NodeHighWaterMarks;
use super::stored::State;
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::{Field, Layout};
use crate::ids::position::Position;
use std::time::Duration;

impl State {
    /// Returns how far a node may have issued in the server's own layout: a server that issues as that node begins here.
    pub fn high_water_mark(&self, node: Node) -> Position {
        self.high_water_mark_in(&self.layout, node)
    }

    /// Raises the mark of the node that issues in a layout to `ahead` beyond the clock, or beyond `next`, the position
    /// after the last one issued, where ids run ahead of the clock. Under a lease not beyond its expiry. Gives the
    /// position below which it may issue once this state is durable; None where no node issues. That is not above
    /// `next` where the expiry or the layout's end is reached.
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

    /// Notes the exact position after the last one that a node issued in a layout, when it does not any more.
    pub fn settle(&mut self, layout: &Layout, node: Node, next: Position) {
        self.set_high_water_mark(layout, node, next, self.others.used(layout));
    }

    /// Has another rollback value of the same worker issue in a layout, one whose mark the clock has passed; whether there is
    /// one.
    pub fn switch_rollback(&mut self, layout: &Layout, at: UnixMicros) -> bool {
        let Some(node) = self.node_in(layout) else { return false };
        let values = u32::try_from(layout.max(Field::Rollback)).unwrap_or(0) + 1;
        let now = layout.position_at(at);
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

    /// Returns how far a node may have issued in a layout: a server that issues as that node begins here.
    pub fn high_water_mark_in(&self, layout: &Layout, node: Node) -> Position {
        let lease = self.lease.as_ref().filter(|lease| lease.is_of(node));
        let (high_water_mark, start) = if *layout == self.layout {
            (self.own.of(node), lease.map(|lease| lease.start))
        } else {
            let unknown = || layout.position_from(self.others.minimum);
            let lease = lease.filter(|_| holds(Guard::OthersStart));
            let high_water_mark = self.others.get(layout).map_or_else(unknown, |other| other.of.of(node));
            (high_water_mark, lease.map(|lease| lease.start_in(layout, &self.layout)))
        };
        high_water_mark.max(start.unwrap_or_default())
    }

    /// `at`: when ids of the layout were asked for last.
    fn set_high_water_mark(&mut self, layout: &Layout, node: Node, position: Position, at: UnixMicros) {
        if *layout == self.layout {
            return self.own.set(node, position);
        }
        let other = self.others.get_mut(layout, at);
        other.used = at;
        other.of.set(node, position);
    }

    /// Has every node begin at or above a position of a layout.
    pub fn begin_above(&mut self, layout: &Layout, above: Position) {
        if *layout == self.layout {
            self.own.raise_minimum(above);
            self.own.rise(above);
        } else if above > Position::ZERO {
            let used = self.others.used(layout);
            self.others.get_mut(layout, used).of.raise_minimum(above);
        }
    }

    /// The marks of a layout.
    pub fn high_water_marks_of(&self, layout: &Layout) -> Option<&NodeHighWaterMarks> {
        if *layout == self.layout { Some(&self.own) } else { self.others.get(layout).map(|other| &other.of) }
    }

    /// Returns whether the clock is behind the ids that any worker of this server may have issued: another one is no help.
    pub fn blocks_all_workers(&self, at: UnixMicros) -> bool {
        self.tables().any(|(layout, of)| of.minimum > layout.position_after(at))
    }

    /// Returns whether ids of some layout come to an instant.
    pub fn comes_to(&self, at: UnixMicros) -> bool {
        self.tables().any(|(layout, _)| {
            self.node_in(layout)
                .is_some_and(|node| self.high_water_mark_in(layout, node) >= layout.position_at(at))
        })
    }
}
