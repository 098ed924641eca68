//! Safe positions to read from: records of ended transactions, and the answers of one transaction.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use snowflake_ids_core::generator::safe_position::{
    Answers, EndedTransaction, EndedTransactions, Frontier, Recorded, SnapshotTooOld, SnapshotXids,
};
use snowflake_ids_core::generator::snowflake::NextPosition;
use snowflake_ids_core::guard::{Guard, leave_out};
use snowflake_ids_core::{Generator, Layout, NodeBits, Position, UnixMicros};

const DATABASE: u32 = 5;

fn needs(rule: Guard, holds: impl Fn() -> bool) {
    assert!(holds(), "it does not hold with {rule:?}");
    leave_out(Some(rule));
    let still = holds();
    leave_out(None);
    assert!(!still, "it holds without {rule:?}, too");
}

/// A record with room for some, of transactions whose announcements are a tenth of their xids.
fn recorded(room: usize, xids: impl IntoIterator<Item = u64>) -> EndedTransactions {
    let mut ended = EndedTransactions::new(vec![EndedTransaction::default(); room].leak());
    for xid in xids {
        ended.record(EndedTransaction { xid, first: Position(xid / 10), database: DATABASE });
    }
    ended
}

fn snapshot(xmax: u64, running: &[u64]) -> SnapshotXids {
    SnapshotXids::new(xmax, running.to_vec())
}

#[test]
fn transactions_that_ended_after_the_snapshot_count() {
    let ended = recorded(8, [100, 110, 120]);
    let first = |snapshot: &SnapshotXids, database| ended.unseen_by(snapshot, database).unwrap().first;
    assert_eq!(first(&snapshot(130, &[]), DATABASE), None, "it sees all of them");
    assert_eq!(first(&snapshot(130, &[110]), DATABASE), Some(Position(11)));
    assert_eq!(first(&snapshot(110, &[]), DATABASE), Some(Position(11)), "one that began later is not seen");
    assert_eq!(first(&snapshot(130, &[110, 100]), DATABASE), Some(Position(10)));
    assert_eq!(first(&snapshot(130, &[110]), 6), None, "it is of another database");
}

#[test]
fn a_transaction_that_was_dropped_may_be_one_that_the_snapshot_does_not_see() {
    needs(Guard::DroppedKnown, || {
        let ended = recorded(2, [100, 110, 120]);
        let unknown = ended.unseen_by(&snapshot(130, &[100]), DATABASE).map(|recorded| recorded.unknown);
        unknown == Some(vec![100]) && ended.unseen_by(&snapshot(100, &[]), DATABASE).is_none()
    });
    // One that is younger than all that were dropped would be there.
    let ended = recorded(2, [100, 110, 120]);
    assert_eq!(
        ended.unseen_by(&snapshot(130, &[105]), DATABASE),
        Some(Recorded { first: None, unknown: vec![] })
    );
}

#[test]
fn a_transaction_that_was_prepared_before_the_start_is_unknown() {
    let unknown =
        |ended: &EndedTransactions| ended.unseen_by(&snapshot(130, &[50]), DATABASE).unwrap().unknown;
    assert_eq!(unknown(&recorded(8, [])), [50]);
    assert_eq!(unknown(&recorded(8, [100])), [50]);
}

fn answer(answers: &mut Answers<i32>, snapshot: &SnapshotXids, new: i32) -> Result<i32, SnapshotTooOld> {
    answers.get(snapshot, || Ok(new))
}

#[test]
fn a_snapshot_has_one_answer() {
    needs(Guard::OneAnswer, || {
        let mut answers = Answers::new();
        answer(&mut answers, &snapshot(100, &[90]), 1) == Ok(1)
            // A prepared transaction's xid may be there twice.
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
    let generator = Generator::new();
    let at = |milliseconds: i64| layout.position_at(UnixMicros(1_770_000_000_000_000 + milliseconds * 1_000));
    let frontier = Frontier::default();
    let moved = |milliseconds| {
        generator.begin(NodeBits(0), at(milliseconds), layout.end_position());
        frontier.keep_up(&generator, &layout);
        frontier.position()
    };
    assert_eq!(moved(0), Position::ZERO, "nobody reads");
    frontier.publish(&generator);
    assert_eq!(moved(49), at(0));
    let generation = generator.generation();
    assert_eq!(moved(50), at(50));
    assert!(generator.generation() > generation);
}
