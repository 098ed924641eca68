//! Safe positions for readers: records of ended transactions, and the answers within one transaction.
#![allow(clippy::disallowed_types, reason = "threads of one process, which is what the lock is for")]

use super::rules::needs::needs;
use snowflake_ids_core::generator::safe_position::{
    Answers, EndedTransaction, EndedTransactions, Frontier, NextRecord, Record, SnapshotTooOld, SnapshotXids,
};
use snowflake_ids_core::generator::snowflake::NextPosition;
use snowflake_ids_core::guard::Guard;
use snowflake_ids_core::{Generator, Layout, NodeBits, Position, Rules, SequenceStart, UnixMicros};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const DATABASE: u32 = 5;

/// Empty records of up to `room` transactions.
fn records(room: usize) -> EndedTransactions {
    EndedTransactions::new((0..room).map(|_| Record::default()).collect::<Vec<_>>().leak())
}

/// A committed transaction. Its announced position is a tenth of its xid.
fn transaction(xid: u64) -> EndedTransaction {
    EndedTransaction { xid, first: Position(xid / 10), database: DATABASE }
}

/// Records of up to `room` transactions.
fn recorded(room: usize, xids: impl IntoIterator<Item = u64>) -> EndedTransactions {
    let (ended, mut next) = (records(room), NextRecord::default());
    for xid in xids {
        ended.record(&mut next, transaction(xid));
    }
    ended
}

fn snapshot(xmax: u64, running: &[u64]) -> SnapshotXids {
    SnapshotXids::new(xmax, running.to_vec())
}

/// The lowest position announced by a transaction that the snapshot does not see, and the xids that the record may have dropped.
fn unseen(
    ended: &EndedTransactions,
    snapshot: &SnapshotXids,
    database: u32,
) -> (Option<Position>, Option<Vec<u64>>) {
    let unseen = ended.unseen_by(snapshot, database).unwrap();
    (unseen.lowest, snapshot.unknown(&unseen))
}

#[test]
fn transactions_that_ended_after_the_snapshot_count() {
    let ended = recorded(8, [100, 110, 120]);
    let lowest = |snapshot: &SnapshotXids, database| unseen(&ended, snapshot, database).0;
    assert_eq!(lowest(&snapshot(130, &[]), DATABASE), None, "it sees all of them");
    assert_eq!(lowest(&snapshot(130, &[110]), DATABASE), Some(Position(11)));
    assert_eq!(lowest(&snapshot(110, &[]), DATABASE), Some(Position(11)), "one that began later is not seen");
    assert_eq!(lowest(&snapshot(130, &[110, 100]), DATABASE), Some(Position(10)));
    assert_eq!(lowest(&snapshot(130, &[110]), 6), None, "it is of another database");
}

#[test]
fn a_transaction_that_was_dropped_may_be_one_that_the_snapshot_does_not_see() {
    needs(Guard::DroppedKnown, || {
        let ended = recorded(2, [100, 110, 120]);
        let unknown = |snapshot| unseen(&ended, &snapshot, DATABASE).1;
        unknown(snapshot(130, &[100])) == Some(vec![100]) && unknown(snapshot(99, &[])) == Some(vec![99, 100])
    });
    // If the xid of a transaction is above all dropped xids, the record must contain the transaction.
    let ended = recorded(2, [100, 110, 120]);
    assert_eq!(unseen(&ended, &snapshot(130, &[105]), DATABASE), (None, Some(vec![])));
    assert_eq!(unseen(&ended, &snapshot(130, &[110]), DATABASE), (Some(Position(11)), Some(vec![])));
    assert_eq!(unseen(&ended, &snapshot(20, &[]), DATABASE).1, None, "too many began after it");
}

#[test]
fn transactions_that_began_before_the_first_reader_are_unknown_unless_they_are_recorded() {
    let ended = recorded(8, [110]);
    ended.keep_from(120);
    assert!(ended.is_kept());
    assert_eq!(
        unseen(&ended, &snapshot(130, &[50, 110, 125]), DATABASE),
        (Some(Position(11)), Some(vec![50]))
    );
}

/// Before the first reader has said which transactions are missing, a commit may already find a reader, and drop a record.
#[test]
fn transactions_are_kept_from_the_first_reader_on_even_if_records_were_dropped_before() {
    let ended = recorded(2, [100, 110, 120]);
    assert!(!ended.is_kept());
    ended.keep_from(200);
    assert!(ended.is_kept());
    assert_eq!(
        unseen(&ended, &snapshot(150, &[130]), DATABASE).1,
        Some((150..=199).fold(vec![130], |mut all, xid| {
            all.push(xid);
            all
        }))
    );
}

/// Commits replace all records again and again while readers copy them. Fails if a reader gets a mixture of two records, or misses a
/// transaction that it can neither see nor knows to be dropped.
#[test]
fn readers_beside_commits_copy_whole_records() {
    const COMMITS: u64 = 200_000;
    let ended = &records(64);
    let (next, committed) = (&Mutex::new(NextRecord::default()), &AtomicU64::new(10));
    let commits = || {
        for _ in 0..COMMITS / 8 {
            let mut next = next.lock().unwrap();
            let xid = committed.load(Ordering::Relaxed) + 10;
            ended.record(&mut next, transaction(xid));
            committed.store(xid, Ordering::Release);
        }
    };
    let (reads, failed) = thread::scope(|scope| {
        let writers: Vec<_> = (0..8).map(|_| scope.spawn(commits)).collect();
        let (mut reads, mut failed) = (0, 0);
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) || reads < 100 {
            let last = committed.load(Ordering::Acquire);
            let since = last.saturating_sub(300).max(1);
            reads += 1;
            let Some(unseen) = ended.unseen_by(&snapshot(since, &[]), DATABASE) else {
                failed += 1;
                continue;
            };
            let lowest = unseen.found.iter().min().map(|xid| Position(xid / 10));
            assert_eq!(unseen.lowest, lowest, "{unseen:?}");
            for xid in (since..=last).filter(|xid| xid.is_multiple_of(10) && *xid >= 20) {
                assert!(unseen.found.contains(&xid) || xid <= unseen.dropped, "{xid} is missing: {unseen:?}");
            }
        }
        (reads, failed)
    });
    assert!(failed * 100 <= reads, "{failed} of {reads} reads failed");
}

fn answer(answers: &mut Answers<i32>, snapshot: &SnapshotXids, new: i32) -> Result<i32, SnapshotTooOld> {
    answers.get(snapshot, || Ok(new))
}

#[test]
fn a_snapshot_has_one_answer() {
    needs(Guard::OneAnswer, || {
        let mut answers = Answers::new();
        answer(&mut answers, &snapshot(100, &[90]), 1) == Ok(1)
            // A prepared transaction's xid may be listed twice.
            && answer(&mut answers, &snapshot(100, &[90, 90]), 2) == Ok(1)
    });
}

#[test]
fn a_later_snapshot_has_a_new_answer_and_an_earlier_one_none_that_is_newer() {
    let mut answers = Answers::new();
    assert_eq!(answer(&mut answers, &snapshot(100, &[80, 90]), 1), Ok(1));
    assert_eq!(answer(&mut answers, &snapshot(110, &[]), 2), Ok(2));
    assert_eq!(answer(&mut answers, &snapshot(100, &[80]), 3), Ok(1), "between both");
    assert_eq!(answer(&mut answers, &snapshot(99, &[]), 3), Err(SnapshotTooOld));
    assert_eq!(answer(&mut answers, &snapshot(110, &[]), 3), Ok(2));
    answers.clear();
    assert_eq!(answer(&mut answers, &snapshot(99, &[]), 3), Ok(3), "another transaction");
}

#[test]
fn a_transaction_keeps_so_many_answers() {
    let mut answers = Answers::new();
    for age in 0..1_000 {
        assert_eq!(answer(&mut answers, &snapshot(1_000 + age, &[]), 0), Ok(0));
    }
    assert_eq!(answer(&mut answers, &snapshot(1_999, &[]), 1), Ok(0));
    assert_eq!(answer(&mut answers, &snapshot(1_000, &[]), 1), Err(SnapshotTooOld), "it was dropped");
}

#[test]
fn the_least_id_is_exact_in_the_open_term_and_else_the_ticks() {
    let layout: Layout = "41/5/5/12 epoch=2020-01-01".parse().unwrap();
    let node_bits = NodeBits(7 << 12);
    let [first, next] = [5 << 12 | 3, 6 << 12 | 9].map(Position);
    let open = NextPosition { position: next, term: Some((first, node_bits)) };
    for safe in [first, next] {
        assert_eq!(open.least_id(&layout, safe), layout.id(safe, node_bits));
    }
    assert_eq!(open.least_id(&layout, Position(5 << 12 | 2)), 5 << 22, "another node may have issued it");
    let closed = NextPosition { term: None, ..open };
    assert_eq!(closed.least_id(&layout, next), 6 << 22);
    let last = layout.end_position();
    assert!(closed.least_id(&layout, last) <= layout.id(Position(last.0 - 1), NodeBits(0)));
}

#[test]
fn transactions_move_an_old_frontier_once_there_are_readers() {
    let layout: Layout = "41/5/5/12 epoch=2020-01-01".parse().unwrap();
    let generator = Generator::default();
    let at = |milliseconds: i64| UnixMicros(1_770_000_000_000_000 + milliseconds * 1_000);
    generator.begin(NodeBits(0), layout.position_at(at(0)), layout.end_position());
    let rules = Rules { max_drift: 1_000_000, start: SequenceStart::Zero };
    let frontier = Frontier::default();
    let moved = |milliseconds| {
        generator.take(&layout, &rules, &at(milliseconds), NonZeroU32::MIN).unwrap();
        frontier.keep_up(&generator, &layout);
        frontier.position()
    };
    assert_eq!(moved(0), Position::ZERO, "nobody reads");
    let told = frontier.publish(&generator).position;
    assert_eq!(moved(49), told);
    let generation = generator.generation();
    assert_eq!(moved(50), Position(layout.position_at(at(50)).0 + 1));
    assert!(generator.generation() > generation);
}

#[test]
fn the_first_position_of_a_term_that_issued_nothing_is_not_told() {
    let layout: Layout = "41/5/5/12 epoch=2020-01-01".parse().unwrap();
    let (generator, frontier) = (Generator::default(), Frontier::default());
    generator.begin(NodeBits(0), Position(1 << 20), layout.end_position());
    assert_eq!(frontier.publish(&generator), NextPosition { position: Position::ZERO, term: None });
}
