//! A node: a database of a cluster, with buffers, sessions and the shipped refill worker.

use super::database::{Locked, SOURCE, Store, Tx, tag_of};
use super::network::Net;
use super::world::{Env, Event, Pid, SECOND, TAGS, Tag, World};
use snowflake_ids_core::process::refill::{RefillHost, RefillSettings, RefillTask, RefillWorker};
use snowflake_ids_core::registry::client::RegistryClient;
use snowflake_ids_core::registry::error::SqlError;
use snowflake_ids_core::registry::failover;
use snowflake_ids_core::registry::failover::Health;
use snowflake_ids_core::server::saved_range_file::{self, SavedRangeFile, SavedRanges};
use snowflake_ids_core::server::saved_ranges::{InUse, Name, rest};
use snowflake_ids_core::tag::directory;
use snowflake_ids_core::tag::reservation::{HighWaterMark, Reached, SavedRange};
use snowflake_ids_core::tag::slot::{SlotState, TagSlot};
use snowflake_ids_core::tag::step::SlowStart;
use snowflake_ids_core::tag::tickets::Answer;
use snowflake_ids_core::{Clock, UnixMicros};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long a refill worker without work keeps running.
const STAY: u64 = 2 * SECOND;
/// The number of sessions per node.
const SESSIONS: usize = 2;

pub struct Node {
    pub server: usize,
    /// The first node of the cluster. All nodes of a cluster start and end together.
    cluster: usize,
    /// The node's database in the cluster.
    database: u32,
    /// The memory that a crash loses.
    pub live: Option<Rc<Live>>,
    /// The cluster's saved-range file after the last stop. The next field is an earlier state of the file in a backup.
    pub saved_range: Rc<RefCell<Option<Vec<u8>>>>,
    pub former_saved_range: Option<Vec<u8>>,
    /// The time of the last id of each tag.
    pub last: [u64; TAGS.len()],
    /// The time until which an operator keeps the node away from registries.
    pub alone_until: u64,
    /// Whether the node should use all registries once their rows are shares.
    pub wants_all: bool,
    /// The operator's session that changes the node's registries.
    pub operator: Option<Pid>,
}

/// Memory shared by the processes of a node.
#[derive(Default)]
pub struct Live {
    pub slots: [Slot; TAGS.len()],
    /// The health of each registry, and its last failure.
    pub status: RefCell<BTreeMap<u32, (Health, String)>>,
    pub worker: Cell<Option<Pid>>,
    called: Cell<bool>,
    sessions: RefCell<Vec<Pid>>,
    /// How often the refill worker has asked for a renewal of the node's lease.
    pub renewals: Cell<u32>,
}

/// A tag's slot.
#[derive(Default)]
pub struct Slot {
    state: SlotState,
    woken: Cell<bool>,
}

impl Deref for Slot {
    type Target = SlotState;

    fn deref(&self) -> &SlotState {
        &self.state
    }
}

impl Slot {
    fn in_use(&self, database: u32, tag: &str) -> InUse {
        InUse {
            name: Name { database, source: SOURCE, tag: tag.as_bytes().to_vec() },
            had_ids: !self.is_unused(),
            left: rest(&self.segment.buffer_states()).map(|(range, period)| SavedRange {
                version: self.version.load(Relaxed),
                day: period.dated(),
                range,
            }),
            high_water_mark: None,
        }
    }
}

impl Node {
    fn new(server: usize, cluster: usize, database: u32) -> Self {
        Self {
            server,
            cluster,
            database,
            live: None,
            saved_range: Rc::default(),
            former_saved_range: None,
            last: [0; TAGS.len()],
            alone_until: 0,
            wants_all: false,
            operator: None,
        }
    }
}

impl World {
    pub fn start(&mut self, node: usize) {
        let (live, server) = (Rc::new(Live::default()), self.nodes[node].server);
        self.nodes[node].live = Some(live.clone());
        for _ in 0..SESSIONS {
            let its = live.clone();
            let pid = self.spawn(server, move |env| session(env, node, &its));
            live.sessions.borrow_mut().push(pid);
        }
    }

    /// Kills all processes of a node's cluster, and clears the memory. The cluster's nodes start again after a while.
    pub fn crash(&mut self, node: usize) -> bool {
        let delay = self.between(1, 8 * SECOND);
        let mut any = false;
        for node in self.cluster_of(node) {
            let Node { server, live, operator, .. } = &mut self.nodes[node];
            *operator = None;
            let (server, lived) = (*server, live.take().is_some());
            if lived {
                self.kill(server);
                self.after(delay, Event::Start { node });
            }
            any |= lived;
        }
        any
    }

    /// The nodes in a node's cluster.
    pub fn cluster_of(&self, node: usize) -> Vec<usize> {
        let cluster = self.nodes[node].cluster;
        (0..self.nodes.len()).filter(|other| self.nodes[*other].cluster == cluster).collect()
    }

    /// Adds a node that starts later. The node is in a new cluster, or is another database of an existing cluster.
    pub fn add_node(&mut self, start: u64, cluster: Option<usize>) -> usize {
        let (node, server) = (self.nodes.len(), self.add_server());
        let cluster = cluster.unwrap_or(node);
        let mut new = Node::new(server, cluster, u32::try_from(node - cluster).unwrap());
        if let Some(first) = self.nodes.get(cluster) {
            new.saved_range = first.saved_range.clone();
        }
        self.nodes.push(new);
        self.after(start, Event::Start { node });
        node
    }

    /// Starts a copy of a cluster's directory beside the original.
    pub fn copy(&mut self, node: usize) -> bool {
        const MOST: usize = 10;
        let (of, start) = (self.cluster_of(node), self.between(1, 20 * SECOND));
        if self.nodes.len() + of.len() > MOST {
            return false;
        }
        let mut cluster = None;
        for node in of {
            let new = self.add_node(start, cluster);
            let first = *cluster.get_or_insert(new);
            let left = self.nodes[node].saved_range.borrow().clone();
            *self.nodes[first].saved_range.borrow_mut() = left;
            self.nodes[new].database = self.nodes[node].database;
            self.nodes[new].wants_all = self.nodes[node].wants_all;
            let store = self.store_of(node, Store::clone);
            *self.servers[self.nodes[new].server].db.store.borrow_mut() = store;
            self.ledger.copy(node, new);
        }
        true
    }

    /// Saves the buffers' ids at a stop. The next reservation uses these ids if no other reservation was made in between.
    pub fn stop(&mut self, node: usize) -> bool {
        let mut in_use = Vec::new();
        for node in self.cluster_of(node).into_iter().map(|node| &self.nodes[node]) {
            let Some(live) = &node.live else { return false };
            in_use.extend(live.slots.iter().zip(TAGS).map(|(slot, tag)| slot.in_use(node.database, tag)));
        }
        let this = &mut self.nodes[node];
        let file = File { env: None, text: this.saved_range.clone() };
        saved_range_file::save(&file, in_use, |_| true).unwrap();
        this.former_saved_range.clone_from(&this.saved_range.borrow());
        self.crash(node)
    }

    /// The highest id of a tag that a node knows.
    pub fn highest(&self, node: usize, tag: Tag) -> i64 {
        self.store_of(node, |store| store.highest(tag))
    }

    pub fn store_of<T>(&self, node: usize, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.servers[self.nodes[node].server].db.store.borrow())
    }

    /// Wakes a node's refill worker, or starts a refill worker.
    fn call_worker(&mut self, node: usize, live: &Rc<Live>) {
        live.called.set(true);
        if let Some(pid) = live.worker.get().filter(|pid| self.runs(*pid)) {
            return self.wake(pid);
        }
        let its = live.clone();
        let pid = self.spawn(self.nodes[node].server, move |env| refill(env, node, its));
        live.worker.set(Some(pid));
    }

    /// Gives a tag's slot to another tag. When the first tag gets a slot again, it starts slowly.
    pub fn evict(&mut self, node: usize) -> bool {
        let tag = self.chance.below(TAGS.len());
        let Some(live) = self.nodes[node].live.clone() else { return false };
        self.vacate(&live, tag);
        live.slots[tag].set_slow_start(Some(SlowStart::default()));
        true
    }

    /// Takes a tag's slot away, together with the ids in its buffers. Callers then look for a slot again.
    pub fn vacate(&mut self, live: &Live, tag: Tag) {
        let slot = &live.slots[tag];
        slot.hand_over(self.number(), UnixMicros(0));
        live.sessions.borrow().iter().for_each(|pid| self.wake(*pid));
    }

    /// Discards the ids in a tag's buffers.
    pub fn clear(&mut self, live: &Live, tag: Tag) {
        live.slots[tag].clear();
        live.sessions.borrow().iter().for_each(|pid| self.wake(*pid));
    }
}

/// A session that takes ids now and then.
fn session(env: &Env<'_>, node: usize, live: &Rc<Live>) {
    loop {
        let delay = env.with(|world| world.between(40, 800));
        env.sleep(delay);
        let (tag, want) = env.with(|world| (world.chance.below(TAGS.len()), 1 + world.chance.below(3)));
        take(env, node, live, tag, NonZeroU32::new(u32::try_from(want).unwrap()).unwrap());
    }
}

/// Takes ids of a tag. Waits if there are none.
fn take(env: &Env<'_>, node: usize, live: &Rc<Live>, tag: Tag, want: NonZeroU32) {
    let (slot, since) = (&live.slots[tag], env.now());
    let mut ticket = None;
    loop {
        if let Ok(taken) = slot.segment.take(slot.segment.slot_generation(), want, &env.clock()) {
            let version = slot.version.load(Relaxed);
            env.with(|world| {
                if taken.prefetch {
                    slot.request.ask();
                    world.call_worker(node, live);
                }
                let now = world.now;
                world.longest_wait = world.longest_wait.max(now - since);
                world.nodes[node].last[tag] = now;
                for id in (0..taken.range.count).map(|offset| taken.range.at(offset)) {
                    world.ledger.issue((node, now), tag, id, version & 1 == 1);
                }
            });
            return;
        }
        let answered = ticket.and_then(|ticket| slot.request.answer_to(ticket));
        assert!(matches!(answered, None | Some(Answer::Supplied)), "{answered:?}");
        if ticket.is_none() || answered.is_some() {
            slot.begin_wait(true, uptime(env));
            slot.wanted.store(1, Relaxed);
            ticket = Some(slot.request.ask_to_create());
        }
        env.with(|world| world.call_worker(node, live));
        env.sleep_until(env.now() + SECOND);
    }
}

/// The refill worker.
fn refill(env: &Env<'_>, node: usize, live: Rc<Live>) {
    let host = Host { env, node, live: live.clone() };
    let link = RegistryClient::new(Net { env, live });
    let (text, database) = env.with(|world| {
        let node = &world.nodes[node];
        (node.saved_range.clone(), node.database)
    });
    let (saved_range, error) = SavedRanges::of_database(File { env: Some(env), text }, database);
    assert!(error.is_none(), "{}", error.unwrap());
    RefillWorker::new(&host, link, saved_range).run();
}

struct Host<'e> {
    env: &'e Env<'e>,
    node: usize,
    live: Rc<Live>,
}

impl Clock for Host<'_> {
    fn now(&self) -> UnixMicros {
        self.env.clock()
    }
}

/// The uptime is never zero, because zero means "never" in the shipped code.
fn uptime(env: &Env<'_>) -> Duration {
    Duration::from_millis(env.now() + 1)
}

impl<'e> RefillHost for Host<'e> {
    type Slot = Slot;
    type Tables = Tx<'e>;

    fn uptime(&self) -> Duration {
        uptime(self.env)
    }

    fn with_directory_locked<T>(&self, work: impl FnOnce() -> T) -> T {
        self.env.turn();
        let done = work();
        self.wake_sessions();
        done
    }

    fn high_water_mark(&self, _: u32, _: &directory::Tag) -> Option<HighWaterMark> {
        None
    }

    fn clear_high_water_mark(&self, _: u32, _: &directory::Tag, _: Option<Reached>) {}

    fn transaction<T>(&self, work: impl FnOnce(&mut Tx<'e>) -> Result<T, Locked>) -> Result<T, SqlError> {
        let mut tx = Tx::begin(self.env, 20);
        match work(&mut tx) {
            Ok(done) => {
                tx.commit();
                Ok(done)
            }
            Err(Locked) => Err(SqlError::new(*b"55P03", "it is locked")),
        }
    }

    fn settings(&self) -> RefillSettings {
        RefillSettings {
            target: Duration::from_secs(5),
            prefetch: 50,
            registry_timeout: Duration::from_secs(5),
        }
    }

    fn tasks(&self) -> Vec<RefillTask<'_, Slot>> {
        self.env.turn();
        let slots = self.live.slots.iter().zip(TAGS);
        let task = |(slot, tag): (_, &str)| {
            RefillTask::new(slot, directory::Tag::new(tag.as_bytes()).unwrap(), SOURCE)
        };
        slots.filter_map(task).collect()
    }

    fn has_registry_to_probe(&self) -> bool {
        let now = Duration::from_millis(self.env.now());
        self.live.status.borrow().values().any(|(health, _)| failover::is_to_be_probed(*health, now))
    }

    fn leave_table(&self, _: u32) {}

    fn is_dismissed(&self) -> bool {
        false
    }

    fn is_overdue(&self) -> bool {
        false
    }

    fn is_crowded(&self) -> bool {
        false
    }

    fn record_served(&self) {
        self.wake_sessions();
    }

    fn rest(&self, last_work: Duration) -> bool {
        let until = u64::try_from(last_work.as_millis()).unwrap() + STAY;
        let stays = self.env.now() < until;
        if stays {
            self.sleep_until(until);
        }
        stays
    }

    fn sleep(&self, limit: Duration) {
        self.wake_sessions();
        self.sleep_until(self.env.now() + u64::try_from(limit.as_millis()).unwrap().max(1));
    }

    fn renew_lease(&self) {
        self.live.renewals.set(self.live.renewals.get() + 1);
    }

    fn show_activity(&self, _: usize) {}

    fn say_once(&self, warning: String) {
        let node = self.node;
        self.env.with(|world| world.record(|| format!("node {node}: {warning}")));
    }

    fn shown(&self, tag: &directory::Tag) -> String {
        TAGS[tag_of(tag)].to_owned()
    }
}

impl Host<'_> {
    /// Sleeps until a time, unless the worker was called or is called meanwhile.
    fn sleep_until(&self, until: u64) {
        if !self.live.called.replace(false) {
            self.env.wait(until, |_| self.live.called.replace(false).then_some(()));
        }
    }

    fn wake_sessions(&self) {
        let woken = self.live.slots.iter().any(|slot| slot.woken.replace(false));
        if woken {
            self.env.with(|world| {
                self.live.sessions.borrow().iter().for_each(|pid| world.wake(*pid));
            });
        }
    }
}

impl TagSlot for Slot {
    fn state(&self) -> &SlotState {
        &self.state
    }

    fn wake(&self) {
        self.woken.set(true);
    }

    fn clear(&self) {
        self.state.clear();
    }

    fn set_format(&self, _: &str) {}
}

/// The saved-range file of a node. `env`: the process that uses the file; None after the processes have ended.
struct File<'e> {
    env: Option<&'e Env<'e>>,
    text: Rc<RefCell<Option<Vec<u8>>>>,
}

impl File<'_> {
    fn turn(&self) {
        if let Some(env) = self.env {
            env.turn();
        }
    }
}

impl SavedRangeFile for File<'_> {
    type Error = serde_json::Error;

    fn read(&self) -> Result<Option<Vec<u8>>, Self::Error> {
        self.turn();
        Ok(self.text.borrow().clone())
    }

    fn append(&self, text: &[u8]) -> Result<(), Self::Error> {
        self.turn();
        if let Some(all) = &mut *self.text.borrow_mut() {
            all.extend(text);
        }
        self.turn();
        Ok(())
    }

    fn replace(&self, text: &[u8]) -> Result<(), Self::Error> {
        self.turn();
        *self.text.borrow_mut() = Some(text.to_vec());
        self.turn();
        Ok(())
    }

    fn say_lost(&self, error: &Self::Error) {
        panic!("{error}");
    }
}
