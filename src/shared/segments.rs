//! The tags in use on this server, their buffers, and the workers that fill them, in shared memory.

use crate::pg::clock::SystemClock;
use crate::pg::lock::{For, LwLock};
use crate::pg::server;
use crate::pg::shmem::{Rest, Shmem};
use crate::pg::station::Station;
use crate::settings;
use crate::shared::slot::Slot;
use crate::shared::worker_slot::WorkerSlot;
use parking_lot::lock_api::RwLock;
use snowflake_ids_core::Clock;
use snowflake_ids_core::sequence::counts::{Counts, CountsCell};
use snowflake_ids_core::sequence::directory::{DatabaseShare, Directory, DirectoryEntry, Key, index_len};
use snowflake_ids_core::sequence::floors::Floors;
use snowflake_ids_core::sequence::requested::{self, Requested};
use snowflake_ids_core::sequence::reservation::Floor;
use snowflake_ids_core::sequence::slot::Trouble;
use snowflake_ids_core::worker::log_limit::LogLimit;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Of so many tags at least it can be noted how far rolled-back transactions came.
const FLOORS: usize = 1_024;

#[repr(C, align(64))]
pub struct Segments {
    /// Number of tags that keep their places while no call waits there: the setting `max_tags`.
    pub places: usize,
    /// The buffers: so many, and one more for each process that can wait for ids of a tag. So there is always a free one.
    pub slots: &'static [Slot],
    /// Those of them that have requests.
    pub asked: Requested<'static>,
    /// At how many of them calls wait. Raised and lowered with the directory locked.
    pub awaited: AtomicUsize,
    /// The hand that goes over them. Moved with the directory locked for writing.
    pub hand: AtomicUsize,
    /// Number of times that a tag had no place when it was called,
    pub misses: AtomicU64,
    /// and how often one lost its place to others.
    pub evictions: AtomicU64,
    /// Ids that transactions gave out by themselves and did not commit, of as many tags as there are places, or a few more.
    pub floors: RwLock<LwLock, Floors<'static>>,
    /// The tags' slots. A process that publishes ids or takes them away holds it for writing, too.
    pub directory: RwLock<LwLock, Directory<'static>>,
    pub worker_slots: &'static [WorkerSlot],
    pub launcher: Station,
    /// True if databases wait for a worker's place: then no worker stays that has nothing to do.
    pub crowded: AtomicBool,
    /// The log's last messages of tags, of all workers.
    pub logged: RwLock<LwLock, LogLimit>,
    /// Draws the incarnations of slots: no two owners of a slot have the same.
    incarnations: AtomicU64,
    /// The counts of tags that have no slot any more. Changed with the directory locked for writing.
    former: CountsCell,
}

pub static SEGMENTS: Shmem<Segments> = Shmem::new(c"snowflake_ids segments", rest, make);

impl Segments {
    /// Asks for a refill of one of the slots, by a call that may have its tag made or not; gives the ticket.
    pub fn ask(&self, slot: &Slot, creates: bool) -> u64 {
        let ticket = if creates { slot.request.ask_to_create() } else { slot.request.ask() };
        self.asked.note(self.place_of(slot));
        ticket
    }

    /// The slots with requests that are not answered.
    pub fn pending(&self) -> Vec<usize> {
        self.asked.places(|place| self.is_asked(place))
    }

    /// Notes the slots with requests whose callers ended before they could note them.
    pub fn note_pending(&self) {
        let asked = (0..self.slots.len()).filter(|place| self.is_asked(*place));
        asked.for_each(|place| self.asked.note(place));
    }

    fn is_asked(&self, place: usize) -> bool {
        self.slots.get(place).is_some_and(|slot| slot.request.pending().is_some())
    }

    /// A number that was never drawn before, and not 0, which is what an unused slot has.
    pub fn new_incarnation(&self) -> u64 {
        self.incarnations.fetch_add(1, Relaxed) + 1
    }

    /// Makes a slot another tag's, or free. Only with the directory locked for writing.
    pub fn hand_over(&self, slot: &Slot) {
        if slot.wanted.swap(0, Relaxed) > 0 {
            self.awaited.fetch_sub(1, Relaxed);
        }
        self.former.add(slot.hand_over(self.new_incarnation()));
    }

    /// Returns what was counted of all tags since the server's start, and how many have a place.
    pub fn counts_in_all(&self) -> (Counts, usize) {
        let directory = self.directory.read();
        let present = directory.iter().filter_map(|(place, _)| Some(self.slots.get(place)?.counts_in_all()));
        let counts: Vec<_> = present.chain([self.former.get()]).collect();
        let in_use = counts.len() - 1;
        (counts.into_iter().sum(), in_use)
    }

    /// Sets back what was counted of the tags of a database, or of one of them.
    pub fn reset_counts(&self, is_meant: impl Fn(&Key) -> bool) {
        let directory = self.directory.read();
        let meant = directory.iter().filter(|(_, key)| is_meant(key));
        meant
            .filter_map(|(place, _)| self.slots.get(place))
            .for_each(|slot| slot.reset_counts(SystemClock.now()));
    }

    pub fn place_of(&self, slot: &Slot) -> usize {
        let offset = std::ptr::from_ref(slot).addr() - self.slots.as_ptr().addr();
        offset / size_of::<Slot>()
    }
}

/// The server's tags; None where the library was not preloaded.
#[inline]
pub fn segments() -> Option<&'static Segments> {
    SEGMENTS.get()
}

fn rest() -> usize {
    let places = settings::config().map_or(0, |config| config.max_tags);
    let (slots, floors) = (places + server::max_processes(), places.max(FLOORS));
    Rest::for_array::<Slot>(slots)
        + Rest::for_array::<WorkerSlot>(server::max_workers())
        + Rest::for_array::<DirectoryEntry>(slots)
        + Rest::for_array::<u32>(index_len(slots))
        + Rest::for_array::<DatabaseShare>(slots)
        + Rest::for_array::<DirectoryEntry<Floor>>(floors)
        + Rest::for_array::<u32>(index_len(floors))
        + Rest::for_array::<AtomicU64>(requested::words(slots))
}

fn make(rest: &mut Rest) -> Option<Segments> {
    let places = settings::config()?.max_tags;
    let (slots, floors) = (places + server::max_processes(), places.max(FLOORS));
    Some(Segments {
        places,
        slots: rest.array(slots, Slot::default),
        awaited: AtomicUsize::new(0),
        hand: AtomicUsize::new(0),
        misses: AtomicU64::new(0),
        evictions: AtomicU64::new(0),
        worker_slots: rest.array(server::max_workers(), WorkerSlot::default),
        directory: RwLock::from_raw(
            LwLock::requested(For::Directory),
            Directory::new(
                rest.array(slots, || DirectoryEntry::EMPTY),
                rest.array(index_len(slots), || 0),
                rest.array(slots, DatabaseShare::default),
            ),
        ),
        floors: RwLock::from_raw(
            LwLock::requested(For::Floors),
            Floors(Directory::new(
                rest.array(floors, || DirectoryEntry::EMPTY),
                rest.array(index_len(floors), || 0),
                &mut [],
            )),
        ),
        asked: Requested::new(rest.array(requested::words(slots), AtomicU64::default)),
        launcher: Station::default(),
        crowded: AtomicBool::new(false),
        logged: RwLock::from_raw(LwLock::requested(For::LogLimit), LogLimit::default()),
        incarnations: AtomicU64::new(0),
        former: CountsCell::default(),
    })
}

/// Wakes the refill worker of a database, or the launcher where there is none.
pub fn wake_workers(database: u32) {
    let Some(segments) = segments() else { return };
    let called = segments
        .worker_slots
        .iter()
        .any(|worker_slot| worker_slot.is_for(database) && worker_slot.station.wake());
    if !called {
        segments.launcher.wake();
    }
}

pub fn wake_launcher() {
    if let Some(segments) = segments() {
        segments.launcher.wake();
    }
}

/// Returns what keeps requests from being served that no slot tells of.
pub fn trouble() -> Option<Trouble> {
    // It starts with the server, unless there was no place for it.
    segments().filter(|segments| !segments.launcher.is_manned()).map(|_| Trouble::NoWorker)
}
