//! Actions of operators at registries and nodes.

use super::database::{DEFINITION, Line};
use super::registry::Trouble;
use super::world::{Event, SECOND, TAGS, World, registry_of};
use snowflake_ids_core::registry::wire::Stranger;
use snowflake_ids_core::tag::reservation::Share;

/// The time until operators notice a fault. It is longer than any wait for a response, because an operator would not know of
/// responses that are still on their way.
const NOTICE: u64 = 14 * SECOND;
/// The pause before operators try again when rows are locked.
const AGAIN: u64 = 7;

impl World {
    pub fn operate(&mut self) {
        let mut delay = self.between(SECOND, 8 * SECOND);
        for registry in 0..self.registries.len() {
            let noticed =
                self.registries[registry].trouble.is_some_and(|(_, since)| self.now >= since + NOTICE);
            if noticed && self.works(registry) {
                if self.is_free(registry) {
                    self.repair(registry);
                } else {
                    delay = AGAIN;
                }
            }
        }
        let fine = (0..self.registries.len())
            .all(|this| self.works(this) && self.registries[this].trouble.is_none());
        if !self.shared && self.registries.len() > 1 && self.now >= self.shared_from && fine {
            if (0..self.registries.len()).all(|registry| self.is_free(registry)) {
                self.make_shares();
            } else {
                delay = AGAIN;
            }
        }
        for node in 0..self.nodes.len() {
            self.direct(node);
        }
        self.after(delay, Event::Operator);
    }

    /// Changes a row of a registry. The caller has made sure that no transaction holds a lock there.
    pub fn change_row<T>(&mut self, registry: usize, tag: usize, change: impl FnOnce(&mut Line) -> T) -> T {
        let version = (self.number() << 1 | 1).cast_signed();
        let server = &self.servers[self.registries[registry].primary];
        let mut store = server.db.store.borrow_mut();
        let timeline = store.forks.promotions(server.who.timeline);
        let new = Line { definition: DEFINITION, version, cluster: server.cluster, timeline };
        let line = store.rows.entry(tag).or_insert(new);
        line.version = version;
        change(line)
    }

    /// Raises a registry above the highest ids in use, and restores the terms of the registry's rows.
    pub fn repair(&mut self, registry: usize) {
        self.record(|| format!("registry {registry} is repaired"));
        let share = self.share(registry).filter(|_| self.shared);
        for tag in 0..TAGS.len() {
            let in_use = (0..self.nodes.len()).map(|node| self.highest(node, tag)).max().unwrap_or(0);
            self.change_row(registry, tag, |line| {
                if let Some(share) = share {
                    line.share(share);
                }
                line.raise(in_use);
            });
        }
        (self.registries[registry].trouble, self.registries[registry].raised) = (None, true);
        self.settle(registry);
    }

    fn share(&self, registry: usize) -> Option<Share> {
        let [index, of] = [registry, self.registries.len()].map(|number| u32::try_from(number).unwrap());
        (of > 1).then_some(Share { index, of })
    }

    /// Makes the rows of all registries shares of one another. The rows are raised when a node joins several registries.
    fn make_shares(&mut self) {
        self.record(|| "rows become shares".into());
        self.shared = true;
        for registry in 0..self.registries.len() {
            let share = self.share(registry).expect("there are several");
            (0..TAGS.len()).for_each(|tag| self.change_row(registry, tag, |line| line.share(share)));
            self.registries[registry].raised = false;
            self.settle(registry);
        }
    }

    /// Makes a node use the right registries.
    fn direct(&mut self, node: usize) {
        let this = &self.nodes[node];
        let (alone_until, wants_all) = (this.alone_until, this.wants_all);
        let all: Vec<usize> = (0..self.registries.len()).collect();
        let mut wanted = if self.shared && wants_all { all } else { vec![0] };
        if self.calm && !wanted.iter().all(|registry| self.works(*registry)) {
            // Some registries are gone for good. One working registry is enough.
            wanted.retain(|registry| self.works(*registry));
            wanted.truncate(1);
            // The working registry may not have been raised, because no node has joined several registries yet.
            if let Some(alone) = wanted.first().copied().filter(|alone| !self.registries[*alone].raised) {
                if self.is_free(alone) {
                    self.repair(alone);
                }
                return;
            }
        }
        let endpoints = self.store_of(node, |store| store.endpoints.clone());
        let strangers: Vec<Stranger> = endpoints
            .iter()
            .map(|endpoint| (&self.registries[registry_of(&endpoint.server)], endpoint))
            .filter(|(registry, _)| registry.trouble.is_none())
            .filter_map(|(registry, endpoint)| self.servers[registry.primary].who.check(&endpoint.seen).err())
            .collect();
        let used = endpoints.iter().map(|endpoint| registry_of(&endpoint.server));
        let right = used.eq(wanted.iter().copied()) && strangers.is_empty();
        // An operator raises a registry restored from a dump before introducing a node to the registry.
        let known = wanted.iter().all(|registry| !self.registries[*registry].is(Trouble::Dump));
        if right || !known || wanted.is_empty() || self.now < alone_until {
            return;
        }
        // A registry may have been restored to its files from before a failover. The node, which remembers a later timeline, cannot
        // tell the restored registry from a former primary.
        if strangers.iter().any(|stranger| *stranger != Stranger::Another) {
            self.leave(node);
        } else {
            self.join(node, wanted);
        }
    }
}
