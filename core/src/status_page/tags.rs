//! Tags in the order in which they need attention. Of however many there are, so many are kept.

use crate::clock::{UnixMicros, YEAR_MICROS};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// How many tags are kept.
pub const KEPT: usize = 1_000;

/// A tag that ends within that time takes action now.
const SOON: Duration = Duration::from_hours(30 * 24);
/// One that ends within that time, a plan.
const YEAR: Duration = Duration::from_micros(YEAR_MICROS.unsigned_abs());

/// A row of `segment_status`; its columns are explained in docs/views.md.
#[expect(missing_docs, reason = "they are those of the view")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tag {
    /// The name of another database; None where it is a tag of this one.
    pub database: Option<String>,
    pub tag: String,
    pub current: Option<Buffer>,
    pub next: Option<Buffer>,
    pub step: Option<u64>,
    pub ids_issued: u64,
    pub refills: u64,
    pub last_refill: Option<Duration>,
    pub waits: u64,
    pub longest_wait: Option<Duration>,
    pub exhausted_at: Option<UnixMicros>,
    pub trouble: Option<String>,
}

/// One of a tag's two buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Buffer {
    /// Its first id.
    pub first: i64,
    /// Its last one.
    pub last: i64,
    /// The share of it that is used, 0 to 1.
    pub used: f64,
}

/// How a tag stands, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Refills fail, and there are no ids left.
    Failed,
    /// Refills fail; what is in the buffers is left.
    Failing,
    /// Its ids are used up within 30 days, at the pace so far.
    EndsSoon,
    /// Both buffers are used up: a call waits for a refill.
    Dry,
    /// Its ids are used up within a year.
    EndsThisYear,
    /// It is used.
    Fine,
    /// It has no place in shared memory: nothing was asked for, or not for long.
    Idle,
}

impl Standing {
    /// All of them, the worst first.
    pub const ALL: [Self; 7] =
        [Self::Failed, Self::Failing, Self::EndsSoon, Self::Dry, Self::EndsThisYear, Self::Fine, Self::Idle];
}

impl Tag {
    /// How it stands.
    pub fn standing(&self, now: UnixMicros) -> Standing {
        let ends_within = |time: Duration| self.exhausted_at.is_some_and(|end| end <= now.plus(time));
        let is_dry = self.current.is_some_and(|current| current.used >= 1.0) && self.next.is_none();
        let has_ids = self.current.is_some() && !is_dry;
        match &self.trouble {
            Some(_) if has_ids => Standing::Failing,
            Some(_) => Standing::Failed,
            None if ends_within(SOON) => Standing::EndsSoon,
            None if is_dry => Standing::Dry,
            None if ends_within(YEAR) => Standing::EndsThisYear,
            None if self.current.is_some() => Standing::Fine,
            None => Standing::Idle,
        }
    }
}

/// The smaller, the sooner it is to be looked at.
type Urgency = (Standing, Reverse<u64>, Reverse<u64>, Option<String>, String);

#[derive(Debug)]
struct Ranked {
    urgency: Urgency,
    tag: Tag,
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.urgency == other.urgency
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.urgency.cmp(&other.urgency)
    }
}

/// The tags that are to be looked at first, and how many there are.
#[derive(Debug)]
pub struct Tags {
    now: UnixMicros,
    /// The last of them is the greatest, which leaves when another comes.
    kept: BinaryHeap<Ranked>,
    counts: [u64; Standing::ALL.len()],
}

impl Tags {
    /// None yet. The instant says how far the end of a tag is.
    pub const fn new(now: UnixMicros) -> Self {
        Self { now, kept: BinaryHeap::new(), counts: [0; Standing::ALL.len()] }
    }

    /// Adds a tag.
    pub fn add(&mut self, tag: Tag) {
        let standing = tag.standing(self.now);
        self.counts[standing as usize] += 1;
        let (waits, ids) = (Reverse(tag.waits), Reverse(tag.ids_issued));
        let urgency = (standing, waits, ids, tag.database.clone(), tag.tag.clone());
        self.kept.push(Ranked { urgency, tag });
        if self.kept.len() > KEPT {
            self.kept.pop();
        }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many of them stand so.
    pub fn count(&self, standing: Standing) -> u64 {
        self.counts[standing as usize]
    }

    /// The first [`KEPT`], those that need attention most at the head.
    pub fn in_order(&self) -> Vec<(Standing, &Tag)> {
        let mut kept: Vec<_> = self.kept.iter().collect();
        kept.sort_unstable();
        kept.into_iter().map(|ranked| (ranked.urgency.0, &ranked.tag)).collect()
    }
}
