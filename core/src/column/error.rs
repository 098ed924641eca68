//! The reasons why a column cannot take ids, or a sequence cannot be bound; and why a statement on such a column is refused:
//! COPY, INSERT, UPDATE, ALTER TABLE, ALTER SEQUENCE.

use super::default::{self, IdKind, quoted};
use super::facts::{Base, Binding, Column, Sequence};
use crate::bound::BoundSequenceError;
use crate::error::Explain;

/// Reason why a column is refused. Each message names what it is about.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum ColumnError {
    #[error("{0} must not be null")]
    #[explain(BadArgument)]
    NullArgument(&'static str),
    #[error("unrecognized kind \"{0}\"")]
    #[explain(BadArgument, hint = "Known kinds are snowflake and segment.")]
    UnknownKind(String),
    #[error("unrecognized kind \"{0}\"")]
    #[explain(BadArgument, hint = "Known kinds are sequence, identity and none.")]
    UnknownSource(String),
    #[error("unrecognized value for sequence: \"{0}\"")]
    #[explain(BadArgument, hint = "Known values are redirect, keep and drop.")]
    UnknownSequenceFate(String),
    #[error("snowflake ids have no tag")]
    #[explain(BadArgument, detail = "The tag given is \"{0}\".")]
    #[explain(hint = "Omit the tag, or use kind => 'segment'.")]
    HasTag(String),
    #[error("ids of a segment tag have no generator")]
    #[explain(BadArgument, detail = "The generator given is \"{0}\".")]
    #[explain(hint = "Omit the generator, or use kind => 'snowflake'.")]
    HasGenerator(String),
    #[error("permission denied for function {function}")]
    #[explain(Denied, detail = "Role {role} does not manage segment tags in this database.")]
    #[explain(
        hint = "Ask the owner of the database or a superuser to run SELECT snowflake_ids.administration_grant('tags', {}).",
        quoted(current_user)
    )]
    NotManager { function: String, role: String, current_user: String },
    #[error("{procedure} cannot run inside a transaction block")]
    #[explain(InTransaction, detail = "The procedure commits after each group of columns.")]
    #[explain(hint = "CALL snowflake_ids.{procedure} outside of BEGIN and COMMIT.")]
    InBlock { procedure: String },
    #[error("the column has changed meanwhile")]
    #[explain(NotReady)]
    ColumnChanged,
    #[error("relation with OID {0} does not exist")]
    #[explain(NoTable)]
    NoRelation(u32),
    #[error("cannot attach or detach a column in a {0} transaction")]
    #[explain(Unsupported, hint = "Use a transaction of isolation level read committed.")]
    Isolation(String),
    #[error("column \"{attribute}\" of relation \"{table}\" is not attached")]
    #[explain(NotReady, detail_with = expression.as_ref().map_or_else(
        || "It has no default.".to_owned(),
        |expression| format!("Its default is {expression}."),
    ))]
    #[explain(hint_with = sequence.as_ref().map_or_else(
        || "Detach only columns whose default is snowflake_nextval() or segment_nextval(tag).".to_owned(),
        |sequence| format!(
            "To unbind the sequence of the column, for all columns that use the sequence: SELECT snowflake_ids.unbind_sequence({});",
            quoted(sequence)
        ),
    ))]
    NotAttached { attribute: String, table: String, expression: Option<String>, sequence: Option<String> },
    #[error("column \"{attribute}\" of relation \"{table}\" already takes ids of tag \"{tag}\"")]
    #[explain(
        Unsupported,
        detail = "While nodes change to the new tag one after another, both tags could give the same ids.",
        hint = "First SELECT snowflake_ids.detach({}, {}). Then attach the column to the new tag.",
        quoted(table),
        quoted(attribute)
    )]
    OtherTag { attribute: String, table: String, tag: String },
    #[error("no higher ids are left for column \"{attribute}\" of relation \"{table}\"")]
    #[explain(
        Exhausted,
        detail = "The highest value in the column is {highest}, the maximum of type {type_name}."
    )]
    #[explain(hint = "First give lower ids to the rows with the highest ids.")]
    NoRoom { attribute: String, table: String, type_name: String, highest: i64 },
    #[error("column \"{attribute}\" of relation \"{table}\" has ids above the next id")]
    #[explain(NotReady, detail = "The highest value is {highest}; {} returned {next}.", written.replace("::text", ""))]
    #[explain(hint = "{hint}")]
    BelowHighest { attribute: String, table: String, highest: i64, written: String, next: i64, hint: String },
    #[error("table \"{0}\" is a distributed table, and this node is a worker")]
    #[explain(
        NotReady,
        detail = "Its columns are attached and detached on all nodes, from the coordinator.",
        hint = "Connect to the coordinator, and call the function there."
    )]
    OnWorker(String),
    #[error("\"{0}\" is not a table")]
    #[explain(
        WrongObject,
        detail = "Only columns of ordinary and partitioned tables can be attached or detached.",
        hint = "For a sequence, call snowflake_ids.bind_sequence."
    )]
    NotATable(String),
    #[error("\"{0}\" is not a sequence")]
    #[explain(
        WrongObject,
        detail = "Only sequences can be bound.",
        hint = "For the column of a table, call snowflake_ids.attach."
    )]
    NotASequence(String),
    #[error("must be owner of table {0}")]
    #[explain(Denied, hint = "Ask the owner of the table to attach or detach the column.")]
    NotOwner(String),
    #[error("column \"{attribute}\" of relation \"{table}\" does not exist")]
    #[explain(UndefinedColumn, hint = "Check the spelling of the column; names are case-sensitive here.")]
    NoColumn { attribute: String, table: String },
    #[error("column \"{attribute}\" of relation \"{table}\" must be bigint")]
    #[explain(BadArgument, detail = "It is {type_name}; ids have 64 bits.", hint_with = if *is_narrow {
        format!(
            "Widen the column, and all columns that reference it, which rewrites their tables: \
             ALTER TABLE {table} ALTER COLUMN {ident} TYPE bigint. Or attach the column with kind => 'segment'."
        )
    } else {
        "Attach a column of type bigint.".to_owned()
    })]
    Type { attribute: String, table: String, ident: String, type_name: String, is_narrow: bool },
    #[error("column \"{attribute}\" of relation \"{table}\" is a generated column")]
    #[explain(
        BadArgument,
        detail = "Its values are computed.",
        hint = "Attach a column that can be written to."
    )]
    Generated { attribute: String, table: String },
    /// Since Postgres 17, a partition shares its parent's identity.
    #[error("column \"{attribute}\" of relation \"{table}\" is an identity of its partitioned table")]
    #[explain(
        NotReady,
        detail = "The identity cannot be dropped from one partition alone.",
        hint = "Call snowflake_ids.attach for the partitioned table."
    )]
    ParentsIdentity { attribute: String, table: String },
    #[error("column \"{attribute}\" of relation \"{table}\" is a foreign key without a default")]
    #[explain(
        NotReady,
        detail = "The values of the column come from table {of}.",
        hint = "Attach the column that the foreign key references."
    )]
    ForeignKey { attribute: String, table: String, of: String },
    #[error(
        "default of column \"{attribute}\" of relation \"{table}\" is not a plain nextval() of a sequence"
    )]
    #[explain(NotReady, detail = "It is {}.", expression.as_deref().unwrap_or("an expression"))]
    #[explain(hint = "Bind the sequence with snowflake_ids.bind_sequence, or drop the default first.")]
    Calculates { attribute: String, table: String, expression: Option<String> },
    #[error(
        "column \"{attribute}\" of relation \"{table}\" cannot hold ids of the column that it references"
    )]
    #[explain(NotReady, detail = "The maximum of type {type_name} is {most}.")]
    #[explain(hint = "Widen it first: ALTER TABLE {table} ALTER COLUMN {ident} TYPE bigint.")]
    NarrowReference { attribute: String, table: String, ident: String, type_name: String, most: i64 },
    #[error("sequence \"{sequence}\" has other users than column \"{attribute}\" of relation \"{table}\"")]
    #[explain(
        NotReady,
        detail = "If the sequence is not bound, the other users still get its own numbers.",
        hint = "Omit the argument sequence => '{fate}', so that the sequence is bound."
    )]
    HasOtherUsers { sequence: String, attribute: String, table: String, fate: &'static str },
    #[error(
        "default of column \"{attribute}\" of relation \"{member}\" does not use sequence \"{sequence}\""
    )]
    #[explain(
        NotReady,
        detail = "The default of relation \"{table}\" uses the sequence. Binding a sequence that has several users does not change defaults.",
        hint = "First set this default to nextval() of the sequence, or drop the default."
    )]
    OtherDefault { attribute: String, member: String, sequence: String, table: String },
    #[error("column \"{other}\" of relation \"{of}\" uses the identity sequence of relation \"{table}\"")]
    #[explain(NotReady, detail = "Attaching the identity column would drop sequence \"{sequence}\".")]
    #[explain(
        hint = "Bind the sequence instead: SELECT snowflake_ids.bind_sequence({}, {}); or drop the other default first.",
        quoted(sequence),
        quoted(kind.name())
    )]
    IdentityShared { sequence: String, table: String, other: String, of: String, kind: IdKind },
    #[error("must be owner of sequence {sequence}")]
    #[explain(Denied, detail = "It is owned by role \"{owner}\".")]
    #[explain(hint = "Ask that role to bind or unbind the sequence.")]
    NotSequenceOwner { sequence: String, owner: String },
    #[error("table owner must be owner of sequence \"{sequence}\"")]
    #[explain(
        Denied,
        detail = "Column \"{attribute}\" of relation \"{table}\" is not the only user of the sequence.",
        hint = "Ask the owner of the sequence to bind it with snowflake_ids.bind_sequence."
    )]
    LentSequence { sequence: String, attribute: String, table: String },
    #[error("sequence \"{sequence}\" is bound to other ids")]
    #[explain(NotReady, detail = "It gives {bound}.")]
    #[explain(
        hint = "Attach the column with the kind, tag and generator of the sequence, or first SELECT snowflake_ids.unbind_sequence({});",
        quoted(sequence)
    )]
    BoundToOthers { sequence: String, bound: Binding },
    #[error(
        "sequence \"{sequence}\" also serves column \"{attribute}\" of relation \"{table}\", which cannot hold the ids"
    )]
    #[explain(NotReady, detail = "The maximum of type {type_name} is {most}.")]
    #[explain(hint = "Change that column to a wider type first.")]
    NarrowUser { sequence: String, attribute: String, table: String, type_name: String, most: i64 },
    #[error("permission denied for segment tag \"{tag}\"")]
    #[explain(
        Denied,
        detail = "The tag is the default for \"{relation}\", whose owner does not have the UPDATE privilege on the tag.",
        hint = "Pass another tag in the call. To use this tag nevertheless, pass its name."
    )]
    TagDenied { tag: String, relation: String },
    #[error("column \"{attribute}\" of relation \"{table}\" cannot be of type {type_name}")]
    #[explain(
        NotReady,
        detail = "It takes ids of snowflake_ids, and the maximum of the type is {most}.",
        hint = "First SELECT snowflake_ids.detach({}, {}), or unbind the column's sequence with snowflake_ids.unbind_sequence.",
        quoted(table),
        quoted(attribute)
    )]
    Narrowed { attribute: String, table: String, type_name: String, most: i64 },
    #[error("cannot insert a non-DEFAULT value into column \"{0}\"")]
    #[explain(
        GeneratedAlways,
        detail = "It takes ids of snowflake_ids, and was an identity column defined as GENERATED ALWAYS.",
        hint = "Use OVERRIDING SYSTEM VALUE to override."
    )]
    GivenValue(String),
    #[error("column \"{0}\" can only be updated to DEFAULT")]
    #[explain(
        GeneratedAlways,
        detail = "It takes ids of snowflake_ids, and was an identity column defined as GENERATED ALWAYS.",
        hint = "Leave the column out, or set it to DEFAULT."
    )]
    GivenUpdate(String),
    #[error("column \"{attribute}\" of relation \"{table}\" is an identity column")]
    #[explain(
        Syntax,
        detail = "It takes ids of snowflake_ids, and was an identity.",
        hint = "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY, or detach the column."
    )]
    IsIdentity { attribute: String, table: String },
    #[error("cannot change ownership of identity sequence")]
    #[explain(
        Unsupported,
        detail = "Sequence \"{sequence}\" is linked to table \"{table}\".",
        hint = "First detach the column, or unbind the sequence: SELECT snowflake_ids.unbind_sequence({});",
        quoted(sequence)
    )]
    IdentitySequence { sequence: String, table: String },
    #[error("bound sequence \"{sequence}\" cannot end at {most}")]
    #[explain(
        NotReady,
        detail = "Its numbers are ids of snowflake_ids, which may be higher.",
        hint = "First SELECT snowflake_ids.unbind_sequence({});",
        quoted(sequence)
    )]
    SequenceEnds { sequence: String, most: i64 },
    #[error("no ids are left for segment tag \"{tag}\"")]
    #[explain(
        Exhausted,
        detail = "The column and its sequence can hold ids up to {most}; the highest id in use is {highest}."
    )]
    #[explain(
        hint = "Raise MAXVALUE of the sequence, if there is one, or change the column to a wider type."
    )]
    TagFull { tag: String, most: i64, highest: i64 },
    #[error("segment tag \"{tag}\" starts again every {reset}")]
    #[explain(
        BadArgument,
        detail = "The ids of the column would repeat.",
        hint = "Attach with a tag that has no reset, or omit the argument tag to create a new tag."
    )]
    TagResets { tag: String, reset: String },
    #[error("max_value of segment tag \"{tag}\" is below the highest id of the column")]
    #[explain(Exhausted, detail = "Its max_value is {limit}; the highest id of the column is {highest}.")]
    #[explain(hint = "Raise max_value with snowflake_ids.segment_alter, or attach with another tag.")]
    TagEnds { tag: String, limit: i64, highest: i64 },
    #[error("max_value of segment tag \"{tag}\" is above the maximum of the column or its sequence")]
    #[explain(
        BadArgument,
        detail = "Its max_value is {limit}; the column and its sequence end at {most}.",
        hint_with = if *is_new {
            // After a rollback the tag may be gone.
            "Give the columns of the tag one type, or name another tag.".to_owned()
        } else {
            format!("Lower it with SELECT snowflake_ids.segment_alter({}, max_value => {most}), or name another tag.", quoted(tag))
        }
    )]
    TagExceeds { tag: String, limit: i64, most: i64, is_new: bool },
    #[error("sequence \"{0}\" is at the maximum of type bigint")]
    #[explain(
        Exhausted,
        detail = "No higher ids are left for the sequence. DROP EXTENSION, or a dump of a part of the database, leaves a bound \
                  sequence at this maximum.",
        hint = "If DROP EXTENSION or a dump caused this, SELECT setval({}, number) with the highest number in use. Then bind \
                the sequence again.",
        quoted(_0)
    )]
    AtMaximum(String),
    #[error("sequence \"{sequence}\" has issued numbers above the next snowflake id")]
    #[explain(NotReady, detail = "The highest value is {highest}; {} returned {next}.", written.replace("::text", ""))]
    #[explain(hint = "Bind the sequence with kind => 'segment'.")]
    SequenceAbove { sequence: String, highest: i64, written: String, next: i64 },
    #[error("COPY cannot fill column \"{attribute}\" of relation \"{table}\"")]
    #[explain(
        Unsupported,
        detail = "Its default takes ids from bound sequence \"{sequence}\", and COPY calls the sequence without this extension.",
        hint = "{way}"
    )]
    NotCopied { attribute: String, table: String, sequence: String, way: String },
    #[error("column \"{attribute}\" of relation \"{table}\" must be NOT NULL to be an identity")]
    #[explain(
        NotReady,
        hint = "Set it NOT NULL first: ALTER TABLE {table} ALTER COLUMN {ident} SET NOT NULL;"
    )]
    MayBeNull { attribute: String, table: String, ident: String },
    #[error("segment tag \"{tag}\" of sequence \"{sequence}\" does not exist")]
    #[explain(
        Undefined,
        detail = "The sequence has given ids of this tag, and must continue above them.",
        hint = "Create the tag again, above all ids that are in use: SELECT snowflake_ids.segment_create({}, start => ...);",
        quoted(tag)
    )]
    TagGone { tag: String, sequence: String },
    #[error("the schema of the column's sequence was renamed meanwhile")]
    #[explain(NotReady, hint = "Try again.")]
    OtherSequence,
    #[error("maximum of sequence \"{sequence}\" is below ids that it has given")]
    #[explain(Exhausted, detail = "Its maximum is {max}; the highest id is {highest}.")]
    #[explain(hint = "Raise the maximum: ALTER SEQUENCE {sequence} MAXVALUE 9223372036854775807;")]
    MaximumBelow { sequence: String, max: i64, highest: i64 },
    #[error("maximum of sequence \"{sequence}\" is below ids of the column")]
    #[explain(Exhausted, detail = "Its maximum on this node is {max}; the highest id is {highest}.")]
    EndsOnNode { sequence: String, max: i64, highest: i64 },
    #[error("sequence \"{0}\" is not bound")]
    #[explain(
        NotReady,
        detail = "It gives numbers of its own.",
        hint = "See snowflake_ids.sequence_status for the bound sequences."
    )]
    NotBound(String),
    #[error("sequence \"{sequence}\" is already bound")]
    #[explain(Duplicate, detail = "It gives {bound}.")]
    #[explain(
        hint = "To bind the sequence to other ids, first SELECT snowflake_ids.unbind_sequence({});",
        quoted(sequence)
    )]
    AlreadyBound { sequence: String, bound: Binding },
    #[error("cannot bind sequence \"{0}\", which a distributed table uses")]
    #[explain(
        Unsupported,
        detail = "Each node of the cluster has its own sequence for the table, and counts in its own range.",
        hint = "On the coordinator, attach the column with snowflake_ids.attach."
    )]
    OfDistributed(String),
    #[error(transparent)]
    Increment(#[from] BoundSequenceError),
    #[error(transparent)]
    Sequence(#[from] Obstacle),
}

impl ColumnError {
    /// Returns the error for a COPY that leaves out a column whose default takes ids from a bound sequence. `is_plain` is true if
    /// the default is nothing but `nextval` of the sequence.
    pub fn not_copied(column: &Column, sequence: &Sequence, is_plain: bool) -> Self {
        let (attribute, table) = (column.attribute.clone(), column.table.name.clone());
        let bound = sequence.bound.as_ref().filter(|_| is_plain);
        let default = |bound: &Binding| {
            let name = bound.tag.as_ref().or(bound.generator.as_ref());
            default::of(bound.kind(), name.map(String::as_str))
        };
        let written = bound.map(default);
        let way = match written {
            Some(_) if column.identity.is_some() => format!(
                "Attach the column: SELECT snowflake_ids.attach({}, {}{});",
                quoted(&table),
                quoted(&attribute),
                bound.map_or_else(String::new, arguments_of)
            ),
            Some(written) => format!(
                "Give it a default that COPY can call: ALTER TABLE {table} ALTER COLUMN {} SET DEFAULT {written};",
                column.ident
            ),
            None => "COPY into a temporary table without the column, then INSERT ... SELECT.".to_owned(),
        };
        Self::NotCopied { attribute, table, sequence: sequence.name.clone(), way }
    }

    /// Returns the error for a column whose new type cannot hold its ids.
    pub fn narrowed(column: &Column, base: Base) -> Self {
        let (attribute, table) = (column.attribute.clone(), column.table.name.clone());
        let type_name = match base {
            _ if base == column.base => column.type_name.clone(),
            Base::Smallint => "smallint".to_owned(),
            _ => "integer".to_owned(),
        };
        Self::Narrowed { attribute, table, type_name, most: base.maximum() }
    }
}

/// Returns the arguments by which `attach` takes the ids of a binding.
fn arguments_of(bound: &Binding) -> String {
    match (&bound.tag, &bound.generator) {
        (Some(tag), _) => format!(", kind => 'segment', tag => {}", quoted(tag)),
        (None, Some(generator)) => format!(", generator => {}", quoted(generator)),
        (None, None) => String::new(),
    }
}

/// A property of a sequence that keeps it from being bound.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum Obstacle {
    #[error("cannot bind temporary sequence \"{0}\"")]
    #[explain(
        BadArgument,
        detail = "It is dropped at the end of its session.",
        hint = "Bind a permanent sequence."
    )]
    Temporary(String),
    #[error("cannot bind sequence \"{sequence}\", which counts down")]
    #[explain(BadArgument, detail = "Its increment is {increment}; ids count up.")]
    #[explain(hint = "Make it count up: ALTER SEQUENCE {sequence} INCREMENT BY 1;")]
    CountsDown { sequence: String, increment: i64 },
    #[error("cannot bind unlogged sequence \"{0}\"")]
    #[explain(BadArgument, detail = "A crash would set it back to numbers that it has given before.")]
    #[explain(hint = "Make it durable first: ALTER SEQUENCE {0} SET LOGGED;")]
    Unlogged(String),
    #[error("sequence \"{sequence}\" must be bigint")]
    #[explain(BadArgument, detail = "The maximum of type {type_name} is {most}.")]
    #[explain(hint = "Widen it, and the columns that use it: ALTER SEQUENCE {sequence} AS bigint;")]
    Narrow { sequence: String, type_name: String, most: i64 },
    #[error("cannot bind sequence \"{0}\", which cycles")]
    #[explain(BadArgument, detail = "Ids are never issued twice.")]
    #[explain(hint = "Stop it from cycling: ALTER SEQUENCE {0} NO CYCLE;")]
    Cycles(String),
}
