//! Costs of the algorithms alone, without Postgres and without a system clock.

#![allow(clippy::expect_used, reason = "a benchmark of something that fails must stop")]
#![allow(missing_docs, reason = "criterion_group makes a public function")]

use criterion::{Criterion, criterion_group, criterion_main};
use snowflake_ids_core::{
    Block, Clock, Format, Generator, Layout, Node, NodeBits, Position, Rules, SequenceStart, TakenPositions,
    UnixMicros,
};
use std::cell::Cell;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// An instant that every layout used here can represent.
const NOW: UnixMicros = UnixMicros(1_764_590_400_000_000);
const HOUR: u64 = 3_600_000_000;
const RULES: Rules = Rules { max_drift: HOUR, start: SequenceStart::Zero };
const ONE: NonZeroU32 = NonZeroU32::MIN;
const BLOCK: NonZeroU32 = ONE.saturating_add(63);
const NODE: Node = Node { datacenter: 1, worker_id: 7, rollback: 0 };

/// A clock that advances at every reading.
struct Advancing {
    at: Cell<i64>,
    step: i64,
}

impl Advancing {
    fn by(step: i64) -> Self {
        Self { at: Cell::new(NOW.0), step }
    }
}

impl Clock for Advancing {
    fn now(&self) -> UnixMicros {
        self.at.set(self.at.get() + self.step);
        UnixMicros(self.at.get())
    }
}

/// A generator that may issue up to the layout's end.
fn generator(layout: &Layout) -> Generator {
    let generator = Generator::default();
    generator.begin(NodeBits(0), Position(0), layout.end_position());
    generator
}

fn take(generator: &Generator, layout: &Layout, clock: &impl Clock, want: NonZeroU32) -> TakenPositions {
    generator.take(layout, &RULES, clock, want).expect("nothing is refused within an hour of drift")
}

/// Measures the taking of positions at rates that lead to different code paths.
fn takes(c: &mut Criterion) {
    let layout = Layout::default();
    let mut group = c.benchmark_group("take");
    group.bench_function("fresh tick each", |b| {
        let (generator, clock) = (generator(&layout), Advancing::by(1_000));
        b.iter(|| take(&generator, &layout, &clock, ONE));
    });
    group.bench_function("same tick", |b| {
        // One call per microsecond makes a thousand calls per tick. A tick has room for 4096 ids.
        let (generator, clock) = (generator(&layout), Advancing::by(1));
        b.iter(|| take(&generator, &layout, &clock, ONE));
    });
    group.bench_function("borrowed ticks", |b| {
        // This clock never advances, like the system clock in a very fast loop. After the first tick is full, each call takes a
        // position ahead of the clock.
        let generator = generator(&layout);
        b.iter(|| take(&generator, &layout, &NOW, ONE));
    });
    group.bench_function("out of a block of 64", |b| {
        let (generator, block) = (generator(&layout), Block::empty());
        b.iter(|| {
            block.pop(0).unwrap_or_else(|| {
                let mut taken = take(&generator, &layout, &NOW, BLOCK);
                let first = taken.positions.take_first();
                block.fill(taken, 0);
                first
            })
        });
    });
    group.finish();
}

/// Measures one session's call while a second thread calls without pause.
fn contended(c: &mut Criterion) {
    let layout = Layout::default();
    let generator = generator(&layout);
    let stop = AtomicBool::new(false);
    let call = |clock: &Advancing| take(&generator, &layout, clock, ONE);
    thread::scope(|scope| {
        scope.spawn(|| {
            let clock = Advancing::by(1);
            while !stop.load(Ordering::Relaxed) {
                black_box(call(&clock));
            }
        });
        let clock = Advancing::by(1);
        c.bench_function("take/contended by a second thread", |b| b.iter(|| call(&clock)));
        stop.store(true, Ordering::Relaxed);
    });
}

fn ids(c: &mut Criterion) {
    let layout = Layout::default();
    let node_bits = layout.place(NODE).expect("the node fits");
    let id = layout.compose(NOW, NODE, 5).expect("the parts fit").cast_signed();
    let mut group = c.benchmark_group("id");
    group.bench_function("encode", |b| {
        b.iter(|| layout.id(Position(black_box(id.cast_unsigned()) >> 10), node_bits));
    });
    group.bench_function("decode", |b| b.iter(|| layout.decode(black_box(id))));
    group.bench_function("compose", |b| b.iter(|| layout.compose(black_box(NOW), NODE, 5)));
    group.bench_function("min_id", |b| b.iter(|| layout.min_id(black_box(NOW))));
    group.finish();
}

fn texts(c: &mut Criterion) {
    let id = i64::MAX / 3;
    let mut group = c.benchmark_group("text");
    for format in Format::ALL {
        let text = format.encode(id, true).expect("the id is not negative");
        let name = format.name();
        group.bench_function(format!("encode {name}"), |b| b.iter(|| format.encode(black_box(id), true)));
        group.bench_function(format!("decode {name}"), |b| b.iter(|| format.decode(black_box(&text))));
    }
    group.bench_function("parse a layout", |b| b.iter(|| black_box("41/5/5/12").parse::<Layout>()));
    group.finish();
}

criterion_group!(core, takes, contended, ids, texts);
criterion_main!(core);
