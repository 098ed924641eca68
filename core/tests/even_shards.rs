//! Ids made at a low rate, so that each is the first id of its tick. The tests check how evenly `id % n` spreads them over shards.

use snowflake_ids_core::{Generator, Layout, Node, Position, Rules, SequenceStart, Tick, UnixMicros};
use std::num::NonZeroU32;

const IDS: u32 = 1 << 18;
/// The first tick.
const START: u64 = 200_000_000_000;

/// Ticks between ids: from one id per tick to one id per minute.
const PACES: [u64; 8] = [1, 2, 7, 10, 16, 1_000, 1_024, 60_000];

/// Numbers of shards, each with its limit for chi-square. A fair choice exceeds the limit once in 10^9 runs. The limits are the
/// upper quantiles for 3, 9 and 15 degrees of freedom.
const LIMITS: [(u32, f64); 3] = [(4, 44.84), (10, 60.66), (16, 73.63)];

/// The ids that a generator issues. Each item of `asked` is a tick, and the number of ids requested at that tick.
fn ids(start: SequenceStart, asked: impl Iterator<Item = (u64, u32)>) -> Vec<u64> {
    let layout = Layout::default();
    let node_bits = layout.place(Node { worker_id: 5, ..Node::default() }).unwrap();
    let rules = Rules { max_drift: 0, start };
    let generator = Generator::default();
    generator.begin(node_bits, Position(0), layout.end_position());
    let take = |(tick, want)| {
        let clock: UnixMicros = layout.instant(Tick(tick));
        let taken = generator.take(&layout, &rules, &clock, NonZeroU32::new(want).unwrap()).unwrap();
        assert_eq!(taken.positions.count(), u64::from(want));
        (taken.positions.from.0..taken.positions.to.0)
            .map(move |position| layout.id(Position(position), node_bits))
    };
    asked.flat_map(take).collect()
}

/// Ids made one at a time, `pace` ticks apart.
fn slow(start: SequenceStart, pace: u64) -> Vec<u64> {
    ids(start, (0..u64::from(IDS)).map(|number| (START + number * pace, 1)))
}

fn rows(ids: &[u64], shards: u32) -> Vec<u32> {
    let mut rows = vec![0; shards.try_into().unwrap()];
    for id in ids {
        rows[usize::try_from(id % u64::from(shards)).unwrap()] += 1;
    }
    rows
}

/// Pearson's chi-square of the shards' row counts, compared with equal counts.
fn chi_square(rows: &[u32]) -> f64 {
    let fair = f64::from(rows.iter().sum::<u32>()) / f64::from(u32::try_from(rows.len()).unwrap());
    rows.iter().map(|&rows| (f64::from(rows) - fair).powi(2) / fair).sum()
}

#[test]
fn random_is_even_at_every_pace() {
    for pace in PACES {
        let ids = slow(SequenceStart::Random, pace);
        for (shards, limit) in LIMITS {
            let rows = rows(&ids, shards);
            assert!(chi_square(&rows) < limit, "an id every {pace} ticks: {rows:?}");
        }
    }
}

/// `rotate` serves the shards exactly in turn, if the number of shards divides the number of sequence numbers in a tick, and if
/// the rate leaves each tick half empty.
#[test]
fn rotate_serves_the_shards_in_turn_whatever_the_rate() {
    let bursts = (START..).zip([1, 5, 2, 30].into_iter().cycle()).take(10_000);
    let paces = PACES.map(|pace| slow(SequenceStart::Rotate, pace));
    for ids in paces.into_iter().chain([ids(SequenceStart::Rotate, bursts)]) {
        for pair in ids.windows(2) {
            assert_eq!((pair[0] + 1) % 16, pair[1] % 16, "{} is followed by {}", pair[0], pair[1]);
        }
    }
}

#[test]
fn zero_puts_every_id_on_one_shard() {
    for pace in PACES {
        let ids = slow(SequenceStart::Zero, pace);
        for shards in [4, 16] {
            let rows = rows(&ids, shards);
            assert_eq!(
                rows.iter().filter(|rows| **rows > 0).count(),
                1,
                "an id every {pace} ticks: {rows:?}"
            );
        }
    }
}

/// The limits detect a fault: if one shard has a tenth more rows than each other shard, chi-square exceeds the limit.
#[test]
fn a_slightly_favoured_shard_is_noticed() {
    for (shards, limit) in LIMITS {
        let mut rows = vec![IDS / shards; shards.try_into().unwrap()];
        rows[0] += rows[0] / 10;
        assert!(chi_square(&rows) > limit, "{shards} shards: {rows:?}");
    }
}
