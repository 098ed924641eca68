//! Concurrent readers and writers of a safe position, under every interleaving that loom finds.
//!
//! Run by `make loom`.

use super::model::model;
use super::without::fails_without;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use snowflake_ids_core::generator::block::Block;
use snowflake_ids_core::generator::safe_position::{
    EndedTransaction, EndedTransactions, Frontier, NextRecord, OpenTransaction, Record, SnapshotXids,
};
use snowflake_ids_core::guard::Guard;
use snowflake_ids_core::{Generator, Layout, NodeBits, Position, Rules, SequenceStart, Tick, UnixMicros};
use std::num::NonZeroU32;

const DATABASE: u32 = 5;
const XID: u64 = 100;

fn layout() -> Layout {
    "20/0/4/2 epoch=2020-01-01".parse().unwrap()
}

fn now() -> UnixMicros {
    layout().instant(Tick(2))
}

fn records(room: usize) -> EndedTransactions {
    EndedTransactions::new((0..room).map(|_| Record::default()).collect::<Vec<_>>().leak())
}

/// A server with one writer. The writer's session has positions left from an earlier transaction.
struct Server {
    generator: Generator,
    frontier: Frontier,
    open: OpenTransaction,
    ended: EndedTransactions,
    next_record: Mutex<NextRecord>,
    /// Whether other sessions see the writer's row.
    visible: AtomicBool,
}

impl Server {
    fn new() -> Self {
        let generator = Generator::default();
        generator.begin(NodeBits(0), Position(8), layout().end_position());
        Self {
            generator,
            frontier: Frontier::default(),
            open: OpenTransaction::default(),
            ended: records(2),
            next_record: Mutex::new(NextRecord::default()),
            visible: AtomicBool::new(false),
        }
    }

    fn take(&self, block: &Block) -> Position {
        let rules = Rules { max_drift: 1_000_000, start: SequenceStart::Zero };
        let generation = self.generator.generation();
        let taken = self.generator.take(&layout(), &rules, &now(), NonZeroU32::new(2).unwrap()).unwrap();
        block.fill(taken, generation);
        block.pop(generation).unwrap()
    }

    /// Runs a transaction that takes a position and commits a row with it.
    fn write(&self, block: &Block) -> Position {
        self.open.announce(&self.frontier, DATABASE);
        let position = block.pop(self.generator.generation()).unwrap_or_else(|| self.take(block));
        self.visible.store(true, Ordering::Release);
        let first = self.open.first().unwrap();
        let ended = EndedTransaction { xid: XID, first, database: DATABASE };
        self.ended.record(&mut self.next_record.lock().unwrap(), ended);
        self.open.clear();
        position
    }

    /// Runs a statement, which takes its snapshot and then reads the safe position. Returns whether the statement sees the row, and
    /// the safe position. Returns no position if the writer kept changing a record.
    fn read(&self) -> (bool, Option<Position>) {
        let sees = self.visible.load(Ordering::Acquire);
        let snapshot = SnapshotXids::new(XID + 1, if sees { vec![] } else { vec![XID] });
        let next = self.frontier.publish(&self.generator).position;
        let open = self.open.first_in(DATABASE);
        let Some(unseen) = self.ended.unseen_by(&snapshot, DATABASE) else { return (sees, None) };
        assert_eq!(snapshot.unknown(&unseen), Some(vec![]));
        (sees, Some([open, unseen.lowest].into_iter().flatten().fold(next, Position::min)))
    }
}

/// Runs a writer that has positions left in its block. At the same time, a reader runs this many statements. Fails if a reader
/// misses the writer's row below a safe position.
fn nothing_is_lost(statements: usize) {
    let server = Arc::new(Server::new());
    let writer = {
        let server = Arc::clone(&server);
        let block = Block::default();
        server.take(&block);
        thread::spawn(move || server.write(&block))
    };
    let read: Vec<_> = (0..statements).map(|_| server.read()).collect();
    let position = writer.join().unwrap();
    for (sees, safe) in read {
        assert!(sees || safe.is_none_or(|safe| position >= safe), "{position:?} is lost below {safe:?}");
    }
    let (sees, safe) = server.read();
    assert!(sees && safe.is_some_and(|safe| safe > position), "{position:?} is not read below {safe:?}");
}

#[test]
fn a_row_below_a_safe_position_is_seen() {
    model(|| nothing_is_lost(1));
}

#[test]
fn a_row_below_the_second_safe_position_is_seen() {
    model(|| nothing_is_lost(2));
}

/// Fails if other processes may see that a position was taken before they see the announcement.
#[test]
fn a_transaction_announces_itself_first() {
    fails_without(Guard::AnnouncedFirst, || nothing_is_lost(1));
}

/// Fails if a writer announces the new frontier, and then uses positions that it took under the old frontier.
#[test]
fn held_positions_are_stale_before_the_frontier_moves() {
    fails_without(Guard::FrontierStales, || nothing_is_lost(2));
}

/// Runs a commit that replaces the only record, while a reader copies it. Fails if the reader gets a mixture of both transactions, or
/// misses a transaction that it does not know to be dropped.
fn a_copy_is_whole() {
    let ended = Arc::new(records(1));
    let transaction = |xid| EndedTransaction { xid, first: Position(xid / 10), database: DATABASE };
    let mut next = NextRecord::default();
    ended.record(&mut next, transaction(XID));
    let writer = {
        let ended = Arc::clone(&ended);
        thread::spawn(move || ended.record(&mut next, transaction(2 * XID)))
    };
    if let Some(unseen) = ended.unseen_by(&SnapshotXids::new(XID, vec![]), DATABASE) {
        let [xid] = unseen.found[..] else { panic!("{unseen:?}") };
        assert_eq!(unseen.lowest, Some(Position(xid / 10)));
        assert!(xid == XID || unseen.dropped >= XID, "{unseen:?}");
    }
    writer.join().unwrap();
}

#[test]
fn a_record_is_copied_whole_while_a_commit_replaces_it() {
    model(a_copy_is_whole);
}

/// Fails if a reader does not check that the record stayed the same during the copy.
#[test]
fn a_record_that_changed_during_the_copy_is_not_used() {
    fails_without(Guard::WholeRecord, a_copy_is_whole);
}

/// Fails if the commit that replaces a record does not say so.
#[test]
fn a_record_is_known_to_be_dropped_before_it_is_replaced() {
    fails_without(Guard::DroppedKnown, a_copy_is_whole);
}
