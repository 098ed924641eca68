//! UUIDs of version 7: their bits, their order, and UUIDs that are refused.

use crate::props::{node, valid_layouts};
use proptest::prelude::*;
use snowflake_ids_core::{
    Explain, Field, Filler, IdOrUuid, Issued, Kind, Layout, Node, NodeBits, PRESETS, Position, Tick,
    UnixMicros, Uuid, UuidError,
};
use std::collections::{BTreeSet, HashSet};

fn layout(text: &str) -> Layout {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The UUID of a tick, node and sequence, with ones as its random bits.
fn uuid(layout: &Layout, tick: u64, node: Node, sequence: u64) -> Uuid {
    let position = Position(layout.first_of(Tick(tick)).0 | sequence);
    layout.uuid(Issued { position, node_bits: layout.place(node).unwrap() }, u128::MAX).unwrap()
}

const NODE: Node = Node { datacenter: 1, worker_id: 2, rollback: 0 };

#[test]
fn the_bits_are_where_the_rfc_has_them() {
    let layout = layout("41/5/5/12 epoch=2020-01-01");
    let uuid = uuid(&layout, 1_000, NODE, 0xabc);
    // 2020-01-01T00:00:01Z in milliseconds, version 7, the sequence as rand_a, the variant, the node in ten bits, ones.
    let millis = 1_577_836_801_000_u64;
    let rand_b = (0b10_u64 << 62) | (0b00001_00010_u64 << 52) | ((1 << 52) - 1);
    assert_eq!(uuid.0, u128::from(millis) << 80 | 0x7abc << 64 | u128::from(rand_b));
    assert_eq!(uuid.to_string(), "016f5e66-ebe8-7abc-822f-ffffffffffff");
    assert_eq!(uuid.digits(), *b"016f5e66ebe87abc822fffffffffffff");
    assert_eq!(uuid.bytes(), uuid.0.to_be_bytes());
    assert_eq!(uuid.timestamp(), Ok(UnixMicros(1_577_836_801_000_000)));
}

/// The example of RFC 9562, appendix A.6.
#[test]
fn the_time_of_any_version_7_is_read() {
    let uuid = Uuid(0x017F_22E2_79B0_7CC3_98C4_DC0C_0C07_398F);
    assert_eq!(uuid.to_string(), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    assert_eq!(uuid.timestamp().unwrap().to_string(), "2022-02-22T19:22:22Z");
}

#[test]
fn other_versions_are_refused() {
    let of_4 = Uuid(0x919108f7_52d1_4320_9bac_f847db4148a8);
    let error = of_4.timestamp().unwrap_err();
    assert_eq!(error, UuidError::OtherVersion { uuid: of_4 });
    assert_eq!(error.kind(), Kind::BadArgument);
    assert_eq!(error.to_string(), "uuid 919108f7-52d1-4320-9bac-f847db4148a8 is not of version 7");
    assert_eq!(
        error.detail().unwrap(),
        "The uuid is of version 4. Only version 7 contains a time and a node."
    );
    // Microsoft's variant.
    let of_others = Uuid(0x017F_22E2_79B0_7CC3_D8C4_DC0C_0C07_398F);
    assert_eq!(
        of_others.timestamp().unwrap_err().detail().unwrap(),
        "The variant of the uuid is not the variant of RFC 9562."
    );
    assert!(Layout::default().decode_uuid(of_4).is_err());
    assert!(Layout::default().decode_uuid(of_others).is_err());
}

#[test]
fn what_no_node_of_a_layout_made_is_refused() {
    let seconds = layout("31/0/10/22 unit=1s epoch=2019-12-24T16:00:00Z");
    let of_milliseconds = uuid(&Layout::default(), 1_234, NODE, 0);
    let error = seconds.decode_uuid(of_milliseconds).unwrap_err();
    assert_eq!(error, UuidError::Foreign { uuid: of_milliseconds, layout: seconds });
    assert_eq!(
        error.detail().unwrap(),
        "In this layout, no tick of the millisecond 2020-01-01T00:00:01.234Z has the tick number of the uuid."
    );
    assert_eq!(error.kind(), Kind::BadArgument);
    assert!(error.hint().is_some());
    // The UUIDs lie before the first tick, after the last tick, or in a tick that their millisecond does not have.
    assert!(layout("41/5/5/12 epoch=2021-01-01").decode_uuid(of_milliseconds).is_err());
    assert!(layout("10/5/5/12 epoch=2019-01-01").decode_uuid(of_milliseconds).is_err());
    let tenths = layout("50/0/3/10 unit=100us epoch=2020-01-01");
    let last = uuid(&tenths, 9, Node::default(), 1_023);
    assert_eq!(tenths.decode_uuid(last).unwrap().sequence, 1_023);
    assert!(tenths.decode_uuid(Uuid(last.0 | 0b1111 << 72)).is_err());
}

#[test]
fn after_the_last_millisecond_there_are_none() {
    let layout = layout("52/0/1/1 epoch=1970-01-01");
    let issued = |tick| Issued { position: layout.first_of(Tick(tick)), node_bits: NodeBits(0) };
    let last = layout.uuid(issued((1 << 48) - 1), 0).unwrap();
    assert_eq!(last.timestamp().unwrap().0, ((1 << 48) - 1) * 1_000);
    let error = layout.uuid(issued(1 << 48), 0).unwrap_err();
    assert_eq!((error, error.kind()), (UuidError::TooLate, Kind::Exhausted));
}

/// All positions of two ticks of each preset, for the smallest node, the largest, and one between.
#[test]
fn no_two_of_a_preset_are_equal_and_those_of_a_node_are_in_order() {
    for (name, text) in PRESETS {
        let layout = layout(text);
        let largest = |field| u32::try_from(layout.max(field)).unwrap();
        let (datacenter, last) = (largest(Field::Datacenter), largest(Field::Worker));
        let mut seen = HashSet::new();
        // A layout without bits for a node has one node.
        for worker_id in BTreeSet::from([0, last.min(1), last]) {
            let datacenter = if worker_id == last { datacenter } else { 0 };
            let node = Node { datacenter, worker_id, rollback: 0 };
            let node_bits = layout.place(node).unwrap();
            let first = layout.first_of(Tick(1_000_000)).0;
            let positions = (layout.max(Field::Sequence) + 1).min(20_000);
            let all = (first..first + positions)
                .chain(first + layout.max(Field::Sequence)..first + layout.max(Field::Sequence) + 20);
            let mut before = (Position(0), Uuid(0));
            for position in all.map(Position).filter(|position| *position > Position(first)) {
                if position <= before.0 {
                    continue;
                }
                let uuid = layout.uuid(Issued { position, node_bits }, 0).unwrap();
                assert!(uuid > before.1, "{name}: {position:?}");
                assert!(seen.insert(uuid), "{name}: {position:?} of {node:?}");
                before = (position, uuid);
            }
        }
    }
}

#[test]
fn what_fills_up_differs_from_draw_to_draw_and_is_spread_over_all_bits() {
    let filler = Filler::new(7);
    let drawn: Vec<u128> = (0..1_000).map(|_| filler.draw()).collect();
    assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), 1_000);
    for bit in 0..128 {
        let ones = drawn.iter().filter(|bits| *bits >> bit & 1 == 1).count();
        assert!((400..600).contains(&ones), "bit {bit} is set {ones} times of 1000");
    }
    assert_ne!(Filler::new(8).draw(), drawn[0], "another process fills with something else");
}

#[test]
fn texts_are_ids_or_uuids_as_sql_reads_them() {
    let uuid = Uuid(0x017F_22E2_79B0_7CC3_98C4_DC0C_0C07_398F);
    for text in [
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
        "017F22E279B07CC398C4DC0C0C07398F",
        "{017f22e2-79b07cc3-98c4dc0c-0c07398f}",
        " 017f-22e2-79b0-7cc3-98c4-dc0c-0c07-398f ",
    ] {
        assert_eq!(text.parse(), Ok(IdOrUuid::Uuid(uuid)), "{text}");
    }
    for (text, id) in [("911811189128851456", 911_811_189_128_851_456), (" -1 ", -1), ("0", 0)] {
        assert_eq!(text.parse(), Ok(IdOrUuid::Id(id)), "{text}");
    }
    let zeros = "0".repeat(32);
    assert_eq!(zeros.parse(), Ok(IdOrUuid::Uuid(Uuid(0))), "no id has as many digits");
    for text in [
        "",
        "x",
        "9223372036854775808",
        "017f22e279b07cc398c4dc0c0c07398",
        "017f22e279b07cc398c4dc0c0c07398ff",
        "{017f22e279b07cc398c4dc0c0c07398f",
        "017f22e279b07cc398c4dc0c0c07398f}",
        "017f22e-279b07cc398c4dc0c0c07398f",
        "017f22e2--79b07cc398c4dc0c0c07398f",
        "-017f22e279b07cc398c4dc0c0c07398f",
        "017f22e279b07cc398c4dc0c0c07398f-",
        "017f22e279b07cc398c4dc0c0c07398g",
    ] {
        let error = text.parse::<IdOrUuid>().expect_err(text);
        assert_eq!(error.kind(), Kind::BadArgument);
    }
    let error = "x".repeat(5_000).parse::<IdOrUuid>().unwrap_err();
    assert!(error.to_string().len() < 200, "a long text is cut");
}

/// A position whose milliseconds fit into 48 bits.
fn position(layout: &Layout, any: u64) -> Position {
    let position = Position(any % layout.end_position().0);
    let last = layout.position_at(UnixMicros(9_000_000_000_000_000));
    if position < last { position } else { Position(any % last.0.max(1)) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_uuid_reads_back_as_what_it_was_made_of(
        layout in valid_layouts(), at in any::<u64>(), who in any::<u64>(), filler in any::<u128>(),
    ) {
        let (position, node) = (position(&layout, at), node(&layout, who));
        let node_bits = layout.place(node).unwrap();
        let uuid = layout.uuid(Issued { position, node_bits }, filler).unwrap();
        let begins = layout.instant_of(position);
        prop_assert_eq!(uuid.timestamp().unwrap().0, begins.0 / 1_000 * 1_000);
        let id = layout.id(position, node_bits);
        prop_assert_eq!(layout.id_of_uuid(uuid), Ok(id.cast_signed()));
        prop_assert_eq!(layout.decode_uuid(uuid).unwrap(), layout.decode(id.cast_signed()).unwrap());
        prop_assert_eq!(uuid.to_string().parse(), Ok(IdOrUuid::Uuid(uuid)));
        prop_assert_eq!(String::from_utf8(uuid.digits().into()).unwrap(), uuid.to_string().replace('-', ""));
    }

    #[test]
    fn uuids_sort_as_positions_do_whatever_fills_them_up(
        layout in valid_layouts(), at in any::<u64>(), step in 1_u64..3_000, who in any::<[u64; 2]>(), filler in any::<[u128; 2]>(),
    ) {
        let from = position(&layout, at);
        let to = Position(from.0 + step);
        prop_assume!(to < layout.end_position() && layout.instant_of(to).0 < 9_000_000_000_000_000);
        let of = |position, who: u64, filler| {
            let node_bits = layout.place(node(&layout, who)).unwrap();
            layout.uuid(Issued { position, node_bits }, filler).unwrap()
        };
        prop_assert!(of(from, who[0], filler[0]) < of(to, who[1], filler[1]));
        let equal = of(from, who[0], filler[0]) == of(from, who[1], filler[0]);
        prop_assert_eq!(equal, node(&layout, who[0]) == node(&layout, who[1]));
    }

    #[test]
    fn no_uuid_and_no_text_makes_it_panic(layout in valid_layouts(), any in any::<u128>(), text in "[0-9a-fg{}-]{0,40}") {
        let of_version_7 = any & !(0xf << 76) & !(0b11 << 62) | 7 << 76 | 0b10 << 62;
        for uuid in [Uuid(any), Uuid(of_version_7)] {
            if let Ok(id) = layout.id_of_uuid(uuid) {
                let filled = layout.decode(id).unwrap();
                prop_assert_eq!(layout.decode_uuid(uuid).unwrap(), filled);
            }
        }
        let _ = text.parse::<IdOrUuid>();
    }
}
