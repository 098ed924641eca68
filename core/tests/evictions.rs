//! Slots that pass from one tag to another during refills. Sessions take ids, slots are given to other tags, and the shipped refill
//! tasks reserve ids, in any order. No tag gets another tag's ids, and no id comes twice.

use super::clock_sweep::sweep;
use super::refill_locks::Host;
use super::refill_locks::slot::Slot;
use proptest::prelude::*;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::process::refill::RefillTask;
use snowflake_ids_core::tag::clock_sweep::SweptSlot;
use snowflake_ids_core::tag::definition::{Definition, Range};
use snowflake_ids_core::tag::directory::{DatabaseShare, Directory, DirectoryEntry, Tag, TagKey};
use snowflake_ids_core::tag::reservation::{Demand, HighWaterMark, Outcome, Reserved, TagRow};
use snowflake_ids_core::tag::segment::{Period, Supply};
use snowflake_ids_core::tag::step::{Pace, SlowStart};
use snowflake_ids_core::tag::tickets::Answer;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The number of ids in a tag's block. The blocks of two tags do not overlap.
const BLOCK: i64 = 1_000_000;
const STEP: i64 = 100;

fn tag(number: usize) -> Tag {
    Tag::new(number.to_string().as_bytes()).unwrap()
}

fn row(number: usize, reserved: i64) -> TagRow {
    let base = i64::try_from(number).unwrap() * BLOCK;
    let definition = Definition {
        max_id: base + reserved,
        start: base + 1,
        step: STEP,
        max_step: 10 * STEP,
        increment: 1,
        remainder: 0,
        max_value: base + BLOCK - 1,
    };
    // Each tag has a generation of its own.
    TagRow { definition, period: Period::FOREVER, format: String::new(), version: 1, tag_generation: base }
}

/// Slots, their owners, and the ids reserved and issued for each tag.
struct World<'s> {
    slots: &'s [Slot],
    owners: Vec<Option<usize>>,
    hand: usize,
    slot_generations: u64,
    memory: Host,
    reserved: BTreeMap<usize, i64>,
    issued: BTreeSet<i64>,
}

impl<'s> World<'s> {
    fn new(slots: &'s [Slot]) -> Self {
        let memory = Host::default();
        let owners = vec![None; slots.len()];
        let (hand, slot_generations) = (0, 0);
        let (reserved, issued) = (BTreeMap::new(), BTreeSet::new());
        Self { slots, owners, hand, slot_generations, memory, reserved, issued }
    }

    /// The tag's slot. A tag without one is given a slot if possible.
    fn slot_index(&mut self, tag: usize) -> Option<usize> {
        if let Some(slot_index) = self.owners.iter().position(|owner| *owner == Some(tag)) {
            return Some(slot_index);
        }
        let Self { slots, owners, hand, .. } = self;
        let is_full = !owners.contains(&None);
        let slot_index = owners.iter().position(Option::is_none).or_else(|| {
            sweep(hand, slots.len(), 1, |slot_index| {
                let slot = &slots[slot_index];
                Some(SweptSlot {
                    awaited: slot.wanted() > 0,
                    unmoved: slot.visit(false, Duration::ZERO),
                    slots: 1,
                })
            })
        })?;
        self.slot_generations += 1;
        let slot = &self.slots[slot_index];
        assert_eq!(slot.wanted(), 0, "calls wait there");
        slot.hand_over(self.slot_generations, UnixMicros(1));
        slot.set_slow_start(is_full.then(SlowStart::default));
        self.owners[slot_index] = Some(tag);
        Some(slot_index)
    }

    fn tasks(&self) -> Vec<RefillTask<'s, Slot>> {
        let task = |(slot, owner): (&'s Slot, &Option<usize>)| RefillTask::new(slot, tag((*owner)?), 1);
        self.slots.iter().zip(&self.owners).filter_map(task).collect()
    }

    /// Reserves ids for a task, which commits the tag's row.
    fn reserve(&mut self, task: &RefillTask<'_, Slot>) -> Reserved {
        let number: usize = std::str::from_utf8(task.tag.as_bytes()).unwrap().parse().unwrap();
        let reserved = self.reserved.entry(number).or_default();
        let row = row(number, *reserved);
        let demand =
            task.demand(&self.memory.process(), None, task.high_water_mark(&self.memory.process(), &row));
        let Outcome::Reserved(done) = row.reserve(&demand, 2) else { panic!("there are ids left") };
        *reserved = done.supply.range.last() - i64::try_from(number).unwrap() * BLOCK;
        done
    }

    /// Takes an id for a session, at the slot that the session remembers.
    fn take(&mut self, (number, slot_index, slot_generation): (usize, usize, u64)) -> bool {
        let slot = &self.slots[slot_index];
        let Ok(taken) = slot.segment.take(slot_generation, NonZeroU32::MIN, &UnixMicros(1)) else {
            return false;
        };
        if taken.prefetch {
            slot.request.ask();
        }
        let id = taken.range.first;
        assert_eq!(id / BLOCK, i64::try_from(number).unwrap(), "an id of another tag");
        assert!(self.issued.insert(id), "{id} twice");
        true
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    /// A call for a tag either takes an id, or requests a refill and may wait for the refill.
    Call(usize, bool),
    /// A waiting call ends, with or without an id.
    End(prop::sample::Index),
    /// A session tries to take an id at a slot that it remembers.
    Remembered(prop::sample::Index),
    /// The worker finds tasks and reserves for them.
    Begin,
    /// One of the worker's tasks ends, with or without ids.
    Finish(prop::sample::Index, bool),
    /// A transaction hands out an id directly, and is rolled back.
    Rollback(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let which = any::<prop::sample::Index>;
    let act = prop_oneof![
        6 => (0_usize..6, any::<bool>()).prop_map(|(tag, waits)| Act::Call(tag, waits)),
        3 => which().prop_map(Act::End),
        3 => which().prop_map(Act::Remembered),
        2 => Just(Act::Begin),
        4 => (which(), prop::bool::weighted(0.8)).prop_map(|(task, ids)| Act::Finish(task, ids)),
        1 => (0_usize..6).prop_map(Act::Rollback),
    ];
    prop::collection::vec(act, 1..300)
}

proptest! {
    #[test]
    fn an_answer_for_a_slot_that_has_another_tag_by_now_is_dropped(slots in 1_usize..4, acts in acts()) {
        let slots: Vec<Slot> = (0..slots).map(|_| Slot::default()).collect();
        let mut world = World::new(&slots);
        let (mut waiting, mut remembered, mut started) = (Vec::new(), Vec::new(), Vec::new());
        for act in acts {
            match act {
                Act::Call(tag, waits) => {
                    let Some(slot_index) = world.slot_index(tag) else {
                        prop_assert!(slots.iter().all(|slot| slot.wanted() > 0), "none where calls don't wait");
                        continue;
                    };
                    let known = (tag, slot_index, slots[slot_index].segment.slot_generation());
                    remembered.push(known);
                    if !world.take(known) {
                        slots[slot_index].request.ask();
                        if waits {
                            slots[slot_index].wanted.fetch_add(1, Relaxed);
                            waiting.push(known);
                        }
                    }
                }
                Act::End(which) if !waiting.is_empty() => {
                    let known = waiting.swap_remove(which.index(waiting.len()));
                    prop_assert_eq!(slots[known.1].segment.slot_generation(), known.2, "it kept its place");
                    world.take(known);
                    slots[known.1].wanted.fetch_sub(1, Relaxed);
                }
                Act::Remembered(which) if !remembered.is_empty() => {
                    world.take(remembered[which.index(remembered.len())]);
                }
                Act::Begin => {
                    for task in world.tasks() {
                        let reserved = world.reserve(&task);
                        started.push((task, reserved));
                    }
                }
                Act::Finish(which, with_ids) if !started.is_empty() => {
                    let (task, reserved) = started.swap_remove(which.index(started.len()));
                    if with_ids {
                        task.put_out(&world.memory.process(), &reserved, Duration::ZERO);
                        task.supplied();
                    } else {
                        let before = task.slot.trouble();
                        task.record_locked();
                        task.deny(&Outcome::Unknown, 1);
                        let owner = slots.iter().position(|slot| std::ptr::eq(slot, task.slot));
                        let owner = owner.and_then(|slot_index| world.owners[slot_index]).map(tag);
                        prop_assert!(owner == Some(task.tag) || task.slot.trouble() == before, "another tag's trouble");
                    }
                }
                Act::Rollback(number) => {
                    let base = i64::try_from(number).unwrap() * BLOCK;
                    let recorded = world.memory.high_water_marks.borrow().get(tag(number).as_bytes()).map(|high_water_mark| high_water_mark.id);
                    let id = 1 + recorded.unwrap_or(0).max(base + world.reserved.get(&number).copied().unwrap_or(0));
                    prop_assert!(world.issued.insert(id), "{} twice", id);
                    let high_water_mark = HighWaterMark { tag_generation: base, day: 0, id };
                    world.memory.high_water_marks.borrow_mut().insert(tag(number).as_bytes().to_vec(), high_water_mark);
                }
                _ => {}
            }
        }
    }
}

/// Whenever the tag's buffers are empty, a refill gives the tag twice as many ids as the refill before, up to a full segment. So a
/// tag that loses its slot early loses few ids.
#[test]
fn a_tag_that_comes_while_no_slot_is_free_starts_slowly() {
    let slots = [Slot::default()];
    let mut world = World::new(&slots);
    world.slot_index(0);
    world.slot_index(1);
    let (slot, known) = (&slots[0], (1, 0, slots[0].segment.slot_generation()));
    slot.wanted.store(3, Relaxed);
    let mut grants = Vec::new();
    for _ in 0..7 {
        slot.request.ask();
        let task = world.tasks().remove(0);
        let reserved = world.reserve(&task);
        assert_eq!(reserved.pace, Pace { step: 100, multiplier: 1 }, "it is not busy, and its step stays");
        assert!(task.put_out(&world.memory.process(), &reserved, Duration::ZERO));
        task.supplied();
        grants.push(reserved.supply.range.count);
        for taken in 1..=reserved.supply.range.count {
            assert!(world.take(known));
            let is_asked = slot.request.pending().is_some();
            assert_eq!(
                is_asked,
                reserved.supply.range.count == 100 && taken >= 50,
                "ahead, at its step only"
            );
        }
        if let Some(ticket) = slot.request.pending() {
            slot.request.answer(ticket, Answer::Supplied);
        }
    }
    assert_eq!(grants, [3, 6, 12, 24, 48, 96, 100]);
    assert_eq!(slot.slow_start(), None);

    // A registry that ignores slow starts gives a full segment. The server accepts the segment, and the slow start ends.
    slot.wanted.store(0, Relaxed);
    world.slot_index(2);
    slot.request.ask();
    let task = world.tasks().remove(0);
    let demand = Demand { most: None, ..task.demand(&world.memory.process(), None, None) };
    let Outcome::Reserved(all) = row(2, 0).reserve(&demand, 2) else { panic!("there are ids left") };
    assert!(task.put_out(&world.memory.process(), &all, Duration::ZERO));
    assert_eq!((all.supply.range.count, slot.slow_start()), (100, None));
}

/// Databases whose tags share slots. Each call takes a microsecond, and 400 more if its tag has no slot.
struct Databases<'m> {
    slots: Vec<Slot>,
    directory: Directory<'m>,
    hand: usize,
    generations: u64,
    now: Duration,
}

impl<'m> Databases<'m> {
    fn new(entries: &'m mut [DirectoryEntry], shares: &'m mut [DatabaseShare]) -> Self {
        let slots = entries.iter().map(|_| Slot::default()).collect();
        let (now, directory) = (Duration::ZERO, Directory::new(entries, shares));
        Self { slots, directory, hand: 0, generations: 0, now }
    }

    /// Takes an id. Returns whether the tag had a slot.
    fn call(&mut self, database: u32, number: usize) -> bool {
        let Self { slots, directory, hand, generations, now } = self;
        let key = TagKey { database, source: 1, tag: tag(number) };
        let known = directory.find(&key);
        if known.is_none() {
            *now += Duration::from_micros(400);
            if directory.len() == slots.len() {
                let gone = sweep(hand, slots.len(), directory.shares().most(), |slot_index| {
                    let slots_of = directory.shares().rank(directory.get(slot_index)?.database);
                    Some(SweptSlot {
                        awaited: false,
                        unmoved: slots[slot_index].visit(false, *now),
                        slots: slots_of,
                    })
                });
                directory.remove(gone.unwrap());
            }
        }
        let slot_index = known.or_else(|| directory.insert(key, ())).unwrap();
        let slot = &slots[slot_index];
        if known.is_none() {
            *generations += 1;
            slot.hand_over(*generations, UnixMicros(1));
            let range = Range { first: 1, count: 1_000_000, increment: 1 };
            let supply = Supply { range, period: Period::FOREVER, prefetch_at: 0 };
            assert!(slot.segment.publish(&supply, slot.segment.stamp()));
        }
        *now += Duration::from_micros(1);
        slot.segment.take(slot.segment.slot_generation(), NonZeroU32::MIN, &UnixMicros(1)).unwrap();
        known.is_some()
    }

    /// Takes an id of each tag in turn. Returns the number of tags that had no slot.
    fn round(&mut self, database: u32, tags: usize) -> usize {
        (0..tags).filter(|number| !self.call(database, *number)).count()
    }
}

#[test]
fn an_idle_database_gives_its_slots_to_a_busy_one() {
    let (mut entries, mut shares) = (vec![DirectoryEntry::EMPTY; 1_024], vec![DatabaseShare::default(); 8]);
    let mut databases = Databases::new(&mut entries, &mut shares);
    while databases.now < Duration::from_secs(1) {
        databases.round(1, 1_000);
    }
    let misses: Vec<_> = (0..4).map(|_| databases.round(2, 900)).collect();
    assert_eq!(misses[2..], [0, 0], "{misses:?}");
}

#[test]
fn two_busy_databases_have_the_same_share() {
    let (mut entries, mut shares) = (vec![DirectoryEntry::EMPTY; 1_024], vec![DatabaseShare::default(); 8]);
    let mut databases = Databases::new(&mut entries, &mut shares);
    databases.round(1, 1_000);
    for number in 0..20_000 {
        databases.call(1, number % 1_000);
        databases.call(2, number % 900);
    }
    let share = [1, 2].map(|database| databases.directory.shares().of(database));
    assert!(share.iter().all(|slots| (500..=524).contains(slots)), "{share:?}");
}

/// The hand passes the slots several times between two uses of a tag, and the tags keep their slots.
#[test]
fn a_database_that_takes_many_tags_evicts_no_tags_of_others_that_are_in_use() {
    let (mut entries, mut shares) = (vec![DirectoryEntry::EMPTY; 256], vec![DatabaseShare::default(); 8]);
    let mut databases = Databases::new(&mut entries, &mut shares);
    assert_eq!(databases.round(1, 10), 10);
    for number in 0..10_000 {
        databases.call(2, number);
        if number % 500 == 0 {
            assert_eq!(databases.round(1, 10), 0);
        }
    }
}
