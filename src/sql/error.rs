//! Errors of the SQL functions themselves. Most errors come from the modules that the functions call.

use crate::pg::encoding;
use crate::pg::report::reported;
use snowflake_ids_core::Explain;
use snowflake_ids_core::clock::human;
use snowflake_ids_core::error::excerpt;
use snowflake_ids_core::report::progress::{Command, Phase};
use std::time::Duration;

/// The highest number of ids in one call. The limit protects against typing errors.
pub const MAX_COUNT: i32 = 10_000_000;

/// The reason why an SQL function refuses a call.
#[derive(Debug, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum CallError {
    #[error("count must not be null")]
    #[explain(detail = "It is the number of ids to return.")]
    NoCount,
    #[error("count {count} is out of range")]
    #[explain(detail = "A call gives 1 to {MAX_COUNT} ids.")]
    Count { count: i32 },
    #[error("snowflake_lastval is not yet defined in this session")]
    #[explain(NotReady, hint = "Call snowflake_nextval() first.")]
    NoLast,
    #[error("id has no JSON form")]
    #[explain(detail = "{}.", excerpt(&_0.to_string()))]
    NoJson(serde_json::Error),
    #[error("interval has months, which have no fixed length")]
    #[explain(detail = "A month has 28 to 31 days.", hint = "Give the interval in days or hours.")]
    Months,
    #[error("out of memory")]
    #[explain(NoMemory)]
    NoMemory,
    #[error("{name} must not be null")]
    #[explain(detail = "It has a default.")]
    NoProperty { name: String },
    #[error("reserved must not be null")]
    #[explain(detail = "It is the tag's highest reserved id.")]
    NoReserved,
    #[error("privileges must not be null")]
    #[explain(detail = "They are USAGE, SELECT and UPDATE, or ALL.")]
    NoPrivileges,
    #[error("the format of segment tag \"{tag}\" has characters that the database encoding lacks")]
    #[explain(LacksCharacter, detail = "The database encoding is {}.", encoding::name())]
    #[explain(
        hint = "Take the number with segment_nextval(tag), or ask the registry's owner to change the format."
    )]
    FormatLacksCharacter { tag: String },
    #[error("must be superuser to change the server's layout")]
    #[explain(Denied)]
    NotSuperuser,
    #[error("must be owner of the table")]
    #[explain(Denied)]
    NotOwnerOfTable,
    #[error("must be owner of the relation")]
    #[explain(Denied)]
    NotOwner,
    #[error("must be able to SET ROLE to the owner of the relation")]
    #[explain(Denied)]
    CannotActAsOwner,
    #[error("must be able to SET ROLE to the owner of the sequence")]
    #[explain(Denied)]
    CannotActAsOwnerOfSequence,
    #[error("permission denied for sequence")]
    #[explain(Denied)]
    SequenceUnreadable,
    #[error("the statement gives no number")]
    #[explain(detail = "{error}.")]
    NoNumber { error: String },
    #[error("the statement is not a CREATE SEQUENCE")]
    #[explain(detail = "The function runs only CREATE SEQUENCE.")]
    NotCreateSequence,
    #[error("there is no such sequence")]
    #[explain(detail = "It was dropped.")]
    SequenceDropped,
    #[error("unrecognized command")]
    #[explain(detail = "The commands are {}.", Command::ALL.map(Command::name).join(", "))]
    UnknownCommand,
    #[error("unrecognized phase")]
    #[explain(detail = "The phases are {}.", Phase::ALL.map(Phase::name).join(", "))]
    UnknownPhase,
    #[error(
        "{failure} because registry \"{registry}\", which leases this server's worker id, does not answer"
    )]
    #[explain(NotReady, detail = "{detail}")]
    #[explain(hint = "Ids are issued as before. Repeat the call when the registry answers.")]
    SilentRegistry { failure: &'static str, registry: String, detail: String },
    #[error("the clocks of this server and its registry differ by {}", human(*by))]
    #[explain(
        NotReady,
        detail = "Ids do not follow this server's clock, because the lease of its worker id, which is timed by the registry's \
                  clock, would then end.",
        hint = "Synchronise the clocks of all servers with one time service. Ids are issued as before."
    )]
    ClocksDiffer { by: Duration },
    #[error("datacenter_id and worker_id must not be null")]
    #[explain(detail = "They identify the lease to give up.")]
    NoLease,
    #[error("worker ids are leased from registry \"{server}\"")]
    #[explain(NotReady, detail = "Its table snowflake_ids.worker_lease has the leases.")]
    #[explain(hint = "Connect to the registry, and call the function there.")]
    LeasesAtRegistry { server: String },
    #[error("worker ids are not leased from this database")]
    #[explain(NotReady, detail = "This server's registry is in database \"{database}\".")]
    #[explain(hint = "Connect to that database, and call the function there.")]
    OtherDatabase { database: String },
    #[error("could not write the answer as JSON")]
    #[explain(detail = "{}.", excerpt(&_0.to_string()))]
    AnswerNotWritten(serde_json::Error),
    #[error("list of registries is not valid")]
    #[explain(detail = "{}.", excerpt(&_0.to_string()))]
    BadRegistries(serde_json::Error),
    #[error("snowflake_ids.registry_serve() cannot take over tags")]
    #[explain(Denied, detail = "This function neither lists tags nor raises their ids.")]
    #[explain(
        hint = "GRANT EXECUTE ON FUNCTION snowflake_ids.registry_take_over(text) to the role, and call that function."
    )]
    TakesOver,
    #[error("{function}() cannot run inside a transaction block")]
    #[explain(InTransaction, detail = "Only other servers may call this function.")]
    InBlock { function: &'static str },
    #[error("worker ids of this server are leased from another database")]
    #[explain(
        NotReady,
        detail = "The registry of worker ids is database \"{database}\". If two databases leased worker ids, two servers could get \
                  the same worker id.",
        hint = "On the coordinator, create a foreign server for database \"{database}\", and CALL snowflake_ids.use_citus with \
                the name of the foreign server."
    )]
    LeasesElsewhere { database: String },
    #[error("this database is not a registry")]
    #[explain(NotReady, detail = "The database takes its own ids from registry \"{server}\".")]
    #[explain(hint = "Use the same registry as this database, or make this database a registry with SELECT \
                      snowflake_ids.use_local_registry().")]
    NoRegistry { server: String },
    #[error("the tag is not in UTF-8")]
    #[explain(detail = "Registries on other servers know tags in UTF-8 only.")]
    TagNotUtf8,
    #[error("cannot apply TRUNCATE to table \"snowflake_ids.{table}\"")]
    #[explain(
        Unsupported,
        detail = "The table describes this server only, and rows of the publisher are not applied to it.",
        hint = "On the publisher, name each published table, or publish without truncate. Then skip this change with \
                ALTER SUBSCRIPTION ... SKIP."
    )]
    Truncate { table: String },
    #[error("trigger functions can only be called as triggers")]
    #[explain(Unsupported)]
    NoTrigger,
    #[error(
        "series_fill must be fired BEFORE INSERT FOR EACH ROW, with a series and two columns as arguments"
    )]
    #[explain(BadTrigger, hint = "Create the trigger with snowflake_ids.series_attach.")]
    BadTrigger,
}

reported!(CallError);
