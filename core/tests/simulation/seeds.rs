//! Runs by their seeds.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A number from the environment, such as the number of seeds.
pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Runs all seeds on all cores, and sums up their results. The last seed goes first: the run of very many servers has a late seed, and
/// would keep one core busy after all others have ended.
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
            let later = next.fetch_add(1, Ordering::Relaxed);
            if later >= seeds.end {
                return total;
            }
            total = and(total, &run(seeds.start + (seeds.end - 1 - later)));
        }
    };
    let totals: Vec<T> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker_id| worker_id.join().unwrap()).collect()
    });
    totals.iter().fold(T::default(), and)
}
