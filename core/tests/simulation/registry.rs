//! Registries: tables of worker ids in memory, read and written by the shipped code in transactions. A transaction that locks a
//! row blocks other transactions until its end. Only then are its changes visible. If a process ends, its transaction is rolled
//! back.

use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::wire::{Entry, RegistryName as Name, RequestBody, ResponseBody};
use snowflake_ids_core::registry::worker_ids::{self, HeldWorkerId, LeaseLimits, WorkerIdRows};
use snowflake_ids_core::server::lease::{Holder, Lease, LeaseRow};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a transaction retries a locked row.
const TIMEOUT: u32 = 40;

#[derive(Clone)]
struct Stored {
    row: LeaseRow,
    entry: Entry,
    given_back: bool,
    former_until: Option<UnixMicros>,
}

/// A registry: the committed rows, and the transaction that locks each row.
#[derive(Default)]
pub struct Registry {
    rows: RefCell<BTreeMap<u32, Stored>>,
    locks: RefCell<BTreeMap<u32, u64>>,
    transactions: Cell<u64>,
    /// The difference of the registry's clock from the true time.
    pub offset: Cell<i64>,
    /// How often a holder got a worker id that it did not hold before.
    pub leased: Cell<u64>,
    /// How often the registry was recreated.
    pub generation: Cell<u32>,
}

impl Registry {
    /// Whether a worker id was given back by its holder.
    pub fn is_given_back(&self, worker_id: u32) -> bool {
        self.rows.borrow().get(&worker_id).is_some_and(|stored| stored.given_back)
    }

    /// The latest id time that a holder reported.
    pub fn latest(&self) -> Option<UnixMicros> {
        self.rows.borrow().values().filter_map(|stored| stored.entry.last).max()
    }

    /// Keeps the holder of a worker id from renewing, as an operator may.
    pub fn forbid(&self, worker_id: u32) {
        if !self.locks.borrow().contains_key(&worker_id)
            && let Some(stored) = self.rows.borrow_mut().get_mut(&worker_id)
        {
            stored.row.token = None;
        }
    }

    pub fn clear(&self) {
        self.rows.borrow_mut().clear();
    }

    /// Replaces the registry by an empty registry.
    pub fn make_anew(&self) {
        self.clear();
        self.generation.set(self.generation.get() + 1);
    }

    /// Records a lease of the former registry, as its holder showed it.
    pub fn record_former(&self, lease: &Lease, until: UnixMicros) {
        let Lease { worker_id, token, expiry, datacenter, .. } = *lease;
        let row = LeaseRow { worker_id, token: Some(token), expiry, leased: expiry };
        let (host, directory, layout) = (String::new(), String::new(), String::new());
        let holder = Holder { system_identifier: 0, timeline: 1, host, port: None, directory, layout };
        let entry = Entry { datacenter, token, duration: Duration::ZERO, now: expiry, last: None, holder };
        let stored = Stored { row, entry, given_back: false, former_until: Some(until) };
        self.rows.borrow_mut().insert(worker_id, stored);
    }

    /// The number of requests served.
    pub fn served(&self) -> u64 {
        self.transactions.get()
    }

    /// Whether no worker id is leased.
    pub fn is_empty(&self) -> bool {
        self.rows.borrow().is_empty()
    }

    /// The registry's name.
    pub fn name(&self) -> Name {
        name(self.generation.get())
    }

    /// Answers a request in one transaction. Calls `stop` at each point where other processes may run and this process may end.
    pub fn serve(
        &self,
        timeline: u32,
        ask: &RequestBody,
        limits: &LeaseLimits,
        now: UnixMicros,
        stop: &dyn Fn(),
    ) -> Result<ResponseBody, Locked> {
        self.transactions.set(self.transactions.get() + 1);
        let number = self.transactions.get();
        let generation = self.generation.get();
        let mut rows =
            Transaction { registry: self, stop, number, generation, written: BTreeMap::new(), timeline };
        let said = match ask {
            RequestBody::Lease(request) => {
                ResponseBody::Leased(worker_ids::lease(&mut rows, request, limits, now)?)
            }
            RequestBody::Renew { worker_id, token, entry } => {
                ResponseBody::Renewed(worker_ids::renew(&mut rows, *worker_id, *token, entry, now)?)
            }
            RequestBody::Release { datacenter, worker_id, token, from } => {
                worker_ids::release(&mut rows, *datacenter, *worker_id, *token, *from)?;
                ResponseBody::Released
            }
            other => panic!("a lease worker asks {other:?}"),
        };
        if rows.commit() { Ok(said) } else { Err(Locked) }
    }
}

/// The name of the common registry of a generation. All generations are in one cluster.
pub fn name(generation: u32) -> Name {
    Name { identity: format!("shared/{generation}"), timeline: 1, ..Name::default() }
}

/// The error of a statement that waited for a locked row too long.
#[derive(Debug)]
pub struct Locked;

struct Transaction<'a> {
    registry: &'a Registry,
    stop: &'a dyn Fn(),
    number: u64,
    generation: u32,
    written: BTreeMap<u32, Stored>,
    timeline: u32,
}

impl Transaction<'_> {
    /// Commits, if the registry was not recreated meanwhile. Returns whether it committed.
    fn commit(mut self) -> bool {
        (self.stop)();
        if self.registry.generation.get() != self.generation {
            return false;
        }
        let mut rows = self.registry.rows.borrow_mut();
        for (worker_id, stored) in std::mem::take(&mut self.written) {
            let takes = stored.row.token.is_some();
            let holder = stored.entry.holder.clone();
            let former = rows.insert(worker_id, stored);
            let anew =
                takes && former.is_none_or(|former| former.entry.holder != holder || former.given_back);
            self.registry.leased.set(self.registry.leased.get() + u64::from(anew));
        }
        true
    }

    /// Locks a worker id's row, whether the row exists or not.
    fn hold(&self, worker_id: u32) -> Result<(), Locked> {
        for _ in 0..TIMEOUT {
            if *self.registry.locks.borrow_mut().entry(worker_id).or_insert(self.number) == self.number {
                return Ok(());
            }
            (self.stop)();
        }
        Err(Locked)
    }

    fn read(&self, worker_id: u32) -> Option<Stored> {
        self.written.get(&worker_id).cloned().or_else(|| self.registry.rows.borrow().get(&worker_id).cloned())
    }

    fn write(&mut self, row: &LeaseRow, stored: Stored) {
        let locked = self.registry.locks.borrow().get(&row.worker_id) == Some(&self.number);
        assert!(locked, "a row is written that is not locked");
        self.written.insert(row.worker_id, Stored { row: *row, ..stored });
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.registry.locks.borrow_mut().retain(|_, holder| *holder != self.number);
    }
}

impl WorkerIdRows for Transaction<'_> {
    type Error = Locked;

    fn overview(
        &mut self,
        entry: &Entry,
        now: UnixMicros,
    ) -> Result<(Option<u32>, Option<UnixMicros>), Locked> {
        (self.stop)();
        let rows = self.registry.rows.borrow();
        let ours = entry.holder.system_identifier;
        let others =
            |stored: &&Stored| stored.row.expiry > now && stored.entry.holder.system_identifier != ours;
        let latest = rows.values().filter(others).filter_map(|stored| stored.entry.last).max();
        Ok((rows.keys().next_back().copied(), latest))
    }

    fn held(&mut self, entry: &Entry, but: [Option<i64>; 2], now: UnixMicros) -> Result<u64, Locked> {
        let ours = |stored: &&Stored| {
            stored.row.expiry > now
                && !stored.given_back
                && stored.entry.holder == entry.holder
                && !(stored.row.token.is_some() && but.contains(&stored.row.token))
        };
        Ok(self.registry.rows.borrow().values().filter(ours).count() as u64)
    }

    fn rows(&mut self, _: u32, all: bool, own: [Option<i64>; 2]) -> Result<Vec<LeaseRow>, Locked> {
        (self.stop)();
        let wanted = |row: &LeaseRow| all || row.token.is_some() && own.contains(&row.token);
        let rows = self.registry.rows.borrow();
        Ok(rows.values().map(|stored| stored.row).filter(wanted).collect())
    }

    fn lock(&mut self, _: u32, worker_id: u32) -> Result<Option<LeaseRow>, Locked> {
        (self.stop)();
        if self.read(worker_id).is_none() {
            return Ok(None);
        }
        self.hold(worker_id)?;
        Ok(self.read(worker_id).map(|stored| stored.row))
    }

    fn insert(&mut self, row: &LeaseRow, entry: &Entry) -> Result<bool, Locked> {
        (self.stop)();
        self.hold(row.worker_id)?;
        if self.read(row.worker_id).is_some() {
            return Ok(false);
        }
        self.write(row, Stored { row: *row, entry: entry.clone(), given_back: false, former_until: None });
        Ok(true)
    }

    fn update(&mut self, row: &LeaseRow, entry: &Entry) -> Result<(), Locked> {
        (self.stop)();
        let former_until = self.read(row.worker_id).and_then(|stored| stored.former_until);
        self.write(row, Stored { row: *row, entry: entry.clone(), given_back: false, former_until });
        Ok(())
    }

    fn give_back(&mut self, _: u32, row: &LeaseRow) -> Result<(), Locked> {
        (self.stop)();
        if let Some(stored) = self.read(row.worker_id) {
            self.write(row, Stored { given_back: true, ..stored });
        }
        Ok(())
    }

    fn former_leases_until(&mut self) -> Result<Option<UnixMicros>, Locked> {
        (self.stop)();
        let rows = self.registry.rows.borrow();
        Ok(rows.values().filter_map(|stored| stored.former_until).max())
    }

    fn record_former_leases(&mut self, _: u32, worker_id: u32, until: UnixMicros) -> Result<(), Locked> {
        if self.read(worker_id).is_some() {
            self.hold(worker_id)?;
            if let Some(stored) = self.read(worker_id) {
                let row = stored.row;
                self.write(&row, Stored { former_until: Some(until), ..stored });
            }
        }
        Ok(())
    }

    fn random(&mut self) -> u32 {
        u32::try_from(self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).unwrap()
    }

    fn holders(
        &mut self,
        _: u32,
        last: u32,
        limit: usize,
        now: UnixMicros,
    ) -> Result<Vec<HeldWorkerId>, Locked> {
        let rows = self.registry.rows.borrow();
        let held = rows.values().filter(|stored| stored.row.worker_id <= last && stored.row.expiry > now);
        let shown = |stored: &Stored| HeldWorkerId {
            worker_id: stored.row.worker_id,
            host: stored.entry.holder.host.clone(),
            port: stored.entry.holder.port,
            expiry: stored.row.expiry,
        };
        Ok(held.take(limit).map(shown).collect())
    }

    fn fork(&mut self) -> Result<Option<i64>, Locked> {
        Ok((self.timeline > 1).then(|| i64::from(self.timeline) - 1))
    }
}
