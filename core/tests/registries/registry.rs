//! A registry: the servers that have its rows, and earlier states of the rows on standbys and in backups.

use super::database::Store;
use super::world::World;
use snowflake_ids_core::registry::wire;
use std::collections::BTreeMap;

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

    /// The states of standbys whose lag is at most the number of ids that promotions skip. The cluster's next timeline is
    /// `here`.
    pub fn standbys(&self, primary: &Store, here: (i64, u32)) -> Vec<&Store> {
        let covers = |store: &&Store| {
            primary.rows.iter().all(|(tag, line)| {
                store.rows.get(tag).is_some_and(|row| {
                    let same = (row.definition.increment, row.definition.remainder)
                        == (line.definition.increment, line.definition.remainder);
                    same && row.definition.skipped_ahead(row.promotions(here.0, here.1)).max_id
                        >= self.highest[tag]
                })
            })
        };
        self.past.iter().filter(covers).collect()
    }
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

    /// Promotes a lagging standby. When the former primary returns, nodes that do not know the successor cannot reach it.
    pub fn fail_over(&mut self, registry: usize) -> bool {
        let this = &self.registries[registry];
        let former = this.primary;
        let mut who = self.servers[former].who.clone();
        who.timeline += 1;
        let store = {
            let primary = self.servers[former].db.store.borrow();
            let standbys = this.standbys(&primary, (self.servers[former].cluster, who.timeline));
            if this.trouble.is_some() || standbys.is_empty() {
                return false;
            }
            standbys[self.chance.below(standbys.len())].clone()
        };
        let cluster = self.servers[former].cluster;
        let primary = self.add_server();
        let server = &mut self.servers[primary];
        (server.who, server.cluster) = (who, cluster);
        *server.db.store.borrow_mut() = store;
        self.kill(former);
        let this = &mut self.registries[registry];
        this.timeline = this.timeline.max(self.servers[primary].who.timeline);
        (this.former, this.primary) = (Some((former, 0)), primary);
        self.settle(registry);
        true
    }

    /// Restores a registry to an earlier state.
    pub fn restore(&mut self, registry: usize, origin: Origin) -> bool {
        let this = &mut self.registries[registry];
        if this.trouble.is_some() || this.backups.is_empty() {
            return false;
        }
        let Backup { mut who, store } = this.backups[self.chance.below(this.backups.len())].clone();
        let before = this.primary;
        if origin == Origin::Archive {
            this.timeline += 1;
            who.timeline = this.timeline;
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
        if origin == Origin::Dump {
            this.backups.clear();
        }
        this.trouble = Some((if origin == Origin::Dump { Trouble::Dump } else { Trouble::SetBack }, now));
        self.settle(registry);
        true
    }
}
