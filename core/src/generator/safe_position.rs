//! The safe position to read from: every transaction with a position below it is visible to the reader's snapshot, or was rolled
//! back.
//!
//! A transaction takes a position before others can see the row that carries the id. A reader that continues after the last
//! id therefore misses rows of transactions that commit late. The safe position is the lowest of
//!
//! 1. the generator's next position, because no later call takes a lower one
//! 2. the announcements of open transactions
//! 3. the announcements of transactions that ended after the snapshot was taken.
//!
//! *Announcing.* A transaction [announces](OpenTransaction::announce) the *frontier* before it takes its first position. The
//! frontier is the highest next position that was published. All positions of the transaction are at or above it:
//!
//! - Positions that it takes from the generator are at or above the next position. The transaction announces before it takes,
//!   so a reader that sees the higher next position also sees the announcement.
//! - Positions that the session already held may be below a new frontier. So publishing makes all held positions stale before
//!   it moves the frontier. A transaction that announces the new frontier sees this, and takes new positions. A transaction
//!   that announces the old frontier, and the reader, have a fence between their two steps: at least one of them sees the step
//!   of the other.
//!
//! *Ending.* A committed transaction is [recorded](EndedTransactions::record) with its transaction id (xid) after its rows become
//! visible and before its announcement is cleared. Readers read announcements first, so they find the announcement or the
//! record. A record counts if the reader's snapshot does not see its xid. Rolled-back transactions have no rows.
//!
//! *Dropping.* The memory holds a fixed number of records. If an old snapshot or a prepared transaction needs a dropped record,
//! there is no safe position for now, and the reader gets no rows.
//!
//! *Other nodes.* Terms of other nodes begin in a later tick than all published positions, also after a restart: see
//! [`Issuer::admit_readers`](crate::server::issuer::Issuer::admit_readers).

use crate::error::Explain;
use crate::generator::snowflake::{Generator, NextPosition};
use crate::guard::{Guard, holds};
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::sync::{AtomicU64, Ordering, fence};
use std::cmp::Reverse;
use std::time::Duration;

/// The age of the frontier from which a transaction moves it.
const MAX_AGE: Duration = Duration::from_millis(50);

/// The highest next position that readers have published; 0 before the first reader.
#[cfg_attr(not(loom), repr(C, align(64)))]
#[derive(Debug)]
pub struct Frontier(AtomicU64);

impl Default for Frontier {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Frontier {
    /// The frontier.
    pub fn position(&self) -> Position {
        Position(self.0.load(Ordering::Acquire))
    }

    /// Moves the frontier if it is old, so that a transaction that begins now does not hold readers back for longer than needed.
    pub fn keep_up(&self, generator: &Generator, layout: &Layout) {
        let told = self.position();
        let has_readers = told > Position::ZERO;
        if has_readers && layout.instant_of(generator.next()).since(layout.instant_of(told)) >= MAX_AGE {
            self.publish(generator);
        }
    }

    /// Moves the frontier to the generator's next position, and returns that. Announcements are read after this.
    pub fn publish(&self, generator: &Generator) -> NextPosition {
        let mut next = generator.next_of_term();
        if next.term.is_some_and(|(first, _)| first == next.position) {
            // No id of the term is issued yet. Its first position may be far ahead, and another node may issue before it does.
            next = NextPosition { position: self.position().max(generator.furthest()), term: None };
        }
        if next.position > self.position() {
            if holds(Guard::FrontierStales) {
                generator.make_stale();
            }
            self.0.fetch_max(next.position.0, Ordering::AcqRel);
            if !holds(Guard::FrontierStales) {
                generator.make_stale();
            }
        }
        fence(Ordering::SeqCst);
        next
    }
}

/// The announcement of one process's open transaction, in a cache line of its own.
#[cfg_attr(not(loom), repr(C, align(64)))]
#[derive(Debug)]
pub struct OpenTransaction {
    /// The position at or above which the transaction takes all of its positions; 0 before its first one.
    first: AtomicU64,
    /// The oid of the process's database.
    database: AtomicU64,
}

impl Default for OpenTransaction {
    fn default() -> Self {
        Self { first: AtomicU64::new(0), database: AtomicU64::new(0) }
    }
}

impl OpenTransaction {
    /// Announces that the transaction is about to take positions. Parallel workers use the leader's announcement, and keep
    /// an earlier one.
    pub fn announce(&self, frontier: &Frontier, database: u32) {
        let first = frontier.position().0.max(1);
        self.database.store(database.into(), Ordering::Relaxed);
        let _ = self.first.compare_exchange(0, first, Ordering::AcqRel, Ordering::Acquire);
        if holds(Guard::AnnouncedFirst) {
            fence(Ordering::SeqCst);
        }
    }

    /// The announcement; None if the transaction took no position.
    pub fn first(&self) -> Option<Position> {
        Some(self.first.load(Ordering::Acquire)).filter(|first| *first != 0).map(Position)
    }

    /// The announcement, if the process is connected to this database.
    pub fn first_in(&self, database: u32) -> Option<Position> {
        self.first().filter(|_| self.database.load(Ordering::Relaxed) == u64::from(database))
    }

    /// Clears the announcement: the transaction has ended, and is recorded if it has rows.
    pub fn clear(&self) {
        self.first.store(0, Ordering::Release);
    }
}

/// A committed or prepared transaction that took positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedTransaction {
    /// The transaction id with its epoch.
    pub xid: u64,
    /// Its announcement.
    pub first: Position,
    /// The oid of its database.
    pub database: u32,
}

/// Number of transactions that are recorded: some seconds of a busy server, 96 KiB.
pub const RECORDED: usize = 4_096;

/// The transactions that ended last.
#[derive(Debug)]
pub struct EndedTransactions {
    /// The transactions, of which the one at `oldest` is dropped next. An unused entry has xid 0.
    recorded: &'static mut [EndedTransaction],
    oldest: usize,
    /// The highest xid of a transaction that may be missing; 0 before the first reader.
    dropped: u64,
}

/// The most transactions that began after a snapshot and may have been dropped, before the snapshot has no safe position.
const MAX_LATER: u16 = 64;

impl EndedTransactions {
    /// Creates a record that is empty.
    pub fn new(room: &'static mut [EndedTransaction]) -> Self {
        Self { recorded: room, oldest: 0, dropped: 0 }
    }

    /// Returns true if the record is kept: a reader has come.
    pub fn is_kept(&self) -> bool {
        self.dropped > 0
    }

    /// Begins to keep the record, in which all transactions below `next_xid` may be missing.
    pub fn keep_from(&mut self, next_xid: u64) {
        self.dropped = self.dropped.max(next_xid.saturating_sub(1));
    }

    /// Records a transaction, before its announcement is cleared.
    pub fn record(&mut self, ended: EndedTransaction) {
        let room = self.recorded.len();
        if let Some(entry) = self.recorded.get_mut(self.oldest) {
            if holds(Guard::DroppedKnown) {
                self.dropped = self.dropped.max(entry.xid);
            }
            *entry = ended;
            self.oldest = (self.oldest + 1) % room;
        }
    }

    /// Looks up the recorded transactions that a snapshot does not see. `found` gets their xids, as far as it has room, so that
    /// nothing is allocated under the record's lock. Returns the lowest announcement in a database, and the highest dropped xid.
    pub fn unseen_by(
        &self,
        snapshot: &SnapshotXids,
        database: u32,
        found: &mut Vec<u64>,
    ) -> (Option<Position>, u64) {
        let mut lowest = None;
        for ended in self.recorded.iter().filter(|ended| snapshot.is_running(ended.xid)) {
            if ended.database == database {
                lowest = Some(lowest.map_or(ended.first, |lowest: Position| lowest.min(ended.first)));
            }
            if ended.xid <= self.dropped && found.len() < found.capacity() {
                found.push(ended.xid);
            }
        }
        (lowest, self.dropped)
    }
}

/// The transactions that a snapshot does not see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotXids {
    /// The first xid that had not ended when the snapshot was taken, nor any above it.
    xmax: u64,
    /// The xids below `xmax` that had not ended, in ascending order.
    running: Vec<u64>,
}

impl SnapshotXids {
    /// The xids of a snapshot: one may come twice, while its transaction is prepared.
    pub fn new(xmax: u64, mut running: Vec<u64>) -> Self {
        running.sort_unstable();
        running.dedup();
        Self { xmax, running }
    }

    /// Returns whether a transaction had not ended when the snapshot was taken.
    pub fn is_running(&self, xid: u64) -> bool {
        xid >= self.xmax || self.running.binary_search(&xid).is_ok()
    }

    /// Returns room for the xids that [`EndedTransactions::unseen_by`] finds.
    pub fn room(&self) -> Vec<u64> {
        Vec::with_capacity(self.running.len() + usize::from(MAX_LATER))
    }

    /// Returns the xids that the snapshot does not see, and that may have been dropped from the record. There is no safe position
    /// unless each of them still runs in a process, by its announcement, or was rolled back. None if there are too many.
    pub fn unknown(&self, dropped: u64, found: &[u64]) -> Option<Vec<u64>> {
        if dropped >= self.xmax + u64::from(MAX_LATER) {
            return None;
        }
        let running = self.running.iter().copied().filter(|xid| *xid <= dropped);
        Some(running.chain(self.xmax..=dropped).filter(|xid| !found.contains(xid)).collect())
    }

    /// A later snapshot has a higher `xmax`, or the same and fewer running transactions.
    fn age(&self) -> (u64, Reverse<usize>) {
        (self.xmax, Reverse(self.running.len()))
    }
}

/// The answers that one transaction was given. One snapshot has one answer, however often it is asked for: in a scan that asks
/// for each row, a bound that rises would drop a row and show a later one.
#[derive(Debug, Default)]
pub struct Answers<T>(Vec<((u64, Reverse<usize>), T)>);

/// The most answers that a transaction keeps.
const MAX_ANSWERS: usize = 256;

/// A snapshot that is older than all that the transaction has answers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("the snapshot is older than the safe ids that this transaction was given")]
#[explain(NotReady, detail = "A cursor or a function uses a snapshot that was taken earlier.")]
#[explain(
    hint = "Call snowflake_safe_id() in the first statement of the transaction, and pass its result on."
)]
pub struct SnapshotTooOld;

impl<T: Copy> Answers<T> {
    /// The answers of a transaction that was given none.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the answer for a snapshot: the one that it was given, a new one if it is later than all others, else that of the
    /// latest snapshot before it, which is safe for later ones.
    ///
    /// # Errors
    /// [`SnapshotTooOld`], and those of `find`, which finds a new answer.
    pub fn get<E: From<SnapshotTooOld>>(
        &mut self,
        snapshot: &SnapshotXids,
        find: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let age = snapshot.age();
        let earlier = self.0.partition_point(|(known, _)| *known <= age);
        if earlier < self.0.len()
            || self.0.last().is_some_and(|(known, _)| *known == age && holds(Guard::OneAnswer))
        {
            let latest = earlier.checked_sub(1).and_then(|index| self.0.get(index));
            return latest.map(|(_, answer)| *answer).ok_or_else(|| SnapshotTooOld.into());
        }
        let answer = find()?;
        if self.0.len() == MAX_ANSWERS {
            self.0.remove(0);
        }
        self.0.push((age, answer));
        Ok(answer)
    }

    /// Forgets all answers: the transaction has ended.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
