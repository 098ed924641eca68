//! Errors of series, and of calls for their numbers.

use super::key::KeyType;
use super::limits::{MAX_NAME_BYTES, MAX_NAME_CHARS, MAX_SECTIONS, MAX_STEP};
use super::recent::Recent;
use crate::error::{EXCERPT_CHARS, Explain};
use crate::tag::privilege::Access;
use crate::tag::serial::FormatError;

/// The error for a series that does not exist or is invalid, or that gives no number.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum SeriesError {
    #[error("series \"{name}\" does not exist")]
    #[explain(Undefined, detail = "There is no row of this name in snowflake_ids.series.")]
    #[explain(hint_with = if name.len() <= EXCERPT_CHARS && !name.contains('\'') {
        format!("Create it with SELECT snowflake_ids.series_create('{name}').")
    } else {
        "Create it with snowflake_ids.series_create.".to_owned()
    })]
    Unknown { name: String },
    #[error("series must not be null")]
    #[explain(Null, detail = "A name has 1 to {MAX_NAME_CHARS} characters.", hint = "{NAME_IT}")]
    NullName,
    #[error("series name must not be empty")]
    #[explain(detail = "A name has 1 to {MAX_NAME_CHARS} characters.", hint = "{NAME_IT}")]
    NoName,
    #[error("series name is too long")]
    #[explain(
        detail = "It has {bytes} bytes; a name has at most {MAX_NAME_CHARS} characters and {MAX_NAME_BYTES} bytes.",
        hint = "{NAME_IT}"
    )]
    LongName { bytes: usize },
    #[error("series name contains a control character")]
    #[explain(detail = "Control characters would break messages that contain the name.", hint = "{NAME_IT}")]
    ControlName,
    #[error("unrecognized kind of series: \"{name}\"")]
    #[explain(detail = "A series is gapless or monotonic.")]
    #[explain(hint = "Omit the argument kind for a gapless series, or set it to gapless or monotonic.")]
    Kind { name: String },
    #[error("unrecognized scope of series: \"{name}\"")]
    #[explain(detail = "The scope of a series is global, node or shard.")]
    #[explain(
        hint = "Omit the argument scope for 'global', or set it to 'node' if each key is used on one server only."
    )]
    Scope { name: String },
    #[error("only gapless series have scope \"{scope}\"")]
    #[explain(Unsupported, detail = "For series of other kinds, all nodes take numbers from one registry.")]
    #[explain(hint = "Omit the argument scope, or set kind to 'gapless'.")]
    GaplessScope { scope: &'static str },
    #[error("series of kind \"{kind}\" have no {argument}")]
    #[explain(Unsupported, detail_with = match *argument {
        "reset" => {
            "The numbers of such a series never start over: all keys of a section share one maximum.".to_owned()
        }
        "sections" => "Each key of such a series has its own row.".to_owned(),
        _ => format!("A {kind} series takes numbers one at a time, and reserves none in advance."),
    })]
    #[explain(hint_with = match *argument {
        "reset" => "Omit the argument reset, or set kind to 'gapless'.".to_owned(),
        _ => format!("Omit the argument {argument}."),
    })]
    NoSuchArgument { kind: &'static str, argument: &'static str },
    #[error("keys of a series cannot be of type {name}")]
    #[explain(detail = "Keys are bigint, text or uuid.")]
    #[explain(hint = "Use bigint for whole numbers, and cast keys of other types to text.")]
    KeyType { name: String },
    #[error("{column} must not be null")]
    #[explain(detail = "{}", if ["step", "max_step", "sections"].contains(column) {
        "A series of this kind needs this value; snowflake_ids.series_create has a default for it."
    } else {
        "It has a default."
    })]
    Missing { column: &'static str },
    #[error("start {start} is negative")]
    #[explain(detail = "Numbers are 0 or more.", hint = "Set start to 0 or more.")]
    Start { start: i64 },
    #[error("max_value {max_value} is less than start {start}")]
    #[explain(detail = "The numbers of a key lie between start and max_value.")]
    #[explain(hint = "Raise max_value or lower start.")]
    MaxValue { max_value: i64, start: i64 },
    #[error("step {step} is out of range")]
    #[explain(detail = "The step must be 1 to max_step, which is {max_step}.")]
    #[explain(hint = "{}", if step > max_step {
        "Lower step or raise max_step."
    } else {
        "Set step to the count of numbers that the series reserves at once when it is rarely used."
    })]
    Step { step: i32, max_step: i32 },
    #[error("max_step {max_step} is out of range")]
    #[explain(detail = "It must be 1 to {MAX_STEP}.")]
    #[explain(hint = "Set max_step to the largest count of numbers that the series may reserve at once.")]
    MaxStep { max_step: i32 },
    #[error("number of sections is out of range: {sections}")]
    #[explain(detail = "A series has 1 to {MAX_SECTIONS} sections.")]
    #[explain(hint = "Omit sections to get the default of 16.")]
    Sections { sections: i32 },
    #[error(transparent)]
    NumberFormat(#[from] FormatError),
    #[error("key of series \"{series}\" must not be null")]
    #[explain(Null, detail = "Each key has numbers of its own, and null is not a key.")]
    #[explain(hint = "Give a key. If a trigger takes the key from a column, set that column NOT NULL.")]
    NullKey { series: String },
    #[error("key of series \"{series}\" must be of type {wanted}, not {given}")]
    #[explain(OtherType, hint = "Cast the key: key::{wanted}.")]
    OtherType { series: String, wanted: KeyType, given: KeyType },
    #[error("invalid input syntax for type {wanted}: \"{key}\"")]
    #[explain(
        InvalidText,
        detail = "The text was given as a key of series \"{series}\", whose keys are of type {wanted}.",
        hint = "Give a key of that type."
    )]
    NoKey { series: String, wanted: KeyType, key: String },
    #[error("the numbers of key {key} of series \"{series}\" are used up")]
    #[explain(Exhausted, detail = "No number is left up to max_value {max_value}.")]
    #[explain(hint = "{}", match *max_value {
        i64::MAX => "Create a new series, because larger numbers do not fit into a bigint.",
        _ => "Raise max_value with snowflake_ids.series_alter.",
    })]
    Exhausted { series: String, key: String, max_value: i64 },
    /// This session has received no number of the key, or has used too many other keys since.
    #[error("series_currval of key {key} of series \"{series}\" is not yet defined in this session")]
    #[explain(NotReady, hint = "Call series_nextval with this key first.")]
    #[explain(detail = "A session remembers the numbers of the {} keys that it used last.", Recent::KEYS)]
    NoLast { series: String, key: String },
    #[error("value {value} is out of range")]
    #[explain(hint = "Set value to the last number that counts as used; the next number is value + 1.")]
    #[explain(detail = "It must be from {lowest} (start - 1) to {max_value} (max_value).")]
    Value { value: i64, lowest: i64, max_value: i64 },
    #[error("value must not be null")]
    #[explain(Null)]
    NullValue,
    #[error("value {value} is below issued numbers of key {key} of series \"{series}\"")]
    #[explain(
        detail = "Numbers up to {last} may be in use; continuing with {} would give some of them again.",
        value.saturating_add(1)
    )]
    #[explain(
        hint = "Give {last} or a higher value, or force => true if none of these numbers is in use any more."
    )]
    Below { series: String, key: String, value: i64, last: i64 },
    #[error("number {number} of series \"{series}\" is out of range for column \"{column}\"")]
    #[explain(OutOfRange, detail = "The column is of a smaller type than bigint.")]
    #[explain(hint = "Make the column a bigint.")]
    NoRoom { series: String, number: i64, column: String },
    #[error("\"{text}\" of series \"{series}\" is too long for column \"{column}\"")]
    #[explain(LongText, hint = "Make the column wider, or shorten the format of the series.")]
    LongText { series: String, text: String, column: String },
    #[error("column \"{column}\" does not exist, but a trigger of series \"{series}\" names it")]
    #[explain(
        NotReady,
        detail = "The column was renamed after snowflake_ids.series_attach was called.",
        hint = "{DETACH}"
    )]
    NoColumn { series: String, column: String },
    /// The trigger's column has a type that the trigger cannot fill or use as a key.
    #[error("type of column \"{column}\" does not fit the trigger of series \"{series}\"")]
    #[explain(
        OtherType,
        detail = "The type was changed after snowflake_ids.series_attach was called.",
        hint = "{DETACH}"
    )]
    ColumnType { series: String, column: String },
    #[error("permission denied for series \"{series}\"")]
    #[explain(Denied, detail_with = match action {
        Access::Own => format!("Role \"{role}\" neither owns the series nor manages series."),
        _ => format!("Role \"{role}\" does not have privilege {} on it.", action.privilege()),
    })]
    #[explain(hint_with = match action {
        Access::Own => {
            "Ask the owner of the series, or a role that manages series, to make the change.".to_owned()
        }
        _ => format!(
            "Ask the owner of the series, or a role that manages series, to grant {} with snowflake_ids.series_grant.",
            action.privilege()
        ),
    })]
    Denied { series: String, action: Access, role: String },
    #[error("{kind} series are not supported in a database that uses registry \"{registry}\"")]
    #[explain(
        Unsupported,
        detail = "Such a series counts in tables of this database, so each node that uses the registry would give the same \
                  numbers.",
        hint = "If each key is used on one node only, create the series with scope => 'node'. Otherwise create the series \
                in a database that uses no registry, or create a segment tag for each key."
    )]
    Registry { kind: &'static str, registry: String },
    #[error("{kind} series are not supported in a database that uses several registries")]
    #[explain(
        Unsupported,
        detail = "Numbers come from the registries in turn, and each registry counts separately, so the numbers of a key would \
                  be neither ascending nor consecutive.",
        hint = "Call snowflake_ids.use_registry with the name of one registry only."
    )]
    Registries { kind: &'static str },
    #[error("{kind} series are not supported on a worker of a Citus cluster")]
    #[explain(
        Unsupported,
        detail = "Such a series counts in tables of one database, so each node of the cluster would give the same numbers.",
        hint = "On the coordinator, call snowflake_ids.series_distribute with the distributed table that has the keys of \
                the series."
    )]
    CitusWorker { kind: &'static str },
    #[error("this node is a worker of a Citus cluster")]
    #[explain(
        NotReady,
        detail = "A distributed series is changed on the coordinator, which passes the change on to the other nodes.",
        hint = "Connect to the coordinator, and call the function there."
    )]
    OnWorker,
    /// The tag of a section does not exist.
    #[error("section \"{tag}\" of series \"{series}\" does not exist")]
    #[explain(Undefined, detail_with = match registry {
        Some(registry) => {
            format!("Registry \"{registry}\", which this database uses, has no such segment tag.")
        }
        None => "The section is a segment tag, and has no row in snowflake_ids.segment.".to_owned(),
    })]
    #[explain(hint = "{}", if registry.is_some() {
        "Create the series on the registry, too, with snowflake_ids.series_create and the same number of sections."
    } else {
        "Drop the series, and create it again with a start above the numbers that it has given."
    })]
    NoSection { series: String, tag: String, registry: Option<String> },
    #[error("cannot set series \"{series}\" back")]
    #[explain(Unsupported, detail = "The numbers of a key of a monotonic series only grow.")]
    #[explain(hint = "Omit the argument force. Without it, keys can still be set to higher numbers.")]
    NoForce { series: String },
    #[error("there is no shared memory for the keys of {kind} series")]
    #[explain(NotReady, detail = "snowflake_ids.series_memory is too small for such series.")]
    #[explain(hint = "Raise snowflake_ids.series_memory, and restart the server.")]
    NoMemory { kind: &'static str },
    /// The trigger would write to the counters with its caller's privileges.
    #[error("cannot fill a column from series \"{series}\", which is distributed")]
    #[explain(Unsupported, hint = "Call series_nextval in the INSERT.")]
    #[explain(
        detail = "A role that takes numbers of a distributed series needs its own privileges on the key table."
    )]
    Distributed { series: String },
    #[error("the key table of series \"{series}\" does not exist")]
    #[explain(
        NotReady,
        detail = "The key table is a distributed table that belongs to the owner of the extension.",
        hint = "On the coordinator, CALL snowflake_ids.use_citus(). After a restore, drop the series, create it again, distribute it, and set its keys above the numbers that are in use."
    )]
    NoKeyTable { series: String },
    #[error("the table snowflake_ids.series does not exist")]
    #[explain(NotReady, detail = "The extension was dropped from this database, or is being dropped.")]
    #[explain(hint = "Run CREATE EXTENSION snowflake_ids.")]
    NoTable,
}

const NAME_IT: &str = "Name the series after what it numbers, for example \"invoices\".";
const DETACH: &str =
    "Call snowflake_ids.series_detach with the column's former name, and then attach the column again.";
