//! Rows that stay locked for long. In each round, the shipped refill worker waits for one of the locked rows, in turn, and serves the
//! tags of all unlocked rows.

mod alone;
pub mod slot;

use super::reservation::demand;
use alone::Alone;
use slot::Slot;
use snowflake_ids_core::process::refill::{RefillHost, RefillSettings, RefillTask, RefillWorker};
use snowflake_ids_core::registry::client::RegistryClient;
use snowflake_ids_core::registry::error::SqlError;
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::tables::{LockWait, Received, Tables};
use snowflake_ids_core::registry::tags::reserve_all;
use snowflake_ids_core::registry::wire::{self, ReserveRequest};
use snowflake_ids_core::server::saved_range_file::{SavedRangeFile, SavedRanges};
use snowflake_ids_core::tag::definition::Definition;
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::reservation::{HighWaterMark, Outcome, Reached, Reserved, Share, TagRow};
use snowflake_ids_core::tag::segment::Period;
use snowflake_ids_core::tag::slot::Trouble;
use snowflake_ids_core::{Clock, UnixMicros};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

const LOCKED: usize = 50;
const DATABASE: u32 = 1;
const FREE: &str = "free";

/// The worker's process, memory and database.
#[derive(Default)]
pub struct Host {
    slots: Vec<Slot>,
    pub high_water_marks: RefCell<BTreeMap<Vec<u8>, HighWaterMark>>,
    rounds: Cell<usize>,
    here: Here,
}

/// The database. The rows of all tags except one are locked.
#[derive(Default)]
struct Here {
    /// The tags whose rows the worker waited for in this round.
    waited: RefCell<Vec<Tag>>,
    max_id: Cell<i64>,
    /// Whether the table is locked as well.
    is_locked: Cell<bool>,
    transactions: Cell<usize>,
}

/// The error for a locked row or table.
pub struct Locked;

pub struct Tx<'h>(&'h Here);

fn tag(slot_index: usize) -> Tag {
    let name = if slot_index == LOCKED { FREE.to_owned() } else { slot_index.to_string() };
    Tag::new(name.as_bytes()).unwrap()
}

impl Tables for Tx<'_> {
    type Error = Locked;

    fn read(&mut self, tag: &Tag, wait: LockWait) -> Result<Option<TagRow>, Locked> {
        if tag.as_bytes() != FREE.as_bytes() {
            return match wait {
                LockWait::Skip => Ok(None),
                LockWait::Wait => {
                    self.0.waited.borrow_mut().push(*tag);
                    Err(Locked)
                }
            };
        }
        let definition = Definition {
            max_id: self.0.max_id.get(),
            start: 1,
            step: 10,
            max_step: 10,
            increment: 1,
            remainder: 0,
            max_value: i64::MAX,
        };
        Ok(Some(TagRow {
            definition,
            period: Period::FOREVER,
            format: String::new(),
            version: 1,
            tag_generation: 1,
        }))
    }

    fn is_taken(&mut self, _: &Tag) -> Result<bool, Locked> {
        Ok(true)
    }

    fn create(&mut self, tag: &Tag, _: Share) -> Result<(), Locked> {
        // Another open transaction creates the tag too.
        self.0.waited.borrow_mut().push(*tag);
        Err(Locked)
    }

    fn write(&mut self, _: &Tag, max_id: i64, _: Period, _: i64) -> Result<(), Locked> {
        self.0.max_id.set(max_id);
        Ok(())
    }

    fn set_back(&mut self, _: &Tag, _: i64, _: i64, _: i64) -> Result<(), Locked> {
        panic!("what is reserved is published");
    }

    fn new_version(&mut self) -> i64 {
        1
    }

    fn tag(&mut self, text: &str) -> Option<Tag> {
        Tag::new(text.as_bytes())
    }

    fn high_water_mark(&mut self, _: &Tag) -> Option<HighWaterMark> {
        None
    }

    fn source(&mut self) -> Option<u32> {
        Some(1)
    }

    fn is_clustered(&mut self) -> Result<bool, Locked> {
        Ok(false)
    }

    fn endpoints(&mut self) -> Result<Vec<Endpoint>, Locked> {
        if self.0.is_locked.get() { Err(Locked) } else { Ok(Vec::new()) }
    }

    fn record_seen(&mut self, _: &wire::RegistryName) -> Result<(), Locked> {
        panic!("there are no registries");
    }

    fn lock_received(&mut self) -> Result<(), Locked> {
        panic!("there are no registries");
    }

    fn received(&mut self, _: &str, _: &Tag) -> Result<Option<Received>, Locked> {
        panic!("there are no registries");
    }

    fn receive(&mut self, _: &str, _: &Tag, _: &Reserved) -> Result<(), Locked> {
        panic!("there are no registries");
    }

    fn to_utf8(&mut self, _: &Tag) -> Option<String> {
        panic!("there are no registries");
    }
}

pub struct Process<'h> {
    pub host: &'h Host,
    /// Called when a round is over.
    pub check: &'h dyn Fn(&Host),
}

impl Clock for Process<'_> {
    fn now(&self) -> UnixMicros {
        UnixMicros(1)
    }
}

impl<'h> RefillHost for Process<'h> {
    type Slot = Slot;
    type Tables = Tx<'h>;

    fn uptime(&self) -> Duration {
        Duration::from_millis(self.host.rounds.get() as u64)
    }

    fn with_directory_locked<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    fn high_water_mark(&self, _: u32, tag: &Tag) -> Option<HighWaterMark> {
        self.host.high_water_marks.borrow().get(tag.as_bytes()).copied()
    }

    fn clear_high_water_mark(&self, _: u32, tag: &Tag, known: Option<Reached>) {
        let mut high_water_marks = self.host.high_water_marks.borrow_mut();
        let reached = high_water_marks.get(tag.as_bytes()).map(HighWaterMark::reached);
        if known.is_none_or(|known| reached.is_some_and(|reached| reached <= known)) {
            high_water_marks.remove(tag.as_bytes());
        }
    }

    fn transaction<T>(&self, work: impl FnOnce(&mut Tx<'h>) -> Result<T, Locked>) -> Result<T, SqlError> {
        let here = &self.host.here;
        here.transactions.set(here.transactions.get() + 1);
        let locked = |Locked| SqlError::new(*b"55P03", "locked");
        work(&mut Tx(here)).map_err(locked)
    }

    fn settings(&self) -> RefillSettings {
        RefillSettings {
            target: Duration::from_mins(15),
            prefetch: 50,
            registry_timeout: Duration::from_secs(5),
        }
    }

    fn tasks(&self) -> Vec<RefillTask<'_, Slot>> {
        let slots = self.host.slots.iter().enumerate();
        slots.filter_map(|(slot_index, slot)| RefillTask::new(slot, tag(slot_index), 1)).collect()
    }

    fn has_registry_to_probe(&self) -> bool {
        false
    }

    fn leave_table(&self, _: u32) {
        panic!("the table is there");
    }

    fn is_dismissed(&self) -> bool {
        (self.check)(self.host);
        self.host.rounds.set(self.host.rounds.get() - 1);
        self.host.here.waited.take();
        self.host.ask();
        self.host.rounds.get() == 0
    }

    fn is_overdue(&self) -> bool {
        false
    }

    fn is_crowded(&self) -> bool {
        false
    }

    fn record_served(&self) {}

    fn rest(&self, _: Duration) -> bool {
        panic!("there is always something to do");
    }

    fn sleep(&self, _: Duration) {}

    fn renew_lease(&self) {}

    fn show_activity(&self, _: usize) {}

    fn say_once(&self, warning: String) {
        panic!("{warning}");
    }

    fn shown(&self, _: &Tag) -> String {
        String::new()
    }
}

/// The saved-range file, which does not exist.
struct NoFile;

impl SavedRangeFile for NoFile {
    type Error = io::Error;

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn append(&self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn replace(&self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn say_lost(&self, _: &io::Error) {}
}

impl Host {
    fn new() -> Self {
        let slots: Vec<Slot> = (0..=LOCKED).map(|_| Slot::default()).collect();
        for (slot, slot_generation) in slots.iter().zip(1..) {
            slot.segment.hand_over(slot_generation);
        }
        let host = Self { slots, ..Self::default() };
        host.ask();
        host
    }

    /// Returns the worker's process, which checks nothing.
    pub fn process(&self) -> Process<'_> {
        Process { host: self, check: &|_| {} }
    }

    /// Records a request for an id of each tag. The request may create the tag.
    fn ask(&self) {
        for slot in &self.slots {
            slot.segment.clear();
            slot.request.ask_to_create();
        }
    }

    fn run(&self, rounds: usize, check: &dyn Fn(&Self)) {
        self.rounds.set(rounds);
        let process = Process { host: self, check };
        let (saved_ranges, _) = SavedRanges::of_database(NoFile, DATABASE);
        RefillWorker::new(&process, RegistryClient::new(Alone), saved_ranges).run();
    }
}

#[test]
fn one_of_the_rows_is_waited_for_in_a_round_and_the_others_hold_up_nothing() {
    let (host, waited) = (Host::new(), RefCell::new(BTreeSet::new()));
    // The first round finds the rows locked, without waiting.
    host.run(1, &|host| assert_eq!(host.here.waited.borrow().len(), 0));
    host.run(LOCKED, &|host| {
        assert!(host.slots[LOCKED].segment.buffer_states().left() > 0, "the tag whose row is free has ids");
        let waits = host.here.waited.borrow();
        assert_eq!(waits.len(), 1, "one wait in a round");
        waited.borrow_mut().extend(waits.iter().map(|tag| tag.as_bytes().to_vec()));
    });
    assert_eq!(waited.borrow().len(), LOCKED, "each has had its turn");
}

#[test]
fn a_table_that_is_locked_is_waited_for_once_in_a_round() {
    let host = Host::new();
    host.here.is_locked.set(true);
    host.run(3, &|host| {
        assert_eq!(host.here.transactions.replace(0), 1);
        assert!(host.slots.iter().all(|slot| slot.trouble() == Some(Trouble::RowLocked)));
    });
}

/// A registry answers for the tags of unlocked rows at once. A request for the locked row's tag alone waits.
#[test]
fn a_request_for_several_tags_waits_for_no_row() {
    let here = Here::default();
    let want = |tag: &str| ReserveRequest { tag: tag.into(), create: false, demand: demand() };
    let outcomes = reserve_all(&mut Tx(&here), vec![want(FREE), want("1")]).ok().unwrap();
    assert!(matches!(outcomes[..], [Outcome::Reserved(_), Outcome::Locked]), "{outcomes:?}");
    assert!(reserve_all(&mut Tx(&here), vec![want("1")]).is_err());
    assert_eq!(*here.waited.borrow(), [tag(1)]);
}
