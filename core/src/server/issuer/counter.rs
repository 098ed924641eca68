//! The generator of one layout: the one of the server's own, or that of a place.

use super::host::Host;
use super::issuing::{Issuer, Issuing};
use crate::generator::snowflake::Generator;
use crate::ids::layout::Layout;

/// What issues in one layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter<'a> {
    pub layout: Layout,
    pub generator: &'a Generator,
    /// Its place; None: it is that of the server's own layout.
    pub place: Option<usize>,
}

impl<H: Host> Issuer<'_, H> {
    pub(super) fn own_counter(&self) -> Counter<'_> {
        Counter { layout: self.shared.layout, generator: &self.shared.generator, place: None }
    }

    pub(super) fn counter_of(&self, index: usize, layout: Layout) -> Counter<'_> {
        Counter { layout, generator: &self.shared.places[index].generator, place: Some(index) }
    }

    /// All of them: the server's own, and that of each place which a layout has.
    pub(super) fn counters(&self, issuing: &Issuing) -> Vec<Counter<'_>> {
        let places = issuing.used().enumerate();
        let places = places.filter_map(|(index, place)| Some(self.counter_of(index, place.layout?)));
        std::iter::once(self.own_counter()).chain(places).collect()
    }

    /// Those that have begun a term.
    pub(super) fn open_counters(&self, issuing: &Issuing) -> Vec<Counter<'_>> {
        let mut counters = self.counters(issuing);
        counters.retain(|counter| issuing.node_at(counter.place).is_some());
        counters
    }
}
