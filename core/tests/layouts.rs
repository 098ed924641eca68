//! Layouts: text forms, presets compared with ids that their systems published, and the error at every limit.

use snowflake_ids_core::{
    Explain, Field, IdError, Kind, Layout, LayoutError, Node, PRESETS, Tick, UnixMicros,
};

fn layout(text: &str) -> Layout {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> LayoutError {
    text.parse::<Layout>().expect_err(text)
}

#[test]
fn the_default_layout_is_twitters_widths_from_2020() {
    assert_eq!(Layout::default(), layout("41/5/5/12"));
    assert_eq!(Layout::default().to_string(), "41/5/5/12 epoch=2020-01-01");
    assert_eq!(Layout::default().last_instant().to_string(), "2089-09-06T15:47:35.551999Z");
}

#[test]
fn canonical_text_reads_back_as_written() {
    for text in [
        "41/5/5/12 epoch=2020-01-01",
        "41/0/10/12 epoch=2010-11-04T01:42:54.657Z",
        "28/0/22/13 unit=1s epoch=2016-05-20",
        "41/5/3/2r/12 epoch=2020-01-01",
        "39/8s/0/16 unit=10ms epoch=2025-01-01",
        "39/8s/0/14/2r unit=10ms epoch=2025-01-01",
        "50/0/3/10 unit=100us epoch=2020-01-01",
    ] {
        assert_eq!(layout(text).to_string(), text);
    }
}

#[test]
fn every_preset_is_canonical_and_has_the_width_of_its_system() {
    for (name, text) in PRESETS {
        assert_eq!(layout(name), layout(text), "{name}");
        assert_eq!(layout(name).to_string(), text, "{name}");
        let limit = match name {
            "javascript" | "javascript_second" => 1 << 53,
            "spreadsheet" => 1_000_000_000_000_000,
            _ => 1 << 63,
        };
        assert!(layout(name).largest_id() < limit, "{name}");
    }
    assert_eq!(layout("Twitter"), layout("twitter"), "names are read in any case");
}

#[test]
fn a_preset_takes_another_epoch_or_unit() {
    assert_eq!(
        layout("shardingsphere epoch=2016-10-31T16:00:00Z").to_string(),
        "41/0/10/12 epoch=2016-10-31T16:00:00Z"
    );
    assert_eq!(layout("sonyflake unit=1ms").to_string(), "39/8s/0/16 epoch=2025-01-01");
}

/// The systems' documents, or people who compared an id with its row, publish these ids with their parts.
#[test]
fn published_ids_decode_as_published() {
    let twitter = layout("twitter").decode(1_541_815_603_606_036_480).unwrap();
    assert_eq!(twitter.timestamp.to_string(), "2022-06-28T16:07:40.105Z");
    assert_eq!((twitter.datacenter_id, twitter.worker_id, twitter.sequence), (11, 26, 0));

    let discord = layout("discord").decode(175_928_847_299_117_063).unwrap();
    assert_eq!(discord.timestamp.to_string(), "2016-04-30T11:18:25.796Z");
    assert_eq!((discord.datacenter_id, discord.worker_id, discord.sequence), (1, 0, 7));

    let at = |name: &str, id| layout(name).decode(id).unwrap().timestamp.to_string();
    assert_eq!(at("instagram", 2_384_288_897_814_875_714), "2020-08-26T13:43:27.313Z");
    assert_eq!(at("instagram", 2_383_568_809_444_681_765), "2020-08-25T13:52:46.09Z");
    // The rows' created_at is a few milliseconds later.
    assert_eq!(at("mastodon", 103_254_962_155_278_888), "2019-12-05T11:34:47.183Z");

    // A port of Sonyflake, whose document counts milliseconds from May 2020.
    let sonyflake = layout("sonyflake unit=1ms epoch=2020-05-18").decode(1_211_144_891_006_978).unwrap();
    assert_eq!(sonyflake.timestamp.to_string(), "2020-05-18T20:03:09.861Z");
    assert_eq!((sonyflake.worker_id, sonyflake.sequence), (2, 0));

    // Three ids of one INSERT on node 1.
    let rows = [148_656_994_422_095_873, 148_656_994_422_161_409, 148_656_994_422_194_177];
    let rows = rows.map(|id| layout("cockroachdb").decode(id).unwrap());
    assert!(rows.iter().all(|row| row.worker_id == 1));
    let times = rows.map(|row| (row.timestamp.to_string(), row.sequence));
    let (first, second) = ("2016-06-09T01:48:34.41104Z".into(), "2016-06-09T01:48:34.41106Z".to_owned());
    assert_eq!(times, [(first, 0), (second.clone(), 0), (second, 1)]);
}

/// Each field is shifted as in the system's source.
#[test]
fn fields_stand_where_the_systems_put_them() {
    let parts = |name: &str, node: Node, sequence: u32, tick: u64| {
        let layout = layout(name);
        layout.compose(layout.instant(Tick(tick)), node, sequence).unwrap()
    };
    let worker_id = |worker_id| Node { worker_id, ..Node::default() };
    assert_eq!(
        parts("twitter", Node { datacenter: 3, worker_id: 5, rollback: 0 }, 7, 9),
        9 << 22 | 3 << 17 | 5 << 12 | 7
    );
    assert_eq!(parts("baidu", worker_id(5), 7, 9), 9 << 35 | 5 << 13 | 7);
    assert_eq!(parts("instagram", worker_id(1341), 7, 9), 9 << 23 | 1341 << 10 | 7);
    assert_eq!(
        parts("sonyflake", worker_id(5), 7, 9),
        9 << 24 | 7 << 16 | 5,
        "the sequence is above the machine"
    );
    assert_eq!(parts("pgedge", worker_id(5), 7, 9), 9 << 22 | 7 << 10 | 5, "the counter is above the node");
    assert_eq!(
        parts("41/5/3/2r/12", Node { datacenter: 3, worker_id: 5, rollback: 2 }, 7, 9),
        9 << 22 | 3 << 17 | 5 << 14 | 2 << 12 | 7
    );
    assert_eq!(parts("javascript", worker_id(5), 7, 9), 9 << 12 | 5 << 9 | 7);
}

#[test]
fn every_width_is_checked_and_its_error_names_the_field() {
    for (text, field) in [
        ("0/5/5/12", Field::Ticks),
        ("63/0/0/12", Field::Ticks),
        ("20/32/5/5", Field::Datacenter),
        ("20/5/32/5", Field::Worker),
        ("20/5/5/9r/5", Field::Rollback),
        ("41/5/5/0", Field::Sequence),
        ("20/5/5/32", Field::Sequence),
        ("41/5/5/4294967297", Field::Sequence),
    ] {
        let error = error(text);
        assert!(
            matches!(error, LayoutError::Width { field: found, .. } if found == field),
            "{text}: {error:?}"
        );
        assert!(error.to_string().starts_with(&field.to_string()), "{error}");
        assert!(error.detail().is_some_and(|detail| detail.contains(&field.to_string())));
    }
    assert_eq!(error("41/5/5/13"), LayoutError::Sum { sum: 64 });
    assert_eq!(error("62/0/0/2 unit=1s"), LayoutError::Sum { sum: 64 });
    assert_eq!(error("50/0/1/12 unit=86400s"), LayoutError::TooLong { ticks: 50 });
    assert_eq!(error("62/0/0/1"), LayoutError::TooLong { ticks: 62 });
}

#[test]
fn wrong_units_and_epochs_say_so() {
    for unit in ["3ms", "0ms", "1500ms", "1m", "ms", "-1s", "86401s", "18446744073709551615s", "1 s"] {
        let found = format!("41/5/5/12 unit={unit}").parse::<Layout>();
        assert!(
            matches!(found, Err(LayoutError::Unit { .. } | LayoutError::Syntax { .. })),
            "{unit}: {found:?}"
        );
    }
    for epoch in ["", "yesterday", "2020-13-01", "1969-12-31", "2020-01-01T00:00:00.0001Z", "20200101000000"]
    {
        let found = format!("41/5/5/12 epoch={epoch}").parse::<Layout>();
        assert!(matches!(found, Err(LayoutError::Epoch { .. })), "{epoch}: {found:?}");
    }
    assert_eq!(
        layout("41/5/5/12 epoch=2020-01-01T01:00:00+01:00"),
        Layout::default(),
        "an offset is understood"
    );
}

#[test]
fn other_text_is_refused_with_the_way_to_write_it() {
    for text in [
        "",
        "  ",
        "snow",
        "41",
        "41/5/5",
        "41/5/5/5/5/5",
        "41/5/5/2/12",
        "41/5/5/x",
        "41/5//12",
        "41/-5/5/12",
        "41/5/5/12 unit=1ms unit=1ms",
        "41/5/5/12 color=red",
        "41/5/5/12 epoch",
        "41/5/5/12s",
        "s/5/5/12",
        "41/s/5/5",
        "41/12s",
        "/",
        "41/é/5/12",
    ] {
        let error = error(text);
        assert_eq!(error.kind(), Kind::BadArgument);
        assert!(matches!(error, LayoutError::Syntax { .. }), "{text}: {error:?}");
        assert!(error.hint().is_some_and(
            |hint| hint.contains("ticks/datacenter/worker/sequence") && hint.contains("twitter")
        ));
    }
}

#[test]
fn ids_of_the_first_and_last_tick_decode() {
    for (name, _) in PRESETS {
        let layout = layout(name);
        let largest = layout.largest_id().cast_signed();
        let last = layout.decode(largest).unwrap();
        assert_eq!(layout.max_id(layout.last_instant()).unwrap(), largest.cast_unsigned(), "{name}");
        assert!(layout.min_id(layout.last_instant()).unwrap() < largest.cast_unsigned(), "{name}");
        assert!(last.timestamp <= layout.last_instant(), "{name}");
        assert_eq!(layout.min_id(layout.epoch()).unwrap(), 0, "{name}");
        let after = UnixMicros(layout.last_instant().0 + 1);
        assert!(layout.min_id(after).is_err(), "{name}");
        assert!(layout.min_id(UnixMicros(layout.epoch().0 - 1)).is_err(), "{name}");
    }
}

#[test]
fn negative_and_foreign_ids_are_refused() {
    let javascript = layout("javascript");
    assert_eq!(javascript.decode(-1), Err(IdError::Negative { id: -1 }));
    assert_eq!(javascript.decode(1 << 53), Err(IdError::Foreign { id: 1 << 53, layout: javascript }));
    assert!(javascript.decode((1 << 53) - 1).is_ok());
}

#[test]
fn parts_beyond_their_field_are_refused_by_name() {
    let layout = Layout::default();
    let node = Node { datacenter: 31, worker_id: 31, rollback: 0 };
    assert!(layout.compose(layout.epoch(), node, 4095).is_ok());
    for (node, sequence, field) in [
        (Node { datacenter: 32, ..node }, 0, Field::Datacenter),
        (Node { worker_id: 32, ..node }, 0, Field::Worker),
        (Node { rollback: 1, ..node }, 0, Field::Rollback),
        (node, 4096, Field::Sequence),
    ] {
        let found = layout.compose(layout.epoch(), node, sequence);
        assert!(matches!(found, Err(IdError::Field { field: at, .. }) if at == field), "{found:?}");
    }
}

#[test]
fn a_layout_travels_through_json_as_its_text() {
    let json = serde_json::to_string(&Layout::default()).unwrap();
    assert_eq!(json, "\"41/5/5/12 epoch=2020-01-01\"");
    assert_eq!(serde_json::from_str::<Layout>(&json).unwrap(), Layout::default());
    assert!(serde_json::from_str::<Layout>("\"41/5\"").is_err());
}

#[test]
fn a_decoded_id_is_json_that_people_can_read() {
    let layout = Layout::default();
    let id = layout
        .compose(UnixMicros(1_795_000_000_123_000), Node { datacenter: 1, worker_id: 2, rollback: 0 }, 3)
        .unwrap();
    let json = serde_json::to_value(layout.decode(id.cast_signed()).unwrap()).unwrap();
    assert_eq!(json["timestamp"], "2026-11-18T11:06:40.123Z");
    assert_eq!(
        (&json["datacenter_id"], &json["worker_id"], &json["sequence"]),
        (&1.into(), &2.into(), &3.into())
    );
}

/// A day spans the ids between two midnights. A duration that is not a whole number of ticks has no span.
#[test]
fn a_length_of_time_spans_whole_ticks_of_ids() {
    const DAY: i64 = 86_400_000_000;
    let layout: Layout = "34/0/10/6 unit=10s epoch=2020-01-01".parse().unwrap();
    let at = UnixMicros(1_795_000_000_000_000);
    let days = layout.min_id(at.plus_micros(DAY.unsigned_abs())).unwrap() - layout.min_id(at).unwrap();
    assert_eq!(layout.ids_in(DAY).unwrap(), days);
    let all = i64::try_from(layout.max(Field::Ticks) * layout.unit()).unwrap();
    assert!(layout.ids_in(all).is_ok());
    for micros in [0, -DAY, DAY + 1, 15_000_000, i64::MIN, i64::MAX, all + 10_000_000] {
        let found = layout.ids_in(micros);
        assert!(matches!(found, Err(IdError::Span { .. })), "{micros}: {found:?}");
    }
}
