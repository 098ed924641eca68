//! The generator under real threads, with a clock that jumps forward and back.
#![allow(clippy::disallowed_types, reason = "threads of one process, which is what the lock is for")]

use parking_lot::Mutex;
use snowflake_ids_core::{Clock, Generator, Layout, NodeBits, Position, Rules, SequenceStart, UnixMicros};
use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

/// A clock that each reading advances, and sometimes sets back.
struct Jumping(AtomicI64);

impl Clock for Jumping {
    fn now(&self) -> UnixMicros {
        let reads = self.0.fetch_add(1, Ordering::SeqCst);
        let jump = if reads % 1_009 < 100 { -50_000 } else { 0 };
        UnixMicros(1_800_000_000_000_000 + reads * 7 + jump)
    }
}

#[test]
fn threads_never_share_a_position_and_each_sees_growing_ones() {
    const THREADS: usize = 8;
    const CALLS: usize = if cfg!(miri) { 200 } else { 50_000 };
    let layout = Layout::default();
    let rules = Rules { max_drift: 60_000_000, start: SequenceStart::Rotate };
    let (generator, clock) = (Generator::default(), Jumping(AtomicI64::new(0)));
    generator.begin(NodeBits(0), Position(0), layout.end_position());
    let all = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (layout, rules, generator, clock, all) = (&layout, &rules, &generator, &clock, &all);
            let want = NonZeroU32::new([1, 1, 3, 64][thread % 4]).unwrap();
            scope.spawn(move || {
                let mut mine = Vec::new();
                for _ in 0..CALLS {
                    let positions = generator.take(layout, rules, clock, want).unwrap().positions;
                    mine.extend(positions.from.0..positions.to.0);
                }
                assert!(mine.is_sorted());
                let mut all = all.lock();
                for position in mine {
                    assert!(all.insert(position), "position {position} was issued twice");
                }
            });
        }
    });
    assert!(generator.snapshot().steps_back > 0);
}
