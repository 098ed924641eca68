//! The tag of a column or a sequence: created, raised above the ids that are in use, or adapted to a new column.

use super::error::ColumnError;
use super::facts::{Base, Column, Facts};
use crate::bound::Increment;
use serde::Deserialize;

/// Returns the tag for a column that is attached without a tag: the names of its table's schema and of the table, with a dot
/// between them. Quotes keep two tables from getting the same tag: a name that contains a dot is quoted, and if either name
/// contains a dot, so is each name that begins with a quote. `quoted` quotes as Postgres does.
pub fn named_after(schema: &[u8], table: &[u8], quoted: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let has_dot = |name: &[u8]| name.contains(&b'.');
    let any_has_dot = has_dot(schema) || has_dot(table);
    let name = |name: &[u8]| {
        let is_quoted = has_dot(name) || any_has_dot && name.starts_with(b"\"");
        if is_quoted { quoted(name) } else { name.to_vec() }
    };
    [name(schema), name(table)].join(&b'.')
}

/// A tag that exists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct KnownTag {
    /// The highest id that the tag gives.
    pub max_value: i64,
    /// The highest id that was reserved.
    pub max_id: i64,
    /// The period after which the tag starts again.
    pub reset: Option<String>,
    /// The distance of two ids.
    pub increment: i64,
    /// True if this transaction has created or changed the tag.
    pub is_new: bool,
    /// True if `attach` made the tag, and nobody has changed it or its privileges since.
    pub is_made: bool,
    /// True if other columns, sequences or servers may take ids of the tag.
    pub is_used: bool,
    /// The highest number that all columns whose default names the tag hold.
    pub most: i64,
}

impl KnownTag {
    /// Returns whether each id of the tag stands for a number of a sequence with this increment. The ids between belong to
    /// nobody, because `attach` made the tag for this sequence's column.
    pub const fn counts_as(&self, increment: i64) -> bool {
        increment > 1 && self.is_made && self.increment == increment
    }
}

/// A tag of a dropped column, or of a dropped sequence that was bound to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of the tables")]
pub struct LeftTag {
    /// The tag's name.
    pub tag: String,
    /// As [`KnownTag::is_made`].
    pub is_made: bool,
    /// True if only roles with privileges may use the tag.
    pub is_restricted: bool,
    /// True if a default or a bound sequence takes ids of the tag.
    pub is_used: bool,
    /// True if other servers or nodes take ids of the tag.
    pub is_elsewhere: bool,
}

impl LeftTag {
    /// Returns whether the tag is dropped with the column that it was made for.
    pub const fn goes(&self) -> bool {
        self.is_made && !self.is_restricted && !self.is_used && !self.is_elsewhere
    }
}

/// The numbers that a sequence counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// The first number.
    pub start: i64,
    /// The distance of two numbers.
    pub increment: i64,
}

impl Course {
    /// Numbers without gaps.
    pub const DENSE: Self = Self { start: 1, increment: 1 };

    /// Returns the course of the sequences that a column owns. Without such a sequence, with several courses, and with a
    /// course that no bound sequence can have, ids have no gaps.
    pub fn of(facts: &Facts, members: &[&Column]) -> Self {
        let owned = members.iter().flat_map(|member| &member.owned).filter_map(|oid| facts.sequence(*oid));
        let mut courses = owned.map(|found| Self { start: found.start, increment: found.increment });
        let first = courses.next().filter(|course| Increment::new(course.increment).is_ok());
        first.filter(|first| courses.all(|other| other.increment == first.increment)).unwrap_or(Self::DENSE)
    }
}

/// What a column or a sequence needs of a tag.
#[derive(Clone, Debug)]
pub struct Need<'a> {
    /// The tag's name.
    pub tag: &'a str,
    /// The id above which the tag must give its ids.
    pub highest: i64,
    /// The highest id that the tag may give; None if the tag's own limit counts.
    pub most: Option<i64>,
    /// The numbers that a new tag counts.
    pub course: Course,
    /// True if this transaction has created the column's table.
    pub is_new: bool,
}

/// A change of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagStep {
    /// Drops the tag.
    Drop,
    /// Creates the tag.
    Create {
        /// The highest id of the tag.
        max_value: i64,
        /// The distance of two ids.
        increment: i64,
        /// The remainder that ids leave when divided by the increment.
        remainder: i64,
    },
    /// Sets the highest id that the tag gives.
    Limit(i64),
    /// Raises the tag above this id.
    Raise(i64),
}

/// Decides how a tag gets fit for a column or a sequence. Registries do not keep the tag.
///
/// # Errors
/// [`ColumnError::TagFull`], [`ColumnError::TagResets`], [`ColumnError::TagEnds`] or [`ColumnError::TagExceeds`].
pub fn provide(known: Option<&KnownTag>, need: &Need<'_>) -> Result<Vec<TagStep>, ColumnError> {
    let (tag, highest, most) = (need.tag.to_owned(), need.highest, need.most.unwrap_or(i64::MAX));
    let create = || -> Vec<_> {
        let Course { start, increment } = need.course;
        let create = TagStep::Create { max_value: most, increment, remainder: start.rem_euclid(increment) };
        // A new tag begins above 0.
        let raise = (highest > 0).then_some(TagStep::Raise(highest));
        [create].into_iter().chain(raise).collect()
    };
    let Some(known) = known else {
        return match need.most {
            // The change reports that there is no such tag.
            None => Ok(vec![TagStep::Raise(highest)]),
            Some(most) if highest >= most => Err(ColumnError::TagFull { tag, highest, most }),
            Some(_) => Ok(create()),
        };
    };
    // Nobody misses a tag that was left when its table was dropped.
    let is_left = known.is_made && !known.is_used;
    if is_left && need.is_new && highest < most {
        return Ok([TagStep::Drop].into_iter().chain(create()).collect());
    }
    // A limit that equals the maximum of a narrower type was set by attach, when the column had that type.
    let was_narrow = [Base::Smallint, Base::Integer].iter().any(|base| base.maximum() == known.max_value);
    let widest = need.most.filter(|_| was_narrow).map_or(known.max_value, |most| most.min(known.most));
    let limit = widest.max(known.max_value).min(if is_left && highest < most { most } else { i64::MAX });
    if let Some(reset) = known.reset.clone() {
        Err(ColumnError::TagResets { tag, reset })
    } else if limit <= highest {
        Err(ColumnError::TagEnds { tag, limit, highest })
    } else if limit > most {
        Err(ColumnError::TagExceeds { tag, limit, most, is_new: known.is_new })
    } else {
        let limits = (limit != known.max_value).then_some(TagStep::Limit(limit));
        // Sessions keep the ids that they have buffered if the tag is above the column anyway.
        let is_above = highest <= 0 && known.is_made && known.max_id >= 0;
        let raise = (!is_above).then_some(TagStep::Raise(highest));
        Ok(limits.into_iter().chain(raise).collect())
    }
}
