//! Columns that are created with a sequence of their own, while `snowflake_ids.new_columns` gives them ids.

use super::default::IdKind;
use super::facts::{Base, Sequence};
use super::notice::Notice;
use super::verdict::lasting_obstacle;
use crate::named_enum::named_enum;
use serde::Deserialize;

named_enum! {
    /// The ids that new columns take. `Bound`: their sequences give snowflake ids.
    #[expect(missing_docs, reason = "the values of the setting")]
    pub enum NewIds {
        Snowflake = "snowflake",
        Segment = "segment",
        Bound = "bound",
    }
}

/// A new column that has a sequence of its own.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NewColumn {
    /// The table's name.
    pub table: String,
    /// The column's name.
    pub attribute: String,
    /// The column's number.
    pub number: i16,
    /// The name of the type, without its domains.
    pub type_name: String,
    /// The type, without its domains.
    pub base: Base,
    /// The OID of the sequence.
    pub sequence: u32,
}

/// What happens to a new column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is attached, to ids of this kind.
    Attached(IdKind),
    /// Its sequence is bound.
    Bound,
    /// It keeps its sequence.
    Kept(Notice),
}

impl NewColumn {
    /// Decides what happens to the column, whose sequence is given.
    pub fn fate(&self, ids: NewIds, sequence: &Sequence) -> Fate {
        let (attribute, table) = (self.attribute.clone(), self.table.clone());
        match ids {
            NewIds::Snowflake | NewIds::Bound if self.base != Base::Bigint => {
                Fate::Kept(Notice::StaysNarrow {
                    attribute,
                    table,
                    type_name: self.type_name.clone(),
                    ids: ids.to_string(),
                })
            }
            NewIds::Snowflake => Fate::Attached(IdKind::Snowflake),
            NewIds::Segment => Fate::Attached(IdKind::Segment),
            NewIds::Bound => lasting_obstacle(sequence).map_or(Fate::Bound, |obstacle| {
                Fate::Kept(Notice::StaysUnbound { attribute, table, obstacle })
            }),
        }
    }

    /// Returns message, DETAIL and HINT of the error that the column gets no ids, from those of the cause.
    pub fn failed(
        &self,
        ids: NewIds,
        message: &str,
        detail: Option<&str>,
        hint: Option<&str>,
    ) -> [String; 3] {
        let Self { attribute, table, .. } = self;
        let hint = hint.map(|hint| format!("{hint} Or ")).unwrap_or_default();
        [
            format!("could not attach new column \"{attribute}\" of relation \"{table}\": {message}"),
            detail.map_or_else(|| format!("snowflake_ids.new_columns is {ids}."), ToOwned::to_owned),
            format!(
                "{hint}SET snowflake_ids.new_columns = off, where no other server inserts into the table."
            ),
        ]
    }
}
