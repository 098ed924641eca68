//! A tag's place in shared memory: its buffers, the requests for more, and what is known of it.

use crate::pg::clock::uptime;
use crate::pg::condition::Condition;
use crate::store::Reserved;
use snowflake_ids_core::request::Request;
use snowflake_ids_core::segment::{Segment, Shelves};
use snowflake_ids_core::step::Pace;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Everything about one tag. Takers of ids write to the first line of `segment` and to nothing else.
#[repr(C)]
pub struct Slot {
    /// The two buffers.
    pub segment: Segment,
    /// Requests for a refill.
    pub request: Request,
    /// Broadcast when a request was answered.
    pub answered: Condition,
    /// Whether the tag is to be made if there is none.
    pub create: AtomicBool,
    /// What the workers know of the tag.
    pub supplies: Supplies,
    /// What befell callers.
    pub waits: Waits,
    /// Ids that a transaction handed out by itself and did not commit.
    pub floor: Floor,
    /// Why refills fail.
    pub trouble: TroubleCell,
    /// How the tag's numbers are written.
    pub format: Caption,
    idleness: Idleness,
}

impl Slot {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            segment: Segment::default(),
            request: Request::default(),
            answered: Condition::new(),
            create: AtomicBool::new(false),
            supplies: Supplies::default(),
            waits: Waits::default(),
            floor: Floor::default(),
            trouble: TroubleCell::default(),
            format: Caption::default(),
            idleness: Idleness::default(),
        }
    }

    /// Makes it another tag's, or, with an incarnation that nobody gets to know, nobody's. Only with the
    /// directory locked for writing.
    pub fn hand_over(&self, incarnation: u64) {
        self.segment.hand_over(incarnation);
        self.create.store(false, Relaxed);
        self.supplies.reset();
        self.waits.reset();
        self.floor.clear();
        self.trouble.clear();
        self.idleness.reset();
    }

    /// Takes away what is in the buffers. What was there is lost, unless the caller puts it back into the row.
    /// Only with the directory locked for writing.
    pub fn clear(&self) -> Shelves {
        let left = self.segment.clear();
        self.supplies.lost.fetch_add(left.left(), Relaxed);
        self.supplies.clearings.fetch_add(1, Relaxed);
        self.supplies.cut_short.store(true, Relaxed);
        left
    }

    /// Whether there never was an id in it.
    pub fn is_unused(&self) -> bool {
        self.supplies.refills.load(Relaxed) == 0 && self.floor.get().is_none()
    }

    /// For how long nobody has used it, as far as noticed; None while somebody waits for it.
    pub fn idle(&self) -> Option<Duration> {
        let free = self.request.pending().is_none() && self.floor.get().is_none();
        free.then(|| self.idleness.look(self.segment.mark()))
    }
}

/// What the workers note of a tag. All but `clearings` are for people, and may be of neighbouring moments.
#[derive(Default)]
pub struct Supplies {
    /// How often the buffers were taken away. A supply reserved before that must not be published after.
    pub clearings: AtomicU64,
    /// Whether what was published last was taken away: then how long it lasted says nothing.
    pub cut_short: AtomicBool,
    /// Ids published so far.
    pub published: AtomicU64,
    /// Ids that were taken out of the buffers again.
    pub lost: AtomicU64,
    /// How often ids were published.
    pub refills: AtomicU64,
    /// How long the last refill took, in microseconds.
    pub duration: AtomicU64,
    /// When the last and the first range were reserved, in microseconds of uptime; 0: never.
    pub reserved_at: AtomicU64,
    /// See above.
    pub since: AtomicU64,
    /// The row's version since the last reservation.
    pub version: AtomicI64,
    /// Ids that the row had left after the last reservation.
    pub left: AtomicU64,
    /// The row's largest id.
    pub max_value: AtomicI64,
    /// The present step, and hunger's multiplier.
    step: AtomicU64,
    depth: AtomicU64,
}

impl Supplies {
    /// The pace of the last reservation.
    pub fn pace(&self) -> Pace {
        let number = |cell: &AtomicU64| u32::try_from(cell.load(Relaxed)).unwrap_or(u32::MAX);
        Pace { step: number(&self.step), depth: number(&self.depth).max(1) }
    }

    /// Notes a reservation that was published.
    pub fn note(&self, reserved: &Reserved, took: Duration) {
        let now = micros(uptime());
        self.cut_short.store(false, Relaxed);
        self.published.fetch_add(reserved.supply.range.count.into(), Relaxed);
        self.refills.fetch_add(1, Relaxed);
        self.duration.store(micros(took), Relaxed);
        self.reserved_at.store(now, Relaxed);
        // The first one stays.
        let _ = self.since.compare_exchange(0, now, Relaxed, Relaxed);
        self.version.store(reserved.version, Relaxed);
        self.left.store(reserved.left, Relaxed);
        self.max_value.store(reserved.max_value, Relaxed);
        self.step.store(reserved.pace.step.into(), Relaxed);
        self.depth.store(reserved.pace.depth.into(), Relaxed);
    }

    /// The time since the last reservation, None before the first.
    pub fn lasted(&self) -> Option<Duration> {
        since(&self.reserved_at)
    }

    /// The time since the first reservation.
    pub fn age(&self) -> Option<Duration> {
        since(&self.since)
    }

    fn reset(&self) {
        // A worker that began for the former owner must not publish for the new one.
        self.clearings.fetch_add(1, Relaxed);
        let cells = [
            &self.published,
            &self.lost,
            &self.refills,
            &self.duration,
            &self.reserved_at,
            &self.since,
            &self.left,
            &self.step,
            &self.depth,
        ];
        for cell in cells {
            cell.store(0, Relaxed);
        }
    }
}

/// What befell callers who found the buffers empty.
#[derive(Default)]
pub struct Waits {
    /// How often one waited.
    pub count: AtomicU64,
    /// The longest time, in microseconds.
    pub longest: AtomicU64,
    /// When the last one began to, in microseconds of uptime; 0: never.
    last: AtomicU64,
}

impl Waits {
    /// Notes that a call has to wait; whether because it used up what there was.
    pub fn begin(&self, ran_dry: bool) {
        self.count.fetch_add(1, Relaxed);
        if ran_dry {
            self.last.store(micros(uptime()), Relaxed);
        }
    }

    /// Notes how long it took.
    pub fn end(&self, took: Duration) {
        self.longest.fetch_max(micros(took), Relaxed);
    }

    /// The time since a call last had to wait.
    pub fn ago(&self) -> Option<Duration> {
        since(&self.last)
    }

    fn reset(&self) {
        for cell in [&self.count, &self.longest, &self.last] {
            cell.store(0, Relaxed);
        }
    }
}

/// The highest id that a transaction handed out by itself, out of a change of the row that others can't see yet.
/// Should it be rolled back, the row forgets; this doesn't. One transaction at a time writes it, the one that
/// has the row locked, and whoever locks the row next reads it.
pub struct Floor {
    id: AtomicI64,
    day: AtomicI32,
    set: AtomicBool,
}

impl Default for Floor {
    fn default() -> Self {
        Self { id: AtomicI64::new(0), day: AtomicI32::new(0), set: AtomicBool::new(false) }
    }
}

impl Floor {
    /// Notes an id of the period that begins on this day.
    pub fn raise(&self, day: i32, id: i64) {
        if self.get().is_some_and(|floor| floor >= (day, id)) {
            return;
        }
        self.id.store(id, Relaxed);
        self.day.store(day, Relaxed);
        self.set.store(true, Relaxed);
    }

    /// The day and the id.
    pub fn get(&self) -> Option<(i32, i64)> {
        self.set.load(Relaxed).then(|| (self.day.load(Relaxed), self.id.load(Relaxed)))
    }

    /// The row knows by now.
    pub fn clear(&self) {
        self.set.store(false, Relaxed);
    }
}

/// Why the last attempt at a refill failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Another transaction has the tag's row locked.
    RowLocked,
    /// No worker could be started.
    NoWorker,
    /// The worker's transaction failed; with its SQLSTATE.
    Failed(i32),
}

/// A place for a [`Trouble`].
#[derive(Default)]
pub struct TroubleCell(AtomicU64);

impl TroubleCell {
    /// Notes it.
    pub fn set(&self, trouble: Trouble) {
        let number = match trouble {
            Trouble::RowLocked => 1,
            Trouble::NoWorker => 2,
            Trouble::Failed(code) => 3 | u64::from(code.cast_unsigned()) << 32,
        };
        self.0.store(number, Relaxed);
    }

    /// It is over.
    pub fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    /// What it is, if anything.
    pub fn get(&self) -> Option<Trouble> {
        let number = self.0.load(Relaxed);
        #[allow(clippy::cast_possible_truncation, reason = "the half that holds it")]
        match number & 3 {
            1 => Some(Trouble::RowLocked),
            2 => Some(Trouble::NoWorker),
            3 => Some(Trouble::Failed(((number >> 32) as u32).cast_signed())),
            _ => None,
        }
    }
}

/// When a tag was last used, found out by looking at it now and then: users don't note it, for that would cost
/// each of them a write.
#[derive(Default)]
struct Idleness {
    mark: AtomicU64,
    since: AtomicU64,
}

impl Idleness {
    fn reset(&self) {
        self.since.store(micros(uptime()), Relaxed);
        self.mark.store(0, Relaxed);
    }

    fn look(&self, mark: u64) -> Duration {
        if self.mark.swap(mark, Relaxed) != mark {
            self.since.store(micros(uptime()), Relaxed);
        }
        since(&self.since).unwrap_or_default()
    }
}

/// A text of up to 64 bytes that one process at a time writes, with the directory locked, and any number read.
#[derive(Default)]
pub struct Caption {
    /// Odd while it is being written.
    version: AtomicU64,
    length: AtomicU64,
    words: [AtomicU64; 8],
}

impl Caption {
    /// Changes with the text.
    pub fn version(&self) -> u64 {
        self.version.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Writes the text, if it is another one. Only with the directory locked for writing.
    pub fn write(&self, text: &str) {
        use std::sync::atomic::Ordering::{AcqRel, Release};
        if self.read().1 == text {
            return;
        }
        self.version.fetch_add(1, AcqRel);
        for (word, bytes) in self.words.iter().zip(text.as_bytes().chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Release);
        }
        self.length.store(text.len() as u64, Release);
        self.version.fetch_add(1, Release);
    }

    /// The version and the text.
    pub fn read(&self) -> (u64, String) {
        use std::sync::atomic::Ordering::Acquire;
        loop {
            let version = self.version();
            let bytes: Vec<u8> =
                self.words.iter().flat_map(|word| word.load(Acquire).to_ne_bytes()).collect();
            let length = usize::try_from(self.length.load(Acquire)).unwrap_or(0).min(bytes.len());
            if version.is_multiple_of(2) && self.version() == version {
                return (version, String::from_utf8_lossy(&bytes[..length]).into_owned());
            }
            std::hint::spin_loop();
        }
    }
}

/// Microseconds, which are 1 for less than one: 0 stands for never.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(1)
}

fn since(cell: &AtomicU64) -> Option<Duration> {
    let then = Duration::from_micros(cell.load(Relaxed));
    (!then.is_zero()).then(|| uptime().saturating_sub(then))
}
