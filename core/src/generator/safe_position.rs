//! The safe position of a reader. The reader's snapshot sees every transaction that took a position below the safe
//! position, except rolled-back transactions.
//!
//! A transaction takes a position before other sessions can see the row with the id. A reader that looks only for ids
//! above the last id that it saw therefore misses rows of transactions that commit late. The safe position is the
//! lowest of
//!
//! 1. the generator's next position, because no later call takes a lower position
//! 2. the positions that open transactions announced
//! 3. the positions announced by transactions that ended after the snapshot was taken.
//!
//! *Announcing.* A transaction [announces](OpenTransaction::announce) the *frontier* before it takes its first
//! position. The frontier is the highest next position that a reader or a transaction published. All positions of the
//! transaction are at or above the announced frontier:
//!
//! - Positions that the transaction takes from the generator are at or above the generator's next position. The
//!   transaction announces before it takes positions, so a reader that sees the next position raised by this
//!   transaction also sees the announcement.
//! - Positions that the session already holds may be below a new frontier. [`Frontier::publish`] therefore makes the
//!   held positions of all sessions stale before it moves the frontier. A transaction that announces the new frontier
//!   sees that its session's positions are stale, and takes new positions. A transaction that announces the old
//!   frontier executes a fence after the announcement, before it checks whether its positions are stale. The reader
//!   executes a fence after it has made positions stale, before it reads announcements. Therefore the transaction sees
//!   that its positions are stale, or the reader sees the announcement, or both.
//!
//! *Ending.* A committed transaction is [recorded](EndedTransactions::record) with its transaction id (xid) after its
//! rows become visible and before its announcement is cleared. Readers read announcements before records, so they find
//! the transaction's announcement or its record. A record counts if the reader's snapshot does not see the record's
//! xid. Rolled-back transactions need no record, because they have no rows.
//!
//! *Dropping.* Shared memory has a fixed number of records, so a new record replaces the oldest one. While an old
//! snapshot or a prepared transaction needs a dropped record, there is no safe position. The reader then gets no rows.
//!
//! *Copying.* Writers take turns under a lock for the few stores of one record. Readers take no lock: each record has a
//! sequence number that is odd while the record changes, and a reader copies the record until the number is even and the
//! same before and after. A number for the whole ring would starve readers on a busy server.
//!
//! *Other nodes.* The term of another node begins in a later tick than all published positions, also after a restart:
//! see `Issuer::admit_readers`.

use crate::error::Explain;
use crate::generator::snowflake::{Generator, NextPosition};
use crate::guard::{Guard, holds};
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::sync::{AtomicU64, CacheLine, Ordering, fence, pause};
use std::cmp::Reverse;
use std::time::Duration;

/// The smallest age of the frontier at which a new transaction moves the frontier.
const MAX_AGE: Duration = Duration::from_millis(50);

/// The highest next position of the generator that was published; 0 before the first reader.
#[derive(Debug, Default)]
pub struct Frontier(CacheLine<AtomicU64>);

impl Frontier {
    /// Returns the frontier.
    pub fn position(&self) -> Position {
        Position(self.0.load(Ordering::Acquire))
    }

    /// Moves the frontier if its age has reached `MAX_AGE`, so that the announcement of a new transaction does not hold
    /// readers back longer than needed.
    pub fn keep_up(&self, generator: &Generator, layout: &Layout) {
        let told = self.position();
        let has_readers = told > Position::ZERO;
        if has_readers && layout.instant_of(generator.next()).since(layout.instant_of(told)) >= MAX_AGE {
            self.publish(generator);
        }
    }

    /// Moves the frontier to the generator's next position, and returns that position. The caller reads announcements
    /// only after this call.
    pub fn publish(&self, generator: &Generator) -> NextPosition {
        let mut next = generator.next_of_term();
        if next.term.is_some_and(|(first, _)| first == next.position) {
            // The term has issued no id yet. Its first position may be far ahead, and another node may issue ids before
            // this term does.
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

/// The announcement of one process's open transaction.
#[derive(Debug, Default)]
pub struct OpenTransaction {
    /// A lower bound of all positions that the transaction takes; 0 if the transaction has announced nothing.
    first: AtomicU64,
    /// The oid of the process's database.
    database: AtomicU64,
}

impl OpenTransaction {
    /// Announces that the transaction is about to take positions. Parallel workers use the leader's announcement. An
    /// earlier announcement of the transaction stays.
    pub fn announce(&self, frontier: &Frontier, database: u32) {
        let first = frontier.position().0.max(1);
        self.database.store(database.into(), Ordering::Relaxed);
        let _ = self.first.compare_exchange(0, first, Ordering::AcqRel, Ordering::Acquire);
        if holds(Guard::AnnouncedFirst) {
            fence(Ordering::SeqCst);
        }
    }

    /// Returns the announcement; None if the transaction has taken no position.
    pub fn first(&self) -> Option<Position> {
        Some(self.first.load(Ordering::Acquire)).filter(|first| *first != 0).map(Position)
    }

    /// Returns the announcement, if the process is connected to `database`.
    pub fn first_in(&self, database: u32) -> Option<Position> {
        self.first().filter(|_| self.database.load(Ordering::Relaxed) == u64::from(database))
    }

    /// Clears the announcement after the transaction has ended. A transaction that wrote rows must be recorded before
    /// its announcement is cleared.
    pub fn clear(&self) {
        self.first.store(0, Ordering::Release);
    }
}

/// A committed or prepared transaction that took positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedTransaction {
    /// The transaction id with its epoch.
    pub xid: u64,
    /// The transaction's announcement.
    pub first: Position,
    /// The oid of the transaction's database.
    pub database: u32,
}

/// The number of transactions for which there is a record: 128 KiB, which a busy server fills in some seconds.
pub const RECORDED: usize = 4_096;

/// How often a reader tries to copy a record that is being written.
const TRIES: u32 = if cfg!(loom) { 2 } else { 1_000 };

/// The record of an ended transaction. Readers copy the record without a lock, so no commit waits for a reader.
#[derive(Debug, Default)]
pub struct Record {
    /// A number that grows with each change. The number is odd while a writer changes the record.
    sequence: AtomicU64,
    /// The transaction id with its epoch; 0 if the record is unused.
    xid: AtomicU64,
    first: AtomicU64,
    database: AtomicU64,
}

impl Record {
    /// Writes the record. The caller holds the writers' lock, and neither waits nor fails between the odd and the even number.
    fn write(&self, ended: EndedTransaction) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence + 1, Ordering::Relaxed);
        // Release: a reader that sees one of the new values also sees the odd number.
        self.xid.store(ended.xid, Ordering::Release);
        self.first.store(ended.first.0, Ordering::Release);
        self.database.store(ended.database.into(), Ordering::Release);
        // Release: a reader that sees the even number also sees the new values.
        self.sequence.store(sequence + 2, Ordering::Release);
    }

    /// Copies the record. Returns None if writers kept changing the record.
    fn read(&self) -> Option<EndedTransaction> {
        for attempt in 0..TRIES {
            let before = self.sequence.load(Ordering::Acquire);
            // Acquire: the number is read again after these values.
            let (xid, first) = (self.xid.load(Ordering::Acquire), self.first.load(Ordering::Acquire));
            let database = self.database.load(Ordering::Acquire);
            let is_whole = before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before;
            if is_whole || !holds(Guard::WholeRecord) {
                let database = u32::try_from(database).unwrap_or_default();
                return Some(EndedTransaction { xid, first: Position(first), database });
            }
            pause(attempt);
        }
        None
    }
}

/// The number of the record that is written next. Writers share this number under a lock that no reader takes.
#[derive(Debug, Default)]
pub struct NextRecord(usize);

/// The transactions that ended last.
#[derive(Debug)]
pub struct EndedTransactions {
    /// A ring of records. A new record replaces the oldest record.
    records: &'static [Record],
    /// The highest xid that may be missing from the records.
    dropped: AtomicU64,
    /// 1 since the first reader, otherwise 0.
    kept: AtomicU64,
}

/// The largest number of xids from a snapshot's `xmax` to the highest dropped xid. A snapshot with more such xids has
/// no safe position.
const MAX_LATER: u16 = 64;

/// The recorded transactions that a snapshot does not see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnseenTransactions {
    /// The lowest announcement of these transactions in the reader's database.
    pub lowest: Option<Position>,
    /// The xids of these transactions.
    pub found: Vec<u64>,
    /// The highest xid that may be missing from the records.
    pub dropped: u64,
}

impl EndedTransactions {
    /// Returns empty records.
    pub fn new(records: &'static [Record]) -> Self {
        Self { records, dropped: AtomicU64::new(0), kept: AtomicU64::new(0) }
    }

    /// Returns true if transactions are recorded, which begins with the first reader.
    pub fn is_kept(&self) -> bool {
        // Acquire: `dropped` is at least what `keep_from` has set.
        self.kept.load(Ordering::Acquire) != 0
    }

    /// Begins to record transactions. Transactions with an xid below `next_xid` may be missing.
    pub fn keep_from(&self, next_xid: u64) {
        self.dropped.fetch_max(next_xid.saturating_sub(1), Ordering::AcqRel);
        self.kept.store(1, Ordering::Release);
    }

    /// Records a transaction, before its announcement is cleared. The caller holds the writers' lock, which guards `next`.
    pub fn record(&self, next: &mut NextRecord, ended: EndedTransaction) {
        let Some(record) = self.records.get(next.0) else { return };
        // The xid is known to be dropped before it is overwritten.
        if holds(Guard::DroppedKnown) {
            self.dropped.fetch_max(record.xid.load(Ordering::Relaxed), Ordering::AcqRel);
        }
        record.write(ended);
        next.0 = (next.0 + 1) % self.records.len();
    }

    /// Looks up the recorded transactions that a snapshot does not see. Returns None if a record could not be copied. Takes no
    /// lock. A record that is replaced meanwhile counts as dropped, because the highest dropped xid is read last.
    pub fn unseen_by(&self, snapshot: &SnapshotXids, database: u32) -> Option<UnseenTransactions> {
        let (mut lowest, mut found) = (None, Vec::new());
        for record in self.records {
            let ended = record.read()?;
            if snapshot.is_running(ended.xid) {
                found.push(ended.xid);
                if ended.database == database {
                    lowest = Some(lowest.map_or(ended.first, |lowest: Position| lowest.min(ended.first)));
                }
            }
        }
        Some(UnseenTransactions { lowest, found, dropped: self.dropped.load(Ordering::Acquire) })
    }
}

/// The transactions that a snapshot does not see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotXids {
    /// The snapshot's xmax: no transaction with this xid or a higher xid had ended when the snapshot was taken.
    xmax: u64,
    /// The xids below `xmax` of transactions that had not ended, in ascending order.
    running: Vec<u64>,
}

impl SnapshotXids {
    /// Makes the value from a snapshot's `xmax` and running xids. `running` may contain an xid twice, while the xid's
    /// transaction is being prepared.
    pub fn new(xmax: u64, mut running: Vec<u64>) -> Self {
        running.sort_unstable();
        running.dedup();
        Self { xmax, running }
    }

    /// Returns whether a transaction had not ended when the snapshot was taken.
    pub fn is_running(&self, xid: u64) -> bool {
        xid >= self.xmax || self.running.binary_search(&xid).is_ok()
    }

    /// Returns the xids that the snapshot does not see and that may have been dropped from the records. Returns None if
    /// these xids are too many. A safe position exists only if each transaction with such an xid was rolled back, still
    /// runs in a process that has an announcement, or is prepared in another database.
    pub fn unknown(
        &self,
        UnseenTransactions { found, dropped, .. }: &UnseenTransactions,
    ) -> Option<Vec<u64>> {
        let dropped = *dropped;
        if dropped >= self.xmax + u64::from(MAX_LATER) {
            return None;
        }
        let running = self.running.iter().copied().filter(|xid| *xid <= dropped);
        Some(running.chain(self.xmax..=dropped).filter(|xid| !found.contains(xid)).collect())
    }

    /// Returns a key that sorts snapshots by time. A later snapshot has a higher `xmax`, or the same `xmax` and fewer
    /// running transactions.
    fn age(&self) -> (u64, Reverse<usize>) {
        (self.xmax, Reverse(self.running.len()))
    }
}

/// The safe positions that one transaction received, one for each snapshot. A snapshot always gets the same answer. A
/// scan may ask for the safe position once for each row. If the answer rose during the scan, the scan could leave out a
/// row and return a later row with a higher id.
#[derive(Debug, Default)]
pub struct Answers<T>(Vec<((u64, Reverse<usize>), T)>);

/// The largest number of answers that a transaction keeps.
const MAX_ANSWERS: usize = 256;

/// A snapshot that is older than all snapshots for which the transaction has answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("the snapshot is older than a safe id that this transaction has already received")]
#[explain(NotReady, detail = "A cursor or a function uses a snapshot that was taken earlier.")]
#[explain(
    hint = "Call snowflake_safe_id() in the first statement of the transaction, and use its result in later statements."
)]
pub struct SnapshotTooOld;

impl<T: Copy> Answers<T> {
    /// Returns an empty list of answers.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the answer for a snapshot. A snapshot that is later than the snapshots of all earlier answers gets a new
    /// answer. Any other snapshot gets its own earlier answer, or the answer of the latest snapshot before it. An
    /// answer for one snapshot is safe for all later snapshots.
    ///
    /// # Errors
    /// [`SnapshotTooOld`], and the errors of `find`, which computes a new answer.
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

    /// Forgets all answers when the transaction ends.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
