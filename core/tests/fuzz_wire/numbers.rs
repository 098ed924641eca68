//! Questions and answers about keys of dense series.

use super::TODAY;
use snowflake_ids_core::number_registry::{FoundRow, KeyRow, NumberRegistry, SharedSeries, reserve_numbers};
use snowflake_ids_core::series::dense::RowKey;
use snowflake_ids_core::series::{Key, MAX_KEY_BYTES};
use snowflake_ids_core::tag_rows::LockWait;
use snowflake_ids_core::wire::{
    KeyReached, MAX_WANTS, Numbers, NumbersOutcome, NumbersRequest, NumbersWant, SharedKey, SharedTerms,
};
use std::collections::BTreeMap;

const MAX_VALUE: i64 = 1_000_000_000_000;
const MAX_STEP: u32 = 100;
/// What no question knows that was made up.
const VERSION: i64 = 0x5eed_0000_0014;

/// A registry where every key that is asked for has had numbers, which another node got.
#[derive(Default)]
struct Table {
    terms: Option<SharedTerms>,
    rows: BTreeMap<RowKey, KeyRow>,
}

const FOUND: KeyRow = KeyRow { reached: KeyReached { last: 20, day: 0 }, version: Some(VERSION) };

impl NumberRegistry for Table {
    type Error = ();

    fn shared_series(&mut self, _: &str) -> Result<SharedSeries, ()> {
        let there = |terms| SharedSeries::There { id: 1, terms, max_value: MAX_VALUE, max_step: MAX_STEP };
        Ok(self.terms.clone().map_or(SharedSeries::Unknown, there))
    }

    fn key(&mut self, key: &SharedKey) -> Option<Key> {
        key.to_key(|text| Some(text.as_bytes().to_vec()))
    }

    fn read(&mut self, rows: &[RowKey], _: LockWait) -> Result<Vec<FoundRow>, ()> {
        Ok(rows.iter().map(|row| FoundRow::There(*self.rows.entry(row.clone()).or_insert(FOUND))).collect())
    }

    fn write(&mut self, rows: &[(RowKey, KeyRow, bool)]) -> Result<Vec<bool>, ()> {
        self.rows.extend(rows.iter().map(|(row, says, _)| (row.clone(), *says)));
        Ok(vec![true; rows.len()])
    }

    fn random(&mut self) -> i64 {
        VERSION
    }
}

/// What a registry would do about it, whose series is as the question says: no row goes back, and none on by more than was asked for.
pub fn obey(asked: &NumbersRequest) {
    assert!((1..=128).contains(&asked.series.chars().count()));
    assert!(asked.wants.len().max(asked.returns.len()) <= MAX_WANTS);
    let mut table = Table { terms: Some(asked.terms.clone()), ..Table::default() };
    let Ok(Numbers::Done { outcomes, .. }) = reserve_numbers(&mut table, asked, TODAY.day) else {
        panic!("the series is there: {asked:?}")
    };
    let most: i64 = asked.wants.iter().map(|want| i64::from(want.waiting.max(MAX_STEP))).sum();
    // The row may be behind what a node received, by twice max_step, of each want anew.
    let most = most + i64::try_from(asked.wants.len()).unwrap() * i64::from(2 * MAX_STEP);
    for (row, now) in &table.rows {
        let KeyReached { last, day } = now.reached;
        assert!(
            (day, last) >= (FOUND.reached.day, FOUND.reached.last),
            "{row:?} goes back to {now:?}: {asked:?}"
        );
        assert!(day <= TODAY.day + 1, "{row:?} is of day {day}: {asked:?}");
        let furthest = FOUND.reached.last.max(asked.terms.start).saturating_add(most);
        assert!(last <= furthest, "{row:?} goes on to {last}: {asked:?}");
        assert!(!matches!(&row.key, Key::Text(text) if text.len() > MAX_KEY_BYTES));
    }
    for outcome in outcomes {
        if let NumbersOutcome::Given { first, last, day, .. } = outcome {
            assert!(first <= last && (day > 0 || first > FOUND.reached.last), "{outcome:?}: {asked:?}");
        }
    }
}

/// What a node that has received 20 numbers would believe: how much of it.
pub fn believe(told: &Numbers) -> usize {
    let Numbers::Done { outcomes, .. } = told else { return 0 };
    let want = |day| NumbersWant {
        key: SharedKey::Bigint(7),
        day,
        waiting: 3,
        ahead: 10,
        max_value: 1_000,
        received: Some(KeyReached { last: 20, day: 0 }),
        version: None,
    };
    let believed = |day: i32| {
        let is_believed = move |outcome: &&NumbersOutcome| outcome.check(&want(day), 1, TODAY.day).is_ok();
        let given = outcomes.iter().filter(is_believed).filter_map(|outcome| match outcome {
            NumbersOutcome::Given { first, last, day, .. } => Some((*first, *last, *day)),
            _ => None,
        });
        given.inspect(move |(first, last, of)| {
            assert!((1..=1_000).contains(first) && (*first..first + 10).contains(last), "{told:?}");
            assert!(
                if day == 0 { *of == 0 && *first > 20 } else { (day..=TODAY.day + 1).contains(of) },
                "{told:?}"
            );
        })
    };
    believed(0).count() + believed(TODAY.day).count()
}
