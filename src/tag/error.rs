//! Errors of calls for ids of a tag.

use crate::pg::report::{reported, sqlstate};
use crate::pg::server;
use crate::pg::tag_text::TagText;
use crate::shared::registries;
use pgrx::spi::{SpiError, quote_literal};
use snowflake_ids_core::Explain;
use snowflake_ids_core::bound::BoundSequenceError;
use snowflake_ids_core::clock::human;
use snowflake_ids_core::error::NotReadyError;
use snowflake_ids_core::error::ended;
use snowflake_ids_core::registry::error::Unregistered;
use snowflake_ids_core::tag::definition::{Exhausted, TagError};
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::privilege::{Access, Privilege};
use snowflake_ids_core::tag::slot::Trouble;
use std::time::Duration;

/// The reason why a session got no id of a tag. The fields contain tags as messages show them.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SegmentError {
    /// The server cannot generate ids now.
    #[error(transparent)]
    NotReady(#[from] NotReadyError),
    #[error("tag must not be null")]
    #[explain(BadArgument, detail = "Each id belongs to a tag, which the call must name.")]
    NoTag,
    /// The tag's name is invalid.
    #[error(transparent)]
    BadTag(TagError),
    #[error("{}", match action {
        Access::Own => format!("must be owner of segment tag \"{tag}\""),
        _ => format!("permission denied for segment tag \"{tag}\""),
    })]
    #[explain(Denied, detail_with = match action {
        Access::Own => format!("Role \"{role}\" neither owns the tag nor manages tags."),
        _ => format!("Role \"{role}\" does not have privilege {} on it.", wanted(*action)),
    })]
    #[explain(hint_with = match action {
        Access::Own => format!(
            "Ask the owner of the tag, or a role that manages tags, to make the change, or to give you the tag: \
             SELECT snowflake_ids.segment_alter({}, owner => {}).",
            quote_literal(tag),
            quote_literal(role)
        ),
        _ => format!(
            "Ask the owner of the tag, or a role that manages tags, to run SELECT snowflake_ids.segment_grant({}, {}, '{}').",
            quote_literal(tag),
            quote_literal(role),
            wanted(*action)
        ),
    })]
    Denied { tag: String, action: Access, role: String },
    #[error("segment tag \"{tag}\" does not exist")]
    #[explain(Undefined, detail_with = match registry {
        Some(server) => format!("Registry \"{server}\" has no such tag."),
        None => "There is no row for it in snowflake_ids.segment.".to_owned(),
    })]
    #[explain(hint_with = match column {
        Some(ColumnOfTag { relation, attribute }) => format!(
            "Create the tag above the ids of column \"{attribute}\" of {relation} with SELECT snowflake_ids.attach({}, {}, 'segment', {}).",
            quote_literal(relation),
            quote_literal(attribute),
            quote_literal(tag)
        ),
        None if registry.is_some() => format!(
            "Create it there with SELECT snowflake_ids.segment_create({}), or, to create unknown tags on first use, set \
             snowflake_ids.segment_auto_create.",
            quote_literal(tag)
        ),
        None => format!(
            "Create it with SELECT snowflake_ids.segment_create({}), or, to create unknown tags on first use, set \
             snowflake_ids.segment_auto_create. If a registry has it, SELECT snowflake_ids.registry_join.",
            quote_literal(tag)
        ),
    })]
    Unknown {
        tag: String,
        /// The registry that lacks the tag.
        registry: Option<String>,
        /// A column of a non-empty table whose default takes ids of the tag.
        column: Option<ColumnOfTag>,
    },
    #[error("segment tag \"{0}\" has no ids left")]
    #[explain(transparent = 1)]
    Exhausted(String, Exhausted),
    /// The transaction has changed the tag, and a parallel query asks for ids.
    #[error("cannot use segment tag \"{0}\" in a parallel query of the transaction that changed it")]
    #[explain(
        Unsupported,
        detail = "Until that transaction commits, ids of the tag come from the memory of its session."
    )]
    #[explain(hint = "Run the query after COMMIT, or with SET LOCAL max_parallel_workers_per_gather = 0.")]
    Parallel(String),
    /// A trigger on the table of tags asks for ids while a worker or a commit writes to the table of tags.
    #[error("cannot wait for ids of segment tag \"{0}\" while ids are being reserved")]
    #[explain(NotReady, detail = "The call comes from a trigger on snowflake_ids.segment.")]
    #[explain(hint = "In such a trigger, take ids from a sequence or from snowflake_nextval().")]
    Within(String),
    #[error("segment_currval of tag \"{0}\" is not yet defined in this session")]
    #[explain(NotReady, hint = "Call segment_nextval with this tag first.")]
    NoLast(String),
    #[error("the table snowflake_ids.segment does not exist")]
    #[explain(NotReady, detail = "The extension was dropped from this database, or is being dropped.")]
    #[explain(hint = "Run CREATE EXTENSION snowflake_ids.")]
    NoTable,
    /// The server belongs to a cluster whose nodes share a registry, but the server does not use that registry.
    #[error(transparent)]
    Unregistered(#[from] Unregistered),
    /// No ids came in time, or the privilege tables stayed locked.
    #[error("no ids for segment tag \"{tag}\" within {}", human(*limit))]
    #[explain(WaitedTooLong, detail = "{detail}", hint = "{hint}")]
    TooLate { tag: String, limit: Duration, detail: String, hint: String },
    /// A warning: shared memory has no room for the ids of this transaction.
    #[error("could not save the high-water mark of segment tag \"{0}\"")]
    #[explain(
        LimitReached,
        detail = "No slot in shared memory is free for it. If this transaction is rolled back, its ids may be issued again.",
        hint = "Commit the transaction. To have more slots, raise snowflake_ids.max_tags and restart the server."
    )]
    NoHighWaterMark(String),
    /// A sequence that is bound to the tag gave no number.
    #[error(transparent)]
    Sequence(#[from] BoundSequenceError),
    /// SPI failed without an SQL error.
    #[error("could not execute an internal query of snowflake_ids: {0}")]
    #[explain(Internal)]
    Spi(#[from] SpiError),
}

/// A column, with its table's name in the form that SQL needs.
#[derive(Debug)]
pub struct ColumnOfTag {
    pub relation: String,
    pub attribute: String,
}

impl SegmentError {
    pub fn unknown(tag: &Tag) -> Self {
        Self::unknown_of(tag, None)
    }

    /// Returns the error for a tag that does not exist. `column` is a column that already holds ids of the tag, if any.
    pub fn unknown_of(tag: &Tag, column: Option<ColumnOfTag>) -> Self {
        Self::Unknown { tag: TagText(*tag).shown(), registry: registries::first(server::database()), column }
    }

    pub fn exhausted(tag: &Tag, exhausted: Exhausted) -> Self {
        Self::Exhausted(TagText(*tag).shown(), exhausted)
    }

    pub fn no_refill(tag: &Tag, limit: Duration, trouble: Option<Trouble>) -> Self {
        let tag = TagText(*tag).shown();
        let (detail, hint) = no_refill(&tag, trouble);
        Self::TooLate { tag, limit, detail, hint }
    }

    pub fn rights_locked(tag: &Tag, limit: Duration) -> Self {
        const LOCKED: &str = "A transaction has locked the privilege tables of segment tags, as DROP EXTENSION does until it commits.";
        const END_IT: &str = "End that transaction. To find it: SELECT pid FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock' AND \
             relation IN (SELECT oid FROM pg_class WHERE relname IN ('segment_restricted', 'segment_privilege')).";
        let (detail, hint) = (LOCKED.to_owned(), END_IT.to_owned());
        Self::TooLate { tag: TagText(*tag).shown(), limit, detail, hint }
    }
}

reported!(SegmentError);

fn wanted(action: Access) -> &'static str {
    if action == Access::Move { Privilege::Update } else { Privilege::Usage }.name()
}

/// Returns the obstacle to a refill as an error's detail and hint.
pub fn no_refill(tag: &str, trouble: Option<Trouble>) -> (String, String) {
    let fixed = |detail: &str, hint: &str| (detail.to_owned(), hint.to_owned());
    match trouble {
        // With a registry, the locked row is in the registry's database.
        Some(Trouble::RowLocked) | None if let Some(found) = registry_trouble() => found,
        Some(Trouble::RowLocked) => (
            "A transaction has locked the tag's row in snowflake_ids.segment, or the whole table.".to_owned(),
            format!(
                "End that transaction. To find it: SELECT pid, query FROM pg_stat_activity WHERE \
                 backend_xid::text = (SELECT xmax::text FROM snowflake_ids.segment WHERE tag = {}).",
                quote_literal(tag)
            ),
        ),
        Some(Trouble::Registry) => registry_trouble().unwrap_or_else(|| {
            fixed("The registry has given no ids.", "Look at snowflake_ids.registry_status.")
        }),
        Some(Trouble::NoWorker) => fixed(
            "No background worker is running to reserve ids: one is about to start, or all max_worker_processes \
             are in use.",
            "Calls succeed as soon as a worker runs. If no worker starts, raise max_worker_processes and restart the \
             server.",
        ),
        Some(Trouble::Failed(code)) => (
            format!("The background worker's last attempt failed with SQLSTATE {}.", sqlstate(code)),
            "See the server's log for the error.".to_owned(),
        ),
        Some(Trouble::OutOfReach(0)) => fixed(
            "The background worker that reserves ids could not get the locks to connect to this database in time.",
            "End the transaction that has locked the database or a system catalog. To find it: SELECT \
             pid, mode FROM pg_locks WHERE granted AND mode LIKE '%Exclusive%'.",
        ),
        Some(Trouble::OutOfReach(code)) => (
            format!(
                "The background worker that reserves ids could not connect to this database: SQLSTATE {}.",
                sqlstate(code)
            ),
            "See the server's log for the error. The worker tries again every few seconds.".to_owned(),
        ),
        None => fixed(
            "The reserved ids of the tag are used up, and the background worker has not reserved more in time.",
            "Check snowflake_ids.segment_status and pg_stat_activity. If the disk is slow, raise \
             snowflake_ids.segment_wait_timeout.",
        ),
    }
}

/// Returns the troubles of this database's registries, if there are any, as an error's detail and hint.
fn registry_trouble() -> Option<(String, String)> {
    let complaints = registries::complaints(server::database());
    let each = complaints.iter().map(|(server, why, _)| ended(format!("Registry \"{server}\": {why}")));
    let detail = each.collect::<Vec<_>>().join(" ");
    let hint = complaints.into_iter().map(|(.., hint)| hint).find(|hint| !hint.is_empty());
    let hint = hint.unwrap_or_else(|| "Look at snowflake_ids.registry_status.".to_owned());
    (!detail.is_empty()).then_some((detail, hint))
}
