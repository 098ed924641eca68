//! What was handed out, and what is wrong with it.

use snowflake_ids_core::series::dense::{RowKey, SHORT_TEXT_BYTES};
use std::collections::{BTreeMap, BTreeSet};

/// A key of a series of a database.
pub type Id = (u32, RowKey);

#[derive(Default)]
pub struct Ledger {
    given: BTreeMap<(Id, i32), BTreeSet<i64>>,
    /// What keys were set to.
    floors: BTreeMap<(Id, i32), i64>,
    /// Keys of which a call was told that they have no number left.
    exhausted: BTreeSet<Id>,
    pub wrong: Option<String>,
}

impl Ledger {
    pub fn fault(&mut self, wrong: &str) {
        let wrong = wrong.replace(&"107, ".repeat(SHORT_TEXT_BYTES), "");
        self.wrong.get_or_insert(wrong);
    }

    /// What calls that begin now are above, in a period.
    pub fn floors(&self, id: &Id) -> Vec<(i32, i64)> {
        let of = self.floors.iter().filter(|((key, _), _)| key == id);
        of.map(|((_, day), floor)| (*day, *floor)).collect()
    }

    pub fn set(&mut self, id: Id, day: i32, value: i64) {
        self.floors.insert((id, day), value);
    }

    /// A call that asked for a day has a number of a day.
    pub fn give(&mut self, id: &Id, asked: i32, floors: &[(i32, i64)], day: i32, number: i64) {
        if day < asked {
            self.fault(&format!("{id:?} gave {number} of day {day} on day {asked}"));
        }
        if let Some((_, floor)) = floors.iter().find(|(of, floor)| *of == day && number <= *floor) {
            self.fault(&format!("{id:?} gave {number} of day {day} after it was set to {floor}"));
        }
        self.note(id, day, number);
    }

    /// A number is in use.
    pub fn note(&mut self, id: &Id, day: i32, number: i64) {
        if !self.given.entry((id.clone(), day)).or_default().insert(number) {
            self.fault(&format!("{id:?} gave {number} of day {day} twice"));
        }
    }

    pub fn exhausted(&mut self, id: Id) {
        self.exhausted.insert(id);
    }

    /// The last number of a key in a period.
    pub fn last(&self, id: &Id, day: i32) -> Option<i64> {
        self.given.get(&(id.clone(), day))?.last().copied()
    }

    /// Whether any number is missing: those of a key are the first `n`, and all up to the highest where it has none left.
    pub fn check_complete(&mut self, start: i64, max_value: impl Fn(&Id) -> i64) {
        let mut wrong = None;
        for ((id, day), numbers) in &self.given {
            let missing = (start..).zip(numbers).find(|(wanted, number)| wanted != *number);
            if let Some((missing, _)) = missing {
                wrong.get_or_insert(format!("{id:?} of day {day} misses {missing}: {numbers:?}"));
            }
        }
        for id in &self.exhausted {
            let all = self.given.iter().filter(|((of, _), _)| of == id).map(|(_, numbers)| numbers);
            if !all.into_iter().any(|numbers| numbers.last() == Some(&max_value(id))) {
                wrong.get_or_insert(format!("{id:?} was said to have no number left"));
            }
        }
        if let Some(wrong) = wrong {
            self.fault(&wrong);
        }
    }
}
