//! The segment tags (named ranges of ids) that have slots on this server, their buffers, and the slots of the refill workers,
//! in shared memory.

use crate::pg::clock::SystemClock;
use crate::pg::lock::{For, LwLock};
use crate::pg::process_latch::WorkerLatch;
use crate::pg::server;
use crate::pg::shmem::{Rest, Shmem};
use crate::pg::wait::{self, Event};
use crate::settings;
use crate::shared::slot::Slot;
use crate::shared::worker_slot::WorkerSlot;
use parking_lot::lock_api::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use snowflake_ids_core::Clock;
use snowflake_ids_core::process::log_limit::LogLimit;
use snowflake_ids_core::tag::counts::{CountsCell, TagCounts};
use snowflake_ids_core::tag::directory::{DatabaseShare, Directory, DirectoryEntry, TagKey};
use snowflake_ids_core::tag::high_water_marks::HighWaterMarks;
use snowflake_ids_core::tag::request_bitmap::{self, RequestBitmap};
use snowflake_ids_core::tag::slot::Trouble;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};
use std::time::Duration;

/// The number of entries that a reader copies or looks through before it releases a lock that calls for ids wait for.
pub const PIECE: usize = 64;

/// How often the counts of all tags are summed up if slots were given to other tags meanwhile.
const SUMS: usize = 8;

/// How often a process that lists tags lets processes pass that wait to change the directory, a millisecond each time.
const YIELDS: usize = 100;

/// The least number of tags for which high-water marks can be kept, even if `max_tags` is lower.
const HIGH_WATER_MARKS: usize = 1_024;

#[repr(C, align(64))]
pub struct Segments {
    /// The setting `max_tags`: the limit for tags with slots. Slots at which calls wait for ids do not count.
    pub slot_count: usize,
    /// The slots: `slot_count`, and one more for each process that can wait for ids. A waiting call always finds a slot.
    pub slots: &'static [Slot],
    /// The slots that have requests.
    pub asked: RequestBitmap<'static>,
    /// The number of slots at which calls wait for ids. Changed with the directory locked.
    pub awaited: AtomicUsize,
    /// The slot index at which the next clock sweep begins. The sweep chooses a slot to evict. Changed with the directory
    /// locked for writing.
    pub hand: AtomicUsize,
    /// The number of calls for ids whose tag had no slot.
    pub misses: AtomicU64,
    /// The number of times that a tag lost its slot to another tag.
    pub evictions: AtomicU64,
    /// For each tag, the highest id that an uncommitted or rolled-back transaction took directly from the tag's row, without
    /// a refill worker.
    pub high_water_marks: RwLock<LwLock, HighWaterMarks<'static>>,
    /// The map from tags to slots. A process locks the directory for writing to change the map, and to publish or withdraw ids:
    /// [`Self::change_directory`].
    pub directory: RwLock<LwLock, Directory<'static>>,
    /// The number of processes that wait for the directory to lock it for writing.
    changers: AtomicUsize,
    pub worker_slots: &'static [WorkerSlot],
    pub launcher: WorkerLatch,
    /// True if databases wait for a worker slot. Workers without work then end immediately.
    pub crowded: AtomicBool,
    /// The last messages about tags in the log, from all workers. The record limits repeated messages.
    pub logged: RwLock<LwLock, LogLimit>,
    /// The last generation that was assigned to a slot. Each time a slot gets another tag, the slot gets a new generation.
    slot_generations: AtomicU64,
    /// A number that grows as a slot begins to be given to another tag, to an odd number, and again as it ends.
    hand_overs: AtomicU64,
    /// The sum of the statistics of tags that have no slot any more. Changed with the directory locked for writing.
    former: CountsCell,
    /// The last sums that [`Self::counts_in_all`] has returned.
    told: CountsCell,
}

pub static SEGMENTS: Shmem<Segments> = Shmem::new(c"snowflake_ids segments", make);

impl Segments {
    /// Requests a refill of a slot, and returns the ticket of the request. If `creates` is true, the refill worker may
    /// create the tag.
    pub fn ask(&self, slot: &Slot, creates: bool) -> u64 {
        let ticket = if creates { slot.request.ask_to_create() } else { slot.request.ask() };
        self.asked.record(self.slot_of(slot));
        ticket
    }

    /// Returns the slots with unanswered requests.
    pub fn pending(&self) -> Vec<usize> {
        self.asked.slots_with_requests(|slot_index| self.is_asked(slot_index))
    }

    /// Sets the bits of all slots with unanswered requests. A caller may have died after its request, before it set the
    /// bit.
    pub fn record_pending(&self) {
        let asked = (0..self.slots.len()).filter(|slot_index| self.is_asked(*slot_index));
        asked.for_each(|slot_index| self.asked.record(slot_index));
    }

    fn is_asked(&self, slot_index: usize) -> bool {
        self.slots.get(slot_index).is_some_and(|slot| slot.request.pending().is_some())
    }

    /// Returns a new generation for a slot. The value is never 0, which marks a slot that was never used.
    pub fn new_slot_generation(&self) -> u64 {
        self.slot_generations.fetch_add(1, Relaxed) + 1
    }

    /// Gives a slot to a tag of a database, or frees the slot. Call only with the directory locked for writing.
    pub fn hand_over(&self, slot: &Slot, database: Option<u32>) {
        if slot.wanted.swap(0, Relaxed) > 0 {
            self.awaited.fetch_sub(1, Relaxed);
        }
        self.hand_overs.fetch_add(1, AcqRel);
        // A reader that sees a count changed below also sees the odd number. The addition alone does not ensure that on arm64.
        fence(Release);
        self.former.add(slot.hand_over(database, self.new_slot_generation()));
        self.hand_overs.fetch_add(1, AcqRel);
    }

    /// Locks the directory for writing.
    pub fn change_directory(&self) -> RwLockWriteGuard<'_, LwLock, Directory<'static>> {
        self.changers.fetch_add(1, AcqRel);
        let directory = self.directory.write();
        self.changers.fetch_sub(1, AcqRel);
        directory
    }

    /// Locks the directory for a process that lists tags. The lock itself lets readers pass a writer that waits, so that sessions
    /// that list tags in a loop would keep writers waiting.
    fn list_directory(&self) -> RwLockReadGuard<'_, LwLock, Directory<'static>> {
        for _ in 0..YIELDS {
            if self.changers.load(Acquire) == 0 {
                break;
            }
            wait::pause(Event::Tags, Duration::from_millis(1));
        }
        self.directory.read()
    }

    /// Returns the tags that have a slot for which `wanted` returns a value, with their slots: those of a database, or all. Looks
    /// without the lock, and copies the found names in pieces, so tags that get or lose their slots meanwhile may be missing.
    pub fn tags<T>(
        &'static self,
        database: Option<u32>,
        wanted: impl Fn(&Slot) -> Option<T>,
    ) -> impl Iterator<Item = (TagKey, &'static Slot, T)> {
        let is_meant = move |of: u32| database.is_none_or(|database| database == of);
        (0..self.slots.len()).step_by(PIECE).flat_map(move |from| {
            let piece = self.slots.iter().enumerate().skip(from).take(PIECE);
            let found: Vec<_> = piece
                .filter(|(_, slot)| slot.database().is_some_and(is_meant))
                .map(|(slot_index, slot)| (slot_index, slot, slot.segment.slot_generation()))
                .filter_map(|(slot_index, slot, generation)| {
                    Some((slot_index, slot, generation, wanted(slot)?))
                })
                .collect();
            let mut tags = Vec::with_capacity(found.len());
            if !found.is_empty() {
                let directory = self.list_directory();
                tags.extend(found.into_iter().filter_map(|(slot_index, slot, generation, value)| {
                    let key = directory.get(slot_index).filter(|key| is_meant(key.database))?;
                    (slot.segment.slot_generation() == generation).then_some((*key, slot, value))
                }));
            }
            tags
        })
    }

    /// Returns the statistics of all tags since server start, summed up. Takes no lock. The sums never fall. While slots are
    /// given to other tags all the time, returns the last sums.
    pub fn counts_in_all(&self) -> TagCounts {
        for _ in 0..SUMS {
            let before = self.hand_overs.load(Acquire);
            let counts = self.slots.iter().map(|slot| slot.counts_in_all());
            let sum = counts.chain([self.former.get()]).sum();
            fence(Acquire);
            if before.is_multiple_of(2) && self.hand_overs.load(Relaxed) == before {
                return self.told.raise(sum);
            }
        }
        self.told.get()
    }

    /// Resets the statistics of the tags for which `is_meant` returns true.
    pub fn reset_counts(&self, is_meant: impl Fn(&TagKey) -> bool) {
        for (slot_index, slot) in self.slots.iter().enumerate() {
            let directory = self.list_directory();
            if directory.get(slot_index).is_some_and(&is_meant) {
                slot.reset_counts(SystemClock.now());
            }
        }
    }

    pub fn slot_of(&self, slot: &Slot) -> usize {
        let offset = std::ptr::from_ref(slot).addr() - self.slots.as_ptr().addr();
        offset / size_of::<Slot>()
    }
}

fn make(rest: &mut Rest) -> Option<Segments> {
    let slot_count = settings::config()?.max_tags;
    let (slots, high_water_marks) = (slot_count + server::max_processes(), slot_count.max(HIGH_WATER_MARKS));
    Some(Segments {
        slot_count,
        slots: rest.array(slots, Slot::default),
        awaited: AtomicUsize::new(0),
        hand: AtomicUsize::new(0),
        misses: AtomicU64::new(0),
        evictions: AtomicU64::new(0),
        changers: AtomicUsize::new(0),
        worker_slots: rest.array(server::max_workers(), WorkerSlot::default),
        directory: RwLock::from_raw(
            rest.lock(For::Directory),
            Directory::new(
                rest.array(slots, || DirectoryEntry::EMPTY),
                rest.array(slots, DatabaseShare::default),
            ),
        ),
        high_water_marks: RwLock::from_raw(
            rest.lock(For::HighWaterMarks),
            HighWaterMarks(Directory::new(rest.array(high_water_marks, || DirectoryEntry::EMPTY), &mut [])),
        ),
        asked: RequestBitmap::new(rest.array(request_bitmap::words(slots), AtomicU64::default)),
        launcher: WorkerLatch::default(),
        crowded: AtomicBool::new(false),
        logged: RwLock::from_raw(rest.lock(For::LogLimit), LogLimit::default()),
        slot_generations: AtomicU64::new(0),
        hand_overs: AtomicU64::new(0),
        former: CountsCell::default(),
        told: CountsCell::default(),
    })
}

/// Wakes the refill worker of a database. If there is none, wakes the launcher.
pub fn wake_workers(database: u32) {
    let Some(segments) = SEGMENTS.get() else { return };
    let called = segments
        .worker_slots
        .iter()
        .any(|worker_slot| worker_slot.is_for(database) && worker_slot.worker_latch.wake());
    if !called {
        segments.launcher.wake();
    }
}

pub fn wake_launcher() {
    if let Some(segments) = SEGMENTS.get() {
        segments.launcher.wake();
    }
}

/// Returns the fault because of which no refill request is served; None if the launcher runs.
pub fn trouble() -> Option<Trouble> {
    // The launcher starts with the server, unless `max_worker_processes` was reached.
    SEGMENTS.get().filter(|segments| !segments.launcher.is_occupied()).map(|_| Trouble::NoWorker)
}
