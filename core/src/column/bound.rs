//! Sequences while they are bound: properties that they cannot have meanwhile, and the number at which they continue.

use super::error::ColumnError;
use super::facts::{Base, Sequence};
use super::node::Numbers;
use super::notice::Notice;
use crate::bound::Increment;
use serde::Deserialize;

/// Returns the changes of ALTER SEQUENCE that a sequence needs to be bound. Unbinding undoes them.
pub fn changes_to_bind(sequence: &Sequence) -> impl Iterator<Item = &'static str> + use<> {
    let changes = [
        (sequence.base != Base::Bigint, "AS bigint"),
        (sequence.cycles, "NO CYCLE"),
        (sequence.persistence == 'u', "SET LOGGED"),
    ];
    changes.into_iter().filter_map(|(is_needed, change)| is_needed.then_some(change))
}

/// Returns the position at which a sequence resumes that was bound when the extension was dropped; None for any other sequence.
/// A position has a number, and whether the number was given. `stored` is the highest number in the column.
pub fn resumed(sequence: &Sequence, at: (i64, bool), stored: Option<i64>) -> Option<(i64, bool)> {
    // The maximum of bigint, which no sequence reaches by counting.
    let was_left = sequence.bound.is_none() && sequence.increment > 0 && at == (i64::MAX, true);
    let last = stored.filter(|stored| *stored >= sequence.start);
    (was_left && stored != Some(sequence.max))
        .then(|| last.map_or((sequence.start, false), |last| (last, true)))
}

/// A bound sequence, with properties that it had before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Unbinding {
    /// The sequence's name, as `regclass` prints it.
    pub name: String,
    /// The first number.
    pub start: i64,
    /// The increment.
    pub increment: i64,
    /// The highest number.
    pub max: i64,
    /// The last number that was given; None if it is not known.
    pub last_number: Option<i64>,
    /// True if a number stands for one id of the tag.
    pub is_single: bool,
    /// The name of the former type.
    pub type_name: String,
    /// The former type.
    pub base: Base,
    /// True if the sequence had CYCLE.
    pub cycles: bool,
    /// True if the sequence was unlogged.
    pub is_unlogged: bool,
}

impl Unbinding {
    /// Returns the number at which the sequence continues above an id. The sequence would have reached this number by its own
    /// increment: a sequence of odd numbers stays odd.
    ///
    /// # Errors
    /// [`ColumnError::MaximumBelow`] or [`ColumnError::Increment`].
    pub fn number_above(&self, highest: i64) -> Result<i64, ColumnError> {
        let number = self.following(highest, self.max)?;
        number.ok_or_else(|| ColumnError::MaximumBelow {
            sequence: self.name.clone(),
            max: self.max,
            highest,
        })
    }

    /// Returns the number at which the sequence of a distributed table continues on a node: above `highest`, and within the
    /// node's own numbers. Its last number may be an id of another node.
    ///
    /// # Errors
    /// [`ColumnError::EndsOnNode`] or [`ColumnError::Increment`].
    pub fn number_on_node(&self, numbers: &Numbers, highest: Option<i64>) -> Result<i64, ColumnError> {
        let given = self.last_number.filter(|given| *given <= numbers.last);
        let Some(highest) = given.max(highest) else { return Ok(self.start) };
        let max = self.max.min(numbers.last.saturating_add(1));
        let number = self.following(highest, max)?;
        number.ok_or_else(|| ColumnError::EndsOnNode { sequence: self.name.clone(), max, highest })
    }

    fn following(&self, highest: i64, max: i64) -> Result<Option<i64>, ColumnError> {
        let increment = Increment::new(self.increment)?.of_tag(self.is_single);
        let (start, by) = (i128::from(self.start), i128::from(self.increment));
        let distance = i128::from(increment.resume_above(highest)) + 1 - start;
        let number = start + (distance.max(0) + by - 1) / by * by;
        Ok(i64::try_from(number).ok().filter(|number| *number <= max))
    }

    /// Returns the changes of ALTER SEQUENCE that restore the former properties of a sequence that continues at `number`. The
    /// type stays bigint, with a notice, if the numbers do not fit the former type.
    pub fn changes_to_restore(&self, number: i64) -> (Vec<&'static str>, Option<Notice>) {
        let is_beyond = number > self.base.maximum();
        let of_type = match self.base {
            Base::Smallint => "AS smallint",
            _ => "AS integer",
        };
        let changes = [
            (self.base.is_narrow() && !is_beyond, of_type),
            (self.cycles, "CYCLE"),
            (self.is_unlogged, "SET UNLOGGED"),
        ];
        let told = is_beyond.then(|| Notice::StaysBigint {
            sequence: self.name.clone(),
            type_name: self.type_name.clone(),
            number,
        });
        (changes.into_iter().filter_map(|(is_needed, change)| is_needed.then_some(change)).collect(), told)
    }
}
