//! Runs by their seeds.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A number from the environment, such as the number of seeds.
pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Runs all seeds on all cores, and sums up their results.
pub fn sum<T: Default + Send>(
    seeds: Range<u64>,
    run: impl Fn(u64) -> T + Sync,
    and: impl Fn(T, &T) -> T + Sync,
) -> T {
    let next = AtomicU64::new(seeds.start);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut total = T::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return total;
            }
            total = and(total, &run(seed));
        }
    };
    let totals: Vec<T> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker_id| worker_id.join().unwrap()).collect()
    });
    totals.iter().fold(T::default(), and)
}
