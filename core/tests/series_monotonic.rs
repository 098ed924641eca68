//! Keys of monotonic series in memory: each key's numbers grow, whichever keys lose their place in memory.

use proptest::prelude::*;
use snowflake_ids_core::series::Key;
use snowflake_ids_core::series::monotonic::{
    Bucket, Hash, KeyMiss, Keys, Section, SectionBounds, SectionNeed, SectionRef, SweepStep, section_of,
};
use snowflake_ids_core::tag::definition::Range;
use std::collections::BTreeMap;
use std::thread;

const fn range(first: i64, count: u32, increment: i64) -> Range {
    Range { first, count, increment }
}

fn buckets(count: usize) -> Vec<Bucket> {
    std::iter::repeat_with(Bucket::default).take(count).collect()
}

fn key(number: i64) -> Hash {
    Hash::of(7, 1, &Key::Bigint(number))
}

/// Sections, with the last reserved number of each tag and the last number of each key.
struct Model {
    buckets: Vec<Bucket>,
    sections: Vec<Section>,
    reserved: Vec<i64>,
    owners: u64,
    last: BTreeMap<(usize, i64), i64>,
    writes: u64,
    /// For each section that was closed: the number above which its next numbers lie.
    closed: BTreeMap<usize, i64>,
}

impl Model {
    fn new(buckets_: usize, sections: usize) -> Self {
        Self {
            buckets: buckets(buckets_),
            sections: std::iter::repeat_with(Section::default).take(sections).collect(),
            reserved: vec![0; sections],
            owners: 0,
            last: BTreeMap::new(),
            writes: 0,
            closed: BTreeMap::new(),
        }
    }

    fn keys(&self) -> Keys<'_> {
        Keys::new(&self.buckets, 7)
    }

    fn reserve(&mut self, slot_index: usize, step: u32, skip: i64) -> Range {
        self.writes += 1;
        let range = range(self.reserved[slot_index] + 1 + skip, step, 1);
        self.reserved[slot_index] = range.last();
        range
    }

    /// Supplies a section, as a session does after it got no number.
    fn supply(&mut self, slot_index: usize, seen: Option<(u64, SectionBounds)>, step: u32, skip: i64) {
        match self.sections[slot_index].need(seen) {
            SectionNeed::Nothing(_) => panic!("there is but one session"),
            SectionNeed::Sweep => {
                sweep(&self.keys(), &self.sections.iter().collect::<Vec<_>>());
            }
            SectionNeed::Range => {
                let range = self.reserve(slot_index, step, skip);
                self.owners += 1;
                self.sections[slot_index].take_up(self.owners, &range);
            }
        }
    }

    /// Closes a section, so that nobody gets its reserved numbers.
    fn close(&mut self, slot_index: usize) {
        if self.sections[slot_index].owner() != 0 {
            self.sections[slot_index].close();
        }
        self.reserved[slot_index] += 10;
        self.closed.insert(slot_index, self.reserved[slot_index]);
    }

    /// Takes a number as a session does, and supplies the section if necessary.
    fn take(&mut self, slot_index: usize, number: i64, step: u32, skip: i64) -> Result<(), TestCaseError> {
        let got = loop {
            let section = &self.sections[slot_index];
            let section_ref =
                SectionRef { slot_index: u32::try_from(slot_index).unwrap(), owner: section.owner() };
            let taken = if section_ref.owner == 0 {
                Err(KeyMiss::Gone)
            } else {
                self.keys().take(section, section_ref, key(number), &|slot_index| {
                    self.sections.get(slot_index as usize)
                })
            };
            match taken {
                Ok(got) => break got,
                Err(KeyMiss::Gone) => self.supply(slot_index, None, step, skip),
                Err(KeyMiss::Empty(bounds)) => {
                    self.supply(slot_index, Some((section_ref.owner, bounds)), step, skip);
                }
            }
        };
        let before = self.last.insert((slot_index, number), got);
        prop_assert!(before.is_none_or(|before| before < got), "{number} got {got} after {before:?}");
        prop_assert!(got <= self.reserved[slot_index], "{got} is not reserved");
        prop_assert!(self.closed.get(&slot_index).is_none_or(|closed| got > *closed), "{got} was taken away");
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Take { slot_index: usize, key: i64, step: u32, skip: i64 },
    Close(usize),
    Shut(usize),
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let skip = prop_oneof![8 => Just(0_i64), 2 => 0..50_i64, 1 => Just(1_i64 << 32)];
    prop_oneof![
        60 => (0..3_usize, 0..60_i64, 1..20_u32, skip)
            .prop_map(|(slot_index, key, step, skip)| Step::Take { slot_index, key, step, skip }),
        2 => (0..3_usize).prop_map(Step::Close),
        1 => (0..3_usize).prop_map(Step::Shut),
        1 => Just(Step::Crash),
    ]
}

proptest! {
    /// There are few buckets, so that keys constantly lose their place in memory.
    #[test]
    fn numbers_of_a_key_grow(steps in prop::collection::vec(step(), 1..600), buckets_ in 1..4_usize) {
        let mut model = Model::new(buckets_, 3);
        for step in steps {
            match step {
                Step::Take { slot_index, key, step, skip } => model.take(slot_index, key, step, skip)?,
                Step::Close(slot_index) => model.close(slot_index),
                Step::Shut(slot_index) => model.sections[slot_index].shut(),
                Step::Crash => {
                    model.buckets = buckets(buckets_);
                    model.sections = std::iter::repeat_with(Section::default).take(3).collect();
                }
            }
        }
    }
}

#[test]
fn one_write_for_each_step_however_many_keys_share_it() {
    let mut model = Model::new(4_000, 1);
    for round in 0..100 {
        for number in 0..5_000 {
            model.take(0, number, 50, 0).unwrap();
        }
        let writes = 1 + round / 50;
        assert!(model.writes <= writes + 1, "{} writes after {round} rounds", model.writes);
    }
}

#[test]
fn threads_get_no_number_twice() {
    let (all, section) = (buckets(4), Section::default());
    assert!(section.open(1, &range(1, u32::MAX, 1)));
    let (keys, section_ref) = (Keys::new(&all, 7), SectionRef { slot_index: 0, owner: 1 });
    let lists: Vec<Vec<(i64, i64)>> = thread::scope(|scope| {
        let run = |seed: i64| {
            let (keys, section) = (&keys, &section);
            let calls = (0..40_000).map(move |call| (seed + call * 7) % 90);
            scope.spawn(move || {
                let take = |number| keys.take(section, section_ref, key(number), &|_| Some(section)).unwrap();
                calls.map(|number| (number, take(number))).collect()
            })
        };
        let threads: Vec<_> = (0..4).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for list in &lists {
        let mut last = BTreeMap::new();
        for (key, number) in list {
            assert!(
                last.insert(key, number).is_none_or(|before| before < number),
                "{key} fell back to {number}"
            );
        }
    }
    let mut got: Vec<(i64, i64)> = lists.into_iter().flatten().collect();
    got.sort_unstable();
    assert!(got.is_sorted_by(|a, b| a < b), "a number was given twice");
}

/// With 16 bytes per key, nearly all keys have room.
#[test]
fn sixteen_bytes_a_key_are_enough() {
    let count: i64 = if std::env::var_os("SNOWFLAKE_IDS_FULL").is_some() { 10_000_000 } else { 1_000_000 };
    let all = buckets(usize::try_from(count).unwrap() * 16 / size_of::<Bucket>());
    let section = Section::default();
    assert!(section.open(1, &range(1, 1_000, 1)));
    let (keys, section_ref) = (Keys::new(&all, 7), SectionRef { slot_index: 0, owner: 1 });
    for number in 0..count {
        keys.take(&section, section_ref, key(number), &|_| Some(&section)).unwrap();
    }
    let kept = i64::try_from(keys.len()).unwrap();
    assert!(count - kept < count / 100, "{} of {count} keys have left", count - kept);
}

#[test]
fn a_range_that_is_not_above_is_dropped() {
    let section = Section::default();
    assert!(section.open(1, &range(100, 10, 1)));
    // The second value tells whether the keys continue in the range.
    let (dropped, far, taken) = ((true, false), (false, false), (true, true));
    for (first, count, increment, supplied) in [
        (90, 5, 1, dropped),
        (100, 10, 1, dropped),
        (105, 10, 1, dropped),
        (90, 5, 2, dropped),
        (110, 10, 2, far),
        (110, 0, 1, far),
        ((1 << 32) + 200, 10, 1, far),
        (i64::MAX - 20, 10, 1, far),
        (110, 10, 1, taken),
        (200, 10, 1, taken),
    ] {
        let before = section.bounds();
        let fits = section.extend(&range(first, count, increment));
        assert_eq!((fits, section.bounds() != before), supplied, "{first}, {count}, {increment}");
    }
}

/// Carries out a whole sweep.
fn sweep(keys: &Keys, sections: &[&Section]) {
    let (mut next, count) = (SweepStep::Begin(0), u32::try_from(sections.len()).unwrap());
    loop {
        keys.sweep(&mut next, 1, count, &|slot_index| sections.get(slot_index as usize).copied());
        if next == SweepStep::Begin(0) {
            return;
        }
    }
}

#[test]
fn a_section_is_opened_only_when_it_is_nobody_s_and_swept() {
    let (all, section) = (buckets(1), Section::default());
    let keys = Keys::new(&all, 7);
    assert!(!section.open(0, &range(1, 1, 1)) && !section.open(1, &range(1, 0, 1)));
    assert!(section.open(1, &range(1, 5, 1)));
    assert!(!section.open(2, &range(1, 5, 1)));
    sweep(&keys, &[&section]);
    assert!(section.is_littered(), "it is in use");
    section.shut();
    assert!(!section.open(2, &range(1, 5, 1)));
    sweep(&keys, &[&section]);
    assert!(section.open(2, &range(1, 5, 1)));
}

/// Each of several registries gives numbers of its own.
#[test]
fn numbers_leave_out_those_of_other_registries() {
    let (all, section) = (buckets(1), Section::default());
    let (keys, section_ref) = (Keys::new(&all, 7), SectionRef { slot_index: 0, owner: 1 });
    let take = || keys.take(&section, section_ref, key(1), &|_| Some(&section)).ok();
    assert!(section.open(1, &range(2, 3, 3)));
    assert_eq!([take(), take(), take(), take()], [Some(2), Some(5), Some(8), None]);
    assert!(section.extend(&range(11, 1, 3)));
    assert!(section.extend(&range(20, 1, 3)));
    assert_eq!([take(), take()], [Some(20), None]);
}

#[test]
fn no_range_comes_to_the_last_offset() {
    let (all, section) = (buckets(1), Section::default());
    let keys = Keys::new(&all, 7);
    assert!(section.open(1, &range(1, 10, 1)));
    let last = i64::from(u32::MAX);
    assert!(!section.extend(&range(last - 9, 10, 1)));
    assert!(section.extend(&range(last - 10, 10, 1)));
    let (section_ref, hash) = (SectionRef { slot_index: 0, owner: 1 }, Hash::of(7, 1, &Key::Bigint(1)));
    let taken: Vec<_> =
        (0..12).map_while(|_| keys.take(&section, section_ref, hash, &|_| None).ok()).collect();
    assert_eq!(taken, (last - 10..last).collect::<Vec<_>>());
}

/// A key in a second section would get its numbers again.
#[test]
fn a_key_stays_in_its_section() {
    let text = |text: &str| Key::text(text.as_bytes()).unwrap();
    let keys = [
        Key::Bigint(0),
        Key::Bigint(-1),
        Key::Bigint(42),
        Key::Uuid(1 << 100 | 5),
        text(""),
        text("conversation 17"),
    ];
    let sections = keys.map(|key| section_of(&key, 1_000));
    assert_eq!(sections, [978, 265, 271, 951, 556, 631]);
    assert!((0..10_000).all(|number| section_of(&Key::Bigint(number), 1) == 0));
}

#[test]
fn keys_spread_over_the_sections() {
    for kind in 0..3 {
        let mut counts = [0_u32; 16];
        for number in 0..16_000_u32 {
            let key = match kind {
                0 => Key::Bigint(i64::from(number) * 16),
                1 => Key::Uuid(u128::from(number) << 64),
                _ => Key::text(format!("key {number}").as_bytes()).unwrap(),
            };
            counts[usize::from(section_of(&key, 16))] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }
}
