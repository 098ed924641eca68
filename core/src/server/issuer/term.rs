//! A term of one counter: how it begins, goes on and ends.

use super::counter::Counter;
use super::issuing::Issuing;
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::ids::position::{NodeBits, Position};
use crate::server::state::State;

/// What is to be done where ids of one layout come from, once its mark is durable.
pub(super) struct Step<'a> {
    pub counter: Counter<'a>,
    pub node: Node,
    pub node_bits: NodeBits,
    pub first: Position,
    pub limit: Position,
    pub begins: bool,
}

impl Step<'_> {
    pub fn take(&self) {
        let generator = self.counter.generator;
        if self.begins {
            generator.begin(self.node_bits, self.first, self.limit);
        } else {
            generator.raise(self.limit);
        }
    }
}

/// The position that a term begins with: where the last one of this node may have come to.
pub(super) fn first(state: &State, layout: &Layout, node: Node, at: UnixMicros) -> Position {
    if holds(Guard::StartAtMark) { state.mark_in(layout, node) } else { layout.position_at(at) }
}

/// Ends the term that a generator is in, and notes how far it came.
pub(super) fn end(issuing: &mut Issuing, state: &mut State, counter: &Counter<'_>) {
    let Counter { layout, generator, place } = counter;
    let ended = issuing.node_at_mut(*place).take();
    let next = if holds(Guard::CloseFirst) { generator.close() } else { generator.next() };
    let present = || state.node_in(layout);
    if let Some(node) = if holds(Guard::SettleOwnTerm) { ended } else { ended.or_else(present) } {
        // A term may begin where its lease does, without a mark, and issue nothing: the clock is behind that.
        debug_assert!(
            generator.snapshot().last.is_none_or(|last| last < state.mark_in(layout, node))
                || !holds(Guard::MarksKept),
            "issued above the mark"
        );
        state.settle(layout, node, next);
    }
}
