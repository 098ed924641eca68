//! The verdict on a column that a series fills. A trigger fills it with the next number of the key in another column.

use super::default::quoted;
use crate::error::Explain;
use crate::series::{Series, SeriesKind};
use serde::Deserialize;

/// Facts of a table with a column to fill. The kind and the owners are those in `pg_class`.
#[expect(missing_docs, reason = "the names of facts")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FilledTable {
    pub name: String,
    pub kind: char,
    pub owner: u32,
    /// True if the caller has the rights of the owner.
    pub is_owned: bool,
    /// The column to fill and the column of the key, if they exist.
    pub columns: Vec<FilledColumn>,
    /// The table and the tables below that have rows: OID, name, owner, and the owner's quoted name.
    pub members: Vec<(u32, String, u32, String)>,
    /// True if a trigger of a series fills the column.
    pub is_attached: bool,
}

/// The column to fill, or the column of the key. `base` is the type without its domains and modifiers.
#[expect(clippy::struct_excessive_bools, missing_docs, reason = "independent facts of the catalogs")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FilledColumn {
    pub name: String,
    pub ident: String,
    pub table: String,
    pub type_name: String,
    pub base: String,
    pub is_filled: bool,
    pub is_key: bool,
    pub is_generated: bool,
    pub is_identity: bool,
    pub has_default: bool,
    pub is_partition_key: bool,
}

/// The reason why a series cannot fill a column.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum FillError {
    #[error("relation, column and key_column must not be null")]
    #[explain(Null)]
    NullArgument,
    #[error("cannot attach a column to a series in a {0} transaction")]
    #[explain(Unsupported, detail = "The transaction's snapshot may lack the newest rows.")]
    #[explain(hint = "Use a transaction of isolation level read committed.")]
    Isolation(String),
    #[error("{0} is not a table")]
    #[explain(WrongObject, detail = "Only columns of ordinary and partitioned tables can be attached.")]
    NotATable(String),
    #[error("must be owner of table {0}")]
    #[explain(Denied)]
    NotOwner(String),
    #[error("table {0} was changed meanwhile")]
    #[explain(Changed, hint = "Try again.")]
    Changed(String),
    #[error("column \"{column}\" of table {table} does not exist")]
    #[explain(UndefinedColumn)]
    NoColumn { column: String, table: String },
    #[error("column \"{}\" of table {} is generated", .0.name, .0.table)]
    #[explain(WrongObject, detail = "The server fills it by itself.", hint = "Choose a plain column.")]
    Generated(Box<FilledColumn>),
    #[error("column \"{}\" of table {} is an identity column", .0.name, .0.table)]
    #[explain(WrongObject, detail = "The server fills it by itself.")]
    #[explain(hint = "First drop the identity: ALTER TABLE {} ALTER COLUMN {} DROP IDENTITY;", _0.table, _0.ident)]
    Identity(Box<FilledColumn>),
    #[error("key column \"{}\" of table {} is generated", .0.name, .0.table)]
    #[explain(WrongObject, detail = "The server computes its values after the trigger has run.")]
    #[explain(hint = "Choose a plain column.")]
    GeneratedKey(Box<FilledColumn>),
    #[error("column \"{}\" of table {} has a default", .0.name, .0.table)]
    #[explain(NotReady)]
    #[explain(
        detail = "The trigger fills only nulls, and the default would fill the column before the trigger runs."
    )]
    #[explain(hint = "First drop the default: ALTER TABLE {} ALTER COLUMN {} DROP DEFAULT;", _0.table, _0.ident)]
    HasDefault(Box<FilledColumn>),
    #[error("column \"{}\" cannot be its own key", .0.name)]
    #[explain(BadArgument)]
    #[explain(hint = "Name another column as the key. Each value of the key column has numbers of its own.")]
    OwnKey(Box<FilledColumn>),
    #[error("column \"{}\" of table {} is of type {}", .0.name, .0.table, .0.type_name)]
    #[explain(OtherType)]
    #[explain(
        detail = "A series fills columns of type bigint, integer or smallint with the number, and columns of type text or varchar with the formatted number."
    )]
    OtherType(Box<FilledColumn>),
    #[error("column \"{}\" of type {} cannot hold all numbers of series \"{}\"", .0.name, .0.type_name, .1)]
    #[explain(OutOfRange, detail = "Its max_value is {2}.")]
    #[explain(hint = "Lower max_value with snowflake_ids.series_alter, or change the column to bigint.")]
    Narrow(Box<FilledColumn>, String, i64),
    #[error("key column \"{}\" of table {} is of type {}", .0.name, .0.table, .0.base)]
    #[explain(OtherType, detail = "Keys of series \"{1}\" are of type {2}.")]
    #[explain(hint = "Choose another column, or a series whose keys are of this type.")]
    OtherKeyType(Box<FilledColumn>, String, &'static str),
    #[error("column \"{}\" of table {} is part of its partition key", .0.name, .0.table)]
    #[explain(Unsupported, detail = "The trigger would move rows to another partition.")]
    PartitionKey(Box<FilledColumn>),
    #[error("column \"{}\" of table {} is attached to a series already", .0.name, .0.table)]
    #[explain(Duplicate, hint = "Detach the column first with snowflake_ids.series_detach.")]
    Attached(Box<FilledColumn>),
    #[error("column \"{column}\" of table {table} is not attached to a series")]
    #[explain(Undefined, detail = "No trigger of snowflake_ids fills the column.")]
    #[explain(hint = "If the column was renamed, give the name that it had when it was attached.")]
    NotAttached { column: String, table: String },
    #[error("table {table} has rows with numbers")]
    #[explain(
        NotReady,
        detail = "The series must continue above these numbers, and only the owner of the table may read them.",
        hint = "Grant UPDATE on the series to role {owner}, which owns the table. Then that role can call snowflake_ids.series_attach."
    )]
    HasNumbers { table: String, owner: String },
    #[error("series \"{series}\" does not start above the numbers in table {table}")]
    #[explain(detail = "The highest number cannot be determined if numbers restart or are stored as text.")]
    #[explain(Notice, hint = "Set each key with snowflake_ids.series_set before you insert rows.")]
    NotAbove { series: String, table: String },
    #[error("cannot attach distributed table {table} to a series")]
    #[explain(Unsupported, detail = "Citus does not support triggers on distributed tables.")]
    #[explain(
        hint = "First distribute the series with snowflake_ids.series_distribute. Then call series_nextval in the INSERT, or set a default that reads the key from a setting: series_nextval({}, current_setting(...)).",
        quoted(series)
    )]
    Distributed { table: String, series: String },
    #[error("cannot attach table {0}, which is partitioned by an expression")]
    #[explain(Unsupported, detail = "The partition key may call functions of the table's owner.")]
    #[explain(hint = "Attach its partitions, or use snowflake_ids.series_nextval in the INSERT.")]
    PartitionedByExpression(String),
}

/// A step by which a series comes to fill a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FillStep {
    /// Raises the counters of the keys above the numbers in a table of the caller.
    RaiseAbove(u32),
    /// Fails with the error, or sends the notice, of the first of these tables that has numbers.
    Look(Vec<(u32, FillError)>),
    /// Creates the trigger that fills the column, and one that raises the counters to the numbers that rows bring.
    #[expect(missing_docs, reason = "false without the second trigger")]
    Fill { follows: bool },
}

impl FilledTable {
    /// Checks the table itself, before it is locked.
    pub fn check(&self) -> Result<(), FillError> {
        if !matches!(self.kind, 'r' | 'p') {
            return Err(FillError::NotATable(self.name.clone()));
        }
        if self.is_owned { Ok(()) } else { Err(FillError::NotOwner(self.name.clone())) }
    }

    /// Returns the steps by which a series, named `shown`, comes to fill the column `names[0]` for the keys in the column
    /// `names[1]`; or the first reason against it. `role` is the caller.
    pub fn judge(
        &self,
        names: [&str; 2],
        (series, shown): (&Series, &str),
        role: u32,
    ) -> Result<Vec<FillStep>, FillError> {
        let no = |column: &str| FillError::NoColumn { column: column.to_owned(), table: self.name.clone() };
        let filled = self.columns.iter().find(|column| column.is_filled).ok_or_else(|| no(names[0]))?;
        let key = self.columns.iter().find(|column| column.is_key).ok_or_else(|| no(names[1]))?;
        let (is_number, most) = match filled.type_name.split('(').next() {
            Some("bigint") => (true, i64::MAX),
            Some("integer") => (true, i32::MAX.into()),
            Some("smallint") => (true, i16::MAX.into()),
            Some("text" | "character varying") => (false, i64::MAX),
            _ => (false, -1),
        };
        let key_type = match key.base.as_str() {
            "integer" | "smallint" => "bigint",
            "character varying" => "text",
            other => other,
        };
        let (of, of_key, shown) =
            (|| Box::new(filled.clone()), || Box::new(key.clone()), || shown.to_owned());
        let (wanted, max_value) = (series.key_type.name(), series.max_value);
        let reasons = [
            (filled.is_generated, FillError::Generated(of())),
            (filled.is_identity, FillError::Identity(of())),
            (key.is_generated, FillError::GeneratedKey(of_key())),
            (filled.has_default, FillError::HasDefault(of())),
            (filled.is_key, FillError::OwnKey(of())),
            (most < 0, FillError::OtherType(of())),
            (max_value > most, FillError::Narrow(of(), shown(), max_value)),
            (key_type != wanted, FillError::OtherKeyType(of_key(), shown(), wanted)),
            (filled.is_partition_key, FillError::PartitionKey(of())),
            (self.is_attached, FillError::Attached(of())),
        ];
        if let Some((_, reason)) = reasons.into_iter().find(|(holds, _)| *holds) {
            return Err(reason);
        }
        // Texts, and numbers that start over with each period, do not show their period.
        let is_counted = is_number && series.reset.is_none();
        let (mut steps, mut others) = (Vec::new(), Vec::new());
        for (oid, table, owner, ident) in &self.members {
            let (table, owner_name) = (table.clone(), ident.clone());
            match is_counted {
                true if *owner == role => steps.push(FillStep::RaiseAbove(*oid)),
                true => others.push((*oid, FillError::HasNumbers { table, owner: owner_name })),
                false => others.push((*oid, FillError::NotAbove { series: shown(), table })),
            }
        }
        let follows = is_counted && series.kind == SeriesKind::Gapless;
        steps.extend([FillStep::Look(others), FillStep::Fill { follows }]);
        Ok(steps)
    }
}
