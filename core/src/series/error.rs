//! Errors of series, and of calls for their numbers.

use super::key::KeyType;
use super::limits::{MAX_NAME_BYTES, MAX_NAME_CHARS, MAX_SECTIONS, MAX_STEP};
use super::recent::Recent;
use crate::error::{EXCERPT_CHARS, Explain, Kind};
use crate::sequence::privilege::{Action, Privilege};
use crate::series::serial::FormatError;

/// The reason why there is no number, or no such series.
#[expect(missing_docs, reason = "each message names its figures")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// There is no row of this name.
    #[error("series \"{name}\" does not exist")]
    Unknown { name: String },
    /// No name.
    #[error("series must not be null")]
    NullName,
    /// A name without a character.
    #[error("series name must not be empty")]
    NoName,
    /// A name with too many.
    #[error("series name is too long")]
    LongName { bytes: usize },
    /// A name that would break lines.
    #[error("series name has a control character in it")]
    ControlName,
    /// A kind that there is not.
    #[error("unrecognized kind of series: \"{name}\"")]
    Kind { name: String },
    /// Not among which servers numbers follow on each other.
    #[error("unrecognized scope \"{name}\" of a series")]
    Scope { name: String },
    /// A kind whose numbers nodes draw from a registry.
    #[error("only gapless series have scope \"{scope}\"")]
    GaplessScope { scope: &'static str },
    /// A kind that has no such argument.
    #[error("series of kind \"{kind}\" have no {argument}")]
    NoSuchArgument { kind: &'static str, argument: &'static str },
    /// A type that keys cannot be of.
    #[error("keys of a series cannot be of type {name}")]
    KeyType { name: String },
    /// A column without a value.
    #[error("{column} must not be null")]
    Missing { column: &'static str },
    /// A negative first number.
    #[error("start {start} is negative")]
    Start { start: i64 },
    /// An end before the start.
    #[error("max_value {max_value} is less than start {start}")]
    MaxValue { max_value: i64, start: i64 },
    /// A smallest reservation that is not 1 to `max_step`.
    #[error("step {step} is out of range")]
    Step { step: i32, max_step: i32 },
    /// A largest reservation that is too large, or of nothing.
    #[error("max_step {max_step} is out of range")]
    MaxStep { max_step: i32 },
    /// A number of sections that no series can have.
    #[error("{sections} sections are out of range")]
    Sections { sections: i32 },
    /// A period or a template that is none.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A call without a key.
    #[error("key of series \"{series}\" must not be null")]
    NullKey { series: String },
    /// A key of another type.
    #[error("key of series \"{series}\" must be of type {wanted}, not {given}")]
    OtherType { series: String, wanted: KeyType, given: KeyType },
    /// A text that says no key of the series' type.
    #[error("invalid input syntax for type {wanted}: \"{key}\"")]
    NoKey { series: String, wanted: KeyType, key: String },
    /// The key has no numbers left.
    #[error("the numbers of key {key} of series \"{series}\" are used up")]
    Exhausted { series: String, key: String, max_value: i64 },
    /// This session got no number of the key, or of too many others since.
    #[error("series_currval of key {key} of series \"{series}\" is not yet defined in this session")]
    NoLast { series: String, key: String },
    /// A value that a key cannot be set to.
    #[error("value {value} is out of range")]
    Value { value: i64, lowest: i64, max_value: i64 },
    /// No value.
    #[error("value must not be null")]
    NullValue,
    /// A value below numbers that were given out.
    #[error("value {value} is below numbers of key {key} of series \"{series}\" that were given out")]
    Below { series: String, key: String, value: i64, last: i64 },
    /// A number that a column cannot hold.
    #[error("number {number} of series \"{series}\" is out of range for column \"{column}\"")]
    NoRoom { series: String, number: i64, column: String },
    /// A text that a column cannot hold.
    #[error("\"{text}\" of series \"{series}\" is too long for column \"{column}\"")]
    LongText { series: String, text: String, column: String },
    /// A trigger that names a column that there is not.
    #[error("column \"{column}\", which a trigger of series \"{series}\" names, does not exist")]
    NoColumn { series: String, column: String },
    /// A trigger whose column is of a type that it cannot fill, or take keys from.
    #[error("column \"{column}\", which a trigger of series \"{series}\" names, is of another type")]
    ColumnType { series: String, column: String },
    /// The caller may not.
    #[error("permission denied for series \"{series}\"")]
    Denied { series: String, action: Action, role: String },
    /// Other servers number, too.
    #[error("{kind} series are not supported in a database that draws from registry \"{registry}\"")]
    Registry { kind: &'static str, registry: String },
    /// Registries whose numbers are not one above the other.
    #[error("{kind} series are not supported in a database that draws from several registries")]
    Registries { kind: &'static str },
    /// Other nodes number, too.
    #[error("{kind} series are not supported on a worker of a Citus cluster")]
    CitusWorker { kind: &'static str },
    /// The tag of a section is not there.
    #[error("section \"{tag}\" of series \"{series}\" does not exist")]
    NoSection { series: String, tag: String, registry: Option<String> },
    /// Numbers that were given out would come again.
    #[error("cannot set series \"{series}\" back")]
    NoForce { series: String },
    /// The server has none for keys.
    #[error("there is no memory for the keys of {kind} series")]
    NoMemory { kind: &'static str },
    /// A trigger would write to the counters with its caller's rights.
    #[error("cannot fill a column from series \"{series}\", which is distributed")]
    Distributed { series: String },
    /// The counters of a distributed series are not there.
    #[error("the key table of series \"{series}\" does not exist")]
    NoKeyTable { series: String },
    /// The extension's tables are not there.
    #[error("the table snowflake_ids.series does not exist")]
    NoTable,
}

impl Explain for SeriesError {
    fn kind(&self) -> Kind {
        match self {
            Self::Unknown { .. } | Self::NoSection { .. } => Kind::Undefined,
            Self::NullName | Self::NullKey { .. } | Self::NullValue => Kind::Null,
            Self::OtherType { .. } | Self::ColumnType { .. } => Kind::OtherType,
            Self::NoKey { .. } => Kind::InvalidText,
            Self::NoRoom { .. } => Kind::OutOfRange,
            Self::LongText { .. } => Kind::LongText,
            Self::Exhausted { .. } => Kind::Exhausted,
            Self::NoLast { .. }
            | Self::NoMemory { .. }
            | Self::NoTable
            | Self::NoKeyTable { .. }
            | Self::NoColumn { .. } => Kind::NotReady,
            Self::Denied { .. } => Kind::Denied,
            Self::NoSuchArgument { .. }
            | Self::GaplessScope { .. }
            | Self::Distributed { .. }
            | Self::NoForce { .. }
            | Self::Registry { .. }
            | Self::Registries { .. }
            | Self::CitusWorker { .. } => Kind::Unsupported,
            _ => Kind::BadArgument,
        }
    }

    fn detail(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { .. } => "There is no row of this name in snowflake_ids.series.".into(),
            Self::NullName | Self::NoName => format!("A name has 1 to {MAX_NAME_CHARS} characters."),
            Self::LongName { bytes } => format!(
                "It has {bytes} bytes; a name has at most {MAX_NAME_CHARS} characters, in {MAX_NAME_BYTES} bytes."
            ),
            Self::ControlName => "It would break the lines that messages are written in.".into(),
            Self::Kind { .. } => "A series is gapless or monotonic.".into(),
            Self::NoSuchArgument { argument: "reset", .. } => {
                "Its numbers never start over: all keys of a section share one maximum.".into()
            }
            Self::Scope { .. } => "It is global, node or shard.".into(),
            Self::GaplessScope { .. } => "Nodes draw numbers of other kinds from one registry.".into(),
            Self::NoSuchArgument { argument: "sections", .. } => "Each of its keys has a row of its own.".into(),
            Self::NoSuchArgument { kind, .. } => {
                format!("Numbers of a {kind} series are taken one at a time, and none ahead.")
            }
            Self::Step { max_step, .. } => format!("The step must be 1 to max_step, which is {max_step}."),
            Self::MaxStep { .. } => format!("It must be 1 to {MAX_STEP}."),
            Self::Sections { .. } => format!("A series has 1 to {MAX_SECTIONS} of them."),
            Self::KeyType { .. } => "Keys are bigint, text or uuid.".into(),
            Self::Missing { column: "step" | "max_step" | "sections" } => {
                "Series of this kind have one; snowflake_ids.series_create has a default for it.".into()
            }
            Self::Missing { .. } => "It has a default.".into(),
            Self::Start { .. } => "Numbers are 0 or more.".into(),
            Self::MaxValue { .. } => "The numbers of a key lie between start and max_value.".into(),
            Self::Format(error) => return error.detail(),
            Self::NullKey { .. } => "Each key has numbers of its own; null is no key.".into(),
            Self::OtherType { .. } | Self::NullValue | Self::LongText { .. } => return None,
            Self::NoKey { series, wanted, .. } => {
                format!("It is given as a key of series \"{series}\", whose keys are of type {wanted}.")
            }
            Self::NoRoom { .. } => "The column is of a smaller type than bigint.".into(),
            Self::NoColumn { .. } => "It was renamed after snowflake_ids.series_attach.".into(),
            Self::ColumnType { .. } => "It was changed after snowflake_ids.series_attach.".into(),
            Self::Exhausted { max_value, .. } => format!("No number is left up to max_value {max_value}."),
            Self::NoLast { .. } => {
                format!("A session remembers the numbers of the {} keys that it used last.", Recent::KEYS)
            }
            Self::Value { lowest, max_value, .. } => {
                format!("It must be {lowest}, which is start - 1, to max_value, which is {max_value}.")
            }
            Self::Below { last, value, .. } => format!(
                "Numbers up to {last} may be in use; going on with {} would give some of them again.",
                value.saturating_add(1)
            ),
            Self::Denied { role, action: Action::Own, .. } => {
                format!("Role \"{role}\" neither owns it nor manages series.")
            }
            Self::Denied { role, action, .. } => {
                format!("Role \"{role}\" does not have privilege {} on it.", wanted(*action))
            }
            Self::Registry { .. } => {
                "Its counters are in this database's tables: each node of the registry would count for itself, and the same \
                 numbers would come from several."
                    .into()
            }
            Self::Registries { .. } => {
                "Registries take turns, and each counts for itself: the numbers of a key would neither grow nor follow on each other."
                    .into()
            }
            Self::CitusWorker { .. } => {
                "Its counters are in a database's tables: each node of the cluster would count for itself, and the same \
                 numbers would come from several."
                    .into()
            }
            Self::NoSection { registry: Some(registry), .. } => {
                format!("Registry \"{registry}\", which this database draws from, has no such segment tag.")
            }
            Self::NoSection { .. } => "It is a segment tag, and has no row in snowflake_ids.segment.".into(),
            Self::NoForce { .. } => "It is monotonic: the numbers of a key only grow.".into(),
            Self::NoMemory { .. } => "snowflake_ids.series_memory is for them, which has room for none.".into(),
            Self::Distributed { .. } => "Who takes its numbers writes to its key table, with rights of its own.".into(),
            Self::NoKeyTable { .. } => "It is a distributed table of the owner of the extension.".into(),
            Self::NoTable => "The extension was dropped from this database, or is being dropped.".into(),
        })
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { name } if name.len() <= EXCERPT_CHARS && !name.contains('\'') => {
                format!("Create it with SELECT snowflake_ids.series_create('{name}').")
            }
            Self::NoSection { registry: Some(_), .. } => {
                "There, create the series too, with as many sections: snowflake_ids.series_create.".into()
            }
            Self::NoSection { .. } => "Drop the series and create it again, with a start above its numbers.".into(),
            Self::NoForce { .. } => "Leave force out; keys go on above the value.".into(),
            Self::NoMemory { .. } => "Raise snowflake_ids.series_memory, and restart the server.".into(),
            Self::Unknown { .. } => "Create it with snowflake_ids.series_create.".into(),
            Self::NullName | Self::NoName | Self::LongName { .. } | Self::ControlName => {
                "Name the series after what it numbers, for example \"invoices\".".into()
            }
            Self::Kind { .. } => "Leave kind out for 'gapless', or give one of them.".into(),
            Self::NoSuchArgument { argument: "reset", .. } => {
                "Leave reset out, or give kind 'gapless'.".into()
            }
            Self::Scope { .. } => {
                "Leave scope out for 'global', or give 'node' where each key is on one server, as that of a shard is.".into()
            }
            Self::GaplessScope { .. } => "Leave scope out, or give kind 'gapless'.".into(),
            Self::NoSuchArgument { argument, .. } => format!("Leave {argument} out."),
            Self::Step { step, max_step } if step > max_step => "Lower step or raise max_step.".into(),
            Self::Step { .. } => "Set step to the count of numbers that a quiet series reserves at once.".into(),
            Self::MaxStep { .. } => "Set max_step to the most numbers that it may reserve at once.".into(),
            Self::Sections { .. } => "Leave sections out for 16: each takes one write for so many numbers.".into(),
            Self::KeyType { .. } => {
                "Choose one of them: a tenant's number is a bigint; of other types cast the key to text.".into()
            }
            Self::Missing { .. } | Self::NullValue => return None,
            Self::NoRoom { .. } => "Make the column a bigint.".into(),
            Self::LongText { .. } => "Make the column wider, or the format shorter.".into(),
            Self::NoColumn { .. } | Self::ColumnType { .. } => {
                "Detach the column by the name that it had then, with snowflake_ids.series_detach, and attach it again.".into()
            }
            Self::Start { .. } => "Set start to 0 or more.".into(),
            Self::MaxValue { .. } => "Raise max_value or lower start.".into(),
            Self::Format(error) => return error.hint(),
            Self::NullKey { .. } => {
                "Give the key; where a trigger takes it from a column, set that column NOT NULL.".into()
            }
            Self::OtherType { wanted, .. } => format!("Cast the key: key::{wanted}."),
            Self::NoKey { .. } => "Give a key of that type.".into(),
            Self::Exhausted { max_value: i64::MAX, .. } => "No bigint is larger: go on with a new series.".into(),
            Self::Exhausted { .. } => "Raise max_value with snowflake_ids.series_alter.".into(),
            Self::NoLast { .. } => "Call series_nextval with this key first.".into(),
            Self::Value { .. } => "The next number is the value + 1.".into(),
            Self::Below { .. } => {
                "Give a value of at least that, or force => true if none of them is in use any more.".into()
            }
            Self::Denied { action: Action::Own, .. } => {
                "Ask whoever owns it, or manages the series of this database.".into()
            }
            Self::Denied { action, .. } => format!(
                "Whoever owns it or manages series can grant {} on it with snowflake_ids.series_grant.",
                wanted(*action)
            ),
            Self::Registry { .. } => {
                "Where each key is on one node, create the series there with scope => 'node'. Else number in a database that draws from no \
                 registry, or create a segment tag for each key."
                    .into()
            }
            Self::Registries { .. } => "Draw from one of them: snowflake_ids.use_registry.".into(),
            Self::CitusWorker { .. } => {
                "On the coordinator, distribute it beside the table that has its keys: snowflake_ids.series_distribute.".into()
            }
            Self::Distributed { .. } => "Call series_nextval in the INSERT.".into(),
            Self::NoKeyTable { .. } => {
                "On the coordinator, CALL snowflake_ids.use_citus(); after a restore, drop the series and create it again, above its numbers.".into()
            }
            Self::NoTable => "Run CREATE EXTENSION snowflake_ids.".into(),
        })
    }
}

/// The name of the privilege that an action takes.
fn wanted(action: Action) -> &'static str {
    match action {
        Action::Move => Privilege::Update,
        Action::Look => Privilege::Select,
        Action::Take | Action::Own => Privilege::Usage,
    }
    .name()
}
