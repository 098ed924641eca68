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
    EndedTransaction, EndedTransactions, Frontier, OpenTransaction, SnapshotXids,
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

/// A server with one writer. The writer's session has positions left from an earlier transaction.
struct Server {
    generator: Generator,
    frontier: Frontier,
    open: OpenTransaction,
    ended: Mutex<EndedTransactions>,
    /// Whether other sessions see the writer's row.
    visible: AtomicBool,
}

impl Server {
    fn new() -> Self {
        let generator = Generator::default();
        generator.begin(NodeBits(0), Position(8), layout().end_position());
        let room = Box::leak(Box::new([EndedTransaction::default(); 2]));
        Self {
            generator,
            frontier: Frontier::default(),
            open: OpenTransaction::default(),
            ended: Mutex::new(EndedTransactions::new(room)),
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
        self.ended.lock().unwrap().record(EndedTransaction { xid: XID, first, database: DATABASE });
        self.open.clear();
        position
    }

    /// Runs a statement, which takes its snapshot and then reads the safe position. Returns whether the statement sees the row, and
    /// the safe position.
    fn read(&self) -> (bool, Position) {
        let sees = self.visible.load(Ordering::Acquire);
        let snapshot = SnapshotXids::new(XID + 1, if sees { vec![] } else { vec![XID] });
        let next = self.frontier.publish(&self.generator).position;
        let open = self.open.first_in(DATABASE);
        let mut found = snapshot.room();
        let (recorded, dropped) = self.ended.lock().unwrap().unseen_by(&snapshot, DATABASE, &mut found);
        assert_eq!(snapshot.unknown(dropped, &found), Some(vec![]));
        (sees, [open, recorded].into_iter().flatten().fold(next, Position::min))
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
        assert!(sees || position >= safe, "{position:?} is lost below {safe:?}");
    }
    let (sees, safe) = server.read();
    assert!(sees && safe > position, "{position:?} is not read below {safe:?}");
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
