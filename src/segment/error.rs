//! Why a session got no id of a tag.

use crate::pg::encoding::legible;
use crate::pg::report::{self, NotReady, explained};
use crate::pg::server;
use crate::pg::tag::TagText;
use crate::shared::registries;
use crate::shared::slot::{Trouble, micros};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::spi::SpiError;
use pgrx::{PgSqlErrorCode as Code, function_name};
use snowflake_ids_core::Explain;
use snowflake_ids_core::clock::human;
use snowflake_ids_core::definition::{Exhausted, TagError};
use snowflake_ids_core::directory::Tag;
use snowflake_ids_core::error::ended;
use snowflake_ids_core::places::IDLE;
use snowflake_ids_core::privilege::{Action, Privilege};
use std::time::Duration;

/// Why a session got no id of a tag. Tags are kept as they are shown.
#[derive(Debug)]
pub enum SegmentError {
    /// The server can't generate ids now; with the name of the function that was called.
    NotReady(NotReady, &'static str),
    /// The tag is null.
    NoTag,
    /// No tag can be called that.
    BadTag(TagError),
    /// The role has not the right to.
    Denied {
        /// The tag.
        tag: String,
        /// What it wanted to do.
        action: Action,
        /// Its name.
        role: String,
    },
    /// There is no such tag.
    Unknown(String),
    /// The tag has no ids left.
    Exhausted(String, Exhausted),
    /// The transaction has changed the tag, and a parallel query asks for ids.
    Parallel(String),
    /// A trigger on the table of tags asks for ids while a worker, or a commit, writes to it.
    Within(String),
    /// This session got no id of the tag yet.
    NoLast(String),
    /// All places in shared memory are in use.
    NoPlace(usize),
    /// So many tags are being looked for that nobody has found yet, and this would be one more.
    NoTrial {
        /// The tag.
        tag: String,
        /// How many may be.
        most: usize,
    },
    /// The extension's table of tags is not there.
    NoTable,
    /// No refill came in time.
    NoRefill {
        /// The tag.
        tag: String,
        /// The time that the call may wait.
        limit: Duration,
        /// What is known to stand in the way.
        trouble: Option<Trouble>,
    },
    /// Who may take ids did not become known in time.
    RightsLocked {
        /// The tag.
        tag: String,
        /// The time that the call may wait.
        limit: Duration,
    },
    /// SPI failed without an SQL error.
    Spi(SpiError),
}

impl SegmentError {
    /// There is no such tag.
    pub fn unknown(tag: &Tag) -> Self {
        Self::Unknown(TagText(*tag).shown())
    }

    /// The tag has no ids left.
    pub fn exhausted(tag: &Tag, exhausted: Exhausted) -> Self {
        Self::Exhausted(TagText(*tag).shown(), exhausted)
    }
}

impl From<SpiError> for SegmentError {
    fn from(error: SpiError) -> Self {
        Self::Spi(error)
    }
}

impl From<SegmentError> for ErrorReport {
    #[cold]
    fn from(failure: SegmentError) -> Self {
        match failure {
            SegmentError::NotReady(unready, function) => unready.report(function),
            SegmentError::NoTag => report::bad_argument("tag must not be null", "Ids belong to a tag."),
            SegmentError::BadTag(wrong) => explained(&wrong),
            SegmentError::Denied { tag, action, role } => denied(&tag, action, &role),
            SegmentError::Unknown(tag) => unknown(&tag),
            SegmentError::Exhausted(tag, exhausted) => report(
                Code::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!("segment tag \"{tag}\" has no ids left"),
                exhausted.detail().unwrap_or_default(),
                exhausted.hint().unwrap_or_default(),
            ),
            SegmentError::Parallel(tag) => report(
                Code::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!(
                    "cannot use segment tag \"{tag}\" in a parallel query of the transaction that changed it"
                ),
                "Its ids come from the transaction's own memory until that commits.".to_owned(),
                "Commit first, or SET max_parallel_workers_per_gather = 0.".to_owned(),
            ),
            SegmentError::Within(tag) => report(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("cannot wait for ids of segment tag \"{tag}\" while ids are being reserved"),
                "A trigger on snowflake_ids.segment asks for them.".to_owned(),
                "Take ids in such a trigger from a sequence, or from snowflake_nextval().".to_owned(),
            ),
            SegmentError::NoLast(tag) => ErrorReport::new(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("segment_currval of tag \"{tag}\" is not yet defined in this session"),
                function_name!(),
            )
            .set_hint("Call segment_nextval with this tag first."),
            SegmentError::NoPlace(places) => report(
                Code::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                "too many segment tags are in use".to_owned(),
                format!(
                    "All {places} places are taken. A tag gives its place up when it was not used for about {}.",
                    human(micros(IDLE))
                ),
                "Raise snowflake_ids.max_tags and restart the server.".to_owned(),
            ),
            SegmentError::NoTrial { tag, most } => report(
                Code::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                format!("cannot look for segment tag \"{tag}\" now"),
                format!("Calls wait for {most} other tags that were not found yet, and no more may be looked for at once."),
                "Try again. To find those calls: SELECT pid, query FROM pg_stat_activity WHERE query ~ 'segment_nextval'.".to_owned(),
            ),
            SegmentError::NoTable => report(
                Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the table snowflake_ids.segment does not exist".to_owned(),
                "The extension was dropped from this database, or is being dropped.".to_owned(),
                "Give CREATE EXTENSION snowflake_ids.".to_owned(),
            ),
            SegmentError::NoRefill { tag, limit, trouble } => no_refill(&tag, limit, trouble),
            SegmentError::RightsLocked { tag, limit } => rights_locked(&tag, limit),
            SegmentError::Spi(error) => report::spi(&error),
        }
    }
}

fn denied(tag: &str, action: Action, role: &str) -> ErrorReport {
    if action == Action::Own {
        return report(
            Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("must be owner of segment tag \"{tag}\""),
            format!("Role \"{}\" neither owns it nor manages tags.", legible(role)),
            "Ask whoever owns it, or manages the tags of this database.".to_owned(),
        );
    }
    let wanted = if action == Action::Move { Privilege::Update } else { Privilege::Usage }.name();
    report(
        Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("permission denied for segment tag \"{tag}\""),
        format!("Role \"{}\" does not have privilege {wanted} on it.", legible(role)),
        legible(&format!(
            "Whoever owns it or manages tags can grant it: SELECT snowflake_ids.segment_grant({}, {}, '{wanted}').",
            pgrx::spi::quote_literal(tag),
            pgrx::spi::quote_literal(role),
        )),
    )
}

fn unknown(tag: &str) -> ErrorReport {
    let (there, detail) = match registries::first(server::database()) {
        Some(server) => (" there", format!("Registry \"{server}\" has no such tag.")),
        None => ("", "There is no row for it in snowflake_ids.segment.".to_owned()),
    };
    report(
        Code::ERRCODE_UNDEFINED_OBJECT,
        format!("segment tag \"{tag}\" does not exist"),
        legible(&detail),
        format!(
            "Create it{there} with SELECT snowflake_ids.segment_create({}), or have unknown tags created on first use with \
             snowflake_ids.segment_auto_create.",
            pgrx::spi::quote_literal(tag)
        ),
    )
}

fn no_refill(tag: &str, limit: Duration, trouble: Option<Trouble>) -> ErrorReport {
    let (detail, hint) = match trouble {
        // Where there is a registry, it is locked there.
        Some(Trouble::RowLocked) if let Some(trouble) = registry_trouble() => trouble,
        Some(Trouble::RowLocked) => (
            "A transaction has the tag's row in snowflake_ids.segment, or all of the table, locked."
                .to_owned(),
            format!(
                "End that transaction. To find it: SELECT pid, query FROM pg_stat_activity WHERE \
                 backend_xid::text = (SELECT xmax::text FROM snowflake_ids.segment WHERE tag = {}).",
                pgrx::spi::quote_literal(tag)
            ),
        ),
        Some(Trouble::NoWorker) => (
            "No background worker is there to reserve some: it is about to start, or all max_worker_processes \
             are in use."
                .to_owned(),
            "Calls succeed as soon as there is one. If it lasts, raise max_worker_processes and restart the \
             server."
                .to_owned(),
        ),
        Some(Trouble::Registry) => registry_trouble().unwrap_or_else(|| {
            ("The registry has given none.".to_owned(), "Look at snowflake_ids.registry_status.".to_owned())
        }),
        None if let Some(trouble) = registry_trouble() => trouble,
        Some(Trouble::Failed(code)) => (
            format!("The background worker's last attempt failed with SQLSTATE {}.", report::sqlstate(code)),
            "The server's log has the error.".to_owned(),
        ),
        Some(Trouble::OutOfReach(0)) => (
            "The background worker that reserves some has waited in vain to connect to this database.".to_owned(),
            "A transaction has the database, or a catalog that sessions begin with, locked: end it. To find it: SELECT \
             pid, mode FROM pg_locks WHERE granted AND mode LIKE '%Exclusive%'."
                .to_owned(),
        ),
        Some(Trouble::OutOfReach(code)) => (
            format!(
                "The background worker that reserves some could not connect to this database: SQLSTATE {}.",
                report::sqlstate(code)
            ),
            "The server's log has the error. It is tried again by itself, every few seconds.".to_owned(),
        ),
        None => (
            "Its ids are used up, and the background worker has reserved no more in time.".to_owned(),
            "Look at snowflake_ids.segment_status and pg_stat_activity; raise \
             snowflake_ids.segment_wait_timeout where the disk is slow."
                .to_owned(),
        ),
    };
    too_late(tag, limit, detail, hint)
}

fn rights_locked(tag: &str, limit: Duration) -> ErrorReport {
    too_late(
        tag,
        limit,
        "A transaction has the tables of rights on tags locked, as DROP EXTENSION does until it commits.".to_owned(),
        "End that transaction. To find it: SELECT pid FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock' AND \
         relation IN (SELECT oid FROM pg_class WHERE relname IN ('segment_restricted', 'segment_privilege'))."
            .to_owned(),
    )
}

fn too_late(tag: &str, limit: Duration, detail: String, hint: String) -> ErrorReport {
    let message = format!("no ids for segment tag \"{tag}\" within {}", human(micros(limit)));
    report(Code::ERRCODE_INSUFFICIENT_RESOURCES, message, detail, hint)
}

/// What is wrong with the registries of this database, if anything, and what to do about it.
fn registry_trouble() -> Option<(String, String)> {
    let complaints = registries::complaints(server::database());
    let each = complaints.iter().map(|(server, why, _)| ended(format!("Registry \"{server}\": {why}")));
    let detail = each.collect::<Vec<_>>().join(" ");
    let hint = complaints.into_iter().map(|(.., hint)| hint).find(|hint| !hint.is_empty());
    let hint = hint.unwrap_or_else(|| "Look at snowflake_ids.registry_status.".to_owned());
    (!detail.is_empty()).then(|| (legible(&detail), legible(&hint)))
}

fn report(code: Code, message: String, detail: String, hint: String) -> ErrorReport {
    ErrorReport::new(code, message, function_name!()).set_detail(detail).set_hint(hint)
}
