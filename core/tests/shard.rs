//! The ids that belong to a shard. Calls for a shard take only these ids.

use proptest::prelude::*;
use snowflake_ids_core::ids::shard::MAX_MODULUS;
use snowflake_ids_core::{
    Block, Cause, Clock, Drift, Explain, Field, Generator, GeneratorError, Kind, Layout, NodeBits, Position,
    PositionRange, Rules, SequenceStart, Shard, ShardError, TakenPositions, Tick, UnixMicros,
};
use std::cell::Cell;
use std::num::NonZeroU32;

const ONE: NonZeroU32 = NonZeroU32::MIN;

fn shard(text: &str) -> Shard {
    text.parse().unwrap()
}

fn layout() -> Layout {
    "41/5/5/12".parse().unwrap()
}

/// A generator in its first term, with all positions reserved.
fn begun(layout: &Layout, node_bits: u64) -> Generator {
    let generator = Generator::default();
    generator.begin(NodeBits(node_bits), Position(0), layout.end_position());
    generator
}

fn rules(max_drift: u64) -> Rules {
    Rules { max_drift, start: SequenceStart::Zero }
}

fn id_of(layout: &Layout, taken: &TakenPositions) -> i64 {
    layout.id(taken.positions.from, taken.node_bits).cast_signed()
}

/// Hashes computed by Postgres 15, for ids of both signs and beyond 32 bits.
#[test]
fn the_hash_is_the_servers() {
    const HASHES: [(i64, u64); 10] = [
        (0, 901_916_981_443_598_768),
        (1, 11_274_504_255_086_170_040),
        (-1, 288_437_243_775_528_869),
        (42, 12_669_485_132_091_644_514),
        (4_294_967_296, 11_274_504_255_086_170_040),
        (2_147_483_648, 10_244_051_894_435_199_606),
        (-2_147_483_649, 17_701_988_066_039_669_119),
        (9_223_372_036_854_775_807, 10_244_051_894_435_199_606),
        (-9_223_372_036_854_775_808, 17_701_988_066_039_669_119),
        (831_234_567_890_123_456, 15_030_162_811_907_720_663),
    ];
    for (id, hash) in HASHES {
        for modulus in [1, 2, 3, 7, 16, 1_000, 1_024, 65_535, 65_536] {
            let remainder = (hash % modulus).cast_signed();
            assert!(Shard::new(modulus.cast_signed(), remainder).unwrap().fits(id), "{id} modulo {modulus}");
        }
    }
}

#[test]
fn every_id_is_of_one_shard() {
    for id in (0..10_000).map(|n| n * 987_654_321_987_i64) {
        let shards = (0..16).filter(|remainder| Shard::new(16, *remainder).unwrap().fits(id));
        assert_eq!(shards.count(), 1, "{id}");
    }
}

#[test]
fn a_shard_is_read_as_remainder_and_modulus() {
    assert_eq!(shard("3/16"), Shard::new(16, 3).unwrap());
    assert_eq!(shard(" 3 / 16 ").to_string(), "3/16");
    assert!(shard("0/1").is_whole() && !shard("0/2").is_whole());
    for text in ["", "3", "3/", "/16", "3/16/2", "-1/16", "+1/16", "3 16", "x/16", "1.0/2"] {
        let error = text.parse::<Shard>().unwrap_err();
        assert!(matches!(error, ShardError::Syntax { .. }), "{text}: {error:?}");
    }
    assert_eq!("16/16".parse::<Shard>(), Err(ShardError::Remainder { modulus: 16, remainder: 16 }));
    assert_eq!("0/0".parse::<Shard>(), Err(ShardError::Modulus(0)));
    assert_eq!("0/99999999999999999999".parse::<Shard>(), Err(ShardError::Modulus(i64::MAX)));
    assert_eq!(Shard::new(65_537, 0), Err(ShardError::Modulus(65_537)));
    assert_eq!(Shard::new(4, -1), Err(ShardError::Remainder { modulus: 4, remainder: -1 }));
    assert_eq!(ShardError::Modulus(0).kind(), Kind::BadArgument);
}

#[test]
fn a_tick_has_an_id_for_each_shard() {
    let javascript = "javascript".parse().unwrap();
    assert_eq!(shard("0/512").check_layout(&javascript), Ok(()));
    assert_eq!(shard("0/513").check_layout(&javascript), Err(ShardError::Room { modulus: 513, room: 512 }));
}

#[test]
fn the_first_that_fits_is_taken_and_what_is_before_it_used_up() {
    let (layout, shard) = (layout(), shard("3/16"));
    let generator = begun(&layout, 0);
    let at = layout.instant(Tick(100));
    let first = (0..).map(|n| layout.first_of(Tick(100)).0 + n).map(Position);
    let mut fitting = first.filter(|position| shard.fits_at(&layout, NodeBits(0), *position));
    for _ in 0..1_000 {
        let taken = generator.take_fitting(&layout, &rules(1_000_000), &at, ONE, &shard).unwrap();
        assert_eq!(taken.positions.count(), 1);
        assert_eq!(Some(taken.positions.from), fitting.next());
        assert_eq!(generator.next().0, taken.positions.to.0);
    }
    assert!(generator.snapshot().full_ticks >= 3, "{:?}", generator.snapshot());
}

#[test]
fn a_block_holds_as_many_that_fit_as_are_wanted_on_average() {
    let (layout, shard) = (layout(), shard("3/16"));
    let generator = begun(&layout, 0);
    let at = layout.instant(Tick(100));
    let want = NonZeroU32::new(100).unwrap();
    let mut taken = generator.take_fitting(&layout, &rules(1_000_000), &at, want, &shard).unwrap();
    assert_eq!(taken.positions.count(), 99 * 16 + 1);
    let mut ids = 0;
    while let Some(position) = taken.positions.take_first_fitting(&layout, taken.node_bits, &shard) {
        assert!(shard.fits_at(&layout, taken.node_bits, position));
        ids += 1;
    }
    assert!((50..200).contains(&ids), "{ids}");
}

#[test]
fn what_does_not_fit_below_the_drift_and_the_high_water_mark_is_not_taken() {
    let layout: Layout = "41/5/5/2".parse().unwrap();
    let (at, shard) = (layout.instant(Tick(100)), shard("0/4"));
    let generator = begun(&layout, 0);
    let mut ids = 0;
    let error = loop {
        match generator.take_fitting(&layout, &rules(10_000), &at, ONE, &shard) {
            Ok(taken) => assert!(layout.tick_of(taken.positions.from) <= Tick(110)),
            Err(error) => break error,
        }
        ids += 1;
    };
    assert!(
        ids > 3 && matches!(error, GeneratorError::Drift(Drift { cause: Cause::Demand, .. })),
        "{error:?}"
    );
    // A refused call uses up nothing.
    let next = generator.next();
    generator.take_fitting(&layout, &rules(10_000), &at, ONE, &shard).unwrap_err();
    assert_eq!(generator.next(), next);

    for reserved in 20..60 {
        let limit = Position(layout.first_of(Tick(100)).0 + reserved);
        let generator = Generator::default();
        generator.begin(NodeBits(0), Position(0), limit);
        let error = loop {
            match generator.take_fitting(&layout, &rules(1_000_000), &at, ONE, &shard) {
                Ok(taken) => assert!(taken.positions.to <= limit),
                Err(error) => break error,
            }
        };
        assert_eq!(error, GeneratorError::Unreserved);
        // The high-water mark is next raised from this position on. The position must be the limit, because the raise may be smaller
        // than the distance from an earlier position to the next fitting position.
        assert_eq!(generator.next(), limit);
    }
    generator.close();
    let error = generator.take_fitting(&layout, &rules(1_000_000), &at, ONE, &shard).unwrap_err();
    assert_eq!(error, GeneratorError::Unreserved);
}

#[test]
fn the_end_of_the_layout_is_the_end_of_its_shards() {
    let layout: Layout = "8/5/5/2".parse().unwrap();
    let generator = begun(&layout, 0);
    let at = layout.last_instant();
    let error = loop {
        match generator.take_fitting(&layout, &rules(1_000_000), &at, ONE, &shard("0/4")) {
            Ok(taken) => assert!(taken.positions.to <= layout.end_position()),
            Err(error) => break error,
        }
    };
    assert_eq!(error, GeneratorError::Exhausted { last: layout.last_instant() });
}

/// A clock that lets another node begin a term, at its first or second reading.
struct Interrupted<'a> {
    generator: &'a Generator,
    layout: Layout,
    node_bits: u64,
    readings: Cell<u32>,
}

impl Clock for Interrupted<'_> {
    fn now(&self) -> UnixMicros {
        let readings = self.readings.replace(self.readings.get() + 1);
        if readings == 1 {
            let next = self.generator.close();
            self.generator.begin(NodeBits(self.node_bits), next, self.layout.end_position());
        }
        self.layout.instant(Tick(100))
    }
}

/// Whether an id fits depends on the bits of the node that issues the id.
#[test]
fn an_id_fits_with_the_bits_of_the_node_that_issues_it() {
    let (layout, shard) = (layout(), shard("3/16"));
    for node in 1..20 {
        let generator = begun(&layout, 0);
        let node_bits = node << layout.widths().sequence;
        let clock = Interrupted {
            generator: &generator,
            layout,
            node_bits,
            readings: Cell::new(u32::from(node % 2 == 0)),
        };
        for _ in 0..3 {
            let taken = generator.take_fitting(&layout, &rules(1_000_000), &clock, ONE, &shard).unwrap();
            assert!(shard.fits(id_of(&layout, &taken)), "{taken:?}");
        }
    }
}

#[test]
fn a_block_gives_only_what_fits_and_looks_at_the_clock_as_often() {
    let (layout, shard) = (layout(), shard("5/32"));
    let block = Block::empty();
    let positions = PositionRange { from: Position(1_000), to: Position(2_000) };
    block.fill(TakenPositions { positions, node_bits: NodeBits(0) }, 7);
    let fits = |position| shard.fits_at(&layout, NodeBits(0), position);
    let (mut got, mut looks) = (Vec::new(), 1);
    loop {
        match block.pop_fitting(7, fits) {
            Some(position) => got.push(position),
            None if block.renew(7, |_| true) => looks += 1,
            None => break,
        }
    }
    let expected: Vec<_> = (1_000..2_000).map(Position).filter(|position| fits(*position)).collect();
    assert_eq!(got, expected);
    assert!(looks >= 1_000 / Block::SPAN, "{looks}");
    block.fill(TakenPositions { positions, node_bits: NodeBits(0) }, 7);
    assert_eq!(block.pop_fitting(8, fits), None, "of another era");
}

prop_compose! {
    fn shards()(modulus in 1..=i64::from(MAX_MODULUS).min(64), any in any::<u32>()) -> Shard {
        Shard::new(modulus, i64::from(any) % modulus).unwrap()
    }
}

proptest! {
    /// Sessions with and without a shard take ids in turns, from any layout. Each id fits, no id comes twice, and no id is
    /// beyond the drift.
    #[test]
    fn ids_fit_grow_and_keep_to_the_drift(
        shard in shards(), sequence in 1_u8..14, first in any::<bool>(), node in 0_u64..8,
        calls in prop::collection::vec((0_u64..40, 1_u32..20, any::<bool>()), 1..80),
    ) {
        let text = if first { format!("30/{sequence}s/0/3") } else { format!("30/0/3/{sequence}") };
        let layout: Layout = text.parse().unwrap();
        let node_bits = layout.place(snowflake_ids_core::Node { datacenter: 0, worker_id: u32::try_from(node).unwrap(), rollback: 0 }).unwrap();
        let generator = begun(&layout, node_bits.0);
        let (mut after, mut tick) = (Position(0), 1_000);
        for (later, want, fitting) in calls {
            tick += later;
            let (at, want) = (layout.instant(Tick(tick)), NonZeroU32::new(want).unwrap());
            let taken = if fitting {
                generator.take_fitting(&layout, &rules(50_000), &at, want, &shard)
            } else {
                generator.take(&layout, &rules(50_000), &at, want)
            };
            let Ok(taken) = taken else { continue };
            prop_assert!(taken.positions.from >= after && taken.positions.count() > 0);
            prop_assert!(layout.tick_of(Position(taken.positions.to.0 - 1)) <= Tick(tick + 50));
            prop_assert!(taken.positions.count() <= u64::from(want.get()) * shard.modulus());
            prop_assert!(!fitting || shard.fits(id_of(&layout, &taken)));
            after = taken.positions.to;
            prop_assert_eq!(generator.next(), after);
        }
        prop_assert!(layout.max(Field::Sequence) > 0);
    }
}
