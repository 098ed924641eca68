//! The keys of monotonic series under every interleaving that loom finds.
//!
//! Run by `make loom`. There is one bucket, with room for one key.

use super::model::model;
use super::without::fails_without;
use loom::sync::Arc;
use loom::thread;
use snowflake_ids_core::guard::Guard;
use snowflake_ids_core::series::monotonic::{Bucket, Hash, KeyMiss, Keys, Section, SectionRef, SweepStep};
use snowflake_ids_core::tag::definition::Range;

const HERE: SectionRef = SectionRef { slot_index: 0, owner: 1 };
const A: Hash = Hash(1);
const B: Hash = Hash(2);

const fn range(first: i64, count: u32) -> Range {
    Range { first, count, increment: 1 }
}

struct Memory {
    buckets: [Bucket; 1],
    section: Section,
}

impl Memory {
    fn new(count: u32) -> Arc<Self> {
        let memory = Self { buckets: [Bucket::default()], section: Section::default() };
        assert!(memory.section.open(HERE.owner, &range(1, count)));
        Arc::new(memory)
    }

    fn take(&self, section_ref: SectionRef, key: Hash) -> Result<i64, KeyMiss> {
        Keys::new(&self.buckets, 0).take(&self.section, section_ref, key, &|_| Some(&self.section))
    }

    fn go_on(&self, sweep: &mut SweepStep, steps: usize) {
        Keys::new(&self.buckets, 0).sweep(sweep, steps, 1, &|_| Some(&self.section));
    }

    /// Carries out a whole sweep: two steps for the section, two for the bucket, and two for the section again.
    fn sweep(&self) {
        self.go_on(&mut SweepStep::Begin(0), 6);
    }

    fn takes(&self, key: Hash, calls: usize) -> Vec<i64> {
        (0..calls).filter_map(|_| self.take(HERE, key).ok()).collect()
    }
}

fn spawn<T: 'static>(
    memory: &Arc<Memory>,
    run: impl FnOnce(&Memory) -> T + 'static,
) -> thread::JoinHandle<T> {
    let memory = Arc::clone(memory);
    thread::spawn(move || run(&memory))
}

fn distinct(lists: impl IntoIterator<Item = Vec<i64>>) -> Vec<i64> {
    let mut all: Vec<i64> = lists.into_iter().flatten().collect();
    all.sort_unstable();
    assert!(all.is_sorted_by(|a, b| a < b), "given twice: {all:?}");
    all
}

#[test]
fn takers_of_a_key_have_each_number_once() {
    model(|| {
        let memory = Memory::new(9);
        let first = memory.takes(A, 1);
        let other = spawn(&memory, |memory| memory.takes(A, 2));
        let mine = memory.takes(A, 2);
        assert_eq!(distinct([first, mine, other.join().unwrap()]), [1, 2, 3, 4, 5]);
    });
}

fn two_bring_a_key_into_memory() {
    let memory = Memory::new(9);
    let other = spawn(&memory, |memory| memory.takes(A, 2));
    let mine = memory.takes(A, 1);
    assert_eq!(distinct([mine, other.join().unwrap()]), [1, 2, 3]);
}

#[test]
fn two_that_bring_a_key_into_memory_share_it() {
    model(two_bring_a_key_into_memory);
    fails_without(Guard::KeyOnce, two_bring_a_key_into_memory);
}

/// Uses two keys. The memory has room for one key.
fn a_key_leaves_while_it_is_used() {
    let memory = Memory::new(9);
    let first = memory.takes(A, 1);
    let other = spawn(&memory, |memory| memory.takes(B, 1));
    let mine = memory.takes(A, 2);
    assert_eq!(other.join().unwrap().len(), 1);
    let last = memory.takes(A, 1);
    assert!(last > mine && mine > first, "{first:?}, {mine:?}, {last:?}");
    distinct([first, mine, last]);
}

#[test]
fn a_key_that_leaves_comes_back_above() {
    model(a_key_leaves_while_it_is_used);
    fails_without(Guard::BaseFirst, a_key_leaves_while_it_is_used);
}

/// Numbers 3 to 10 belong to another server. Fails if the two ends of a range are separate values, and readers load them in the
/// order in which they are written.
#[test]
fn no_number_between_two_ranges_is_given() {
    model(|| {
        let memory = Memory::new(2);
        let first = memory.takes(A, 1);
        let other = spawn(&memory, |memory| memory.takes(A, 2));
        assert!(memory.section.extend(&range(11, 2)));
        let mine = memory.takes(A, 1);
        let all = distinct([first, mine, other.join().unwrap()]);
        assert!(all.iter().all(|number| [1, 2, 11, 12].contains(number)), "{all:?}");
    });
}

/// The section's slot is given to another section, whose numbers are above 100. A key of the new section has the same label.
fn a_slot_changes_hands() {
    let memory = Memory::new(2);
    let first = memory.takes(A, 1);
    let old = spawn(&memory, |memory| memory.takes(A, 1));
    memory.section.shut();
    memory.sweep();
    assert!(memory.section.open(2, &range(101, 2)));
    let next = SectionRef { slot_index: 0, owner: 2 };
    let new: Vec<i64> = (0..2).filter_map(|_| memory.take(next, A).ok()).collect();
    let old = old.join().unwrap();
    assert!(old.iter().all(|number| *number <= 2), "of another section: {old:?}");
    assert!(new.iter().all(|number| *number > 100), "of another section: {new:?}");
    distinct([first, old, new]);
    assert_eq!(memory.take(HERE, A), Err(KeyMiss::Gone));
}

#[test]
fn who_knows_the_old_section_gets_nothing_of_the_new_one() {
    model(a_slot_changes_hands);
    fails_without(Guard::SectionHeld, a_slot_changes_hands);
}

/// The key is not in memory when another section gets the slot.
fn a_key_comes_to_a_slot_that_changes_hands() {
    let memory = Memory::new(2);
    let old = spawn(&memory, |memory| memory.takes(A, 2));
    memory.section.shut();
    memory.sweep();
    assert!(memory.section.open(2, &range(101, 2)));
    let next = SectionRef { slot_index: 0, owner: 2 };
    let old = old.join().unwrap();
    assert!(old.iter().all(|number| *number <= 2), "of another section: {old:?}");
    assert_eq!(memory.take(next, A), Ok(101), "nothing of the old section is left");
}

#[test]
fn no_key_of_the_old_section_comes_after_the_sweep() {
    model(a_key_comes_to_a_slot_that_changes_hands);
    fails_without(Guard::SectionSeen, a_key_comes_to_a_slot_that_changes_hands);
}

/// A sweep for another section goes on meanwhile.
fn a_section_is_opened_during_a_sweep() {
    let memory = Memory::new(2);
    memory.section.shut();
    memory.sweep();
    let sweep = spawn(&memory, Memory::sweep);
    assert!(memory.section.open(HERE.owner, &range(3, 9)));
    let first = memory.takes(A, 1);
    sweep.join().unwrap();
    distinct([first, memory.takes(A, 1)]);
}

#[test]
fn a_sweep_removes_no_key_of_a_section_that_is_being_opened() {
    model(a_section_is_opened_during_a_sweep);
    fails_without(Guard::OpenNotLeft, a_section_is_opened_during_a_sweep);
}

fn a_section_loses_its_slot_during_a_sweep() {
    let (memory, mut sweep) = (Memory::new(2), SweepStep::Begin(0));
    memory.takes(A, 1);
    memory.go_on(&mut sweep, 4);
    memory.section.shut();
    memory.go_on(&mut sweep, 2);
    assert!(!memory.section.open(2, &range(101, 2)), "an entry of the old section is left");
    memory.sweep();
    assert!(memory.section.open(2, &range(101, 2)));
}

#[test]
fn a_section_is_opened_after_a_sweep_that_began_when_it_had_no_owner() {
    model(a_section_loses_its_slot_during_a_sweep);
    fails_without(Guard::WholeSweep, a_section_loses_its_slot_during_a_sweep);
}
