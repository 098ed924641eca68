//! How a node joins registries, attaches columns and leaves registries. The shipped code runs on tables in memory.

use super::database::{DEFINITION, Line, Lock, Locked, Tx, record_received};
use super::network::Net;
use super::node::Live;
use super::registry::Trouble;
use super::world::{Env, SECOND, TAGS, Tag, World, server_name};
use serde::Deserialize;
use serde_json::value::RawValue;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::error::UnusableRegistry;
use snowflake_ids_core::registry::handover::{
    self, HandoverTables, NodeServer, Registries, RolledBackTag, Seeded, TagStanding,
};
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::tables::Received;
use snowflake_ids_core::registry::wire::ReceivedTag;
use snowflake_ids_core::tag::clock_sweep;
use snowflake_ids_core::tag::definition::Definition;
use snowflake_ids_core::tag::reservation::{Share, TagRow};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

/// The number of ids in an attached column.
const ATTACHED: i64 = 40;
/// How long a session waits for a response.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A tag's row as a joining node hands it over to a registry.
#[derive(Deserialize)]
struct Handed {
    tag: String,
    max_id: i64,
    increment: Option<i64>,
    remainder: Option<i64>,
}

impl Handed {
    fn of(row: &RawValue) -> (Tag, Self) {
        let handed: Self = serde_json::from_str(row.get()).unwrap();
        (TAGS.iter().position(|name| *name == handed.tag).unwrap(), handed)
    }
}

impl World {
    /// Starts work of an operator's session at a node, unless the node has such a session already.
    fn operate_at(&mut self, node: usize, work: impl FnOnce(&Env<'_>, Rc<Live>) + 'static) -> bool {
        let busy = self.nodes[node].operator.is_some_and(|pid| self.runs(pid));
        let Some(live) = self.nodes[node].live.clone().filter(|_| !busy) else { return false };
        let pid = self.spawn(self.nodes[node].server, move |env| work(env, live));
        self.nodes[node].operator = Some(pid);
        true
    }

    /// Makes a node use these registries instead of other registries or its own rows. The node hands over what it knows of its tags.
    pub fn join(&mut self, node: usize, registries: Vec<usize>) -> bool {
        self.operate_at(node, move |env, live| join(env, node, &live, &registries))
    }

    /// Attaches a column to a tag, which then continues above the column's ids. The column's ids may lie below or above the ids
    /// in the buffers.
    pub fn attach(&mut self, node: usize) -> bool {
        let tag = self.chance.below(TAGS.len());
        let above = self.chance.between(-ATTACHED, ATTACHED);
        let Some(live) = self.nodes[node].live.clone() else { return false };
        self.spawn(self.nodes[node].server, move |env| attach(env, node, &live, tag, above));
        true
    }

    /// Makes a node leave its registries, and continue above all ids that it received.
    pub fn leave(&mut self, node: usize) -> bool {
        let alone = self.store_of(node, |store| store.endpoints.is_empty());
        !alone && self.operate_at(node, move |env, live| leave(env, &live))
    }
}

/// A node's tables in a session's transaction.
struct Here<'e> {
    tx: Tx<'e>,
    live: Rc<Live>,
}

impl<'e> Here<'e> {
    fn begin(env: &'e Env<'e>, live: &Rc<Live>) -> Self {
        Self { tx: Tx::begin(env, SECOND), live: live.clone() }
    }

    /// Commits, and forgets the status of the registries that the node uses.
    fn commit(self) {
        let Self { tx, live } = self;
        tx.commit();
        live.status.borrow_mut().clear();
    }
}

fn there<'e>(env: &'e Env<'e>, live: &Rc<Live>) -> Registries<Net<'e>> {
    Registries::new(Net { env, live: live.clone() }, TIMEOUT)
}

fn join(env: &Env<'_>, node: usize, live: &Rc<Live>, registries: &[usize]) {
    let mut here = Here::begin(env, live);
    let servers: Vec<String> = registries.iter().copied().map(server_name).collect();
    if handover::join(&mut here, &mut there(env, live), &servers).is_err() {
        return;
    }
    let is_new = |registry: &usize| env.with(|world| world.registries[*registry].is(Trouble::Dump));
    if registries.iter().any(is_new) {
        // The registry was replaced meanwhile, and the new registry is not raised yet.
        return;
    }
    env.with(|world| {
        world.record(|| format!("node {node} comes to {registries:?}"));
        for registry in registries {
            world.registries[*registry].raised |= registries.len() > 1;
        }
    });
    here.commit();
}

fn leave(env: &Env<'_>, live: &Rc<Live>) {
    let mut here = Here::begin(env, live);
    if let Ok(true) = handover::leave(&mut here, &mut there(env, live), |_| ()) {
        here.commit();
    }
}

fn attach(env: &Env<'_>, node: usize, live: &Rc<Live>, tag: Tag, above: i64) {
    let mut here = Here::begin(env, live);
    let clear = |tag: &Tag| env.with(|world| world.clear(live, *tag));
    let highest = (here.tx.look(|store| store.highest(tag)) + above).max(1);
    let mut seeded = Seeded::NONE;
    match handover::seed(&mut here, &mut there(env, live), TAGS[tag], highest) {
        Ok(true) => seeded.add(tag, highest, clear),
        Ok(false) => {
            // The transaction locks the node's own row until it ends. Under that lock, the transaction discards earlier reservations.
            if here.tx.lock(Lock::Row(tag), true).is_err() {
                return;
            }
            let reserved = here.tx.look(|store| store.rows.get(&tag).map(|line| line.definition.max_id));
            let buffer_states = live.slots[tag].segment.buffer_states();
            let back = reserved.filter(|reserved| highest <= *reserved);
            let max_id = back.map_or(highest, |reserved| {
                highest.max(clock_sweep::highest(&buffer_states, None, reserved, 1))
            });
            let new = Line { definition: Definition { max_id, ..DEFINITION }, ..here.tx.new_line() };
            here.tx.change(move |store| {
                let row = store.rows.entry(tag).or_insert(new);
                (row.definition.max_id, row.version) = (max_id, new.version);
            });
            clear(&tag);
        }
        Err(_) => return,
    }
    if !seeded.0.is_empty() && here.tx.lock(Lock::Received, false).is_err() {
        return;
    }
    for (tag, highest) in seeded.0.clone() {
        here.tx.change(move |store| {
            for endpoint in store.endpoints.clone() {
                let what = Received { reached: (0, highest), version: 0 };
                // The saved range from the last stop may contain ids of the column. Version 0 keeps the range from being used.
                record_received(store, &endpoint.seen.identity, tag, what).version = 0;
            }
        });
    }
    here.tx.commit_and(|world| {
        world.record(|| format!("node {node} attached {} up to {highest}", TAGS[tag]));
        world.ledger.attach(node, tag, highest - ATTACHED + 1..=highest);
        seeded.committed(|tag| world.clear(live, *tag));
    });
}

impl Tx<'_> {
    /// Creates a tag's row with the share `share`, or raises the existing row.
    fn raise(&mut self, tag: Tag, max_id: i64, share: Share) {
        let mut line = self.new_line();
        line.share(share);
        let version = line.version;
        self.change(move |store| {
            let row = store.rows.entry(tag).or_insert(line);
            if max_id > row.definition.max_id {
                row.raise_on(line.cluster, line.timeline, max_id);
                row.version = version;
            }
        });
    }

    fn new_line(&self) -> Line {
        let (env, timeline) = (self.env(), self.promotions());
        env.with(|world| {
            let own = world.nodes.iter().any(|node| node.server == env.server);
            let version = (world.number() << 1 | u64::from(!own)).cast_signed();
            let cluster = world.servers[env.server].cluster;
            Line { definition: DEFINITION, version, cluster, timeline }
        })
    }

    /// The row of the next tag after `after`, with the highest id that may have been issued for the row's tag.
    pub fn page(&self, after: Option<&str>) -> Vec<Box<RawValue>> {
        let (cluster, timeline) =
            (self.env().with(|world| world.servers[self.env().server].cluster), self.promotions());
        let row = |(tag, line): (&Tag, &Line)| {
            let Line { definition, .. } = line;
            let row = serde_json::json!({
                "tag": TAGS[*tag],
                "max_id": line.definition_on(cluster, timeline).max_id,
                "increment": definition.increment,
                "remainder": definition.remainder,
            });
            RawValue::from_string(row.to_string()).unwrap()
        };
        let mut next: Vec<(&str, Box<RawValue>)> =
            self.look(|store| store.rows.iter().map(|(tag, line)| (TAGS[*tag], row((tag, line)))).collect());
        next.sort_by_key(|(name, _)| *name);
        let next = next.into_iter().find(|(name, _)| after.is_none_or(|after| *name > after));
        next.into_iter().map(|(_, row)| row).collect()
    }
}

impl Tx<'_> {
    fn redefine(&mut self, tag: Tag, increment: i64, remainder: i64) {
        self.change(move |store| {
            if let Some(line) = store.rows.get_mut(&tag) {
                (line.definition.increment, line.definition.remainder) = (increment, remainder);
            }
        });
    }
}

/// Both errors make the transaction fail.
impl From<UnusableRegistry> for Locked {
    fn from(_: UnusableRegistry) -> Self {
        Self
    }
}

impl HandoverTables for Tx<'_> {
    type Error = Locked;

    fn read_all(&mut self, tags: &BTreeSet<String>) -> Result<Vec<(String, TagRow)>, Locked> {
        let mut found = Vec::new();
        for name in tags {
            self.env().turn();
            let tag = TAGS.iter().position(|tag| tag == name).unwrap();
            if self.stored(tag).is_some() {
                self.lock(Lock::Row(tag), true)?;
            }
            found.extend(self.stored(tag).map(|row| (name.clone(), row)));
        }
        Ok(found)
    }

    /// Creates rows that the registry lacks, and raises rows that it has. The first raise after a promotion skips ids.
    fn put(&mut self, rows: &[&RawValue], share: Share) -> Result<(), Locked> {
        for row in rows {
            let (tag, Handed { max_id, increment, remainder, .. }) = Handed::of(row);
            self.env().turn();
            self.lock(Lock::Row(tag), true)?;
            let is_new = self.look(|store| !store.rows.contains_key(&tag));
            self.raise(tag, max_id, share);
            let fits = increment.zip(remainder).filter(|(by, left)| share.holds(*by, *left));
            if let Some((increment, remainder)) = fits.filter(|_| is_new) {
                self.redefine(tag, increment, remainder);
            }
        }
        Ok(())
    }

    fn standings(&mut self, rows: &[&RawValue]) -> Result<Vec<TagStanding>, Locked> {
        self.env().turn();
        let standing = |row: &&RawValue| {
            let (slot_index, Handed { tag, .. }) = Handed::of(row);
            let definition = self.look(|store| store.rows[&slot_index].definition);
            let (increment, remainder) = (definition.increment, definition.remainder);
            TagStanding { tag, increment, remainder, dated: false, dated_otherwise: false }
        };
        Ok(rows.iter().map(standing).collect())
    }

    fn lock(&mut self) -> Result<(), Locked> {
        self.env().turn();
        self.lock(Lock::Received, true)?;
        (0..TAGS.len()).try_for_each(|tag| self.lock(Lock::Row(tag), true))
    }

    fn keep_endpoints(&mut self) -> Result<(), Locked> {
        self.env().turn();
        self.lock(Lock::Received, false)
    }

    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Locked> {
        self.env().turn();
        Ok(self.look(|store| store.endpoints.clone()))
    }

    fn set_endpoints(&mut self, endpoints: &[Endpoint]) -> Result<(), Locked> {
        self.env().turn();
        let endpoints = endpoints.to_vec();
        self.change(move |store| store.endpoints.clone_from(&endpoints));
        Ok(())
    }

    fn tags(&mut self, after: Option<&str>) -> Result<Vec<Box<RawValue>>, Locked> {
        self.env().turn();
        Ok(self.page(after))
    }

    fn received(&mut self, only: Option<&str>) -> Result<Vec<(String, ReceivedTag)>, Locked> {
        self.env().turn();
        let recorded = |((identity, tag), received): (&(String, Tag), &Received)| {
            (identity.clone(), ReceivedTag { tag: TAGS[*tag].to_owned(), reached: received.reached })
        };
        let mut found: Vec<_> = self.look(|store| store.received.iter().map(recorded).collect());
        found.retain(|(_, received)| only.is_none_or(|only| received.tag == only));
        Ok(found)
    }

    fn record_all(&mut self) -> Result<(), Locked> {
        self.env().turn();
        let highest: Vec<i64> = self.look(|store| (0..TAGS.len()).map(|tag| store.highest(tag)).collect());
        self.change(move |store| {
            for endpoint in store.endpoints.clone() {
                for (tag, max_id) in highest.iter().enumerate().filter(|(_, max_id)| **max_id > 0) {
                    let what = Received { reached: (0, *max_id), version: 0 };
                    record_received(store, &endpoint.seen.identity, tag, what);
                }
            }
        });
        Ok(())
    }

    fn define(&mut self, rows: &[&RawValue]) -> Result<(), Locked> {
        self.env().turn();
        for row in rows {
            let (tag, Handed { increment, remainder, .. }) = Handed::of(row);
            self.redefine(tag, increment.unwrap(), remainder.unwrap());
        }
        Ok(())
    }
}

impl<'e> NodeServer for Here<'e> {
    type Tables = Tx<'e>;
    type Error = Locked;

    fn tables(&mut self) -> &mut Tx<'e> {
        &mut self.tx
    }

    fn high_water_marks(&mut self) -> Result<Vec<RolledBackTag>, Locked> {
        Ok(Vec::new())
    }

    fn leases_for(&mut self, _: &str) -> Result<Option<String>, Locked> {
        Ok(None)
    }

    fn give_up_lease(&mut self, _: &Endpoint) -> Result<(), Locked> {
        Ok(())
    }

    fn switch(&mut self, _: bool) -> Result<(), Locked> {
        self.tx.env().turn();
        let (env, live) = (self.tx.env(), &self.live);
        let delay = env.with(|world| {
            (0..TAGS.len()).for_each(|tag| world.vacate(live, tag));
            world.between(0, 30)
        });
        env.sleep(delay);
        Ok(())
    }

    fn identity(&mut self) -> Option<String> {
        let env = self.tx.env();
        Some(env.with(|world| world.servers[env.server].who.identity.clone()))
    }

    fn layout(&self) -> Option<String> {
        None
    }

    fn now(&self) -> UnixMicros {
        self.tx.env().clock()
    }

    fn max_clock_skew(&self) -> Duration {
        // The clocks of all servers agree, but a response may take long.
        Duration::from_mins(1)
    }
}
