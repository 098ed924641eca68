//! A worker of a database of the world. At each of its calls others go on, and it may die.

use super::alone::Alone;
use super::ledger::Id;
use super::world::{Row, SECRET, SOURCE, World, act};
use snowflake_ids_core::number_registry::KeyRow;
use snowflake_ids_core::refill_worker::TransactionError;
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::dense::{
    Found, Host, Origin, Partition, Requests, Reserve, Reserved, RoundCounts, RowKey, Rows, Served,
    WriteBack, begin, serve,
};
use snowflake_ids_core::wire::{Registry, SharedKey, SharedTerms};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// That a worker died.
struct Died;

pub struct SimHost<'w> {
    world: &'w RefCell<World>,
    database: u32,
    /// The life of the server that it began in.
    life: u64,
    /// Whether it is in a transaction, in which it can be told to end.
    in_transaction: bool,
    /// Whether it has something locked: others that need that wait.
    has_lock: Cell<bool>,
}

/// A worker's round, which begins with what a new worker does.
pub fn round(world: &RefCell<World>, database: u32) -> Option<Served> {
    if !world.borrow_mut().busy.insert(database) {
        return None;
    }
    let life = world.borrow().life;
    let host = SimHost { world, database, life, in_transaction: false, has_lock: Cell::new(false) };
    let done = catch_unwind(AssertUnwindSafe(|| {
        if !world.borrow().begun.contains(&database) {
            begin(&host);
            world.borrow_mut().begun.insert(database);
        }
        serve(&host, &mut Alone)
    }));
    let mut world = world.borrow_mut();
    world.busy.remove(&database);
    match done {
        Ok(served) => Some(served),
        Err(died) if died.is::<Died>() => {
            if let Some(transaction) = world.transactions.remove(&database) {
                world.unlock(transaction);
            }
            if world.life == life {
                world.begun.remove(&database);
            }
            // Changed to just what it was, the row of a counter that it has written back could not be told from what it was.
            let lowered = world.lowered.remove(&database).unwrap_or_default();
            world.corrected.extend(lowered);
            None
        }
        Err(panic) => {
            drop(world);
            resume_unwind(panic)
        }
    }
}

impl SimHost<'_> {
    /// Others go on; the worker may die.
    fn step(&self) {
        if self.has_lock.get() || self.world.borrow().quiet {
            return;
        }
        while !self.world.borrow().chance.once_in(3) {
            act(self.world);
            if self.world.borrow().life != self.life {
                resume_unwind(Box::new(Died));
            }
        }
        let world = self.world.borrow();
        if (!world.calm || self.in_transaction) && world.chance.once_in(60) {
            drop(world);
            resume_unwind(Box::new(Died));
        }
    }

    fn id(&self, row: &RowKey) -> Id {
        (self.database, row.clone())
    }
}

impl<'w> Host for SimHost<'w> {
    type Rows = Transaction<'w>;

    fn database(&self) -> u32 {
        self.database
    }

    fn uptime(&self) -> Duration {
        self.world.borrow().now
    }

    fn secret(&self) -> u64 {
        SECRET
    }

    fn partitions(&self) -> usize {
        self.world.borrow().partitions.len()
    }

    fn with_partition<T>(&self, number: usize, work: impl FnOnce(&mut Partition<'_>) -> T) -> T {
        self.step();
        let partition = self.world.borrow().partitions[number].clone();
        self.has_lock.set(true);
        let done = work(&mut partition.borrow_mut());
        self.has_lock.set(false);
        done
    }

    fn with_requests<T>(&self, work: impl FnOnce(&mut Requests<'_>) -> T) -> T {
        self.step();
        let requests = self.world.borrow().requests.clone();
        work(&mut requests.borrow_mut())
    }

    fn wake(&self, _: usize) {
        self.step();
    }

    fn call_worker(&self, _: u32) {}

    fn today(&self) -> i32 {
        0
    }

    fn registry_timeout(&self) -> Duration {
        Duration::ZERO
    }

    fn is_overdue(&self) -> bool {
        let world = self.world.borrow();
        !world.quiet && world.chance.once_in(10)
    }

    fn say_once(&self, _: String) {}

    fn count(&self, _: &RoundCounts) {}

    fn transaction<T>(
        &self,
        work: impl FnOnce(&mut Transaction<'w>) -> Result<T, ()>,
    ) -> Result<T, TransactionError> {
        self.step();
        let number = self.world.borrow_mut().number();
        self.world.borrow_mut().transactions.insert(self.database, number);
        let mut rows = Transaction {
            host: SimHost {
                world: self.world,
                database: self.database,
                life: self.life,
                in_transaction: true,
                has_lock: Cell::new(false),
            },
            number,
            changed: BTreeMap::new(),
        };
        let done = work(&mut rows);
        self.step();
        let mut world = self.world.borrow_mut();
        let fails = !world.quiet && world.chance.once_in(20);
        let committed = !fails && done.is_ok();
        world.lowered.remove(&self.database);
        if committed {
            world.commit(self.database, &mut rows.changed);
        }
        world.unlock(number);
        world.transactions.remove(&self.database);
        drop(world);
        self.step();
        let error = |()| TransactionError { code: 1, message: String::new(), is_lock_timeout: false };
        if committed { done.map_err(error) } else { Err(error(())) }
    }
}

/// A worker's transaction.
pub struct Transaction<'w> {
    host: SimHost<'w>,
    number: u64,
    changed: BTreeMap<Id, Row>,
}

impl Transaction<'_> {
    fn read(&self, id: &Id) -> Option<Row> {
        self.changed.get(id).copied().or_else(|| self.host.world.borrow().rows.get(id).copied())
    }

    fn reserve_one(&mut self, reserve: &Reserve) -> Reserved {
        let id = self.host.id(&reserve.row);
        if !self.host.world.borrow_mut().lock(&id, self.number) {
            return Reserved::Locked;
        }
        let (waiting, extra) = (i64::from(reserve.waiting), i64::from(reserve.extra));
        let (last, day, wanted) = match self.read(&id) {
            None if waiting == 0 => return Reserved::Nothing,
            None => (reserve.start - 1, reserve.day, waiting),
            Some(row) if row.day < reserve.day => (reserve.start - 1, reserve.day, waiting + extra),
            Some(row) => (row.last, row.day, waiting + extra),
        };
        let reached = (last + wanted).min(reserve.max_value);
        if reached <= last {
            return Reserved::Exhausted;
        }
        self.changed.insert(id, Row { last: reached, day });
        Reserved::Numbers { first: last + 1, last: reached, day }
    }
}

impl Rows for Transaction<'_> {
    type Error = ();

    fn source(&mut self) -> Option<u32> {
        self.host.step();
        Some(SOURCE)
    }

    fn series(&mut self, ids: &[i64]) -> Result<Vec<Found>, ()> {
        self.host.step();
        let mut world = self.host.world.borrow_mut();
        world.kept.extend(ids.iter().map(|id| (self.number, self.host.database, *id)));
        let found = |id: &i64| match world.definition(self.host.database, *id) {
            Some(_) if !world.quiet && world.chance.once_in(30) => Found::Locked,
            Some(definition) => Found::There(definition),
            None => Found::Unknown,
        };
        Ok(ids.iter().map(found).collect())
    }

    fn lock(&mut self, rows: &[RowKey]) -> Result<Vec<bool>, ()> {
        self.host.step();
        let mut world = self.host.world.borrow_mut();
        let locked = rows.iter().map(|row| {
            let id = self.host.id(row);
            !world.rows.contains_key(&id) || world.lock(&id, self.number)
        });
        Ok(locked.collect())
    }

    fn write_back(&mut self, rows: &[WriteBack]) -> Result<(), ()> {
        self.host.step();
        for WriteBack { row, day, given, limit } in rows {
            let id = self.host.id(row);
            if self.read(&id) == Some(Row { last: *limit, day: *day }) {
                assert_eq!(
                    self.host.world.borrow().locks.get(&id),
                    Some(&self.number),
                    "{id:?} is not locked"
                );
                self.changed.insert(id, Row { last: *given, day: *day });
            }
        }
        Ok(())
    }

    fn reserve(&mut self, reserves: &[Reserve]) -> Result<Vec<Reserved>, ()> {
        self.host.step();
        Ok(reserves.iter().map(|reserve| self.reserve_one(reserve)).collect())
    }

    fn origin(&mut self) -> Result<Origin, ()> {
        Ok(Origin::Here)
    }

    fn shared(&mut self, _: &[i64]) -> Result<Vec<Option<(String, SharedTerms)>>, ()> {
        panic!("there is no registry")
    }

    fn shared_key(&mut self, _: &Key) -> Option<SharedKey> {
        panic!("there is no registry")
    }

    fn received(&mut self, _: &[RowKey]) -> Result<Vec<Option<KeyRow>>, ()> {
        panic!("there is no registry")
    }

    fn receive(&mut self, _: &Registry, _: &[(RowKey, KeyRow)]) -> Result<(), ()> {
        panic!("there is no registry")
    }
}
