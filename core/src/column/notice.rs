//! Notices about a column that takes ids from now on.

use super::default::quoted;
use super::error::Obstacle;
use crate::error::Explain;
use serde::Deserialize;

/// A use of a column or a sequence that the user should know. The shell reads the first ones as JSON from the catalogs.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, thiserror::Error, Explain)]
#[serde(tag = "use", rename_all = "lowercase")]
pub enum Notice {
    /// A CHECK of the column or of its domain.
    #[error("{name} applies to new ids")]
    #[explain(Notice, detail = "{definition}")]
    Check { name: String, definition: String },
    /// A generated column, an index or a partition key that calculates with the column.
    #[error("{name} is calculated from the column")]
    #[explain(
        Notice,
        detail = "{definition}",
        hint = "If it cannot hold numbers of 64 bits, INSERT fails; change it first."
    )]
    Calculated { name: String, definition: String },
    #[error(
        "column \"{attribute}\" of relation \"{table}\" has no default, and may be filled by trigger \"{trigger}\""
    )]
    #[explain(Notice, detail = "It owns sequence \"{sequence}\", and gets a default now, too.")]
    #[explain(
        hint = "If the trigger uses the sequence, bind the sequence instead of attaching the column: SELECT snowflake_ids.bind_sequence({}, {});",
        quoted(sequence),
        quoted(kind)
    )]
    Trigger { attribute: String, table: String, trigger: String, sequence: String, kind: String },
    #[error("relation \"{table}\" is partitioned by range of the column and has no partition for higher ids")]
    #[explain(Notice, hint = "Create a partition that ends at MAXVALUE, or a default partition.")]
    Partitions { table: String },
    #[error(
        "column \"{attribute}\" of relation \"{table}\" references the column, and cannot hold ids above {most}"
    )]
    #[explain(Notice, hint = "Widen it before ids reach this value.")]
    NarrowReference { attribute: String, table: String, most: i64 },
    #[error("column \"{attribute}\" of relation \"{table}\" also gets ids")]
    #[explain(Notice, detail = "It takes them from sequence \"{sequence}\".")]
    OtherUser { attribute: String, table: String, sequence: String },
    #[error(
        "default of column \"{attribute}\" of relation \"{table}\" calculates with numbers of sequence \"{sequence}\""
    )]
    #[explain(Notice, detail = "It is {expression}.")]
    #[explain(
        hint = "If the result cannot hold numbers of 64 bits, it is cut off, or INSERT fails; change it first."
    )]
    CalculatingUser { attribute: String, table: String, sequence: String, expression: String },
    #[error("default {expression} of column \"{attribute}\" of relation \"{table}\" is replaced")]
    #[explain(Notice)]
    Replaced { expression: String, attribute: String, table: String },
    #[error("other servers may still give ids of segment tag \"{tag}\" up to {highest}")]
    #[explain(
        Notice,
        detail = "They reserved these ids before the registry learned of the ids of the column."
    )]
    #[explain(
        hint = "On each other server that uses the registry: SELECT snowflake_ids.segment_discard({});",
        quoted(tag)
    )]
    Reserved { tag: String, highest: i64 },
    #[error("segment tag \"{tag}\" is kept")]
    #[explain(Notice, hint = "If nothing else uses it: SELECT snowflake_ids.segment_drop({});", quoted(tag))]
    TagKept { tag: String },
    #[error(
        "column \"{attribute}\" of relation \"{table}\" shares its segment tag with column \"{other}\" of relation \"{of}\""
    )]
    #[explain(Notice, hint = "For ids of its own, attach it with a tag of another name.")]
    SharedTag { attribute: String, table: String, other: String, of: String },
    #[error(
        "sequence \"{sequence}\" gives the ids, and column \"{attribute}\" of relation \"{table}\" keeps its default"
    )]
    #[explain(
        Notice,
        detail = "The column is not its only user.",
        hint = "COPY must list the column, because it calls nextval without this extension."
    )]
    KeepsDefault { sequence: String, attribute: String, table: String },
    #[error("roles that may use sequence \"{sequence}\" may need privileges on segment tag \"{tag}\"")]
    #[explain(Notice, detail = "The tag is restricted. These roles have rights on the sequence: {holders}.")]
    #[explain(hint = "Grant them USAGE with snowflake_ids.segment_grant.")]
    Holders { sequence: String, tag: String, holders: String },
    #[error(
        "column \"{attribute}\" of relation \"{table}\" was an identity and gets the default of its sequence"
    )]
    #[explain(Notice, detail = "An identity column must be of type bigint, integer or smallint.")]
    WasIdentity { attribute: String, table: String },
    #[error("column \"{attribute}\" of relation \"{table}\" is {type_name} and keeps its sequence")]
    #[explain(
        Warning,
        detail = "Snowflake ids have 64 bits, and snowflake_ids.new_columns is {ids}.",
        hint = "Make it bigint in the migration, or widen it later and then call snowflake_ids.attach."
    )]
    #[serde(skip)]
    StaysNarrow { attribute: String, table: String, type_name: String, ids: String },
    #[error("column \"{attribute}\" of relation \"{table}\" keeps its sequence, which cannot be bound")]
    #[explain(
        Warning,
        detail_with = obstacle.detail().unwrap_or_default(),
        hint = "If several servers insert into the table, make the sequence count up in the migration."
    )]
    #[serde(skip)]
    StaysUnbound { attribute: String, table: String, obstacle: Obstacle },
    #[error("tables that inherit from \"{table}\" have no default for column \"{attribute}\"")]
    #[explain(
        Notice,
        detail = "Rows inserted into them directly need one: {without}.",
        hint = "Detach with kind => 'sequence' to also give them a default."
    )]
    WithoutDefault { table: String, attribute: String, without: String },
    #[error("sequence \"{sequence}\" continues above the column's highest value")]
    #[explain(
        Notice,
        detail = "It was at its maximum, where DROP EXTENSION or a dump of the table alone leaves a bound sequence."
    )]
    Resumed { sequence: String },
    #[error("column \"{attribute}\" of relation \"{table}\" continues from its highest id")]
    #[explain(Notice, detail = "The highest id is {highest}. Snowflake ids that are in the column stay.")]
    Continues { attribute: String, table: String, highest: i64 },
    #[error("sequence \"{sequence}\" stays of type bigint")]
    #[explain(Notice, detail = "It was of type {type_name}, and goes on at {number}.")]
    StaysBigint { sequence: String, type_name: String, number: i64 },
    #[error("sequence \"{sequence}\" is not restarted")]
    #[explain(
        Notice,
        detail = "It gives ids of segment tag \"{tag}\", which a registry gives to other servers, too."
    )]
    #[explain(hint = "To restart the tag, move it at the registry, with snowflake_ids.segment_set.")]
    Registered { sequence: String, tag: String },
    #[error("sequence \"{sequence}\" is not restarted")]
    #[explain(
        Notice,
        detail = "It gives ids of segment tag \"{tag}\", of which other nodes of this Citus cluster hold some."
    )]
    #[explain(
        hint = "To restart the tag, with no inserts meanwhile: SELECT snowflake_ids.segment_set({}, 0, true), and on each other node SELECT snowflake_ids.segment_discard({}).",
        quoted(tag),
        quoted(tag)
    )]
    Clustered { sequence: String, tag: String },
    #[error("sequence \"{sequence}\" is not restarted")]
    #[explain(Notice, detail = "Others take ids of segment tag \"{tag}\", too.")]
    #[explain(
        hint = "To restart the tag for all of them: SELECT snowflake_ids.segment_set({}, 0, true).",
        quoted(tag)
    )]
    Shared { sequence: String, tag: String },
    #[error("{0}")]
    #[serde(skip)]
    #[explain(Notice, detail_with = _0.detail().unwrap_or_default())]
    #[explain(
        hint = "The sequence is dropped, and lastval() does not see the ids of the column. To keep the sequence, attach with sequence => 'keep'."
    )]
    SequenceDropped(Obstacle),
}
