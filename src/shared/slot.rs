//! A tag's place in shared memory: its buffers, the requests for more, and what is known of it.

mod shared_text;
mod supplies;
mod trouble;

pub use shared_text::SharedText;
pub use supplies::{Supplies, Waits};
pub use trouble::{Trouble, TroubleCell};

use crate::pg::clock::SystemClock;
use crate::pg::condition::Condition;
use snowflake_ids_core::sequence::counts::{Counts, CountsCell};
use snowflake_ids_core::sequence::request::{Answer, Request};
use snowflake_ids_core::sequence::segment::{Segment, Shelves};
use snowflake_ids_core::sequence::step::SlowStart;
use snowflake_ids_core::series::monotonic::Section;
use snowflake_ids_core::{Clock, UnixMicros};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

const NEVER: u64 = u64::MAX;

/// Everything about one tag. Takers of ids write to the first line of `segment` and to nothing else.
#[repr(C)]
pub struct Slot {
    /// The two buffers.
    pub segment: Segment,
    /// Requests for a refill.
    pub request: Request,
    /// Broadcast when a request was answered.
    pub answered: Condition,
    /// True if no session has found the tag yet: it may not exist. Changed with the directory locked for writing.
    pub on_trial: AtomicBool,
    /// Number of ids that calls wait for. Raised and lowered with the directory locked.
    pub wanted: AtomicU64,
    /// The cursor's position at the hand's last visit. Changed with the directory locked for writing.
    seen: AtomicU64,
    /// The slow start: 1 and the ids of its last grant; else 0. Changed with the directory locked for writing.
    slow_start: AtomicU64,
    /// The workers' notes on the tag.
    pub supplies: Supplies,
    /// The waits of callers.
    pub waits: Waits,
    /// Reason why refills fail.
    pub trouble: TroubleCell,
    /// The registry, of several, that its ids came from last.
    pub registry: AtomicU32,
    /// The format of the tag's numbers. Changed with the directory locked for writing.
    pub format: SharedText<8>,
    /// The counts when they were set back last, and the time of that.
    before: CountsCell,
    reset_at: AtomicI64,
    /// The section of a monotonic series that the tag is for. Opened and given ranges with the directory locked for writing, out of
    /// the buffers; closed where they are emptied.
    pub section: Section,
}

impl Slot {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            segment: Segment::default(),
            request: Request::default(),
            answered: Condition::default(),
            on_trial: AtomicBool::new(false),
            wanted: AtomicU64::new(0),
            seen: AtomicU64::new(NEVER),
            slow_start: AtomicU64::new(0),
            supplies: Supplies::default(),
            waits: Waits::default(),
            trouble: TroubleCell::default(),
            registry: AtomicU32::new(0),
            format: SharedText::default(),
            before: CountsCell::default(),
            reset_at: AtomicI64::new(0),
            section: Section::default(),
        }
    }

    /// Makes it another tag's, or, with an incarnation that no session gets to know, free; gives what was counted of the former one.
    /// Only with the directory locked for writing.
    pub fn hand_over(&self, incarnation: u64) -> Counts {
        self.section.shut();
        let left = self.segment.hand_over(incarnation);
        let counts = self.counts_beside(left);
        // A session that asked for ids of the former tag finds it gone, and looks again.
        if let Some(ticket) = self.request.pending() {
            self.request.answer(ticket, Answer::Supplied);
        }
        self.on_trial.store(false, Relaxed);
        self.wanted.store(0, Relaxed);
        self.seen.store(NEVER, Relaxed);
        self.set_slow_start(None);
        self.supplies.reset();
        self.waits.reset();
        self.trouble.clear();
        self.before.set(Counts::default());
        self.reset_at.store(SystemClock.now().0, Relaxed);
        counts
    }

    /// Returns what was counted since it is this tag's.
    pub fn counts_in_all(&self) -> Counts {
        self.counts_beside(self.segment.shelves())
    }

    /// The same, where so much is left in the buffers.
    fn counts_beside(&self, left: Shelves) -> Counts {
        let supplies = &self.supplies;
        let gone = supplies.lost.load(Relaxed).saturating_add(left.left());
        Counts {
            issued: supplies.published.load(Relaxed).saturating_sub(gone),
            refills: supplies.refills.load(Relaxed),
            refill_time: supplies.took.load(Relaxed),
            waits: self.waits.count.load(Relaxed),
            wait_time: self.waits.took.load(Relaxed),
        }
    }

    /// Returns what was counted since counts were set back.
    pub fn counts(&self) -> Counts {
        self.counts_in_all() - self.before.get()
    }

    /// Since when that is.
    pub fn counts_since(&self) -> UnixMicros {
        UnixMicros(self.reset_at.load(Relaxed))
    }

    /// Sets counts back. Only with the directory locked.
    pub fn reset_counts(&self) {
        self.before.set(self.counts_in_all());
        self.waits.longest.store(0, Relaxed);
        self.reset_at.store(SystemClock.now().0, Relaxed);
    }

    /// Takes away what is in the buffers. What was there is lost, unless the caller puts it back into the row.
    /// Only with the directory locked for writing.
    pub fn clear(&self) -> Shelves {
        // Its range was taken out of the buffers before, and counts as handed out.
        self.section.close();
        let left = self.segment.clear();
        self.supplies.lost.fetch_add(left.left(), Relaxed);
        self.supplies.cut_short.store(true, Relaxed);
        left
    }

    /// Returns whether there never was an id in it.
    pub fn is_unused(&self) -> bool {
        self.supplies.refills.load(Relaxed) == 0
    }

    /// Returns whether ids were taken since the hand's last visit, and there was one. Only with the directory locked
    /// for writing.
    pub fn has_moved(&self) -> bool {
        let mark = self.segment.mark();
        // A section's numbers were taken out of the buffers before.
        self.section.was_used() | (self.seen.swap(mark, Relaxed) != mark)
    }

    /// Returns how far it is where it starts slowly.
    pub fn slow_start(&self) -> Option<SlowStart> {
        let granted = self.slow_start.load(Relaxed).checked_sub(1)?;
        Some(SlowStart { granted: u32::try_from(granted).unwrap_or(u32::MAX) })
    }

    /// Notes it. Only with the directory locked for writing.
    pub fn set_slow_start(&self, slow_start: Option<SlowStart>) {
        let number = slow_start.map_or(0, |slow_start| u64::from(slow_start.granted) + 1);
        self.slow_start.store(number, Relaxed);
    }
}
