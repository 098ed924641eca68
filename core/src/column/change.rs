//! Statements that meet a column that was an identity, and takes ids by its default now. Stock Postgres is the model: a
//! column that was GENERATED ALWAYS still refuses values, and OVERRIDING means what it meant.

use super::error::ColumnError;
use super::facts::{Base, Column, IdentityKind};

/// A statement that has a value for a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of statements")]
pub enum Write {
    Insert,
    InsertOverridingSystemValue,
    InsertOverridingUserValue,
    Update,
}

/// The value that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The value of the statement.
    Written,
    /// The column's default.
    Default,
}

/// Decides which value a statement stores in a column that was an identity. `is_default` is true if the statement's value is
/// the column's default in each row.
///
/// # Errors
/// [`Refused`], for a column that was GENERATED ALWAYS.
pub fn stored(identity: IdentityKind, write: Write, is_default: bool) -> Result<Stored, Refused> {
    match (identity, write) {
        (_, Write::InsertOverridingUserValue) => Ok(Stored::Default),
        (IdentityKind::Always, Write::Insert | Write::Update) if !is_default => Err(Refused(write)),
        _ => Ok(Stored::Written),
    }
}

/// The statement whose value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(Write);

impl Refused {
    /// Returns the error for the column of this name.
    pub fn of(self, attribute: impl Into<String>) -> ColumnError {
        let error = if self.0 == Write::Update { ColumnError::GivenUpdate } else { ColumnError::GivenValue };
        error(attribute.into())
    }
}

/// A subcommand of ALTER TABLE on a column that was an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Altered {
    /// DROP IDENTITY.
    Dropped,
    /// ADD GENERATED ... AS IDENTITY.
    Added,
    /// SET GENERATED, and SET or RESTART of the sequence.
    Set,
    /// SET DEFAULT and DROP DEFAULT.
    Default,
    /// DROP DEFAULT of a column that a child only inherits. `pg_dump --clean` writes it before it drops the child.
    InheritedDefault,
}

/// The meaning of such a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The column loses its default and its sequence.
    pub drops: bool,
    /// The server runs the subcommand.
    pub is_written: bool,
    /// The new identity's sequence is bound as the former one was, so that ids go on.
    pub binds: bool,
}

/// Returns the meaning of a subcommand; None if it is refused. `is_dropped` is true if the same statement has dropped the identity
/// before.
pub const fn meaning(altered: Altered, is_dropped: bool) -> Option<Meaning> {
    let adds = matches!(altered, Altered::Added);
    match altered {
        Altered::Default if !is_dropped => None,
        Altered::Default | Altered::InheritedDefault | Altered::Set => {
            Some(Meaning { drops: false, is_written: !matches!(altered, Altered::Set), binds: false })
        }
        Altered::Dropped | Altered::Added => {
            Some(Meaning { drops: !is_dropped, is_written: adds, binds: adds && !is_dropped })
        }
    }
}

/// The options of ALTER SEQUENCE that no bound sequence takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceChange {
    /// AS, with another type than bigint.
    pub base: Option<Base>,
    /// True if AS follows the type of the sequence's identity column.
    pub is_of_column: bool,
    /// MAXVALUE.
    pub max: Option<i64>,
    /// OWNED BY.
    pub gives_away: bool,
}

/// A bound sequence that ALTER SEQUENCE meets.
#[derive(Clone, Copy, Debug)]
pub struct BoundSequence<'a> {
    /// The name, as `regclass` prints it.
    pub name: &'a str,
    /// The highest number, at which the sequence stands.
    pub max: i64,
    /// The column that owns the sequence.
    pub owner: Option<&'a Column>,
    /// True if this column was an identity.
    pub is_former: bool,
    /// True if the sequence gives the ids of a tag.
    pub is_segment: bool,
}

impl SequenceChange {
    /// Returns whether a bound sequence may refuse the change.
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// Returns whether the sequence keeps its type: a bound one is bigint, and the tag's limit follows the column's type.
    pub const fn keeps_type(&self, bound: &BoundSequence<'_>) -> bool {
        self.is_of_column && bound.is_segment
    }

    /// Fails if the change is refused.
    ///
    /// # Errors
    /// [`ColumnError::IdentitySequence`], [`ColumnError::Narrowed`] or [`ColumnError::SequenceEnds`].
    pub fn check(&self, bound: &BoundSequence<'_>) -> Result<(), ColumnError> {
        let sequence = bound.name.to_owned();
        let base = self.base.filter(|_| !self.keeps_type(bound));
        match (bound.owner, base) {
            (Some(owner), _) if self.gives_away && bound.is_former => {
                return Err(ColumnError::IdentitySequence { sequence, table: owner.table.name.clone() });
            }
            (Some(owner), Some(base)) if owner.identity.is_some() => {
                return Err(ColumnError::narrowed(owner, base));
            }
            _ => {}
        }
        let most = base.map_or(i64::MAX, Base::maximum).min(self.max.unwrap_or(i64::MAX));
        if most < bound.max { Err(ColumnError::SequenceEnds { sequence, most }) } else { Ok(()) }
    }
}
