//! A tag's place in shared memory: its buffers, the requests for more, and what is known of it.

mod floor;
mod idleness;
mod shared_text;
mod supplies;
mod time;
mod trouble;

pub use floor::FloorCell;
pub use shared_text::SharedText;
pub use supplies::{Supplies, Waits};
pub use trouble::{Trouble, TroubleCell};

use crate::pg::condition::Condition;
use idleness::Idleness;
use snowflake_ids_core::places::Use;
use snowflake_ids_core::request::{Answer, Request};
use snowflake_ids_core::segment::{Segment, Shelves};
use snowflake_ids_core::series::monotonic::Section;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Everything about one tag. Takers of ids write to the first line of `segment` and to nothing else.
#[repr(C)]
pub struct Slot {
    /// The two buffers.
    pub segment: Segment,
    /// Requests for a refill.
    pub request: Request,
    /// Broadcast when a request was answered.
    pub answered: Condition,
    /// Whether no session has found the tag yet. Changed with the directory locked for writing.
    pub on_trial: AtomicBool,
    /// How many calls wait for ids while it is on trial. Raised with the directory locked, lowered with it locked for
    /// writing.
    pub waiting: AtomicU32,
    /// What the workers know of the tag.
    pub supplies: Supplies,
    /// What befell callers.
    pub waits: Waits,
    /// Ids that a transaction handed out by itself and did not commit.
    pub floor: FloorCell,
    /// Why refills fail.
    pub trouble: TroubleCell,
    /// Which of several registries its ids came from last.
    pub registry: AtomicU32,
    /// How the tag's numbers are written. Changed with the directory locked for writing.
    pub format: SharedText<8>,
    idleness: Idleness,
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
            waiting: AtomicU32::new(0),
            supplies: Supplies::default(),
            waits: Waits::default(),
            floor: FloorCell::default(),
            trouble: TroubleCell::default(),
            registry: AtomicU32::new(0),
            format: SharedText::default(),
            idleness: Idleness::default(),
            section: Section::default(),
        }
    }

    /// Makes it another tag's, or, with an incarnation that no session gets to know, free. Only with the
    /// directory locked for writing.
    pub fn hand_over(&self, incarnation: u64) {
        self.section.shut();
        self.segment.hand_over(incarnation);
        // A session that asked for ids of the former tag finds it gone, and looks again.
        if let Some(ticket) = self.request.pending() {
            self.request.answer(ticket, Answer::Supplied);
        }
        self.on_trial.store(false, Relaxed);
        self.waiting.store(0, Relaxed);
        self.supplies.reset();
        self.waits.reset();
        self.floor.clear();
        self.trouble.clear();
        self.idleness.reset();
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

    /// The ids that were handed out of its buffers.
    pub fn issued(&self) -> u64 {
        self.supplies.issued(self.segment.shelves().left())
    }

    /// Whether there never was an id in it.
    pub fn is_unused(&self) -> bool {
        self.supplies.refills.load(Relaxed) == 0 && self.floor.get().is_none()
    }

    /// No session has used it for long.
    pub fn age(&self) {
        self.idleness.age(self.segment.mark());
    }

    /// What it is used for, and for how long it was not, as far as noticed.
    pub fn look(&self) -> Use {
        if self.section.was_used() {
            self.idleness.reset();
        }
        let idle = self.idleness.look(self.segment.mark());
        if self.on_trial.load(Relaxed) {
            Use::Trial { awaited: self.waiting.load(Relaxed) > 0 }
        } else if self.request.pending().is_some() {
            Use::Awaited
        } else if self.floor.get().is_some() {
            Use::Floor(idle)
        } else {
            Use::Buffers(idle)
        }
    }
}
