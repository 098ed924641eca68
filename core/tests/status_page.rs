//! The page about a server: what is wrong comes first, names are text whatever is in them, and it ends.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::history::Sample;
use snowflake_ids_core::status_page::{
    Buffer, Generator, KEPT, Limits, Listing, POLICY, Registry, Report, Running, SCRIPT, SECTIONS, STYLE,
    Sequence, Series, Server, Severity, Standing, Status, Tag, Tags, render, troubles,
};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// 2026-11-23 06:00 UTC.
const NOW: UnixMicros = UnixMicros(1_795_413_600_000_000);
const DAY: Duration = Duration::from_hours(24);

/// A server where all is well.
fn quiet() -> Report {
    let status = Status {
        worker_id: Some(9),
        datacenter_id: Some(0),
        state: "ready".into(),
        years_left: 62.7,
        lease_expires_at: Some(NOW.plus(DAY)),
        ..Status::default()
    };
    let limits = Limits {
        max_drift: Duration::from_mins(1),
        lease_duration: DAY,
        max_tags: 1_024,
        sample_interval: Duration::from_secs(10),
    };
    let server = Server { database: "shop".into(), role: "reader".into(), ..Server::default() };
    let running = Running {
        status,
        limits,
        has_launcher: true,
        places_used: 3,
        history: Vec::new(),
        tags: Tags::new(NOW),
        generators: Listing::default(),
        series: Listing::default(),
        registries: Listing::default(),
        sequences: Listing::default(),
    };
    Report { at: NOW, server, layout: "41/5/5/12 epoch=2020-01-01".parse().unwrap(), running: Some(running) }
}

/// The same after something was changed.
fn changed(change: impl FnOnce(&mut Running)) -> Report {
    let mut report = quiet();
    change(report.running.as_mut().unwrap());
    report
}

fn tag(name: &str) -> Tag {
    let current = Buffer { first: 1, last: 100, used: 0.5 };
    Tag { tag: name.into(), current: Some(current), ..Tag::default() }
}

fn sample(second: i64, ids: f64) -> Sample {
    Sample {
        at: UnixMicros(NOW.0 + second * 1_000_000),
        elapsed: Duration::from_secs(10),
        ids,
        tag_ids: 1.0,
        waits: 0,
        refills: 1,
        steps_back: 0,
        steps_forward: 0,
        drift: Duration::ZERO,
        clock_ahead: Duration::ZERO,
    }
}

#[test]
fn nothing_is_wrong_with_a_quiet_server() {
    assert_eq!(troubles(&quiet()), []);
    let page = render(&quiet());
    assert!(page.contains("All is well") && page.contains("What needs attention"), "{page}");
}

#[test]
fn each_fault_is_a_trouble_of_its_own() {
    let faults: [(Report, Severity, &str); 12] = [
        (Report { running: None, ..quiet() }, Severity::Alarm, "was not loaded when the server started"),
        (
            changed(|running| running.status.state = "the state file is damaged".into()),
            Severity::Alarm,
            "issues no snowflake ids: the state file is damaged",
        ),
        (
            changed(|running| running.status.clock_ahead = Duration::from_hours(3)),
            Severity::Alarm,
            "3 h ahead, and is not followed",
        ),
        (
            changed(|running| running.status.drift = Duration::from_secs(31)),
            Severity::Warning,
            "31 s ahead of the clock",
        ),
        (
            changed(|running| running.history = vec![Sample { steps_back: 1, ..sample(0, 0.0) }]),
            Severity::Warning,
            "stepped once lately",
        ),
        (
            changed(|running| running.status.lease_expires_at = Some(NOW.plus(DAY / 3))),
            Severity::Warning,
            "ends in 8 h, and is not renewed",
        ),
        (
            changed(|running| {
                let (server, state) = ("ids_1".into(), "failing".into());
                running.registries.rows.push(Registry { server, state, ..Registry::default() });
            }),
            Severity::Alarm,
            "The registry ids_1 does not answer",
        ),
        (
            changed(|running| running.tags.add(Tag { trouble: Some("row locked".into()), ..tag("a") })),
            Severity::Warning,
            "1 tag whose refills fail",
        ),
        (
            changed(|running| running.tags.add(Tag { exhausted_at: Some(NOW.plus(DAY * 3)), ..tag("a") })),
            Severity::Alarm,
            "1 tag used up within 30 days",
        ),
        (changed(|running| running.has_launcher = false), Severity::Warning, "The launcher does not run"),
        (changed(|running| running.places_used = 1_000), Severity::Warning, "1000 of 1024 places"),
        (changed(|running| running.status.years_left = 4.2), Severity::Warning, "ends in 4.2 years"),
    ];
    for (report, severity, what) in faults {
        let found = troubles(&report);
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        assert!(found[0].what.contains(what), "{what}: {found:?}");
        assert_eq!(found[0].severity, severity, "{what}");
        let page = render(&report);
        assert!(
            page.contains(what)
                && page.contains(&found[0].way_out.replace('\'', "&#39;"))
                && !page.contains("All is well"),
            "{what}"
        );
    }
}

#[test]
fn a_standby_says_so_and_is_well() {
    let mut report = changed(|running| running.status.state = "in recovery".into());
    report.server.is_standby = true;
    report.running.as_mut().unwrap().has_launcher = false;
    let found = troubles(&report);
    assert_eq!(
        found.iter().map(|trouble| trouble.severity).collect::<Vec<_>>(),
        [Severity::Note],
        "{found:?}"
    );
    assert!(render(&report).contains("All is well"));
}

#[test]
fn ways_out_are_in_sections_that_there_are() {
    for section in SECTIONS {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(section.page);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let is_there = |line: &str| line.starts_with('#') && line.trim_matches(['#', ' ']) == section.heading;
        assert!(text.lines().any(is_there), "{section:?}");
    }
}

#[test]
fn tags_that_need_attention_come_first() {
    let mut tags = Tags::new(NOW);
    let empty = Buffer { used: 1.0, ..Buffer::default() };
    tags.add(tag("fine"));
    tags.add(Tag { waits: 7, ..tag("fine, with waits") });
    tags.add(Tag { tag: "idle".into(), ..Tag::default() });
    tags.add(Tag { exhausted_at: Some(NOW.plus(DAY * 300)), ..tag("this year") });
    tags.add(Tag { current: Some(empty), ..tag("dry") });
    tags.add(Tag { current: Some(empty), next: Some(Buffer::default()), ..tag("next is ready") });
    tags.add(Tag { exhausted_at: Some(NOW.plus(DAY)), ..tag("soon") });
    tags.add(Tag { trouble: Some("no worker".into()), ..tag("failing") });
    tags.add(Tag { trouble: Some("no worker".into()), current: Some(empty), ..tag("failed") });
    let names: Vec<_> = tags.in_order().into_iter().map(|(_, tag)| tag.tag.as_str()).collect();
    let order = [
        "failed",
        "failing",
        "soon",
        "dry",
        "this year",
        "fine, with waits",
        "fine",
        "next is ready",
        "idle",
    ];
    assert_eq!(names, order);
    assert_eq!(tags.total(), 9);
    assert_eq!(Standing::ALL.map(|standing| tags.count(standing)), [1, 1, 1, 1, 1, 3, 1]);
}

#[test]
fn of_many_tags_the_worst_are_kept_and_all_are_counted() {
    let report = changed(|running| {
        for number in 0..KEPT as u64 * 3 {
            running.tags.add(Tag { waits: number, ..tag(&format!("tag {number}")) });
        }
    });
    let tags = &report.running.as_ref().unwrap().tags;
    let kept: Vec<_> = tags.in_order().into_iter().map(|(_, tag)| tag.waits).collect();
    assert_eq!(kept, (KEPT as u64 * 2..KEPT as u64 * 3).rev().collect::<Vec<_>>());
    let page = render(&report);
    assert!(page.contains("3,000 tags, 3,000 fine.") && page.contains("2,000 more are left out"), "{page}");
    assert!(page.len() < 500_000, "{} bytes", page.len());
}

/// Names that would be something else than text, were they written as they are.
fn hostile() -> Vec<String> {
    let mut names: Vec<String> = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "</script><b>",
        "</style><b>",
        "<!-- ",
        "]]>",
        "&lt;b&gt;",
        "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
        "a\u{202e}b\u{2066}c",
        "\u{feff}\u{0}\n\t\u{85}",
    ]
    .map(String::from)
    .into();
    names.push("<".repeat(128));
    names.push("\u{1f600}".repeat(128));
    names.push("\u{202e}".repeat(128));
    names
}

/// A server of whose every text others have named it so.
fn named(name: &str) -> Report {
    let text = || name.to_owned();
    let mut report = changed(|running| {
        running.status.state = text();
        running.status.scope = text();
        running.status.leased_from = Some(text());
        running.tags.add(Tag { database: Some(text()), trouble: Some(text()), ..tag(name) });
        for number in 0..60 {
            running.tags.add(tag(&format!("{name}{number}")));
        }
        let generator = Generator {
            name: text(),
            layout: text(),
            shard: Some(text()),
            state: text(),
            fits: Some(false),
            ..Generator::default()
        };
        let known = Generator { layout: "twitter".into(), ..generator.clone() };
        running.generators = Listing { rows: vec![generator, known], total: 2 };
        let (kind, key_type, reset) = (text(), text(), Some(text()));
        running.series.rows.push(Series { name: text(), kind, key_type, reset, ..Series::default() });
        let (state, error) = ("failing".into(), Some(text()));
        running.registries.rows.push(Registry { server: text(), state, error, ..Registry::default() });
        let (sequence, kind, tag, owner) = (text(), text(), Some(text()), Some(text()));
        running.sequences.rows.push(Sequence { sequence, kind, tag, owner, ..Sequence::default() });
    });
    report.server = Server {
        cluster_name: text(),
        database: text(),
        role: text(),
        postgres: text(),
        extension: text(),
        ..Server::default()
    };
    report
}

/// The markup of a page, without its texts and the values of its attributes.
fn markup(page: &str) -> Vec<String> {
    let page = page.replace(STYLE, "").replace(SCRIPT, "");
    let mut tags = Vec::new();
    let mut rest = page.as_str();
    while let Some((_, after)) = rest.split_once('<') {
        let (mut inside, mut end) = (false, after.len());
        for (at, letter) in after.char_indices() {
            match letter {
                '"' => inside = !inside,
                '>' if !inside => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        let unquoted: Vec<_> = after[..end].split('"').step_by(2).collect();
        tags.push(unquoted.join("\"\""));
        rest = &after[end..];
    }
    tags
}

/// Where they begin to differ.
fn difference<'a>(one: &'a [String], other: &'a [String]) -> Option<(&'a String, &'a String)> {
    one.iter().zip(other).find(|(one, other)| one != other)
}

#[test]
fn hostile_names_change_no_markup() {
    let plain = markup(&render(&named("x")));
    assert!(plain.len() > 500, "{plain:?}");
    for name in hostile() {
        let page = render(&named(&name));
        assert!(page.is_ascii(), "{name:?}");
        assert!(markup(&page) == plain, "{name:?} changes {:?}", difference(&markup(&page), &plain));
        assert!(page.len() < 500_000, "{} bytes of {name:?}", page.len());
    }
}

proptest! {
    #[test]
    fn whatever_is_named_somehow_is_text(name in any::<String>()) {
        let page = render(&named(&name));
        prop_assert!(page.is_ascii());
        let (ours, plain) = (markup(&page), markup(&render(&named("x"))));
        prop_assert!(ours == plain, "{:?}", difference(&ours, &plain));
    }
}

#[test]
fn the_page_ends_however_much_there_is() {
    let name = "\u{1f600}".repeat(10_000);
    let mut report = named(&name);
    let running = report.running.as_mut().unwrap();
    for _ in 0..KEPT {
        running.tags.add(Tag { database: Some(name.clone()), trouble: Some(name.clone()), ..tag(&name) });
    }
    running.history = (0..10_000).map(|second| sample(second, f64::MAX)).collect();
    let generator = running.generators.rows[0].clone();
    running.generators.rows = vec![generator; 50];
    let page = render(&report);
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
}

#[test]
fn what_was_sampled_before_it_was_turned_off_is_not_told_as_of_now() {
    let page = render(&changed(|running| {
        running.history = vec![sample(0, 1.0), sample(10, 2.0)];
        running.limits.sample_interval = Duration::ZERO;
    }));
    assert!(page.contains("Snowflake ids a second: at last 2.0, at most 2.0"), "{page}");
    assert!(page.contains("Snowflake ids a second</span> <span class=\"value\">not sampled<"), "{page}");
}

#[test]
fn curves_break_where_nothing_was_sampled() {
    let values = [1.0, 2.0, 0.0, 4.0, 3.0];
    let history = (0..).step_by(10).zip(values).map(|(second, ids)| sample(second, ids)).collect();
    let page = render(&changed(|running| running.history = history));
    let line = page.split("class=\"line\" d=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert_eq!(line, "M0 76h0L180 53L360 98L540 8L720 30");
    assert!(page.contains("Snowflake ids a second: now 3.0, at most 4.0"), "{page}");
    let paused = Sample { elapsed: Duration::from_mins(5), ..sample(20, 2.0) };
    let page = render(&changed(|running| {
        running.history = vec![sample(0, 1.0), sample(10, 2.0), paused];
    }));
    assert!(page.contains("M0 53h0L23 8M720 8h0"), "{page}");
}

#[test]
fn the_policy_allows_the_two_blocks_of_the_page_and_nothing_else() {
    let hash = |block: &str| BASE64_STANDARD.encode(Sha256::digest(block.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    assert_eq!(POLICY, policy);
    let page = render(&quiet());
    assert!(
        page.contains(&format!("<style>{STYLE}</style>"))
            && page.contains(&format!("<script>{SCRIPT}</script>"))
    );
    // Styles of elements, and handlers, are what the policy refuses.
    assert!(!page.contains("http:") && !page.contains("https:"));
    let refused = |tag: &&String| tag.contains(" style=") || tag.contains(" on");
    assert_eq!(markup(&page).iter().find(refused), None);
    assert!(STYLE.is_ascii() && SCRIPT.is_ascii());
}

#[test]
fn headings_are_in_order() {
    let page = render(&named("x"));
    let levels: Vec<u32> = page
        .split("<h")
        .skip(1)
        .filter_map(|rest| rest.chars().next().and_then(|level| level.to_digit(10)))
        .collect();
    assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1);
    assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");
}
