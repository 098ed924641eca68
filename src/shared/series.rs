//! The counters of dense series that are in memory, and what sessions ask of their workers, in shared memory.

use crate::pg::condition::Condition;
use crate::pg::lock::{For, GatedLock, LwLock, MOST_PARTITIONS};
use crate::pg::shmem::{Rest, Shmem};
use crate::pg::{random, server};
use crate::settings;
use crate::shared::dense_counts::DenseCounts;
use parking_lot::lock_api::{Mutex, RwLock};
use snowflake_ids_core::index::index_len;
use snowflake_ids_core::series::dense::left_over::LeftOver;
use snowflake_ids_core::series::dense::{
    Counter, CounterKey, CounterKeys, Left, Partition, Request, Requests,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// All of it.
pub struct Counters {
    /// The counters, each in the partition that its key's hash says.
    pub partitions: &'static [Mutex<GatedLock, Partition<'static>>],
    /// What each process asks. Whoever locks this and a partition locks the partition first.
    pub requests: RwLock<LwLock, Requests<'static>>,
    /// For each process: broadcast when what it asked was answered.
    pub answered: &'static [Condition],
    /// What is counted.
    pub counts: DenseCounts,
    /// How many counters there is room for.
    pub places: usize,
    /// What keys are hashed with. It is another one only until the first of them is here.
    secret: AtomicU64,
}

/// The block.
pub static COUNTERS: Shmem<Counters> = Shmem::new(c"snowflake_ids series", rest, make);

/// The counters of this server; None where the library was not preloaded, or has no memory for them.
#[inline]
pub fn counters() -> Option<&'static Counters> {
    COUNTERS.get()
}

impl Counters {
    /// What the keys of a series are known by.
    pub fn keys(&self, source: u32, series: i64) -> CounterKeys {
        CounterKeys::new(self.secret(), server::database(), source, series)
    }

    /// How many counters there are.
    pub fn in_use(&self) -> usize {
        self.partitions.iter().map(|partition| partition.lock().len()).sum()
    }

    /// The databases with calls that wait.
    pub fn databases_now(&self) -> BTreeSet<u32> {
        self.requests.read().databases().collect()
    }

    /// The databases with counters that want more numbers, or are to leave memory.
    pub fn databases_ahead(&self) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for partition in self.partitions {
            found.extend(partition.lock().databases());
        }
        found
    }

    /// Forgets the counters of a database that is gone.
    pub fn forget(&self, database: u32) {
        self.partitions.iter().for_each(|partition| partition.lock().forget(database));
    }

    /// What keys are hashed with.
    pub fn secret(&self) -> u64 {
        self.secret.load(Relaxed)
    }

    /// Takes up what counters had left at the last stop, before any process can look; of how many there was a place. They are where
    /// they were.
    pub fn restore(&self, all: &LeftOver) -> usize {
        self.secret.store(all.secret, Relaxed);
        let restore =
            |left: &&Left| self.partition(&left.key).is_some_and(|partition| partition.lock().restore(left));
        all.counters.iter().filter(restore).count()
    }

    /// The partition of a key.
    #[inline]
    pub fn partition(&self, key: &CounterKey) -> Option<&Mutex<GatedLock, Partition<'static>>> {
        self.partitions.get(key.partition(self.partitions.len()))
    }
}

/// Forgets the counters of a database that is gone.
pub fn forget(database: u32) {
    if let Some(counters) = counters() {
        counters.forget(database);
    }
}

/// Has the counters of a database stay in memory that were to be written back: no worker can.
pub fn stay(database: u32) {
    if let Some(counters) = counters() {
        counters.partitions.iter().for_each(|partition| partition.lock().stay(database));
    }
}

/// How many partitions there are, and how many counters each has. A partition of few counters would soon be full while others are
/// empty.
fn shape() -> Option<(usize, usize)> {
    /// How many counters a partition has at least, where there are several.
    const FEWEST: usize = 128;
    let memory = settings::config().map_or(0, |config| config.series_memory / 2);
    // The index has two to four entries for each.
    let all = memory / (size_of::<Counter>() + 4 * size_of::<u32>());
    let partitions = (all / FEWEST).clamp(1, MOST_PARTITIONS);
    (all > 0).then_some((partitions, all / partitions))
}

fn rest() -> usize {
    let Some((partitions, counters)) = shape() else { return 0 };
    let one = Rest::for_array::<Counter>(counters) + Rest::for_array::<u32>(index_len(counters));
    let processes = server::max_processes();
    partitions * one
        + Rest::for_array::<Mutex<GatedLock, Partition<'_>>>(partitions)
        + Rest::for_array::<Request>(processes)
        + Rest::for_array::<Condition>(processes)
}

fn make(rest: &mut Rest) -> Option<Counters> {
    let (partitions, counters) = shape()?;
    let mut made = Vec::with_capacity(partitions);
    for number in (0..=u8::MAX).take(partitions) {
        let (memory, index) =
            (rest.array(counters, || Counter::EMPTY), rest.array(index_len(counters), || 0));
        made.push((number, Partition::new(memory, index)));
    }
    let mut made = made.into_iter();
    let partition = || {
        let (number, partition) = made.next().unwrap_or_else(|| (0, Partition::new(&mut [], &mut [])));
        Mutex::from_raw(GatedLock::new(LwLock::requested(For::Counters(number))), partition)
    };
    let places = partitions * counters;
    let partitions = rest.array(partitions, partition);
    let processes = server::max_processes();
    let cells = rest.array(processes, || Request::EMPTY);
    Some(Counters {
        partitions,
        requests: RwLock::from_raw(LwLock::requested(For::SeriesRequests), Requests::new(cells)),
        answered: rest.array(processes, Condition::default),
        counts: DenseCounts::default(),
        places,
        secret: AtomicU64::new(random::token().cast_unsigned()),
    })
}
