//! A node: its memory, its rows, and its worker's rounds.

use super::registry::{Link, site, terms};
use super::world::{SECRET, SERIES, SOURCE, World, act};
use snowflake_ids_core::index::index_len;
use snowflake_ids_core::number_registry::KeyRow;
use snowflake_ids_core::refill_worker::TransactionError;
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::dense::{
    Counter, CounterKey, Definition, Found, Host, Origin, Partition, Request, Requests, Reserve, Reserved,
    RoundCounts, RowKey, Rows, Served, ShortKey, Ticket, WriteBack, begin, serve,
};
use snowflake_ids_core::wire::{Registry, SharedKey, SharedTerms};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

const SESSIONS: usize = 4;
const DATABASE: u32 = 1;

/// That a worker died.
struct Died;

pub struct Node {
    pub partition: Rc<RefCell<Partition<'static>>>,
    pub requests: Rc<RefCell<Requests<'static>>>,
    pub rows: BTreeMap<RowKey, KeyRow>,
    /// What each session waits for.
    pub calls: Vec<Option<(RowKey, i32, Ticket)>>,
    /// How often it was started.
    pub life: u64,
    places: usize,
    busy: bool,
    begun: bool,
}

fn memory(places: usize) -> (Rc<RefCell<Partition<'static>>>, Rc<RefCell<Requests<'static>>>) {
    let counters = Box::leak(vec![Counter::EMPTY; places].into_boxed_slice());
    let index = Box::leak(vec![0; index_len(places)].into_boxed_slice());
    let cells = Box::leak(vec![Request::EMPTY; SESSIONS].into_boxed_slice());
    (Rc::new(RefCell::new(Partition::new(counters, index))), Rc::new(RefCell::new(Requests::new(cells))))
}

pub fn counter_key(row: &RowKey) -> CounterKey {
    CounterKey::new(SECRET, DATABASE, SOURCE, row.series, ShortKey::of(&row.key).unwrap())
}

impl Node {
    pub fn new(places: usize) -> Self {
        let (partition, requests) = memory(places);
        let calls = vec![None; SESSIONS];
        Self { partition, requests, rows: BTreeMap::new(), calls, life: 0, places, busy: false, begun: false }
    }

    /// Starts the server anew; in good order with what memory has left.
    pub fn restart(&mut self, in_order: bool) {
        let left: Vec<_> = self.partition.borrow().iter().collect();
        (self.partition, self.requests) = memory(self.places);
        self.calls.fill(None);
        self.life += 1;
        self.begun = false;
        if in_order {
            for left in left {
                self.partition.borrow_mut().restore(&left);
            }
        }
    }

    pub fn database() -> u32 {
        DATABASE
    }
}

/// A round of a node's worker, unless one is under way.
pub fn round(world: &RefCell<World>, node: usize) -> Option<Served> {
    if std::mem::replace(&mut world.borrow_mut().nodes[node].busy, true) {
        return None;
    }
    let life = world.borrow().nodes[node].life;
    let done = catch_unwind(AssertUnwindSafe(|| {
        let host = Worker { world, node, life };
        if !world.borrow().nodes[node].begun {
            begin(&host);
            world.borrow_mut().nodes[node].begun = true;
        }
        serve(&host, &mut Link { world, step: &|| host.step() })
    }));
    let mut at = world.borrow_mut();
    at.nodes[node].busy = false;
    match done {
        Ok(served) => Some(served),
        Err(died) if died.is::<Died>() => {
            if at.nodes[node].life == life {
                at.nodes[node].begun = false;
            }
            None
        }
        Err(panic) => {
            drop(at);
            resume_unwind(panic)
        }
    }
}

struct Worker<'w> {
    world: &'w RefCell<World>,
    node: usize,
    life: u64,
}

impl Worker<'_> {
    /// Others go on; the worker, or its server, may die.
    fn step(&self) {
        if self.world.borrow().quiet {
            return;
        }
        while self.world.borrow().chance.once_in(2) {
            act(self.world);
            if self.world.borrow().nodes[self.node].life != self.life {
                resume_unwind(Box::new(Died));
            }
        }
        let world = self.world.borrow();
        if !world.calm && world.chance.once_in(80) {
            drop(world);
            resume_unwind(Box::new(Died));
        }
    }
}

impl<'w> Host for Worker<'w> {
    type Rows = Transaction<'w>;

    fn database(&self) -> u32 {
        DATABASE
    }

    fn uptime(&self) -> Duration {
        self.world.borrow().now
    }

    fn secret(&self) -> u64 {
        SECRET
    }

    fn partitions(&self) -> usize {
        1
    }

    fn with_partition<T>(&self, _: usize, work: impl FnOnce(&mut Partition<'_>) -> T) -> T {
        let partition = self.world.borrow().nodes[self.node].partition.clone();
        work(&mut partition.borrow_mut())
    }

    fn with_requests<T>(&self, work: impl FnOnce(&mut Requests<'_>) -> T) -> T {
        let requests = self.world.borrow().nodes[self.node].requests.clone();
        work(&mut requests.borrow_mut())
    }

    fn wake(&self, _: usize) {
        self.step();
    }

    fn call_worker(&self, _: u32) {}

    fn today(&self) -> i32 {
        self.world.borrow().today
    }

    fn registry_timeout(&self) -> Duration {
        Duration::from_secs(3)
    }

    fn is_overdue(&self) -> bool {
        let world = self.world.borrow();
        !world.quiet && world.chance.once_in(15)
    }

    fn say_once(&self, _: String) {}

    fn count(&self, _: &RoundCounts) {}

    fn transaction<T>(
        &self,
        work: impl FnOnce(&mut Transaction<'w>) -> Result<T, ()>,
    ) -> Result<T, TransactionError> {
        self.step();
        let mut rows = Transaction { world: self.world, node: self.node, changed: BTreeMap::new() };
        let done = work(&mut rows);
        let mut world = self.world.borrow_mut();
        let fails = !world.calm && !world.quiet && world.chance.once_in(20);
        if !fails && done.is_ok() {
            world.nodes[self.node].rows.append(&mut rows.changed);
        }
        drop(world);
        self.step();
        let error = |()| TransactionError { code: 1, message: String::new(), is_lock_timeout: false };
        if fails { Err(error(())) } else { done.map_err(error) }
    }
}

/// A worker's transaction.
pub struct Transaction<'w> {
    world: &'w RefCell<World>,
    node: usize,
    changed: BTreeMap<RowKey, KeyRow>,
}

impl Rows for Transaction<'_> {
    type Error = ();

    fn source(&mut self) -> Option<u32> {
        Some(SOURCE)
    }

    fn series(&mut self, ids: &[i64]) -> Result<Vec<Found>, ()> {
        let max_step = self.world.borrow().max_step;
        let definition = Definition { start: 1, max_value: 1_000_000, step: max_step.min(2), max_step };
        Ok(ids
            .iter()
            .map(|id| if SERIES.contains(id) { Found::There(definition) } else { Found::Unknown })
            .collect())
    }

    fn lock(&mut self, _: &[RowKey]) -> Result<Vec<bool>, ()> {
        panic!("rows here are not reserved from")
    }

    fn write_back(&mut self, _: &[WriteBack]) -> Result<(), ()> {
        panic!("rows here are not reserved from")
    }

    fn reserve(&mut self, _: &[Reserve]) -> Result<Vec<Reserved>, ()> {
        panic!("rows here are not reserved from")
    }

    fn origin(&mut self) -> Result<Origin, ()> {
        Ok(Origin::There(site()))
    }

    fn shared(&mut self, ids: &[i64]) -> Result<Vec<Option<(String, SharedTerms)>>, ()> {
        Ok(ids.iter().map(|id| Some((format!("series {id}"), terms(*id)))).collect())
    }

    fn shared_key(&mut self, key: &Key) -> Option<SharedKey> {
        SharedKey::of(key, |_| None)
    }

    fn received(&mut self, rows: &[RowKey]) -> Result<Vec<Option<KeyRow>>, ()> {
        let world = self.world.borrow();
        Ok(rows.iter().map(|row| world.nodes[self.node].rows.get(row).copied()).collect())
    }

    fn receive(&mut self, _: &Registry, rows: &[(RowKey, KeyRow)]) -> Result<(), ()> {
        self.changed.extend(rows.iter().cloned());
        Ok(())
    }
}
