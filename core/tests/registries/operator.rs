//! What operators do.

use super::guards::Guard;
use super::node::{Node, Source};
use super::registry::{Registry, Trouble};
use super::world::{Event, SECOND, TAGS, World};
use snowflake_ids_core::reservation::Share;

/// How long it takes them to notice. Longer than an answer is waited for: what is on its way would not be known.
const NOTICE: u64 = 12 * SECOND;

impl World {
    pub fn operate(&mut self) {
        let delay = self.between(SECOND, 8 * SECOND);
        self.after(delay, Event::Operator);
        for registry in 0..self.registries.len() {
            let noticed =
                self.registries[registry].trouble.is_some_and(|(_, since)| self.now >= since + NOTICE);
            if noticed && self.registries[registry].works(self.now) {
                self.repair(registry);
            }
        }
        let fine = self.registries.iter().all(|this| this.works(self.now) && this.trouble.is_none());
        if !self.shared && self.registries.len() > 1 && self.now >= self.shared_from && fine {
            self.make_shares();
        }
        for node in 0..self.nodes.len() {
            self.direct(node);
        }
    }

    /// Raises a registry above the highest ids in use, and gives its rows their terms back.
    pub fn repair(&mut self, registry: usize) {
        self.note(|| format!("registry {registry} is repaired"));
        let share = self.share(registry).filter(|_| self.shared);
        for tag in 0..TAGS.len() {
            let in_use = self.nodes.iter().map(|node| node.disk.highest(tag)).max().unwrap_or(0);
            let line = self.registries[registry].primary.row(tag);
            if let Some(share) = share {
                line.share(share);
            }
            line.raise(in_use);
        }
        self.registries[registry].trouble = None;
        self.registries[registry].settle();
    }

    fn share(&self, registry: usize) -> Option<Share> {
        let [index, of] = [registry, self.registries.len()].map(|number| u32::try_from(number).unwrap());
        (of > 1).then_some(Share { index, of })
    }

    /// Makes the rows of all registries shares of one another: first their terms, so that none goes on as before, then
    /// how far they are, which after a promotion is not what the row says.
    pub fn make_shares(&mut self) {
        self.note(|| "rows become shares".into());
        self.shared = true;
        for tag in 0..TAGS.len() {
            for registry in 0..self.registries.len() {
                let share = self.share(registry).expect("there are several");
                self.registries[registry].primary.row(tag).share(share);
            }
            let reached = |Registry { primary, .. }: &Registry| {
                primary.rows[&tag].definition_on(primary.who.timeline, self.guards).max_id
            };
            let highest = self.registries.iter().map(reached).max().unwrap_or(0);
            if self.guards.keep(Guard::SharesRaised) {
                self.registries.iter_mut().for_each(|registry| registry.primary.row(tag).raise(highest));
            }
        }
        self.registries.iter_mut().for_each(Registry::settle);
    }

    /// Has a node use the registries that it should.
    fn direct(&mut self, node: usize) {
        let Node { disk, live, alone_until, wants_all, .. } = &self.nodes[node];
        let idle = live.as_ref().is_some_and(|live| live.asking.is_none());
        let all: Vec<usize> = (0..self.registries.len()).collect();
        let mut wanted = if self.shared && *wants_all { all } else { vec![0] };
        let works = |registry: &usize| self.registries[*registry].works(self.now);
        if self.calm && !wanted.iter().all(works) {
            // Some are gone for good. One that is left will do.
            wanted.retain(works);
            wanted.truncate(1);
        }
        let is_stranger = |source: &Source| {
            let this = &self.registries[source.registry];
            this.trouble.is_none() && this.primary.who.check(&source.seen).is_err()
        };
        let used = disk.sources.iter().map(|source| source.registry);
        let right = used.eq(wanted.iter().copied()) && !disk.sources.iter().any(is_stranger);
        // Nobody is introduced to one restored from a dump before it is raised.
        let known = wanted.iter().all(|registry| !self.registries[*registry].is(Trouble::Dump));
        if idle && !right && known && !wanted.is_empty() && self.now >= *alone_until {
            self.join(node, wanted);
        }
    }
}
