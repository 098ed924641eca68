//! What the worker of dense series touches. A process may end between any two of these calls.

use super::memory::Partition;
use super::requests::Requests;
use crate::refill_worker::tables::TransactionError;
use crate::registry_link::Site;
use crate::series::key::Key;
use crate::wire::{KeyReached, Registry, SharedKey, SharedTerms};
use std::time::Duration;

/// The worker's process, and the memory that it shares with sessions.
pub trait Host {
    /// The tables of its database, within a transaction.
    type Rows: Rows;

    /// Its database.
    fn database(&self) -> u32;
    /// A clock that only goes forward.
    fn uptime(&self) -> Duration;
    /// The day, in days since 1970-01-01 in UTC.
    fn today(&self) -> i32;
    /// With what [`super::CounterKey::new`] hashes.
    fn secret(&self) -> u64;
    /// How many partitions there are.
    fn partitions(&self) -> usize;
    /// Does something with a partition locked. It must not fail.
    fn with_partition<T>(&self, number: usize, work: impl FnOnce(&mut Partition<'_>) -> T) -> T;
    /// Does something with the requests locked. Called also while a partition is: whoever takes both locks takes the partition's
    /// first. It must not fail.
    fn with_requests<T>(&self, work: impl FnOnce(&mut Requests<'_>) -> T) -> T;
    /// Wakes the process whose cell has an answer.
    fn wake(&self, cell: usize);
    /// Has the worker of another database come, as counters of that one leave or want more numbers.
    fn call_worker(&self, database: u32);
    /// How long a registry is waited for.
    fn registry_timeout(&self) -> Duration;
    /// Whether it should have left already.
    fn is_overdue(&self) -> bool;
    /// Tells the log, unless the same was said lately.
    fn say_once(&self, warning: String);
    /// Adds to what is counted.
    fn count(&self, round: &RoundCounts);

    /// Runs a transaction, with the rights of the tables' owner, and commits it; where it fails, rolls it back. What it gives is
    /// durable.
    ///
    /// # Errors
    /// Nothing was changed.
    fn transaction<T>(
        &self,
        work: impl FnOnce(&mut Self::Rows) -> Result<T, <Self::Rows as Rows>::Error>,
    ) -> Result<T, TransactionError>;
}

/// What is counted of rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundCounts {
    /// Rounds whose transaction was committed, or that asked a registry.
    pub rounds: u64,
    /// Reservations, each of one key,
    pub reservations: u64,
    /// and the numbers that these got.
    pub reserved: u64,
    /// Keys that had numbers left and left memory for others,
    pub evictions: u64,
    /// and the numbers that these had left.
    pub evicted: u64,
}

/// The row of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// The series' id.
    pub series: i64,
    /// The key.
    pub key: Key,
}

/// What the row of a key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Up to which number all are reserved.
    pub reached: KeyReached,
    /// By what the last reservation of a node is known; None: the last one was none, or it was returned.
    pub version: Option<i64>,
}

/// What a row is set back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteBack {
    /// Which row.
    pub row: RowKey,
    /// Of which period; 0: of none.
    pub day: i32,
    /// The highest number that was handed out,
    pub given: i64,
    /// and what the row has to say still: the last one that was reserved.
    pub limit: i64,
}

/// What to reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Of which row.
    pub row: RowKey,
    /// For which period; 0: for none. A row that is of a later one stays there.
    pub day: i32,
    /// How many calls wait: a row that is made has just their numbers, and none is made where none waits.
    pub waiting: u32,
    /// How many more there are to be of a row that is there.
    pub extra: u32,
    /// The first number, where the row is made or its period is over.
    pub start: i64,
    /// The highest: fewer are reserved where it comes before.
    pub max_value: i64,
}

/// What was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// These numbers: from the first to the last, of the period that begins on this day. One or more.
    Numbers {
        /// The first.
        first: i64,
        /// The last: what the row says now.
        last: i64,
        /// The day; 0 without periods.
        day: i32,
    },
    /// Nothing: no number is left up to `max_value`.
    Exhausted,
    /// Nothing: another transaction has the row locked, or makes it.
    Locked,
    /// Nothing: there is no row, and no call waits.
    Nothing,
}

/// What the row of a series says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The first number of a key.
    pub start: i64,
    /// The highest.
    pub max_value: i64,
    /// The fewest that are reserved ahead,
    pub step: u32,
    /// and the most.
    pub max_step: u32,
}

/// Whether a series is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is.
    There(Definition),
    /// Another transaction has its row locked: it may be dropped.
    Locked,
    /// It is not, or not a dense one.
    Unknown,
}

/// Where the numbers of a database come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From its own rows.
    Here,
    /// From the rows of a registry on another server.
    There(Site),
    /// From none: there are several registries, or this is a node of a cluster and not told of one.
    Nowhere,
}

/// The tables in a transaction. Each call is a statement, or a few.
pub trait Rows {
    /// What a statement fails with.
    type Error;

    /// Which table of series there is; None: the extension was dropped, and nothing else may be called.
    fn source(&mut self) -> Option<u32>;
    /// What the rows of series say, in this order. They stay there until the transaction ends (`FOR KEY SHARE SKIP LOCKED`).
    fn series(&mut self, ids: &[i64]) -> Result<Vec<Found>, Self::Error>;
    /// Locks the rows of keys until the transaction ends, and waits for none; for each whether no other transaction has it locked:
    /// also where there is none.
    fn lock(&mut self, rows: &[RowKey]) -> Result<Vec<bool>, Self::Error>;
    /// Sets rows back, which are locked, each if it says what it has to say still.
    fn write_back(&mut self, rows: &[WriteBack]) -> Result<(), Self::Error>;
    /// Reserves numbers; what came of each, in this order. Sees what was written back in this transaction.
    fn reserve(&mut self, reserves: &[Reserve]) -> Result<Vec<Reserved>, Self::Error>;

    /// Where numbers come from. That stays so until the transaction ends.
    fn origin(&mut self) -> Result<Origin, Self::Error>;
    /// What series are to registries, in this order: their names and terms, in letters that all servers know.
    fn shared(&mut self, ids: &[i64]) -> Result<Vec<Option<(String, SharedTerms)>>, Self::Error>;
    /// What a key is to registries; None where it has letters that other servers do not know.
    fn shared_key(&mut self, key: &Key) -> Option<SharedKey>;
    /// How far keys were received, in this order.
    fn received(&mut self, rows: &[RowKey]) -> Result<Vec<Option<KeyRow>>, Self::Error>;
    /// Notes how far keys were received of a registry, and which one that is by now.
    fn receive(&mut self, of: &Registry, rows: &[(RowKey, KeyRow)]) -> Result<(), Self::Error>;
}
