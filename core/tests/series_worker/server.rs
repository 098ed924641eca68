//! A server with one partition, whose sessions ask of one series.

use super::alone::Alone;
use snowflake_ids_core::index::index_len;
use snowflake_ids_core::number_registry::KeyRow;
use snowflake_ids_core::refill_worker::{TransactionError, Trouble};
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::dense::{
    Answer, Asked, Counter, CounterKey, Definition, Found, Host, Origin, Partition, Request, Requests,
    Reserve, Reserved, RoundCounts, RowKey, Rows, Served, ShortKey, Ticket, WriteBack, serve,
};
use snowflake_ids_core::wire::{Registry, SharedKey, SharedTerms};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const SECRET: u64 = 77;
pub const DATABASE: u32 = 1;
const SOURCE: u32 = 5;
const SERIES: i64 = 6;
const SESSIONS: usize = 200;

pub struct Server {
    pub partition: RefCell<Partition<'static>>,
    pub requests: RefCell<Requests<'static>>,
    /// What rows say.
    pub rows: RefCell<BTreeMap<RowKey, i64>>,
    /// Rows that other transactions have locked.
    pub locked: RefCell<BTreeSet<RowKey>>,
    /// Rows on which a statement fails, and whether as a lock is waited for.
    pub failing: RefCell<BTreeMap<RowKey, bool>>,
    /// The rows of each transaction that reserved any, in this order.
    pub transactions: RefCell<Vec<Vec<RowKey>>>,
    /// What was counted of each round.
    pub counts: RefCell<Vec<RoundCounts>>,
    definition: Cell<Definition>,
    tickets: RefCell<BTreeMap<usize, Ticket>>,
}

/// The row of a key.
pub fn row(key: i64) -> RowKey {
    RowKey { series: SERIES, key: Key::Bigint(key) }
}

pub fn counter_key(key: i64) -> CounterKey {
    CounterKey::new(SECRET, DATABASE, SOURCE, SERIES, ShortKey::Bigint(key))
}

impl Server {
    /// With memory for so many counters.
    pub fn new(places: usize) -> Self {
        let counters = Box::leak(vec![Counter::EMPTY; places].into_boxed_slice());
        let index = Box::leak(vec![0; index_len(places)].into_boxed_slice());
        let cells = Box::leak(vec![Request::EMPTY; SESSIONS].into_boxed_slice());
        Self {
            partition: RefCell::new(Partition::new(counters, index)),
            requests: RefCell::new(Requests::new(cells)),
            rows: RefCell::default(),
            locked: RefCell::default(),
            failing: RefCell::default(),
            transactions: RefCell::default(),
            counts: RefCell::default(),
            definition: Cell::new(Definition { start: 1, max_value: 1_000_000, step: 10, max_step: 20 }),
            tickets: RefCell::default(),
        }
    }

    pub fn define(&self, definition: Definition) {
        self.definition.set(definition);
    }

    /// A session asks the worker.
    pub fn ask(&self, session: usize, key: i64, max_value: i64) {
        let key = Key::Bigint(key);
        let asked =
            Asked { database: DATABASE, source: SOURCE, series: SERIES, key: &key, day: 0, max_value };
        let ticket = self.requests.borrow_mut().ask(session, &asked).unwrap();
        self.tickets.borrow_mut().insert(session, ticket);
    }

    pub fn serve(&self) -> Served {
        serve(self, &mut Alone)
    }

    pub fn answer(&self, session: usize) -> Option<Answer> {
        let ticket = self.tickets.borrow()[&session];
        self.requests.borrow_mut().answer_to(session, ticket)
    }

    pub fn trouble(&self, session: usize) -> Option<Trouble> {
        self.requests.borrow().trouble(session, self.tickets.borrow()[&session])
    }

    pub fn note_trouble(&self, session: usize, trouble: Trouble) {
        self.requests.borrow_mut().note_trouble(session, self.tickets.borrow()[&session], trouble);
    }

    /// A session takes a number, or has the worker give it one.
    pub fn next(&self, key: i64) -> Answer {
        let max_value = self.definition.get().max_value;
        if let Ok(taken) = self.partition.borrow_mut().take(&counter_key(key), 0, max_value) {
            return Answer::Number { number: taken.number, day: taken.day };
        }
        self.ask(0, key, max_value);
        self.serve();
        self.answer(0).unwrap()
    }
}

impl Host for Server {
    type Rows = Transaction;

    fn database(&self) -> u32 {
        DATABASE
    }

    fn uptime(&self) -> Duration {
        Duration::ZERO
    }

    fn secret(&self) -> u64 {
        SECRET
    }

    fn partitions(&self) -> usize {
        1
    }

    fn with_partition<T>(&self, _: usize, work: impl FnOnce(&mut Partition<'_>) -> T) -> T {
        work(&mut self.partition.borrow_mut())
    }

    fn with_requests<T>(&self, work: impl FnOnce(&mut Requests<'_>) -> T) -> T {
        work(&mut self.requests.borrow_mut())
    }

    fn wake(&self, _: usize) {}

    fn call_worker(&self, _: u32) {}

    fn today(&self) -> i32 {
        0
    }

    fn registry_timeout(&self) -> Duration {
        Duration::ZERO
    }

    fn is_overdue(&self) -> bool {
        false
    }

    fn say_once(&self, _: String) {}

    fn count(&self, round: &RoundCounts) {
        self.counts.borrow_mut().push(*round);
    }

    fn transaction<T>(
        &self,
        work: impl FnOnce(&mut Transaction) -> Result<T, bool>,
    ) -> Result<T, TransactionError> {
        let mut rows = Transaction {
            rows: self.rows.borrow().clone(),
            locked: self.locked.borrow().clone(),
            failing: self.failing.borrow().clone(),
            definition: self.definition.get(),
            reserved: Vec::new(),
        };
        let done = work(&mut rows);
        self.transactions.borrow_mut().push(rows.reserved);
        if done.is_ok() {
            *self.rows.borrow_mut() = rows.rows;
        }
        done.map_err(|is_lock_timeout| TransactionError { code: 9, message: String::new(), is_lock_timeout })
    }
}

pub struct Transaction {
    rows: BTreeMap<RowKey, i64>,
    locked: BTreeSet<RowKey>,
    failing: BTreeMap<RowKey, bool>,
    definition: Definition,
    reserved: Vec<RowKey>,
}

impl Transaction {
    fn reserve_one(&mut self, reserve: &Reserve) -> Reserved {
        let (waiting, extra) = (i64::from(reserve.waiting), i64::from(reserve.extra));
        let (last, wanted) = match self.rows.get(&reserve.row) {
            _ if self.locked.contains(&reserve.row) => return Reserved::Locked,
            None if waiting == 0 => return Reserved::Nothing,
            None => (reserve.start - 1, waiting),
            Some(last) => (*last, waiting + extra),
        };
        let reached = last.saturating_add(wanted).min(reserve.max_value);
        if reached <= last {
            return Reserved::Exhausted;
        }
        self.rows.insert(reserve.row.clone(), reached);
        Reserved::Numbers { first: last + 1, last: reached, day: 0 }
    }
}

impl Rows for Transaction {
    type Error = bool;

    fn source(&mut self) -> Option<u32> {
        Some(SOURCE)
    }

    fn series(&mut self, ids: &[i64]) -> Result<Vec<Found>, bool> {
        Ok(vec![Found::There(self.definition); ids.len()])
    }

    fn lock(&mut self, rows: &[RowKey]) -> Result<Vec<bool>, bool> {
        Ok(rows.iter().map(|row| !self.locked.contains(row)).collect())
    }

    fn write_back(&mut self, rows: &[WriteBack]) -> Result<(), bool> {
        for WriteBack { row, given, limit, .. } in rows {
            if let Some(last) = self.rows.get_mut(row).filter(|last| *last == limit) {
                *last = *given;
            }
        }
        Ok(())
    }

    fn reserve(&mut self, reserves: &[Reserve]) -> Result<Vec<Reserved>, bool> {
        self.reserved = reserves.iter().map(|reserve| reserve.row.clone()).collect();
        match self.reserved.iter().find_map(|row| self.failing.get(row)) {
            Some(is_lock_timeout) => Err(*is_lock_timeout),
            None => Ok(reserves.iter().map(|reserve| self.reserve_one(reserve)).collect()),
        }
    }

    fn origin(&mut self) -> Result<Origin, bool> {
        Ok(Origin::Here)
    }

    fn shared(&mut self, _: &[i64]) -> Result<Vec<Option<(String, SharedTerms)>>, bool> {
        panic!("there is no registry")
    }

    fn shared_key(&mut self, _: &Key) -> Option<SharedKey> {
        panic!("there is no registry")
    }

    fn received(&mut self, _: &[RowKey]) -> Result<Vec<Option<KeyRow>>, bool> {
        panic!("there is no registry")
    }

    fn receive(&mut self, _: &Registry, _: &[(RowKey, KeyRow)]) -> Result<(), bool> {
        panic!("there is no registry")
    }
}
