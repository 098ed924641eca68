//! A server with one tag: its row, its buffers, the refill worker and faults.

use super::chance::Chance;
use super::file::{Disk, File};
use super::process::{Pause, Process, Wait};
use crate::reservation::demand;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::guard::{Guard, holds};
use snowflake_ids_core::server::saved_range_file::{self, SavedRanges};
use snowflake_ids_core::server::saved_ranges::{InUse, Name, from_text, rest};
use snowflake_ids_core::tag::clock_sweep::highest;
use snowflake_ids_core::tag::definition::{Definition, Range};
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::reservation::{
    Demand, HighWaterMark, Outcome, Reached, Reserved, SavedRange, TagRow,
};
use snowflake_ids_core::tag::segment::{Period, Segment, Stamp};
use snowflake_ids_core::tag::transaction_tags::{TagChange, TransactionTags, TransactionTagsHost};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

const DATABASE: u32 = 5;
const SOURCE: u32 = 7;
const TAG: &[u8] = b"t";

/// A backup of the tables.
#[derive(Clone)]
struct Tables {
    row: TagRow,
    /// The ids of this history, except those of rolled-back transactions.
    given: BTreeSet<i64>,
}

/// The server's memory.
#[derive(Default)]
struct Memory {
    segment: Segment,
    /// The row's version after the last reservation.
    version: i64,
    had_ids: bool,
    high_water_mark: Option<HighWaterMark>,
    /// Whether a session waits for ids.
    wanted: bool,
    /// The version of the saved range from which the buffers' ids came.
    of_record: Option<i64>,
}

pub struct World {
    chance: Chance,
    tables: Tables,
    backups: Vec<Tables>,
    disk: Rc<RefCell<Disk>>,
    memory: Memory,
    numbers: i64,
    /// Ids handed out by rolled-back transactions.
    rolled_back: BTreeSet<i64>,
    /// Ids handed out from saved ranges, each with the version of its range.
    of_records: BTreeSet<(i64, i64)>,
    /// The id to which the tag was forced back. It is kept until the next id is issued.
    forced: Option<i64>,
    wrong: Option<String>,
}

/// A transaction that has changed the tag, with the row that the transaction sees.
struct Transaction<'a> {
    row: RefCell<TagRow>,
    memory: RefCell<&'a mut Memory>,
    /// The version that the transaction writes.
    version: i64,
}

impl TransactionTagsHost<()> for Transaction<'_> {
    type Error = ();

    fn is_there(&self, (): &()) -> bool {
        true
    }

    fn read(&self, (): &()) -> Result<Option<TagRow>, ()> {
        Ok(Some(self.row.borrow().clone()))
    }

    fn write(&self, (): &(), max_id: i64, _: Period) -> Result<(), ()> {
        let mut row = self.row.borrow_mut();
        (row.definition.max_id, row.version) = (max_id, self.version);
        Ok(())
    }

    fn high_water_mark(&self, (): &()) -> Option<HighWaterMark> {
        self.memory.borrow().high_water_mark
    }

    fn raise_high_water_mark(&self, (): &(), high_water_mark: HighWaterMark) {
        let recorded = &mut self.memory.borrow_mut().high_water_mark;
        *recorded = Some(high_water_mark.beside(*recorded));
    }

    fn clear_high_water_mark(&self, (): &(), known: Option<Reached>) {
        let passed = |high_water_mark: &mut HighWaterMark| {
            known.is_none_or(|known| high_water_mark.reached() <= known)
        };
        self.memory.borrow_mut().high_water_mark.take_if(passed);
    }

    fn close(&self, (): &(), reserved: i64, tag_generation: i64) -> i64 {
        let memory = self.memory.borrow();
        highest(&memory.segment.clear(), memory.high_water_mark, reserved, tag_generation)
    }

    fn leave(&self, (): &()) {
        panic!("the tag is never dropped");
    }

    fn leave_unused(&self, (): &()) {
        panic!("the tag is never dropped");
    }

    fn write_format(&self, (): &(), _: &str) {}
}

type Shared = Rc<RefCell<World>>;

/// The world and its refill worker.
struct Run {
    world: Shared,
    worker: Process,
}

fn tag() -> Tag {
    Tag::new(TAG).unwrap()
}

impl World {
    fn new(seed: u64) -> Self {
        let definition = Definition {
            max_id: 0,
            start: 1,
            step: 4,
            max_step: 4,
            increment: 1,
            remainder: 0,
            max_value: i64::MAX,
        };
        let row = TagRow {
            definition,
            period: Period::FOREVER,
            format: String::new(),
            version: 0,
            tag_generation: 0,
        };
        Self {
            chance: Chance::new(seed),
            tables: Tables { row, given: BTreeSet::new() },
            backups: Vec::new(),
            disk: Rc::default(),
            memory: Memory::default(),
            numbers: 0,
            rolled_back: BTreeSet::new(),
            of_records: BTreeSet::new(),
            forced: None,
            wrong: None,
        }
    }

    /// Runs a seed. Returns the first fault found.
    pub fn run(seed: u64) -> Option<String> {
        let world = Rc::new(RefCell::new(Self::new(seed)));
        let mut run = Run { worker: worker(&world), world };
        for _ in 0..60 {
            let what = run.world.borrow_mut().chance.below(12);
            match what {
                0..6 => {
                    let ids = run.world.borrow_mut().chance.below(6);
                    (0..ids).for_each(|_| run.take());
                }
                6 => run.world.borrow_mut().change(),
                7 => run.world.borrow_mut().force(),
                8 => {
                    let mut world = run.world.borrow_mut();
                    let now = world.tables.clone();
                    world.backups.push(now);
                }
                9 => run.stop(),
                10 => run.crash(),
                _ => run.set_back(),
            }
        }
        run.world.borrow_mut().wrong.take()
    }

    /// A version or generation that no row had before.
    fn number(&mut self) -> i64 {
        self.numbers += 1;
        self.numbers
    }

    fn give(&mut self, id: i64) {
        if let Some(target) = self.forced.take()
            && id != target + 1
        {
            self.wrong.get_or_insert(format!("{id} after it was forced back to {target}"));
        }
        if self.tables.given.contains(&id) || self.rolled_back.contains(&id) {
            self.wrong.get_or_insert(format!("{id} came twice"));
        }
    }

    /// Takes an id for a session. Returns whether there was one.
    fn take(&mut self) -> bool {
        let Ok(taken) = self.memory.segment.take(0, NonZeroU32::MIN, &UnixMicros(0)) else {
            self.memory.wanted = true;
            return false;
        };
        let id = taken.range.first;
        self.give(id);
        self.tables.given.insert(id);
        if let Some(record) = self.memory.of_record
            && !self.of_records.insert((record, id))
        {
            self.wrong.get_or_insert(format!("{id} was left over twice"));
        }
        true
    }

    /// Reserves ids as the refill worker's transaction does. Returns the ids, and the state of the buffers for which they were
    /// reserved.
    fn reserve(&mut self, saved_range: Option<SavedRange>) -> (Reserved, Stamp) {
        let stamp = self.memory.segment.stamp();
        let row = &self.tables.row;
        let demand = Demand {
            saved_range,
            target: Duration::from_secs(1),
            high_water_mark: row.high_water_mark(self.memory.high_water_mark),
            ..demand()
        };
        let version = self.number();
        let Outcome::Reserved(reserved) = self.tables.row.reserve(&demand, version) else {
            panic!("there are ids")
        };
        self.tables.row.version = reserved.version;
        self.tables.row.definition.max_id = reserved.supply.range.last();
        (reserved, stamp)
    }

    fn publish(&mut self, reserved: &Reserved, stamp: Stamp, of_record: Option<i64>) {
        let memory = &mut self.memory;
        if memory.segment.publish(&reserved.supply, stamp) {
            (memory.version, memory.had_ids, memory.wanted) = (reserved.version, true, false);
            memory.of_record = of_record;
            memory
                .high_water_mark
                .take_if(|high_water_mark| high_water_mark.id <= reserved.supply.range.last());
        }
    }

    /// Runs a transaction that changes the tag, takes ids above the row, and is committed or rolled back.
    fn change(&mut self) {
        let change = self.chance.one_of(&[TagChange::Tuned, TagChange::Moved, TagChange::Forced]);
        let commits = self.chance.once_in(2);
        let tag_generation = self.tables.row.tag_generation;
        let mut row = self.tables.row.clone();
        match change {
            TagChange::Forced => {
                row.definition.max_id = self.chance.one_of(&[0, 3, 10, 20, 39]);
                row.tag_generation = self.number();
                // Forcing back discards the buffers.
                self.memory.segment.clear();
            }
            TagChange::Moved => row.definition.max_id += self.chance.between(1, 10),
            _ => {}
        }
        let target = row.definition.max_id;
        let version = self.number();
        let transaction =
            Transaction { row: RefCell::new(row), memory: RefCell::new(&mut self.memory), version };
        let mut own = TransactionTags::NONE;
        own.record((), change, Some(tag_generation), ());
        let mut ids = Vec::new();
        for _ in 0..=self.chance.below(5) {
            let (taken, _) = own.next(&(), &UnixMicros(0), &transaction).unwrap().unwrap();
            ids.push(taken.range.first);
        }
        if commits {
            own.settle(&transaction).unwrap();
            own.committed(&transaction);
        }
        let row = transaction.row.into_inner();
        if commits {
            self.tables.row = row;
        }
        match change {
            TagChange::Forced if commits => self.forget_above(target),
            TagChange::Tuned if commits => {}
            _ => self.forced = None,
        }
        if commits || change != TagChange::Forced {
            for id in &ids {
                self.give(*id);
            }
        }
        if commits {
            self.tables.given.extend(&ids);
        } else {
            self.rolled_back.extend(&ids);
        }
        if commits && change != TagChange::Tuned {
            // Ids continue after the transaction's last id.
            self.forced = ids.last().copied();
        }
    }

    /// Forgets all ids above the target, because the tag's owner says that no higher id is in use.
    fn forget_above(&mut self, target: i64) {
        self.tables.given.retain(|id| *id <= target);
        self.rolled_back.retain(|id| *id <= target);
        self.forced = Some(target);
    }

    /// Forces the tag back, as its owner would. No other process learns of the commit.
    fn force(&mut self) {
        let target = self.chance.one_of(&[0, 3, 10, 20, 39]);
        let (version, tag_generation) = (self.number(), self.number());
        let row = &mut self.tables.row;
        (row.definition.max_id, row.tag_generation) = (target, tag_generation);
        row.version = if holds(Guard::NewVersion) { version } else { row.version + 1 };
        self.memory.segment.clear();
        self.forget_above(target);
    }

    fn in_use(&self) -> Vec<InUse> {
        let Memory { segment, version, had_ids, high_water_mark, .. } = &self.memory;
        let version = *version;
        let left = rest(&segment.buffer_states());
        let in_use = InUse {
            name: Name { database: DATABASE, source: SOURCE, tag: TAG.to_vec() },
            had_ids: *had_ids,
            left: left.map(|(range, period)| SavedRange { version, day: period.dated(), range }),
            high_water_mark: *high_water_mark,
        };
        (*had_ids || high_water_mark.is_some()).then_some(in_use).into_iter().collect()
    }

    /// Forgets unrecorded ids of rolled-back transactions.
    fn forget_rolled_back(&mut self) {
        let row = &self.tables.row;
        let recorded = row.high_water_mark(self.memory.high_water_mark).map_or(0, |(_, id)| id);
        // The ids may lie in a saved range, if a rolled-back transaction had forced the tag back.
        let text = self.disk.borrow().text.clone();
        let in_file = text.map(|text| from_text(&text).unwrap()).unwrap_or_default();
        let left: Vec<Range> = in_file.left.iter().map(|record| record.what.range).collect();
        let is_left = |id: i64| left.iter().any(|left| (left.first..=left.last()).contains(&id));
        let max_id = row.definition.max_id;
        self.forced = None;
        self.rolled_back.retain(|id| *id <= recorded || *id <= max_id && !is_left(*id));
    }
}

/// The refill worker of a server that has just started.
fn worker(world: &Shared) -> Process {
    let world = world.clone();
    Process::new(move |pause| refill(&world, pause))
}

fn refill(world: &Shared, pause: &Pause) {
    let file = File { disk: world.borrow().disk.clone(), pause };
    let (left, error) = SavedRanges::of_database(file, DATABASE);
    assert!(error.is_none(), "{}", error.unwrap());
    loop {
        pause.suspend(Wait::Turn);
        if !world.borrow().memory.wanted {
            continue;
        }
        let saved_range = left.of(SOURCE, &tag());
        let (reserved, stamp) = world.borrow_mut().reserve(saved_range.clone());
        let of_record =
            saved_range.filter(|left| left.range == reserved.supply.range).map(|left| left.version);
        pause.suspend(Wait::Turn);
        assert!(left.take_up([(SOURCE, &tag(), &reserved)].into_iter()));
        world.borrow_mut().publish(&reserved, stamp, of_record);
    }
}

impl Run {
    /// Takes an id for a session, and waits for the id if necessary. The server may crash meanwhile.
    fn take(&mut self) {
        while !self.world.borrow_mut().take() {
            if self.world.borrow_mut().chance.once_in(40) {
                return self.crash();
            }
            self.worker.step();
        }
        // The worker continues its task for one step, or is too slow to do so.
        if self.world.borrow_mut().chance.once_in(2) {
            self.worker.step();
        }
    }

    fn stop(&mut self) {
        let (disk, in_use) = {
            let world = self.world.borrow();
            (world.disk.clone(), world.in_use())
        };
        // The worker ends at any point of its work.
        self.worker = Process::new(|_| ());
        let mut postmaster = Process::new(move |pause| {
            let file = File { disk, pause };
            saved_range_file::save(&file, in_use, |_| true).unwrap();
        });
        while postmaster.step().is_some() {
            if self.world.borrow_mut().chance.once_in(20) {
                return self.crash();
            }
        }
        self.start();
    }

    fn start(&mut self) {
        let disk = self.world.borrow().disk.clone();
        let high_water_mark = Rc::new(RefCell::new(None));
        let found = high_water_mark.clone();
        let mut postmaster = Process::new(move |pause| {
            let high_water_marks = saved_range_file::high_water_marks(&File { disk, pause });
            *found.borrow_mut() = high_water_marks.into_iter().next().map(|record| record.what);
        });
        while postmaster.step().is_some() {}
        let high_water_mark = *high_water_mark.borrow();
        self.world.borrow_mut().memory = Memory { high_water_mark, ..Memory::default() };
        self.worker = worker(&self.world);
    }

    fn crash(&mut self) {
        {
            let world = &mut *self.world.borrow_mut();
            world.disk.borrow_mut().fail(&mut world.chance);
        }
        self.start();
        self.world.borrow_mut().forget_rolled_back();
    }

    /// Restores the tables of an earlier moment. The saved-range file stays.
    fn set_back(&mut self) {
        if self.world.borrow().backups.is_empty() {
            return;
        }
        let stops = self.world.borrow_mut().chance.once_in(2);
        if stops {
            self.stop();
        }
        {
            let world = &mut *self.world.borrow_mut();
            let backup = world.chance.below(world.backups.len());
            world.tables = world.backups[backup].clone();
            world.backups.truncate(backup + 1);
            world.forced = None;
            world.rolled_back.clear();
        }
        self.start();
    }
}
