//! The gate beside a lock under every interleaving that loom finds.
//!
//! Run by `make loom`.
#![cfg(loom)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "loom/model.rs"]
mod model;
#[path = "loom/without.rs"]
mod without;

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;
use model::model;
use snowflake_ids_core::gate::{Gate, In};
use snowflake_ids_core::guard::Guard;
use without::fails_without;

/// What is behind the gate: loom fails where two are at it at a time, or one does not see what was done there before.
struct Guarded {
    gate: Gate,
    lock: Mutex<()>,
    number: UnsafeCell<u64>,
}

// SAFETY: what the tests are about.
#[allow(unsafe_code, reason = "loom's cell, which checks each access")]
unsafe impl Sync for Guarded {}

impl Guarded {
    fn new() -> Arc<Self> {
        Arc::new(Self { gate: Gate::new(), lock: Mutex::new(()), number: UnsafeCell::new(0) })
    }

    /// Only while it is closed or entered.
    #[allow(unsafe_code, reason = "as above")]
    fn next(&self) -> u64 {
        // SAFETY: as above.
        self.number.with_mut(|number| unsafe {
            *number += 1;
            *number
        })
    }

    /// Locks, whether the gate is open or not.
    fn take_locked(&self) -> u64 {
        let lock = self.lock.lock().unwrap();
        self.gate.close();
        let number = self.next();
        assert_eq!(self.gate.leave(), In::Locked);
        drop(lock);
        number
    }

    /// Enters if that is possible, as those who take a number do.
    fn take(&self) -> u64 {
        if !self.gate.enter() {
            return self.take_locked();
        }
        let number = self.next();
        assert_eq!(self.gate.leave(), In::Entered);
        number
    }
}

fn spawn(guarded: &Arc<Guarded>, run: fn(&Guarded) -> u64) -> thread::JoinHandle<u64> {
    let guarded = Arc::clone(guarded);
    thread::spawn(move || run(&guarded))
}

fn takers_and_a_holder() {
    let guarded = Guarded::new();
    let holder = spawn(&guarded, Guarded::take_locked);
    let taker = spawn(&guarded, Guarded::take);
    let mine = guarded.take();
    let mut all = [mine, holder.join().unwrap(), taker.join().unwrap()];
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3]);
}

#[test]
fn one_is_in_at_a_time_and_sees_what_was_done_there() {
    model(takers_and_a_holder);
    fails_without(Guard::GateEmpty, takers_and_a_holder);
    fails_without(Guard::GateRelease, takers_and_a_holder);
}

#[test]
fn two_holders_follow_each_other() {
    model(|| {
        let guarded = Guarded::new();
        let other = spawn(&guarded, Guarded::take_locked);
        let mine = guarded.take_locked();
        assert_eq!(mine + other.join().unwrap(), 3);
    });
}

/// An error threw the last holder out, and the server released the lock: the gate is closed still.
#[test]
fn who_comes_after_a_holder_that_was_thrown_out_takes_the_gate_over() {
    model(|| {
        let guarded = Guarded::new();
        guarded.gate.close();
        let other = spawn(&guarded, Guarded::take);
        let mine = guarded.take();
        assert_eq!(mine + other.join().unwrap(), 3);
        assert!(guarded.gate.enter(), "it is open again");
    });
}
