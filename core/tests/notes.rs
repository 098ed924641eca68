//! A tag's row, the note of what was left over, and both set back to different moments: the core's own rows and notes, with the
//! protocol around them. Deterministic: what happens follows from the seed.
//!
//! No id comes twice in one history of the tables, and no id that was left over comes twice in all of them together. What a
//! transaction handed out and rolled back comes no more, unless the server crashed or the tables were set back before it was
//! noted; after a tag is forced back, ids go on there.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "simulation/chance.rs"]
mod chance;
#[path = "simulation/leave_out.rs"]
mod leave_out;

use chance::Chance;
use snowflake_ids_core::carry_over::{InUse, Name, Notes, from_text, taken, to_text};
use snowflake_ids_core::definition::{Definition, Range};
use snowflake_ids_core::reservation::{CarryOver, Floor, Outcome, Row, Wish};
use snowflake_ids_core::segment::Period;
use snowflake_ids_core::step::Pace;
use std::collections::BTreeSet;
use std::time::Duration;

/// One rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// Each write of a row gives it a version that it never had.
    NewVersion,
    /// What is taken up is noted as such,
    NotedAsTaken,
    /// before any of it is handed out.
    NotedFirst,
    /// What rolled back transactions handed out is noted at a stop.
    FloorNoted,
    /// It counts in one life of the tag.
    FloorOfLife,
}

type Guards = leave_out::Guards<Guard>;

/// What a backup of the tables holds.
#[derive(Clone)]
struct Tables {
    row: Row,
    /// The ids of this history, but for those of transactions that were rolled back.
    given: BTreeSet<i64>,
}

/// What the server has in memory.
#[derive(Default)]
struct Memory {
    /// Ids to hand out; the row's version then; whether they were left over, by which note, and not yet noted as taken up.
    buffer: Option<(Range, i64)>,
    of_note: Option<i64>,
    unnoted: Option<i64>,
    had_ids: bool,
    carry_over: Option<CarryOver>,
    floor: Option<Floor>,
}

struct World {
    chance: Chance,
    guards: Guards,
    tables: Tables,
    backups: Vec<Tables>,
    file: Vec<u8>,
    memory: Memory,
    numbers: i64,
    /// Handed out by transactions that were rolled back.
    rolled_back: BTreeSet<i64>,
    /// Handed out of what was left over, by the note that said so.
    of_notes: BTreeSet<(i64, i64)>,
    /// Where the tag was forced back to, until an id has come since.
    forced: Option<i64>,
    wrong: Option<String>,
}

fn name() -> Name {
    Name { database: 5, source: 7, tag: b"t".to_vec() }
}

impl World {
    fn new(seed: u64, guards: Guards) -> Self {
        let definition = Definition {
            max_id: 0,
            start: 1,
            step: 4,
            max_step: 4,
            increment: 1,
            remainder: 0,
            max_value: i64::MAX,
        };
        let row = Row { definition, period: Period::FOREVER, format: String::new(), version: 0, life: 0 };
        Self {
            chance: Chance::new(seed),
            guards,
            tables: Tables { row, given: BTreeSet::new() },
            backups: Vec::new(),
            file: to_text(Notes::default()).unwrap(),
            memory: Memory::default(),
            numbers: 0,
            rolled_back: BTreeSet::new(),
            of_notes: BTreeSet::new(),
            forced: None,
            wrong: None,
        }
    }

    fn run(seed: u64, guards: Guards) -> Option<String> {
        let mut world = Self::new(seed, guards);
        for _ in 0..60 {
            match world.chance.below(12) {
                0..6 => (0..world.chance.below(6)).for_each(|_| world.take()),
                6 => world.roll_back(),
                7 => world.force(),
                8 => world.backups.push(world.tables.clone()),
                9 => world.stop(),
                10 => world.crash(),
                _ => world.set_back(),
            }
        }
        world.wrong
    }

    /// A number that no row had before.
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

    fn take(&mut self) {
        if self.memory.buffer.is_none_or(|(range, _)| range.count == 0) {
            self.refill();
        }
        let Some((range, _)) = &mut self.memory.buffer else { return };
        let id = range.first;
        *range = Range { first: id + 1, count: range.count - 1, ..*range };
        self.give(id);
        self.tables.given.insert(id);
        if let Some(note) = self.memory.of_note
            && !self.of_notes.insert((note, id))
        {
            self.wrong.get_or_insert(format!("{id} was left over twice"));
        }
    }

    fn refill(&mut self) {
        self.note_as_taken();
        let row = &self.tables.row;
        let floor = self.memory.floor.map(|floor| {
            if self.guards.keep(Guard::FloorOfLife) { floor } else { Floor { life: row.life, ..floor } }
        });
        let wish = Wish {
            carry_over: self.memory.carry_over.clone(),
            pace: Pace::default(),
            lasted: None,
            target: Duration::from_secs(1),
            hungry: false,
            prefetch: 50,
            floor: row.floor(floor),
            received: None,
            share: None,
        };
        let version = if self.guards.keep(Guard::NewVersion) { self.number() } else { row.version + 1 };
        let Outcome::Reserved(reserved) = self.tables.row.reserve(&wish, version) else {
            panic!("there are ids")
        };
        let range = reserved.supply.range;
        self.tables.row.version = version;
        self.tables.row.definition.max_id = range.last();
        let left = self.memory.carry_over.take().filter(|left| left.range == range);
        self.memory.of_note = left.as_ref().map(|left| left.version);
        self.memory.unnoted = self.memory.of_note;
        if self.chance.once_in(20) {
            return self.crash();
        }
        if self.guards.keep(Guard::NotedFirst) {
            self.note_as_taken();
        }
        self.memory.buffer = Some((range, version));
        self.memory.had_ids = true;
        if self.memory.floor.is_some_and(|floor| floor.id <= range.last()) {
            self.memory.floor = None;
        }
    }

    fn note_as_taken(&mut self) {
        if let Some(version) = self.memory.unnoted.take()
            && self.guards.keep(Guard::NotedAsTaken)
        {
            self.file.extend(taken(name(), version).unwrap());
        }
    }

    /// A transaction that changes the tag, perhaps by force, takes ids above the row and is rolled back.
    fn roll_back(&mut self) {
        let forced = self.chance.once_in(3).then(|| self.chance.between(0, 40));
        let mut row = self.tables.row.clone();
        self.forced = None;
        let mut issued = row.floor(self.memory.floor);
        if let Some(target) = forced {
            row.definition.max_id = target;
            issued = None;
            // To be compared with what was handed out, the buffers are taken away.
            self.memory.buffer = None;
        }
        for _ in 0..=self.chance.below(5) {
            let id = row.one_after(issued).unwrap().first;
            issued = Some((0, id));
            if forced.is_none() {
                self.give(id);
            }
            self.rolled_back.insert(id);
        }
        let (life, id) = (self.tables.row.life, issued.unwrap().1);
        let noted = self.memory.floor.filter(|floor| floor.life == life).map_or(id, |floor| floor.id.max(id));
        self.memory.floor = Some(Floor { life, day: 0, id: noted });
    }

    /// The tag's owner says that no id above this is in use any more. Nobody is told of the commit.
    fn force(&mut self) {
        let target = self.chance.one_of(&[0, 3, 10, 20, 39]);
        let (version, life) = (self.number(), self.number());
        let row = &mut self.tables.row;
        (row.definition.max_id, row.life) = (target, life);
        row.version = if self.guards.keep(Guard::NewVersion) { version } else { row.version + 1 };
        self.memory.buffer = None;
        self.tables.given.retain(|id| *id <= target);
        self.rolled_back.retain(|id| *id <= target);
        self.forced = Some(target);
    }

    fn stop(&mut self) {
        let Memory { buffer, floor, had_ids, .. } = &self.memory;
        let left = buffer.filter(|(range, _)| range.count > 0);
        let in_use = InUse {
            name: name(),
            had_ids: *had_ids,
            left: left.map(|(range, version)| CarryOver { version, day: None, range }),
            floor: floor.filter(|_| self.guards.keep(Guard::FloorNoted)),
        };
        let in_use = (*had_ids || floor.is_some()).then_some(in_use);
        let old = from_text(&self.file).unwrap();
        self.file = to_text(old.at_stop(in_use.into_iter().collect(), |_| true)).unwrap();
        self.start();
    }

    fn start(&mut self) {
        let notes = from_text(&self.file).unwrap();
        self.memory = Memory {
            carry_over: notes.left.into_iter().next().map(|note| note.what),
            floor: notes.floors.into_iter().next().map(|note| note.what),
            ..Memory::default()
        };
    }

    /// What was not noted of rolled back transactions is not known any more.
    fn crash(&mut self) {
        self.start();
        let noted = self.tables.row.floor(self.memory.floor).map_or(0, |(_, id)| id);
        // Forced back into what is left over, and rolled back.
        let left = self.memory.carry_over.as_ref().map(|left| left.range);
        let is_left = |id: i64| left.is_some_and(|left| (left.first..=left.last()).contains(&id));
        let max_id = self.tables.row.definition.max_id;
        self.forced = None;
        self.rolled_back.retain(|id| *id <= noted || *id <= max_id && !is_left(*id));
    }

    /// The tables are those of an earlier moment; the note stays.
    fn set_back(&mut self) {
        if self.backups.is_empty() {
            return;
        }
        if self.chance.once_in(2) {
            self.stop();
        }
        let backup = self.chance.below(self.backups.len());
        self.tables = self.backups[backup].clone();
        self.backups.truncate(backup + 1);
        self.forced = None;
        self.rolled_back.clear();
        self.start();
    }
}

const SEEDS: u64 = 5_000;

#[test]
fn no_id_comes_twice() {
    for seed in 0..SEEDS {
        assert_eq!(World::run(seed, Guards::default()), None, "seed {seed}");
    }
}

macro_rules! without {
    ($($test:ident: $guard:ident;)*) => {$(
        #[test]
        fn $test() {
            let mut wrong = (0..SEEDS).filter_map(|seed| World::run(seed, Guards::without(Guard::$guard)));
            let wrong = wrong.next();
            println!("without {:?}: {wrong:?}", Guard::$guard);
            assert!(wrong.is_some(), "no run misses {:?}", Guard::$guard);
        }
    )*};
}

without! {
    versions_that_are_counted_repeat_ids: NewVersion;
    what_is_not_noted_as_taken_up_comes_again: NotedAsTaken;
    what_is_handed_out_before_it_is_noted_as_taken_up_comes_again: NotedFirst;
    what_was_rolled_back_and_not_noted_comes_again: FloorNoted;
    a_floor_of_another_life_keeps_a_tag_from_going_back: FloorOfLife;
}
