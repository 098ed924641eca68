//! A registry: the servers that have its rows, and earlier states of the rows on standbys and in backups.

use super::database::Store;
use super::world::{World, registry_of};
use snowflake_ids_core::registry::forks::{Fork, Forks};
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::wire;
use std::collections::{BTreeMap, BTreeSet};

/// A fault that an operator mends after noticing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The registry was set back to an earlier state of itself.
    SetBack,
    /// The registry is a new one, made from an earlier state.
    Dump,
    /// The terms of a row differ from the terms of the row's share.
    Altered,
}

/// The source from which a registry is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A copy of the registry's files: the same registry, on the timeline of the copy.
    Copy,
    /// A copy of the files and a WAL archive: point-in-time recovery gives the registry a new timeline.
    Archive,
    /// A dump: the restored registry is another registry.
    Dump,
}

/// An earlier state of a server, kept for a restore.
#[derive(Clone)]
pub struct Backup {
    pub who: wire::RegistryName,
    pub store: Store,
}

/// A registry, with all of its servers over time.
pub struct Registry {
    pub primary: usize,
    /// The latest timeline of any of its servers.
    pub timeline: u32,
    /// The former primary, and the time until which nodes can reach it.
    pub former: Option<(usize, u64)>,
    /// Earlier states of the primary that a standby may be in.
    pub past: Vec<Store>,
    /// States of standbys that did not follow the last failover.
    pub elder: Vec<Store>,
    /// Forks that nodes know. A registry that lacks one of them may repeat ids.
    pub unheard: Vec<i64>,
    /// Earlier states that the registry may be restored to.
    pub backups: Vec<Backup>,
    /// The highest id of each tag that any server of the registry knew.
    pub highest: BTreeMap<usize, i64>,
    /// Whether the rows, after they became shares, were raised above all ids from before.
    pub raised: bool,
    /// The present fault, and the time when it began.
    pub trouble: Option<(Trouble, u64)>,
}

impl Registry {
    pub fn new(primary: usize) -> Self {
        Self {
            primary,
            timeline: 1,
            former: None,
            past: Vec::new(),
            elder: Vec::new(),
            unheard: Vec::new(),
            backups: Vec::new(),
            highest: BTreeMap::new(),
            raised: false,
            trouble: None,
        }
    }

    pub fn is(&self, trouble: Trouble) -> bool {
        self.trouble.is_some_and(|(this, _)| this == trouble)
    }

    /// Keeps the primary's new state, because a standby may be in it later.
    fn follow(&mut self, store: &Store) {
        for (tag, line) in &store.rows {
            let highest = self.highest.entry(*tag).or_default();
            *highest = line.definition.max_id.max(*highest);
        }
        self.past.push(store.clone());
        if self.past.len() > 40 {
            self.past.remove(0);
        }
    }

    /// The states of standbys whose lag is at most the number of ids that promotions skip, including the promotions whose forks
    /// nodes will name. The cluster's next timeline is `here`.
    fn standbys<'s>(
        &self,
        standbys: &'s [Store],
        primary: &Store,
        here: (i64, u32),
        named: &BTreeSet<i64>,
    ) -> Vec<&'s Store> {
        let covers = |store: &&Store| {
            let unheard = lacking(store, named).count();
            let promotions = store.forks.promotions(here.1) + u32::try_from(unheard).unwrap();
            primary.rows.iter().all(|(tag, line)| {
                store.rows.get(tag).is_some_and(|row| {
                    let same = (row.definition.increment, row.definition.remainder)
                        == (line.definition.increment, line.definition.remainder);
                    same && row.definition.skipped_ahead(row.promotions(here.0, promotions)).max_id
                        >= self.highest[tag]
                })
            })
        };
        standbys.iter().filter(covers).collect()
    }
}

/// The forks of `named` that a store lacks.
fn lacking<'f>(store: &'f Store, named: &'f BTreeSet<i64>) -> impl Iterator<Item = i64> + 'f {
    named.iter().copied().filter(|number| !store.forks.0.iter().any(|fork| fork.number == *number))
}

impl World {
    pub fn committed(&mut self, server: usize) {
        let store = self.servers[server].db.store.borrow();
        if let Some(registry) = self.registries.iter_mut().find(|registry| registry.primary == server) {
            registry.follow(&store);
        }
    }

    /// Lets all standbys catch up, after an operator's statement.
    pub fn settle(&mut self, registry: usize) {
        let primary = self.registries[registry].primary;
        self.registries[registry].past.clear();
        self.committed(primary);
    }

    pub fn works(&self, registry: usize) -> bool {
        let server = &self.servers[self.registries[registry].primary];
        server.hung_until <= self.now && server.down_until <= self.now
    }

    /// Whether no transaction holds a lock on a registry's rows.
    pub fn is_free(&self, registry: usize) -> bool {
        self.servers[self.registries[registry].primary].db.is_free()
    }

    pub fn back_up(&mut self, registry: usize) {
        let this = &mut self.registries[registry];
        if this.trouble.is_none() {
            let server = &self.servers[this.primary];
            this.backups.push(Backup { who: server.who.clone(), store: server.db.store.borrow().clone() });
            if this.backups.len() > 4 {
                this.backups.remove(0);
            }
        }
    }

    /// The forks of a registry that nodes have seen.
    fn forks_seen(&self, registry: usize) -> BTreeSet<i64> {
        let seen = |node: usize| {
            self.store_of(node, |store| {
                let of = |endpoint: &&Endpoint| registry_of(&endpoint.server) == registry;
                store
                    .endpoints
                    .iter()
                    .filter(of)
                    .flat_map(|endpoint| endpoint.seen.forks())
                    .collect::<Vec<_>>()
            })
        };
        (0..self.nodes.len()).flat_map(seen).collect()
    }

    /// Promotes a lagging standby. When the former primary returns, nodes that do not know the successor cannot reach it.
    /// `elder` promotes a standby that has not followed the last failover. Its timeline is that of the present primary.
    pub fn fail_over(&mut self, registry: usize, elder: bool) -> bool {
        let seen = if elder { self.forks_seen(registry) } else { BTreeSet::new() };
        let this = &self.registries[registry];
        let former = this.primary;
        let cluster = self.servers[former].cluster;
        let mut who = self.servers[former].who.clone();
        who.timeline += u32::from(!elder);
        let mut store = {
            let primary = self.servers[former].db.store.borrow();
            let standbys = if elder { &this.elder } else { &this.past };
            let standbys = this.standbys(standbys, &primary, (cluster, who.timeline), &seen);
            if this.trouble.is_some() || standbys.is_empty() {
                return false;
            }
            standbys[self.chance.below(standbys.len())].clone()
        };
        self.draw(&mut store, &mut who);
        let primary = self.add_server();
        let server = &mut self.servers[primary];
        (server.who, server.cluster) = (who, cluster);
        let unheard = lacking(&store, &seen).collect();
        *server.db.store.borrow_mut() = store;
        self.kill(former);
        let this = &mut self.registries[registry];
        this.unheard = unheard;
        if !elder {
            this.elder = std::mem::take(&mut this.past);
        }
        this.timeline = this.timeline.max(self.servers[primary].who.timeline);
        (this.former, this.primary) = (Some((former, 0)), primary);
        self.settle(registry);
        true
    }

    /// Draws the fork of a newly promoted server.
    fn draw(&mut self, store: &mut Store, who: &mut wire::RegistryName) {
        let number = store.forks.draw(who.timeline, [], self.chance.next().cast_signed());
        store.forks.0.push(Fork { number, timeline: Some(who.timeline) });
        who.fork = Some(number);
    }

    /// Restores a registry to an earlier state.
    pub fn restore(&mut self, registry: usize, origin: Origin) -> bool {
        let this = &mut self.registries[registry];
        if this.trouble.is_some() || this.backups.is_empty() {
            return false;
        }
        let Backup { mut who, mut store } = this.backups[self.chance.below(this.backups.len())].clone();
        let before = this.primary;
        if origin == Origin::Archive {
            this.timeline += 1;
            who.timeline = this.timeline;
            self.draw(&mut store, &mut who);
        }
        if origin == Origin::Dump {
            store.forks = Forks::default();
        }
        self.kill(before);
        let primary = self.add_server();
        let cluster = self.servers[before].cluster;
        let server = &mut self.servers[primary];
        if origin != Origin::Dump {
            (server.who, server.cluster) = (who, cluster);
        }
        *server.db.store.borrow_mut() = store;
        self.servers[before].down_until = u64::MAX;
        let now = self.now;
        let this = &mut self.registries[registry];
        (this.former, this.primary) = (None, primary);
        (this.elder, this.unheard) = (Vec::new(), Vec::new());
        if origin == Origin::Dump {
            this.backups.clear();
        }
        this.trouble = Some((if origin == Origin::Dump { Trouble::Dump } else { Trouble::SetBack }, now));
        self.settle(registry);
        true
    }
}
