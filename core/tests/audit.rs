//! Audits, beside what is found by looking at all rows at once.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use proptest::prelude::*;
use snowflake_ids_core::audit::column_default::{Origin, origin};
use snowflake_ids_core::audit::finding::Beyond;
use snowflake_ids_core::audit::nodes::MAX_NODES;
use snowflake_ids_core::audit::{
    AuditError, Finding, Numbers, PROGRESS, Place, Snowflakes, Sort, Source, Stored, Subject, Unfit,
    Unsorted, audit,
};
use snowflake_ids_core::{Layout, Node, UnixMicros};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::vec::IntoIter;

/// Ids that are all there already.
struct Listed(IntoIter<Stored>);

impl Source for Listed {
    type Error = Infallible;

    fn next(&mut self) -> Result<Option<Stored>, Infallible> {
        Ok(self.0.next())
    }
}

fn of(rows: &[(Option<i64>, u32)]) -> Listed {
    let rows: Vec<_> = rows.iter().map(|&(id, table)| Stored { id, table }).collect();
    Listed(rows.into_iter())
}

fn ids(ids: &[i64]) -> Listed {
    of(&ids.iter().map(|id| (Some(*id), 0)).collect::<Vec<_>>())
}

fn found(sources: Vec<Listed>, subject: &Subject) -> Vec<Finding> {
    audit(sources, subject, 1_000, |_| {}).unwrap()
}

fn faults(findings: &[Finding]) -> Vec<(Sort, i64, u64)> {
    let faults = findings.iter().filter(|finding| finding.is_fault());
    faults.map(|finding| (finding.sort(), finding.id().unwrap(), finding.count())).collect()
}

/// 2026-11-22 12:00 UTC.
const NOW: UnixMicros = UnixMicros(1_795_348_800_000_000);
const DRIFT: u64 = 30_000_000;

fn layout() -> Layout {
    "twitter".parse().unwrap()
}

fn snowflakes() -> Subject {
    Subject::Snowflakes(Snowflakes { layout: layout(), now: NOW, max_drift: DRIFT })
}

fn numbers(increment: i64, remainder: i64, highest: Option<i64>) -> Subject {
    Subject::Numbers(Numbers { increment, remainder, highest })
}

fn id(at: UnixMicros, worker: u32, sequence: u32) -> i64 {
    let node = Node { datacenter: 0, worker, rollback: 0 };
    layout().compose(at, node, sequence).unwrap().cast_signed()
}

fn text(finding: &Finding) -> String {
    finding.detail(&|place: Place| format!("{}.{}", place.source, place.table)).unwrap_or_default()
}

#[test]
fn what_is_right_has_no_fault_and_is_counted() {
    let yesterday = UnixMicros(NOW.0 - 86_400_000_000);
    let right = [id(yesterday, 1, 0), id(yesterday, 1, 1), id(NOW, 1, 0), id(NOW, 2, 0)];
    let findings = found(vec![ids(&right)], &snowflakes());
    assert_eq!(faults(&findings), []);
    let day = |at: UnixMicros| at.0.div_euclid(86_400_000_000);
    let told: Vec<_> = findings.iter().map(|f| (f.sort(), f.day(), f.node(), f.count())).collect();
    assert_eq!(
        told,
        [
            (Sort::Day, Some(day(yesterday)), None, 2),
            (Sort::Day, Some(day(NOW)), None, 2),
            (Sort::Worker, None, Some((0, 1)), 3),
            (Sort::Worker, None, Some((0, 2)), 1),
            (Sort::Total, None, None, 4),
        ]
    );
    assert_eq!(text(&findings[2]), "From 2026-11-21T12:00:00Z to 2026-11-22T12:00:00Z.");
}

#[test]
fn an_id_in_two_places_tells_both() {
    let twice = id(NOW, 1, 0);
    let findings = found(
        vec![of(&[(Some(twice), 7), (Some(twice), 7), (Some(twice), 8)]), ids(&[twice])],
        &snowflakes(),
    );
    assert_eq!(faults(&findings), [(Sort::Duplicate, twice, 4)]);
    assert_eq!(text(&findings[0]), "In 0.7 (2 rows), 0.8, 1.0.");
    // The four rows are ids of the worker, and of the day.
    let of_all = |sort| findings.iter().find(|finding| finding.sort() == sort).unwrap().count();
    assert_eq!([of_all(Sort::Day), of_all(Sort::Worker), of_all(Sort::Total)], [4, 4, 4]);
}

#[test]
fn an_id_in_many_places_tells_some_of_them() {
    let twice = id(NOW, 1, 0);
    let rows: Vec<_> = (0..20).map(|table| (Some(twice), table)).collect();
    let findings = found(vec![of(&rows)], &snowflakes());
    assert_eq!(faults(&findings), [(Sort::Duplicate, twice, 20)]);
    assert!(text(&findings[0]).ends_with("0.7, elsewhere (12 rows)."), "{}", text(&findings[0]));
}

#[test]
fn ids_may_be_ahead_of_the_clock_by_the_drift_and_no_more() {
    let last = id(NOW.plus_micros(DRIFT), 31, 4_095);
    let first = id(NOW.plus_micros(DRIFT + 1_000), 0, 0);
    let findings = found(vec![ids(&[last, first])], &snowflakes());
    assert_eq!(faults(&findings), [(Sort::Future, first, 1)]);
    assert_eq!(
        text(&findings[0]),
        "Its timestamp is 2026-11-22T12:00:30.001Z, 30.001 s ahead of the clock. In 0.0."
    );
}

/// Beyond the layout's last tick all of its ids may be there; before its epoch none.
#[test]
fn a_clock_outside_the_layout_is_one() {
    let layout = layout();
    let all = [0, layout.largest_id().cast_signed()];
    let at = |now| Subject::Snowflakes(Snowflakes { layout, now, max_drift: 0 });
    assert_eq!(faults(&found(vec![ids(&all)], &at(UnixMicros(i64::MAX)))), []);
    let before = faults(&found(vec![ids(&all)], &at(UnixMicros(0))));
    assert_eq!(before, all.map(|id| (Sort::Future, id, 1)));
}

#[test]
fn numbers_that_are_no_ids_of_the_layout_are_unfit_and_counted_nowhere_else() {
    let small: Layout = "31/0/4/16 epoch=2020-01-01 unit=1s".parse().unwrap();
    let subject = Subject::Snowflakes(Snowflakes { layout: small, now: UnixMicros(i64::MAX), max_drift: 0 });
    let largest = small.largest_id().cast_signed();
    let all = [i64::MIN, -1, 0, largest, largest + 1, i64::MAX];
    let findings = found(vec![ids(&all)], &subject);
    let unfit = [i64::MIN, -1, largest + 1, i64::MAX].map(|id| (Sort::Unfit, id, 1));
    assert_eq!(faults(&findings), unfit);
    assert!(text(&findings[0]).starts_with("It is negative"));
    let whys: Vec<_> = findings
        .iter()
        .filter_map(|finding| match finding {
            Finding::Unfit { why, .. } => Some(*why),
            _ => None,
        })
        .collect();
    assert_eq!(whys, [Unfit::Negative, Unfit::Negative, Unfit::Beyond(small), Unfit::Beyond(small)]);
    let workers: u64 = findings.iter().filter(|f| f.sort() == Sort::Worker).map(Finding::count).sum();
    assert_eq!(workers, 2);
}

#[test]
fn gaps_of_a_tag_are_told_in_steps_of_its_increment() {
    let findings = found(vec![ids(&[1, 4, 7, 16, 19])], &numbers(3, 1, Some(19)));
    assert_eq!(faults(&findings), []);
    assert_eq!(findings[0], Finding::Gap { first: 10, last: 13, ids: 2 });
    assert_eq!(text(&findings[0]), "No row has an id from 10 to 13.");
    // What another server of several may have given is none.
    assert_eq!(found(vec![ids(&[1, 4, 7])], &numbers(3, 1, None)), [Finding::Total { rows: 3 }]);
}

#[test]
fn numbers_of_another_share_or_above_what_is_reserved_are_faults() {
    let findings = found(vec![ids(&[-2, 1, 2, 3, 9])], &numbers(2, 1, Some(3)));
    let told = [(Sort::Unfit, -2, 1), (Sort::Unfit, 2, 1), (Sort::Future, 9, 1)];
    assert_eq!(faults(&findings), told);
    // Nor are there gaps before them.
    assert_eq!(findings.len(), 4);
    assert!(matches!(findings[2], Finding::Future { beyond: Beyond::Reserved(3), .. }), "{findings:?}");
}

#[test]
fn the_widest_gap_there_is_does_no_harm() {
    let findings = found(vec![ids(&[0, i64::MAX])], &numbers(1, 0, None));
    assert_eq!(findings[0], Finding::Gap { first: 1, last: i64::MAX - 1, ids: i64::MAX as u64 - 1 });
    // Nor does an increment that no row has.
    assert_eq!(found(vec![ids(&[0, 1])], &numbers(0, 0, None)), [Finding::Total { rows: 2 }]);
}

#[test]
fn no_more_of_a_sort_are_listed_than_asked_for() {
    let twice: Vec<_> = (0..50).flat_map(|id| [id, id]).collect();
    let findings = audit(vec![ids(&twice)], &numbers(1, 0, None), 3, |_| {}).unwrap();
    assert_eq!(faults(&findings[..3]), [0, 1, 2].map(|id| (Sort::Duplicate, id, 2)));
    let rest = [Finding::Total { rows: 100 }, Finding::Unlisted { of: Sort::Duplicate, findings: 47 }];
    assert_eq!(findings[3..], rest);
    assert!(findings[4].is_fault());
}

#[test]
fn nulls_are_counted() {
    let findings = found(vec![of(&[(Some(1), 0), (None, 0)]), of(&[(None, 0)])], &numbers(1, 0, None));
    assert_eq!(findings, [Finding::Null { rows: 2 }, Finding::Total { rows: 3 }]);
}

/// A server may say what it likes. Merged as it says it, its duplicates would be overlooked.
#[test]
fn a_source_that_does_not_ascend_is_refused() {
    let refused = |source| audit(vec![ids(&[0, 9]), source], &numbers(1, 0, None), 9, |_| {}).unwrap_err();
    let unsorted = |id, before| AuditError::Unsorted(Unsorted { source: 1, id, before });
    assert_eq!(refused(ids(&[3, 2])), unsorted(Some(2), Some(3)));
    assert_eq!(refused(of(&[(None, 0), (Some(2), 0)])), unsorted(Some(2), None));
}

/// What numbers that are no ids take for nodes is bounded.
#[test]
fn more_nodes_than_are_told_apart_are_counted_together() {
    let layout: Layout = "31/0/20/10 unit=1s epoch=2020-01-01".parse().unwrap();
    let subject = Subject::Snowflakes(Snowflakes { layout, now: UnixMicros(i64::MAX), max_drift: 0 });
    let all: Vec<_> = (0..i64::try_from(MAX_NODES).unwrap() + 5).map(|worker| worker << 10).collect();
    let findings = audit(vec![ids(&all)], &subject, 10, |_| {}).unwrap();
    let told: Vec<_> = findings.iter().map(|finding| (finding.sort(), finding.count())).collect();
    // One row for those together, which is one more than is listed.
    let workers = [(Sort::Worker, 1); 10];
    assert_eq!(told[1..11], workers);
    assert_eq!(told[12], (Sort::Unlisted, MAX_NODES as u64 + 1 - 10));
}

/// Rows without end, that take no memory.
struct Counting(i64);

impl Source for Counting {
    type Error = Infallible;

    fn next(&mut self) -> Result<Option<Stored>, Infallible> {
        self.0 += 1;
        let more = self.0.unsigned_abs() <= 2 * PROGRESS + 1;
        Ok(more.then_some(Stored { id: Some(self.0), table: 0 }))
    }
}

#[test]
fn progress_is_told() {
    let mut told = Vec::new();
    let findings = audit(vec![Counting(0)], &numbers(1, 0, None), 10, |rows| told.push(rows)).unwrap();
    assert_eq!(findings, [Finding::Total { rows: 2 * PROGRESS + 1 }]);
    assert_eq!(told, [PROGRESS, 2 * PROGRESS]);
}

#[test]
fn what_a_default_names_is_read() {
    let read = |text: &str| origin(text.as_bytes());
    let tag = |name: &str| Some(Origin::Tag(name.as_bytes().to_vec()));
    let generator = |name: &str| Some(Origin::Generator(name.as_bytes().to_vec()));
    assert_eq!(read("segment_nextval('orders'::text)"), tag("orders"));
    assert_eq!(read("segment_id('it''s'::text)"), tag("it's"));
    assert_eq!(read("segment_nextval(''''::text)"), tag("'"));
    assert_eq!(read("snowflake_nextval('web'::text)"), generator("web"));
    assert_eq!(read("snowflake_id('web'::text)"), generator("web"));
    for other in [
        "snowflake_nextval()",
        "segment_nextval(tag)",
        "segment_nextval('a'::text) + segment_nextval('b'::text)",
        "segment_nextval_text('a'::text)",
        "segment_nextval('a'::text || 'b'::text)",
        "segment_nextval('a'::text",
        "public.segment_nextval('a'::text)",
        "segment_nextval(''::text, '''::text)",
    ] {
        assert_eq!(read(other), None, "{other}");
    }
}

/// What is found by looking at all rows at once.
fn by_force(sources: &[Vec<(i64, u32)>], subject: &Numbers) -> Vec<(Sort, i64, u64)> {
    let mut rows: BTreeMap<i64, u64> = BTreeMap::new();
    for (id, _) in sources.iter().flatten() {
        *rows.entry(*id).or_default() += 1;
    }
    let is_one = |id: i64| id >= 0 && id % subject.increment == subject.remainder;
    let mut findings = Vec::new();
    for (id, rows) in &rows {
        if *rows > 1 {
            findings.push((Sort::Duplicate, *id, *rows));
        }
        if !is_one(*id) {
            findings.push((Sort::Unfit, *id, *rows));
        } else if subject.highest.is_some_and(|highest| *id > highest) {
            findings.push((Sort::Future, *id, *rows));
        }
    }
    let is_reserved = |id: i64| subject.highest.is_none_or(|highest| id <= highest);
    let ids: Vec<i64> = rows.keys().copied().filter(|id| is_one(*id) && is_reserved(*id)).collect();
    let (Some(lowest), Some(highest)) = (ids.first(), ids.last()) else { return findings };
    let mut missing = 0;
    for id in (*lowest..=*highest).filter(|id| is_one(*id)) {
        if ids.binary_search(&id).is_err() {
            missing += 1;
        } else if missing > 0 {
            let first = id - missing * subject.increment;
            findings.push((Sort::Gap, first, missing.unsigned_abs()));
            missing = 0;
        }
    }
    findings
}

/// The same for snowflake ids of a layout so small that all of it is met.
fn snowflakes_by_force(sources: &[Vec<(i64, u32)>], subject: &Snowflakes) -> Vec<(Sort, i64, u64)> {
    let all: Vec<i64> = sources.iter().flatten().map(|(id, _)| *id).collect();
    let mut findings = Vec::new();
    let mut ids = all.clone();
    ids.sort_unstable();
    ids.dedup();
    for id in ids {
        let rows = all.iter().filter(|other| **other == id).count() as u64;
        if rows > 1 {
            findings.push((Sort::Duplicate, id, rows));
        }
        match subject.layout.decode(id) {
            Err(_) => findings.push((Sort::Unfit, id, rows)),
            Ok(decoded) => {
                // A tick begins no later than what it may be ahead.
                if decoded.timestamp > subject.now.plus_micros(subject.max_drift) {
                    findings.push((Sort::Future, id, rows));
                }
            }
        }
    }
    findings
}

fn sorted(mut sources: Vec<Vec<(i64, u32)>>) -> (Vec<Vec<(i64, u32)>>, Vec<Listed>) {
    for rows in &mut sources {
        rows.sort_unstable_by_key(|(id, _)| *id);
    }
    let listed = sources
        .iter()
        .map(|rows| of(&rows.iter().map(|(id, table)| (Some(*id), *table)).collect::<Vec<_>>()));
    let listed = listed.collect();
    (sources, listed)
}

fn by_id(findings: &[Finding], wanted: &[Sort]) -> Vec<(Sort, i64, u64)> {
    let mut told: Vec<_> = findings
        .iter()
        .filter(|finding| wanted.contains(&finding.sort()))
        .map(|finding| (finding.sort(), finding.id().unwrap(), finding.count()))
        .collect();
    told.sort_unstable_by_key(|(sort, id, _)| (*id, *sort as u8));
    told
}

fn rows(ids: std::ops::Range<i64>) -> impl Strategy<Value = Vec<Vec<(i64, u32)>>> {
    prop::collection::vec(prop::collection::vec((ids, 0_u32..3), 0..60), 0..5)
}

proptest! {
    #[test]
    fn numbers_are_found_as_by_force(
        sources in rows(-5..60), increment in 1_i64..4, any in 0_i64..4, highest in prop::option::of(0_i64..60),
    ) {
        let subject = Numbers { increment, remainder: any % increment, highest };
        let (rows, listed) = sorted(sources);
        let findings = found(listed, &Subject::Numbers(subject));
        let mut forced = by_force(&rows, &subject);
        forced.sort_unstable_by_key(|(sort, id, _)| (*id, *sort as u8));
        prop_assert_eq!(by_id(&findings, &[Sort::Duplicate, Sort::Unfit, Sort::Future, Sort::Gap]), forced);
    }

    #[test]
    fn snowflakes_are_found_as_by_force(
        sources in rows(-5..600), first in any::<bool>(), now in -3_i64..70, max_drift in 0_u64..5_000_000,
    ) {
        let widths = if first { "5/1s/1/2" } else { "5/1/2/1" };
        let layout: Layout = format!("{widths} unit=1s epoch=2020-01-01").parse().unwrap();
        let now = UnixMicros(layout.epoch().0 + now * 500_000);
        let subject = Snowflakes { layout, now, max_drift };
        let (rows, listed) = sorted(sources);
        let findings = found(listed, &Subject::Snowflakes(subject));
        let told = by_id(&findings, &[Sort::Duplicate, Sort::Unfit, Sort::Future]);
        prop_assert_eq!(told, snowflakes_by_force(&rows, &subject));

        // Each row is counted once: in its day and for its node, or as unfit.
        let sum = |sort| findings.iter().filter(|f| f.sort() == sort).map(Finding::count).sum::<u64>();
        let total = rows.iter().flatten().count() as u64;
        prop_assert_eq!(sum(Sort::Total), total);
        prop_assert_eq!(sum(Sort::Day) + sum(Sort::Unfit), total);
        prop_assert_eq!(sum(Sort::Worker) + sum(Sort::Unfit), total);
        for finding in findings.iter().filter(|finding| finding.sort() == Sort::Worker) {
            let (datacenter, worker) = finding.node().unwrap();
            let theirs = rows.iter().flatten().filter(|(id, _)| {
                layout.decode(*id).is_ok_and(|d| (d.datacenter_id, d.worker_id) == (datacenter, worker))
            });
            prop_assert_eq!(theirs.count() as u64, finding.count());
        }
    }
}
