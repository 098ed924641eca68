//! A server's tables, and transactions on the tables. Each call of the core's traits is a statement. Other processes run before
//! the statement, and this process may be killed after it.

use super::world::{Env, TAGS, Tag, World};
use snowflake_ids_core::registry::forks::Forks;
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::tables::{LockWait, Received, Tables};
use snowflake_ids_core::registry::wire;
use snowflake_ids_core::tag::definition::Definition;
use snowflake_ids_core::tag::directory;
use snowflake_ids_core::tag::reservation::{HighWaterMark, Reserved, Share, TagRow, promotions_since};
use snowflake_ids_core::tag::segment::Period;
use snowflake_ids_core::tag::serial::NumberFormat;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// The initial definition of every tag.
pub const DEFINITION: Definition = Definition {
    max_id: 0,
    start: 1,
    step: 4,
    max_step: 16,
    increment: 1,
    remainder: 0,
    max_value: i64::MAX,
};
/// The number by which directories name the table of tags.
pub const SOURCE: u32 = 1;

/// A row of the table of tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    pub definition: Definition,
    pub version: i64,
    /// The cluster that made the last reservation, followed by its timeline plus the forks that nodes had named.
    pub cluster: i64,
    pub timeline: u32,
}

impl Line {
    pub fn share(&mut self, share: Share) {
        self.definition.increment = share.of.into();
        self.definition.remainder = share.index.into();
    }

    pub fn raise(&mut self, max_id: i64) {
        self.definition.max_id = self.definition.max_id.max(max_id);
    }

    /// Raises the row as a cluster on a timeline. The first change after a promotion adds the skipped ids.
    pub fn raise_on(&mut self, cluster: i64, timeline: u32, max_id: i64) {
        let before = self.stored(cluster, timeline);
        self.raise(max_id);
        if self.promotions(cluster, timeline) > 0 {
            self.definition.max_id = before.kept_above(self.definition.max_id, None).0;
            (self.cluster, self.timeline) = (cluster, timeline);
        }
    }

    /// The row's definition, as a cluster on a timeline sees it.
    pub fn definition_on(&self, cluster: i64, timeline: u32) -> Definition {
        self.stored(cluster, timeline).definition
    }

    /// The number of promotions that the row has missed.
    pub fn promotions(&self, cluster: i64, timeline: u32) -> u32 {
        let number = |timeline| i32::try_from(timeline).unwrap();
        promotions_since(Some(self.cluster), Some(number(self.timeline)), (cluster, number(timeline)))
    }

    fn stored(&self, cluster: i64, timeline: u32) -> TagRow {
        let row = TagRow {
            definition: self.definition,
            period: Period::FOREVER,
            format: NumberFormat::default_for(None).to_string(),
            version: self.version,
            tag_generation: 1,
        };
        row.now(false, self.promotions(cluster, timeline))
    }
}

/// The content of the tables.
#[derive(Clone, Default)]
pub struct Store {
    /// The table of tags.
    pub rows: BTreeMap<Tag, Line>,
    /// The forks that the database knows.
    pub forks: Forks,
    /// The registries that the database uses instead of its own rows.
    pub endpoints: Vec<Endpoint>,
    /// For each registry and tag, the highest id received.
    pub received: BTreeMap<(String, Tag), Received>,
}

impl Store {
    /// The highest id of a tag that this server knows.
    pub fn highest(&self, tag: Tag) -> i64 {
        let received = self.received.iter().filter(|((_, of), _)| *of == tag);
        let received = received.map(|(_, received)| received.reached.1);
        received.chain(self.rows.get(&tag).map(|line| line.definition.max_id)).max().unwrap_or(0)
    }
}

/// A lock that a transaction holds to its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lock {
    Row(Tag),
    /// The table of registries in use and of received ids.
    Received,
}

/// A database: committed tables, and the locks of transactions.
#[derive(Default)]
pub struct Db {
    pub store: RefCell<Store>,
    /// For each lock, the transactions that hold it. The flag tells whether the transaction holds the lock exclusively.
    locks: RefCell<BTreeMap<Lock, Vec<(u64, bool)>>>,
    transactions: Cell<u64>,
}

impl Db {
    /// Whether no transaction holds a lock.
    pub fn is_free(&self) -> bool {
        self.locks.borrow().is_empty()
    }

    fn take(&self, lock: Lock, transaction: u64, alone: bool) -> bool {
        let mut locks = self.locks.borrow_mut();
        let holders = locks.entry(lock).or_default();
        if holders.iter().any(|(other, exclusive)| *other != transaction && (alone || *exclusive)) {
            return false;
        }
        match holders.iter_mut().find(|(holder, _)| *holder == transaction) {
            Some((_, exclusive)) => *exclusive |= alone,
            None => holders.push((transaction, alone)),
        }
        true
    }

    fn is_held(&self, lock: Lock) -> bool {
        self.locks.borrow().contains_key(&lock)
    }

    fn let_go(&self, transaction: u64) {
        self.locks.borrow_mut().retain(|_, holders| {
            holders.retain(|(holder, _)| *holder != transaction);
            !holders.is_empty()
        });
    }
}

/// The error of a statement that waited for a lock too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked;

/// A transaction, rolled back at its end unless it was committed.
pub struct Tx<'e> {
    env: &'e Env<'e>,
    db: Rc<Db>,
    number: u64,
    cluster: i64,
    timeline: u32,
    /// The longest wait for a lock.
    pub lock_timeout: u64,
    /// The transaction's own changes, applied on top of the committed tables.
    written: Vec<Rc<Change>>,
}

type Change = dyn Fn(&mut Store);

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        self.db.let_go(self.number);
    }
}

impl<'e> Tx<'e> {
    pub fn begin(env: &'e Env<'e>, lock_timeout: u64) -> Self {
        let (db, cluster, timeline) = env.with(|world| {
            let server = &world.servers[env.server];
            (server.db.clone(), server.cluster, server.who.timeline)
        });
        db.transactions.set(db.transactions.get() + 1);
        let number = db.transactions.get();
        Self { env, db, number, cluster, timeline, lock_timeout, written: Vec::new() }
    }

    /// The row as the transaction's server sees it.
    pub fn stored(&self, tag: Tag) -> Option<TagRow> {
        let promotions = self.promotions();
        self.look(|store| store.rows.get(&tag).map(|line| line.stored(self.cluster, promotions)))
    }

    /// The number of promotions that the transaction's server knows, as rows record it.
    pub fn promotions(&self) -> u32 {
        self.look(|store| store.forks.promotions(self.timeline))
    }

    pub fn env(&self) -> &'e Env<'e> {
        self.env
    }

    /// Reads the tables as the transaction sees them.
    pub fn look<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        if self.written.is_empty() {
            return look(&self.db.store.borrow());
        }
        let mut store = self.db.store.borrow().clone();
        self.written.iter().for_each(|change| change(&mut store));
        look(&store)
    }

    /// Writes a change. The transaction already holds the lock for the change.
    pub fn change(&mut self, change: impl Fn(&mut Store) + 'static) {
        self.written.push(Rc::new(change));
    }

    /// Waits for a lock, and holds it until the transaction ends.
    pub fn lock(&mut self, lock: Lock, alone: bool) -> Result<(), Locked> {
        let until = self.env.now() + self.lock_timeout;
        while !self.db.take(lock, self.number, alone) {
            if self.env.now() >= until {
                return Err(Locked);
            }
            self.env.sleep(2);
        }
        Ok(())
    }

    /// Commits all changes in one step. The committing process learns of the commit some time later.
    pub fn commit(self) {
        self.commit_and(|_| ());
    }

    /// Commits. Calls `and` before the locks are released.
    pub fn commit_and(mut self, and: impl FnOnce(&mut World)) {
        self.env.turn();
        let slow = self.env.with(|world| !world.calm && world.chance.once_in(20));
        let written = std::mem::take(&mut self.written);
        {
            let mut store = self.db.store.borrow_mut();
            for change in &written {
                change(&mut store);
            }
        }
        self.env.with(|world| {
            world.committed(self.env.server);
            and(world);
        });
        self.db.let_go(self.number);
        if slow {
            // The commit waits for standbys.
            let delay = self.env.with(|world| world.between(1, 300));
            self.env.sleep(delay);
        }
        self.env.turn();
    }
}

/// A tag's index in [`TAGS`].
pub fn tag_of(tag: &directory::Tag) -> Tag {
    TAGS.iter().position(|name| name.as_bytes() == tag.as_bytes()).unwrap()
}

impl Tables for Tx<'_> {
    type Error = Locked;

    fn read(&mut self, tag: &directory::Tag, wait: LockWait) -> Result<Option<TagRow>, Locked> {
        self.env.turn();
        let tag = tag_of(tag);
        if self.look(|store| !store.rows.contains_key(&tag)) {
            return Ok(None);
        }
        match wait {
            LockWait::Skip if !self.db.take(Lock::Row(tag), self.number, true) => return Ok(None),
            LockWait::Skip => {}
            LockWait::Wait => self.lock(Lock::Row(tag), true)?,
        }
        Ok(self.stored(tag))
    }

    fn is_taken(&mut self, tag: &directory::Tag) -> Result<bool, Locked> {
        self.env.turn();
        let tag = tag_of(tag);
        Ok(self.look(|store| store.rows.contains_key(&tag)) || self.db.is_held(Lock::Row(tag)))
    }

    fn create(&mut self, tag: &directory::Tag, share: Share) -> Result<(), Locked> {
        self.env.turn();
        let tag = tag_of(tag);
        self.lock(Lock::Row(tag), true)?;
        let mut line = Line {
            definition: DEFINITION,
            version: self.new_version(),
            cluster: self.cluster,
            timeline: self.promotions(),
        };
        line.share(share);
        self.change(move |store| {
            store.rows.entry(tag).or_insert(line);
        });
        Ok(())
    }

    fn write(&mut self, tag: &directory::Tag, max_id: i64, _: Period, version: i64) -> Result<(), Locked> {
        self.env.turn();
        let (tag, cluster, timeline) = (tag_of(tag), self.cluster, self.timeline);
        self.lock(Lock::Row(tag), true)?;
        self.change(move |store| {
            let promotions = store.forks.promotions(timeline);
            if let Some(line) = store.rows.get_mut(&tag) {
                line.raise_on(cluster, promotions, max_id);
                (line.version, line.cluster, line.timeline) = (version, cluster, promotions);
            }
        });
        Ok(())
    }

    fn set_back(&mut self, tag: &directory::Tag, before: i64, last: i64, version: i64) -> Result<(), Locked> {
        self.env.turn();
        let (tag, new_version) = (tag_of(tag), self.new_version());
        self.lock(Lock::Row(tag), true)?;
        self.change(move |store| {
            if let Some(line) = store.rows.get_mut(&tag)
                && (line.definition.max_id, line.version) == (last, version)
            {
                (line.definition.max_id, line.version) = (before, new_version);
            }
        });
        Ok(())
    }

    /// Versions are odd in tables that several servers share.
    fn new_version(&mut self) -> i64 {
        let server = self.env.server;
        let number = self.env.with(|world| {
            let own = world.nodes.iter().any(|node| node.server == server);
            world.number() << 1 | u64::from(!own)
        });
        number.cast_signed()
    }

    fn source(&mut self) -> Option<u32> {
        Some(SOURCE)
    }

    fn is_clustered(&mut self) -> Result<bool, Locked> {
        Ok(false)
    }

    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Locked> {
        self.env.turn();
        Ok(self.look(|store| store.endpoints.clone()))
    }

    fn record_seen(&mut self, registry: &wire::RegistryName) -> Result<(), Locked> {
        self.env.turn();
        let registry = registry.clone();
        self.change(move |store| {
            for endpoint in &mut store.endpoints {
                if let Some(seen) = endpoint.seen.after(&registry) {
                    endpoint.seen = seen;
                }
            }
        });
        Ok(())
    }

    fn lock_received(&mut self) -> Result<(), Locked> {
        self.env.turn();
        self.lock(Lock::Received, false)
    }

    fn received(&mut self, identity: &str, tag: &directory::Tag) -> Result<Option<Received>, Locked> {
        self.env.turn();
        Ok(self.look(|store| store.received.get(&(identity.to_owned(), tag_of(tag))).copied()))
    }

    fn receive(&mut self, identity: &str, tag: &directory::Tag, reserved: &Reserved) -> Result<(), Locked> {
        self.env.turn();
        self.lock(Lock::Received, false)?;
        let (identity, tag) = (identity.to_owned(), tag_of(tag));
        let what = Received { reached: (0, reserved.reached().1), version: reserved.version };
        self.change(move |store| {
            record_received(store, &identity, tag, what);
        });
        Ok(())
    }

    fn to_utf8(&mut self, tag: &directory::Tag) -> Option<String> {
        String::from_utf8(tag.as_bytes().to_vec()).ok()
    }

    fn tag(&mut self, text: &str) -> Option<directory::Tag> {
        directory::Tag::new(text.as_bytes())
    }

    fn high_water_mark(&mut self, _: &directory::Tag) -> Option<HighWaterMark> {
        None
    }
}

/// Records the highest received id. The recorded id never falls.
pub fn record_received<'s>(
    store: &'s mut Store,
    identity: &str,
    tag: Tag,
    what: Received,
) -> &'s mut Received {
    let received = store.received.entry((identity.to_owned(), tag)).or_insert(what);
    if what.reached >= received.reached {
        *received = what;
    }
    received
}

/// A duration in milliseconds.
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap()
}
