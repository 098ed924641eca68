//! Properties over all layouts, ids and clocks.

use proptest::prelude::*;
use snowflake_ids_core::{
    Block, Field, Format, Generator, Layout, Node, NodeBits, Order, Position, PositionRange, Rules,
    SequenceStart, TakenPositions, Tick, TickError, UnixMicros, Widths,
};
use std::num::NonZeroU32;

const UNITS: [u64; 12] =
    [1, 8, 64, 100, 500, 1_000, 1_600, 10_000, 500_000, 1_000_000, 2_000_000, 86_400_000_000];

prop_compose! {
    /// Any valid layout, from the narrowest to the widest.
    fn layouts()(
        ticks in 1_u8..=45, datacenter in 0_u8..=31, worker_id in 0_u8..=31, rollback in 0_u8..=8, sequence in 1_u8..=31,
        first in any::<bool>(), unit in prop::sample::select(&UNITS[..]), epoch in 0_i64..=4_102_444_800_000,
    ) -> Option<Layout> {
        let order = if first { Order::SequenceFirst } else { Order::SequenceLast };
        let widths = Widths { ticks, datacenter, worker_id, rollback, sequence };
        Layout::new(widths, order, unit, UnixMicros(epoch * 1_000)).ok()
    }
}

pub fn valid_layouts() -> impl Strategy<Value = Layout> {
    layouts().prop_filter_map("widths add up", |layout| layout)
}

/// A value that fits the field, chosen by `any`.
fn part(layout: &Layout, field: Field, any: u64) -> u32 {
    u32::try_from(any % (layout.max(field) + 1)).unwrap()
}

/// A node with any values that its fields can hold.
pub fn node(layout: &Layout, any: u64) -> Node {
    Node {
        datacenter: part(layout, Field::Datacenter, any),
        worker_id: part(layout, Field::Worker, any >> 20),
        rollback: part(layout, Field::Rollback, any >> 40),
    }
}

proptest! {
    #[test]
    fn text_reads_back_as_the_same_layout(layout in valid_layouts()) {
        prop_assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[0-9rs/a-z =:.TZ-]{0,40}") {
        let _ = text.parse::<Layout>();
    }

    #[test]
    fn compose_and_decode_are_each_others_reverse(
        layout in valid_layouts(), tick in any::<u64>(), who in any::<u64>(), sequence in any::<u64>(), within in any::<u64>(),
    ) {
        let tick = tick % (layout.max(Field::Ticks) + 1);
        let node = node(&layout, who);
        let sequence = part(&layout, Field::Sequence, sequence);
        let begins = layout.instant(Tick(tick));
        let at = UnixMicros(begins.0 + (within % layout.unit()).cast_signed());
        let id = layout.compose(at, node, sequence).unwrap();
        prop_assert!(id <= layout.largest_id());
        let decoded = layout.decode(id.cast_signed()).unwrap();
        prop_assert_eq!(decoded.timestamp, begins);
        prop_assert_eq!((decoded.datacenter_id, decoded.worker_id, decoded.rollback), (node.datacenter, node.worker_id, node.rollback));
        prop_assert_eq!(decoded.sequence, sequence);
        prop_assert!(layout.min_id(at).unwrap() <= id && id <= layout.max_id(at).unwrap());
        prop_assert_eq!(layout.id(Position(tick << layout.widths().sequence | u64::from(sequence)), layout.place(node).unwrap()), id);
    }

    #[test]
    fn ids_sort_like_their_ticks(layout in valid_layouts(), a in any::<u64>(), b in any::<u64>(), who in any::<u64>()) {
        let ticks = [a, b].map(|any| any % (layout.max(Field::Ticks) + 1));
        prop_assume!(ticks[0] < ticks[1]);
        let [earlier, later] = ticks.map(|tick| layout.instant(Tick(tick)));
        prop_assert!(layout.max_id(earlier).unwrap() < layout.min_id(later).unwrap());
        let last = u32::try_from(layout.max(Field::Sequence)).unwrap();
        let node = node(&layout, who);
        prop_assert!(layout.compose(earlier, node, last).unwrap() < layout.compose(later, node, 0).unwrap());
    }

    #[test]
    fn only_instants_within_the_layout_have_a_tick(layout in valid_layouts(), any in any::<i64>()) {
        for at in [any, i64::MIN, i64::MAX, layout.epoch().0 - 1, layout.last_instant().0].map(UnixMicros) {
            match layout.tick(at) {
                Err(TickError::BeforeEpoch { .. }) => prop_assert!(at < layout.epoch()),
                Err(TickError::AfterLast { .. }) => prop_assert!(at > layout.last_instant()),
                Ok(_) => prop_assert!(layout.epoch() <= at && at <= layout.last_instant()),
            }
        }
    }

    #[test]
    fn different_nodes_never_share_an_id(layout in valid_layouts(), a in any::<[u64; 3]>(), b in any::<[u64; 3]>()) {
        let made = [a, b].map(|[who, tick, sequence]| {
            let node = node(&layout, who);
            let at = layout.instant(Tick(tick % (layout.max(Field::Ticks) + 1)));
            (node, layout.compose(at, node, part(&layout, Field::Sequence, sequence)).unwrap())
        });
        prop_assert!(made[0].0 == made[1].0 || made[0].1 != made[1].1);
    }

    #[test]
    fn text_forms_read_back_and_sort_like_ids(a in 0..=i64::MAX, b in 0..=i64::MAX, format in prop::sample::select(&Format::ALL[..])) {
        for fixed in [false, true] {
            prop_assert_eq!(format.decode(&format.encode(a, fixed).unwrap()), Ok(a));
        }
        let [x, y] = [a, b].map(|id| format.encode(id, true).unwrap());
        prop_assert_eq!(x.len(), y.len());
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
    }

    #[test]
    fn no_text_makes_a_format_panic(text in "\\PC{0,20}", format in prop::sample::select(&Format::ALL[..])) {
        let _ = format.decode(&text);
    }

    /// Positions always grow, whatever the clock does and however much is requested. Each position stays within the drift of
    /// the clock reading that allowed it.
    #[test]
    fn positions_grow_and_stay_within_the_drift(
        layout in valid_layouts(),
        max_drift in prop::sample::select(&[0_u64, 1_000, 60_000_000][..]),
        start in prop::sample::select(&[SequenceStart::Zero, SequenceStart::Random, SequenceStart::Rotate][..]),
        calls in prop::collection::vec((any::<u64>(), 1_u32..100_000), 1..60),
    ) {
        let generator = Generator::default();
        generator.begin(NodeBits(0), Position(0), layout.end_position());
        let rules = Rules { max_drift, start };
        let span = (layout.last_instant().0 - layout.epoch().0).cast_unsigned();
        let mut end = Position(0);
        for (clock, want) in calls {
            let at = UnixMicros(layout.epoch().0 + (clock % (span + 1)).cast_signed());
            let Ok(TakenPositions { positions: PositionRange { from, to }, .. }) = generator.take(&layout, &rules, &at, NonZeroU32::new(want).unwrap()) else { continue };
            prop_assert!(from >= end, "{from:?} was issued before {end:?}");
            prop_assert!(from < to && to.0 - from.0 <= u64::from(want));
            prop_assert!(to <= layout.end_position());
            let last = layout.instant_of(Position(to.0 - 1));
            prop_assert!(last.0 - at.0 <= max_drift.cast_signed(), "{last} at {at}");
            prop_assert!(layout.tick_of(from) >= layout.tick(at).unwrap(), "behind the clock");
            end = to;
        }
    }

    /// A block gives its positions once and in order, whatever the sizes of the requests.
    #[test]
    fn a_block_gives_each_position_once(from in 0_u64..1 << 60, count in 1_u64..1000, asks in prop::collection::vec(0_u64..50, 1..100)) {
        let block = Block::empty();
        prop_assert_eq!(block.pop(0), None);
        block.fill(TakenPositions { positions: PositionRange { from: Position(from), to: Position(from + count) }, node_bits: NodeBits(0) }, 0);
        let mut expected = Position(from);
        for ask in asks {
            let pop = || match ask {
                0 => block.pop(0).map(|at| PositionRange { from: at, to: Position(at.0 + 1) }),
                _ => block.pop_many(ask, 0),
            };
            let got = pop().or_else(|| if block.renew(0, |_| true) { pop() } else { None });
            let Some(got) = got else { prop_assert_eq!(expected, Position(from + count)); break };
            prop_assert_eq!(got.from, expected);
            prop_assert!(got.count() <= ask.max(1));
            expected = got.to;
        }
        prop_assert!(expected <= Position(from + count));
    }
}
