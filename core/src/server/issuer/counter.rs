//! The counters of an issuer: the generator of each layout, with its slot and its term.

use super::host::Host;
use super::shared::Issuer;
use super::slot::Issuing;
use crate::clock::UnixMicros;
use crate::generator::snowflake::Generator;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::ids::position::{NodeBits, Position, Tick};
use crate::server::state::State;

/// Returns the tick of an instant; the first tick if the instant is outside the layout.
pub(super) fn tick_of(layout: &Layout, at: UnixMicros) -> Tick {
    layout.tick(at).unwrap_or_default()
}

/// The generator of one layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter<'a> {
    pub layout: Layout,
    pub generator: &'a Generator,
}

impl Counter<'_> {
    /// Returns the node whose term is open; None while the generator is closed.
    pub fn node(&self) -> Option<Node> {
        let node = self.layout.node_of(self.generator.snapshot().node_bits);
        node.filter(|_| self.generator.is_open())
    }
}

/// A change of one layout's generator. The change takes effect once the layout's high-water mark is durable.
pub(super) struct PendingChange<'a> {
    pub counter: Counter<'a>,
    pub node_bits: NodeBits,
    pub first: Position,
    pub limit: Position,
    pub begins: bool,
}

impl PendingChange<'_> {
    pub fn take(&self) {
        let generator = self.counter.generator;
        if self.begins {
            generator.begin(self.node_bits, self.first, self.limit);
        } else {
            generator.raise(self.limit);
        }
    }
}

/// Returns the position at which a term begins: the node's high-water mark, or the bound of the readers' safe positions
/// if that bound is higher. Earlier terms of the node may have issued any position below the node's high-water mark.
pub(super) fn first(state: &State, layout: &Layout, node: Node, at: UnixMicros) -> Position {
    if holds(Guard::StartAtHighWaterMark) {
        state.high_water_mark_in(layout, node).max(state.begins_above(layout))
    } else {
        layout.position_at(at)
    }
}

/// Ends a generator's term, and records the position that the term reached.
pub(super) fn end(issuing: &Issuing, state: &mut State, counter: &Counter<'_>) {
    let Counter { layout, generator } = counter;
    let ended = counter.node();
    let next = if holds(Guard::CloseFirst) { generator.close() } else { generator.next() };
    let present = || state.node_in(layout);
    if let Some(node) = if holds(Guard::SettleOwnTerm) { ended } else { ended.or_else(present) } {
        // A term has no high-water mark if it began at the start of its lease while the clock was behind. Such a term
        // has issued no ids.
        debug_assert!(
            generator.snapshot().last.is_none_or(|last| last < state.high_water_mark_in(layout, node))
                || !holds(Guard::HighWaterMarksKept),
            "issued above the mark"
        );
        state.settle(layout, node, next);
        if issuing.has_readers && *layout == state.layout && generator.snapshot().last.is_some() {
            state.told = layout.first_from(next);
        }
    }
}

impl<H: Host> Issuer<'_, H> {
    pub(super) fn own_counter(&self) -> Counter<'_> {
        Counter { layout: self.shared.layout, generator: &self.shared.generator }
    }

    pub(super) fn counter_of(&self, index: usize, layout: Layout) -> Counter<'_> {
        Counter { layout, generator: &self.shared.slots[index].generator }
    }

    pub(super) fn counters(&self, issuing: &Issuing) -> Vec<Counter<'_>> {
        let slots = issuing.used().enumerate();
        let slots = slots.filter_map(|(index, slot)| Some(self.counter_of(index, slot.layout?)));
        std::iter::once(self.own_counter()).chain(slots).collect()
    }

    pub(super) fn open_counters(&self, issuing: &Issuing) -> Vec<Counter<'_>> {
        let mut counters = self.counters(issuing);
        counters.retain(|counter| counter.generator.is_open());
        counters
    }
}
