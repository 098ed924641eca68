//! What nodes and registries say to each other of the numbers of dense series: what is believed, and what a registry does about it.
#![cfg(not(loom))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use snowflake_ids_core::number_registry::{FoundRow, KeyRow, NumberRegistry, SharedSeries, reserve_numbers};
use snowflake_ids_core::series::dense::RowKey;
use snowflake_ids_core::series::{Key, MAX_KEY_BYTES, MAX_STEP};
use snowflake_ids_core::tag_rows::LockWait;
use snowflake_ids_core::wire::{
    self, KeyReached, MAX_WANTS, Numbers, NumbersOutcome, NumbersRequest, NumbersReturn, NumbersWant,
    Request, RequestBody, SharedKey, SharedTerms,
};
use std::collections::BTreeMap;
use std::time::Duration;

const TODAY: i32 = 20_000;
const MAX_VALUE: i64 = 100_000;
const LARGEST: i64 = 10;

fn terms() -> SharedTerms {
    SharedTerms { key_type: "bigint".into(), start: 1, reset: None, time_zone: String::new() }
}

fn want(key: i64) -> NumbersWant {
    let key = SharedKey::Bigint(key);
    NumbersWant { key, day: 0, waiting: 1, ahead: 5, max_value: i64::MAX, received: None, version: None }
}

fn back(key: i64, last: i64, version: i64, given: i64) -> NumbersReturn {
    NumbersReturn { key: SharedKey::Bigint(key), reserved: KeyReached { last, day: 0 }, version, given }
}

fn ask(returns: Vec<NumbersReturn>, wants: Vec<NumbersWant>) -> NumbersRequest {
    NumbersRequest { series: "d".into(), terms: terms(), returns, wants }
}

fn received(last: i64) -> KeyReached {
    KeyReached { last, day: 0 }
}

/// A registry's rows, some of which are locked by others, and how rows were waited for.
#[derive(Default)]
struct Table {
    rows: BTreeMap<RowKey, KeyRow>,
    locked: Vec<i64>,
    waits: Vec<LockWait>,
    version: i64,
}

impl NumberRegistry for Table {
    type Error = ();

    fn shared_series(&mut self, name: &str) -> Result<SharedSeries, ()> {
        let there = SharedSeries::There { id: 1, terms: terms(), max_value: MAX_VALUE, max_step: 10 };
        Ok(if name == "d" { there } else { SharedSeries::Unknown })
    }

    fn key(&mut self, key: &SharedKey) -> Option<Key> {
        key.to_key(|_| None)
    }

    fn read(&mut self, rows: &[RowKey], wait: LockWait) -> Result<Vec<FoundRow>, ()> {
        assert!(rows.is_sorted(), "{rows:?}");
        self.waits.push(wait);
        let of = |row: &RowKey| match self.rows.get(row) {
            Some(_) if self.locked.iter().any(|key| row.key == Key::Bigint(*key)) => FoundRow::Locked,
            Some(row) => FoundRow::There(*row),
            None => FoundRow::None,
        };
        Ok(rows.iter().map(of).collect())
    }

    fn write(&mut self, rows: &[(RowKey, KeyRow, bool)]) -> Result<Vec<bool>, ()> {
        for (row, says, is_new) in rows {
            assert_eq!(self.rows.insert(row.clone(), *says).is_none(), *is_new);
        }
        Ok(vec![true; rows.len()])
    }

    fn random(&mut self) -> i64 {
        self.version += 1 << 32;
        self.version
    }
}

impl Table {
    fn serve(&mut self, asked: &NumbersRequest) -> (Vec<bool>, Vec<NumbersOutcome>) {
        match reserve_numbers(self, asked, TODAY).unwrap() {
            Numbers::Done { returned, outcomes } => (returned, outcomes),
            other => panic!("{other:?}"),
        }
    }

    fn reserve(&mut self, want: NumbersWant) -> NumbersOutcome {
        self.serve(&ask(vec![], vec![want])).1[0]
    }

    fn last(&self, key: i64) -> Option<i64> {
        self.rows.get(&RowKey { series: 1, key: Key::Bigint(key) }).map(|row| row.reached.last)
    }
}

fn range(outcome: NumbersOutcome) -> (i64, i64) {
    let NumbersOutcome::Given { first, last, .. } = outcome else { panic!("{outcome:?}") };
    (first, last)
}

#[test]
fn numbers_ahead_are_for_who_had_the_last_ones() {
    let mut table = Table::default();
    // A new key has as many as wait.
    assert_eq!(range(table.reserve(want(7))), (1, 1));
    assert_eq!(range(table.reserve(NumbersWant { received: Some(received(1)), ..want(7) })), (2, 6));
    // Another node, and then this one after it.
    assert_eq!(range(table.reserve(want(7))), (7, 7));
    assert_eq!(range(table.reserve(NumbersWant { received: Some(received(6)), ..want(7) })), (8, 8));
    let idle = NumbersWant { waiting: 0, received: Some(received(6)), ..want(7) };
    assert_eq!(table.reserve(idle), NumbersOutcome::Nothing);
    let many = NumbersWant { ahead: MAX_STEP, received: Some(received(8)), ..want(7) };
    assert_eq!(range(table.reserve(many)), (9, 8 + LARGEST), "more than the registry's own max_step");
}

#[test]
fn a_row_that_is_behind_is_raised_and_not_by_any_number() {
    let mut table = Table::default();
    assert_eq!(
        range(table.reserve(NumbersWant { received: Some(received(2 * LARGEST)), ..want(7) })),
        (21, 21)
    );
    let far = |last| NumbersWant { received: Some(received(last)), ..want(7) };
    assert_eq!(table.reserve(far(21 + 2 * LARGEST + 1)), NumbersOutcome::Behind);
    assert_eq!(table.reserve(far(i64::MAX)), NumbersOutcome::Behind);
    assert_eq!(table.last(7), Some(21));
    assert_eq!(range(table.reserve(far(21 + 2 * LARGEST))), (42, 42));
}

#[test]
fn only_the_last_reservation_is_returned_and_once() {
    let mut table = Table::default();
    table.reserve(want(7));
    let NumbersOutcome::Given { last, version, .. } =
        table.reserve(NumbersWant { received: Some(received(1)), ..want(7) })
    else {
        panic!("nothing is given")
    };
    for wrong in [back(7, last, version + 1, 3), back(7, last - 1, version, 3), back(8, last, version, 3)] {
        assert_eq!(table.serve(&ask(vec![wrong], vec![])).0, [true]);
        assert_eq!(table.last(7), Some(last));
    }
    // What is wanted of the key goes on there.
    let again = NumbersWant { received: Some(received(3)), ..want(7) };
    let (returned, outcomes) = table.serve(&ask(vec![back(7, last, version, 3)], vec![again]));
    assert_eq!((returned, range(outcomes[0])), (vec![true], (4, 8)));
    table.serve(&ask(vec![back(7, last, version, 3)], vec![]));
    assert_eq!(table.last(7), Some(8));
    table.locked.push(7);
    let (returned, outcomes) = table.serve(&ask(vec![back(7, 8, version, 5)], vec![want(7)]));
    assert_eq!((returned, outcomes), (vec![false], vec![NumbersOutcome::Locked]));
}

#[test]
fn no_more_comes_back_than_was_reserved() {
    for (count, before) in [(1, 20), (5, 20), (65_535, 20), (70_000, 20 + 70_000 - 65_535)] {
        let mut table = Table::default();
        table.reserve(NumbersWant { waiting: 20, ..want(7) });
        let NumbersOutcome::Given { last, version, .. } =
            table.reserve(NumbersWant { waiting: count, ..want(7) })
        else {
            panic!("nothing is given")
        };
        // Those below are others', whatever a node says.
        table.serve(&ask(vec![back(7, last, version, -1)], vec![]));
        assert_eq!(table.last(7), Some(before), "{count}");
    }
}

#[test]
fn what_a_node_had_right_before_comes_back_too() {
    for (off, back_to) in [(Some(0), 1), (Some(1 << 16), 2), (None, 2)] {
        let mut table = Table::default();
        table.reserve(want(7));
        let NumbersOutcome::Given { version: held, last, .. } =
            table.reserve(NumbersWant { waiting: 1, ahead: 0, ..want(7) })
        else {
            panic!("nothing is given")
        };
        assert_eq!(last, 2);
        let version = off.map(|off| held + off);
        let more = NumbersWant { received: Some(received(2)), version, ..want(7) };
        let NumbersOutcome::Given { version, last, .. } = table.reserve(more) else {
            panic!("nothing is given")
        };
        table.serve(&ask(vec![back(7, last, version, -1)], vec![]));
        assert_eq!(table.last(7), Some(back_to), "{version}");
    }
}

#[test]
fn a_key_that_is_alone_is_waited_for() {
    let mut table = Table::default();
    table.serve(&ask(vec![], vec![want(9), want(7)]));
    table.serve(&ask(vec![back(7, 1, 0, 0)], vec![want(7)]));
    table.serve(&ask(vec![], vec![]));
    assert_eq!(table.waits, [LockWait::Skip, LockWait::Wait]);
}

#[test]
fn what_differs_is_refused() {
    let mut table = Table::default();
    let said = |table: &mut Table, asked: NumbersRequest| reserve_numbers(table, &asked, TODAY).unwrap();
    let other = NumbersRequest { series: "e".into(), ..ask(vec![], vec![want(7)]) };
    assert_eq!(said(&mut table, other), Numbers::Unknown);
    for terms in [
        SharedTerms { start: 0, ..terms() },
        SharedTerms { key_type: "text".into(), ..terms() },
        SharedTerms { reset: Some("day".into()), time_zone: "UTC".into(), ..terms() },
    ] {
        let other = NumbersRequest { terms, ..ask(vec![], vec![want(7)]) };
        assert_eq!(said(&mut table, other), Numbers::Differs);
    }
    let text = NumbersWant { key: SharedKey::Text("7".into()), ..want(7) };
    assert_eq!(table.reserve(text), NumbersOutcome::NoKey);
    assert_eq!(table.reserve(NumbersWant { day: TODAY + 2, ..want(7) }), NumbersOutcome::Ahead);
    assert_eq!(range(table.reserve(NumbersWant { day: TODAY + 1, ..want(7) })), (1, 1));
    // No more than either has.
    assert_eq!(range(table.reserve(NumbersWant { max_value: 5, waiting: 9, ..want(8) })), (1, 5));
    assert_eq!(table.reserve(NumbersWant { max_value: 5, ..want(8) }), NumbersOutcome::Exhausted);
    assert_eq!(range(table.reserve(NumbersWant { waiting: 500_000, ..want(9) })), (1, MAX_VALUE));
    assert_eq!(table.reserve(want(9)), NumbersOutcome::Exhausted);
}

#[test]
fn a_node_believes_what_can_be() {
    let want = NumbersWant { waiting: 2, ahead: 5, max_value: 100, received: Some(received(10)), ..want(7) };
    let given = |first, last, day| NumbersOutcome::Given { first, last, day, version: 1 };
    for sound in [given(11, 15, 0), given(50, 50, 0), NumbersOutcome::Locked, NumbersOutcome::Behind] {
        assert_eq!(sound.check(&want, 1, TODAY), Ok(()));
    }
    for wrong in [
        given(10, 11, 0),
        given(0, 1, 0),
        given(i64::MIN, i64::MAX, 0),
        given(12, 11, 0),
        given(11, 16, 0),
        given(100, 101, 0),
        given(11, 15, 1),
    ] {
        assert!(wrong.check(&want, 1, TODAY).is_err(), "{wrong:?}");
    }
    let dated = NumbersWant { day: TODAY - 3, ..want };
    for (day, is_sound) in
        [(TODAY - 4, false), (TODAY - 3, true), (TODAY + 1, true), (TODAY + 2, false), (0, false)]
    {
        assert_eq!(given(1, 1, day).check(&dated, 1, TODAY).is_ok(), is_sound, "day {day}");
    }
}

#[test]
fn requests_have_bounds() {
    let accepted = |asked: NumbersRequest| {
        let ask = RequestBody::ReserveNumbers(Box::new(asked));
        let request = Request { version: wire::VERSION, registry: None, timeout: Duration::ZERO, ask };
        Request::accept(&request.to_text().unwrap()).is_ok()
    };
    let of = |want: NumbersWant| ask(vec![], vec![want]);
    let text = |bytes| SharedKey::Text("x".repeat(bytes));
    assert!(accepted(ask(vec![back(7, 5, 1, -1)], vec![want(7); MAX_WANTS])));
    assert!(accepted(of(NumbersWant { key: text(4 * MAX_KEY_BYTES), ..want(7) })));
    assert!(accepted(of(NumbersWant {
        waiting: MAX_STEP,
        ahead: MAX_STEP,
        received: Some(received(i64::MAX)),
        ..want(7)
    })));
    for (what, asked) in [
        ("keys", ask(vec![], vec![want(7); MAX_WANTS + 1])),
        ("returns", ask(vec![back(7, 5, 1, 4); MAX_WANTS + 1], vec![])),
        ("a key", of(NumbersWant { key: text(4 * MAX_KEY_BYTES + 1), ..want(7) })),
        ("no name", NumbersRequest { series: String::new(), ..ask(vec![], vec![]) }),
        ("a name", NumbersRequest { series: "x".repeat(129), ..ask(vec![], vec![]) }),
        ("numbers", of(NumbersWant { waiting: MAX_STEP + 1, ..want(7) })),
        ("numbers ahead", of(NumbersWant { ahead: MAX_STEP + 1, ..want(7) })),
        ("a day", of(NumbersWant { day: -1, ..want(7) })),
        ("a late day", of(NumbersWant { day: i32::MAX, ..want(7) })),
        ("received", of(NumbersWant { received: Some(received(-2)), ..want(7) })),
        ("nothing to return", ask(vec![back(7, 5, 1, 5)], vec![])),
        ("less than nothing", ask(vec![back(7, 5, 1, -2)], vec![])),
    ] {
        assert!(!accepted(asked), "{what}");
    }
}

#[test]
fn a_key_starts_over_when_a_period_begins_and_on_no_other_day() {
    // The first days of 2024, and the first of February.
    const YEAR: i32 = 19_723;
    const MONTH: i32 = YEAR + 31;
    let accepted = |reset: Option<&str>, day| {
        let terms = SharedTerms { reset: reset.map(Into::into), time_zone: "UTC".into(), ..terms() };
        let asked = NumbersRequest { terms, ..ask(vec![], vec![NumbersWant { day, ..want(7) }]) };
        let ask = RequestBody::ReserveNumbers(Box::new(asked));
        let request = Request { version: wire::VERSION, registry: None, timeout: Duration::ZERO, ask };
        Request::accept(&request.to_text().unwrap()).is_ok()
    };
    let days = [0, 1, YEAR, YEAR + 1, MONTH, MONTH + 1];
    for (reset, begins) in [
        (None, [true, false, false, false, false, false]),
        (Some("day"), [true; 6]),
        (Some("month"), [true, false, true, false, true, false]),
        (Some("year"), [true, false, true, false, false, false]),
    ] {
        assert_eq!(days.map(|day| accepted(reset, day)), begins, "{reset:?}");
    }
}

#[test]
fn keys_are_the_same_in_every_encoding() {
    let uuid = Key::Uuid(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
    for key in [Key::Bigint(i64::MIN), uuid, Key::Text(b"\xe9t\xe9".as_slice().into())] {
        let latin = |bytes: &[u8]| Some(bytes.iter().copied().map(char::from).collect::<String>());
        let back = |text: &str| text.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect();
        assert_eq!(SharedKey::of(&key, latin).unwrap().to_key(back), Some(key));
    }
    assert_eq!(SharedKey::Text("x".repeat(MAX_KEY_BYTES + 1)).to_key(|text| Some(text.into())), None);
}
