//! The tags in use on this server, their buffers, and the workers that fill them, in shared memory.

use crate::pg::condition::Condition;
use crate::pg::lock::{For, LwLock};
use crate::pg::server;
use crate::pg::shmem::Block;
use crate::pg::station::Station;
use crate::settings;
use crate::shared::slot::{Slot, Trouble};
use crate::shared::worker_slot::WorkerSlot;
use parking_lot::lock_api::RwLock;
use snowflake_ids_core::directory::{Directory, Entry, index_len};
use snowflake_ids_core::log_limit::LogLimit;
use snowflake_ids_core::requested::{self, Requested};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// All of it. The slices lie behind it in the same block, at the same addresses in all processes: they are
/// forked from the postmaster that laid it out.
#[repr(C, align(64))]
pub struct Segments {
    /// The buffers.
    pub slots: &'static [Slot],
    /// Which of them have requests.
    pub asked: Requested<'static>,
    /// Which tag has which of them. Held for writing by whoever publishes ids or takes them away, too.
    pub directory: RwLock<LwLock, Directory<'static>>,
    /// A place for each worker that refills.
    pub worker_slots: &'static [WorkerSlot],
    /// Where the launcher is.
    pub launcher: Station,
    /// Whether databases wait for a worker's place: then nobody stays who has nothing to do.
    pub crowded: AtomicBool,
    /// What the log was told of tags, whichever worker it was.
    pub logged: RwLock<LwLock, LogLimit>,
    /// How many tags are on trial. Changed with the directory locked for writing.
    pub on_trial: AtomicUsize,
    /// Broadcast when one of them is not any more.
    pub trial_over: Condition,
    /// Draws the incarnations of slots: no two owners of a slot have the same.
    pub incarnations: AtomicU64,
}

static SEGMENTS: AtomicPtr<Segments> = AtomicPtr::new(std::ptr::null_mut());

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

    /// The place of one of the slots.
    pub fn place_of(&self, slot: &Slot) -> usize {
        let offset = std::ptr::from_ref(slot).addr() - self.slots.as_ptr().addr();
        offset / size_of::<Slot>()
    }
}

/// The server's tags; None where the library was not preloaded.
#[inline]
pub fn segments() -> Option<&'static Segments> {
    // SAFETY: null, or what `attach` left there, which lives and stays where it is as long as this process.
    unsafe { SEGMENTS.load(Ordering::Relaxed).as_ref() }
}

/// The block, as the server lays it out.
pub const BLOCK: Block = Block { name: c"snowflake_ids segments", size, fill, attach };

/// Where the parts of the block begin, and its length.
struct Plan {
    slots: usize,
    worker_slots: usize,
    entries: usize,
    index: usize,
    asked: usize,
    end: usize,
}

impl Plan {
    fn new(places: usize) -> Self {
        let slots = size_of::<Segments>().next_multiple_of(align_of::<Slot>());
        let worker_slots = (slots + places * size_of::<Slot>()).next_multiple_of(align_of::<WorkerSlot>());
        let entries = (worker_slots + server::max_workers() * size_of::<WorkerSlot>())
            .next_multiple_of(align_of::<Entry>());
        let index = (entries + places * size_of::<Entry>()).next_multiple_of(align_of::<u32>());
        let asked = (index + index_len(places) * size_of::<u32>()).next_multiple_of(align_of::<AtomicU64>());
        Self {
            slots,
            worker_slots,
            entries,
            index,
            asked,
            end: asked + requested::words(places) * size_of::<AtomicU64>(),
        }
    }
}

fn max_tags() -> usize {
    settings::config().map_or(1, |config| config.max_tags)
}

fn size() -> usize {
    Plan::new(max_tags()).end
}

unsafe fn attach(block: *mut u8) {
    SEGMENTS.store(block.cast(), Ordering::Relaxed);
}

#[allow(clippy::cast_ptr_alignment, reason = "blocks begin with a cache line")]
unsafe fn fill(block: *mut u8) {
    let places = max_tags();
    let plan = Plan::new(places);
    // SAFETY: the plan keeps the parts apart, within the block's size, and each aligned as its type needs.
    unsafe {
        let entries = array(block.add(plan.entries), places, || Entry::EMPTY);
        let index = array(block.add(plan.index), index_len(places), || 0);
        let asked = array(block.add(plan.asked), requested::words(places), || AtomicU64::new(0));
        let segments = Segments {
            asked: Requested::new(asked),
            slots: array(block.add(plan.slots), places, Slot::new),
            directory: RwLock::from_raw(LwLock::requested(For::Directory), Directory::new(entries, index)),
            worker_slots: array(block.add(plan.worker_slots), server::max_workers(), WorkerSlot::default),
            launcher: Station::default(),
            crowded: AtomicBool::new(false),
            logged: RwLock::from_raw(LwLock::requested(For::LogLimit), LogLimit::default()),
            on_trial: AtomicUsize::new(0),
            trial_over: Condition::new(),
            incarnations: AtomicU64::new(0),
        };
        block.cast::<Segments>().write(segments);
    }
}

/// # Safety
/// There is room for as many values from `start` on, aligned, and for nobody else.
#[allow(clippy::cast_ptr_alignment, reason = "the caller's promise")]
unsafe fn array<T>(start: *mut u8, count: usize, value: impl Fn() -> T) -> &'static mut [T] {
    let start: *mut T = start.cast();
    // SAFETY: as above; all are written before they are read.
    unsafe {
        for index in 0..count {
            start.add(index).write(value());
        }
        std::slice::from_raw_parts_mut(start, count)
    }
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

/// Wakes the launcher.
pub fn wake_launcher() {
    if let Some(segments) = segments() {
        segments.launcher.wake();
    }
}

/// What keeps requests from being served that no slot tells of.
pub fn trouble() -> Option<Trouble> {
    // It starts with the server, unless there was no place for it.
    segments().filter(|segments| !segments.launcher.is_manned()).map(|_| Trouble::NoWorker)
}
