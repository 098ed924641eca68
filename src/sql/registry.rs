//! Registries: this database as a registry, and the use of other registries. The functions for administrators are SQL, in
//! `registry.sql`.

use crate::pg::catalog::Source;
use crate::pg::clock::SystemClock;
use crate::pg::encoding::{legible, to_utf8};
use crate::pg::error::ServerError;
use crate::pg::report::{raise, report, spi};
use crate::pg::tag_text::{self, TagArg};
use crate::pg::text::Text;
use crate::pg::{guc, replication, secret, server, time, transaction, utility};
use crate::registry::{self, handover, join, seeded, serve, setup};
use crate::settings;
use crate::shared::registries;
use crate::sql::error::CallError;
use crate::store::tables::SEGMENT;
use crate::store::{citus, fork, registry as store};
use crate::tag::error::SegmentError;
use crate::tag::transaction_tags;
use pgrx::heap_tuple::PgHeapTuple;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{AllocatedByPostgres, WhoAllocated};
use snowflake_ids_core::error::{MAX_TEXT_BYTES, NotReadyError, check_length};
use snowflake_ids_core::registry::accept::{Admission, admit};
use snowflake_ids_core::registry::error::Unregistered;
use snowflake_ids_core::registry::setup::JoinError;
use snowflake_ids_core::registry::wire::{self, Request, Response, ResponseBody};
use snowflake_ids_core::registry::worker_ids::{self, LeaseLimits};
use snowflake_ids_core::{Clock, UnixMicros};
use std::ffi::{CStr, CString};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Serves a request of another server: see `snowflake_ids_core::registry::wire`. Requests that raise tags are served only by
/// [`registry_take_over`], because raising tags needs a separate grant.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe, strict)]
fn registry_serve(request: Text<'_>) -> Result<String, ErrorReport> {
    answer(&request, false)
}

/// Serves a request of another server's administrator: takes over tags of that server, or lists this registry's tags.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe, strict)]
fn registry_take_over(request: Text<'_>) -> Result<String, ErrorReport> {
    answer(&request, true)
}

fn answer(request: &Text<'_>, may_take_over: bool) -> Result<String, ErrorReport> {
    let function = if may_take_over { TAKE_OVER } else { SERVE };
    if server::in_recovery() {
        return Err(report(NotReadyError::InRecovery(function)));
    }
    let source = SEGMENT.find().ok_or(SegmentError::NoTable)?;
    let this = registry::this().ok_or(SegmentError::NoTable)?;
    let text = request.read_up_to(wire::MAX_BYTES, "request")?;
    let request = Request::accept(&text).map_err(report)?;
    let fork = request.as_ref().map_or(Ok(None), |request| own_fork(source, request))?;
    let this = wire::RegistryName { fork, ..this };
    let said = match admit(request, &this, &fork::all(), may_take_over, transaction::is_block()) {
        Admission::Serve(unknown, ask) => serve(source, fork, unknown, ask)?,
        Admission::Say(said) => said,
        Admission::InBlock => return Err(CallError::InBlock { function }.into()),
        Admission::TakesOver => return Err(CallError::TakesOver.into()),
    };
    let answer = Response { registry: this, clock: SystemClock.now(), said };
    let answer = answer.to_text().map_err(CallError::AnswerNotWritten)?;
    check_length("answer", answer.len(), wire::MAX_BYTES).map_err(report)?;
    Ok(answer)
}

/// The name of the function that other servers call.
const SERVE: &str = "snowflake_ids.registry_serve";
/// The name of the function that administrators of other servers call.
const TAKE_OVER: &str = "snowflake_ids.registry_take_over";

/// Returns this registry's fork. The waits for locks of the whole transaction are bounded as the request says.
fn own_fork(source: Source, request: &Request) -> Result<Option<i64>, ErrorReport> {
    // Reserved ids must be durable before the answer, whatever the calling role's settings are.
    if guc::shown(c"synchronous_commit").as_deref() != Some("remote_apply") {
        guc::set_for_transaction(c"synchronous_commit", c"on");
    }
    // A lock_timeout of 0 would mean no limit.
    let timeout = CString::new(format!("{}ms", request.timeout.as_millis().max(1))).unwrap_or_default();
    guc::set_for_transaction(c"lock_timeout", &timeout);
    let named = request.registry.iter().flat_map(wire::RegistryName::forks);
    source.as_owner(|| fork::own(named)).map_err(spi)
}

/// Serves a request. The request's row changes count as the extension's own changes, so ids in the tags' buffers stay valid.
fn serve(
    source: Source,
    fork: Option<i64>,
    unknown: Vec<i64>,
    mut ask: wire::RequestBody,
) -> Result<ResponseBody, ErrorReport> {
    let endpoints = source.as_owner(store::endpoints).map_err(spi)?;
    if let Some(endpoint) = endpoints.first() {
        return Err(CallError::NoRegistry { server: endpoint.server.clone() }.into());
    }
    guc::set_for_transaction(c"jit", c"off");
    transaction_tags::keep_quiet(true);
    let now = SystemClock.now();
    if matches!(ask, wire::RequestBody::Lease(_))
        && let Some(database) = source.as_owner(serve::leases_elsewhere)
    {
        return Err(CallError::LeasesElsewhere { database }.into());
    }
    worker_ids::bound_request(&mut ask, now, fork);
    let taken = match &ask {
        wire::RequestBody::Lease(request) => {
            serve::taken_worker_ids(request.entry.datacenter, request.tokens()).map_err(report)?
        }
        _ => Vec::new(),
    };
    let limits = LeaseLimits { taken, longest: settings::lease_duration() + settings::max_clock_skew() };
    let answer = || {
        unknown.into_iter().try_for_each(fork::record)?;
        serve::answer(ask, &limits, now)
    };
    let work = AssertUnwindSafe(|| source.as_owner(answer));
    let said = PgTryBuilder::new(work).finally(|| transaction_tags::keep_quiet(false)).execute();
    Ok(said?)
}

/// Lets a role serve nodes. Written in Rust alone, so that no inner call shows the password.
#[pg_extern(
    requires = ["search_path"],
    sql = "CREATE FUNCTION snowflake_ids.registry_allow(role name, password text DEFAULT NULL) RETURNS void
VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'registry_allow_wrapper';"
)]
fn registry_allow(role: Option<&CStr>, password: Option<Text<'_>>) {
    secret::keep(c"SELECT snowflake_ids.registry_allow(...)", || {
        let role = utf8(role.unwrap_or_default().to_bytes(), "role")?;
        let password = password.map(|password| utf8(password.bytes(MAX_TEXT_BYTES, "password")?, "password"));
        Ok(setup::allow(&role, password.transpose()?.as_deref())?)
    });
}

/// Makes this server a node of the registry behind a connection string. Written in Rust alone, so that no inner call shows the
/// password.
#[pg_extern(
    requires = ["search_path"],
    sql = "CREATE FUNCTION snowflake_ids.registry_join(connection text, server name DEFAULT 'snowflake_registry') RETURNS void
VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'registry_join_wrapper';"
)]
fn registry_join(connection: Option<Text<'_>>, server: Option<&CStr>) {
    secret::keep(c"SELECT snowflake_ids.registry_join(...)", || {
        let name = server.filter(|name| !name.is_empty());
        let (connection, name) = connection.zip(name).ok_or_else(|| report(JoinError::Missing))?;
        let connection = utf8(connection.bytes(MAX_CONNECTION, "connection")?, "connection")?;
        Ok(setup::join(&connection, &utf8(name.to_bytes(), "server")?, serve::layout())?)
    });
}

/// The limit of a connection string, in bytes.
const MAX_CONNECTION: usize = 16 * 1024;

fn utf8(text: &[u8], name: &'static str) -> Result<String, ErrorReport> {
    Ok(to_utf8(text).ok_or(ServerError::NotUtf8 { name })?)
}

/// Removes the foreign servers that `registry_join` has made.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn registry_forget() -> Result<(), ErrorReport> {
    Ok(setup::forget()?)
}

/// Makes this database use the registries behind these foreign servers. `servers` is a JSON array of names.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn registry_use(servers: Text<'_>) -> Result<(), ErrorReport> {
    let servers = servers.read_up_to(wire::MAX_BYTES, "servers")?;
    let named: Vec<String> = serde_json::from_str(&servers).map_err(CallError::BadRegistries)?;
    Ok(handover::join(&named, None)?)
}

/// Makes this database its own registry again; returns false if this database used no other registry.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn registry_use_local() -> Result<bool, ErrorReport> {
    Ok(handover::leave()?)
}

/// Asks the registries in use to create a tag, or raise it above `highest`. Empties the tag's buffers on this server.
/// Returns false if no registry is in use.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn registry_seed(tag: TagArg<'_>, highest: i64) -> Result<bool, ErrorReport> {
    let tag = tag_text::checked(tag.0).map_err(SegmentError::BadTag)?;
    let source = SEGMENT.find().ok_or(SegmentError::NoTable)?;
    let text = to_utf8(tag.as_bytes()).ok_or(CallError::TagNotUtf8)?;
    let in_use = handover::seed(&text, highest)?;
    if in_use {
        seeded::record(source, &tag, highest);
    }
    Ok(in_use)
}

/// Fails on a Citus worker that uses no registry, because a worker must use the cluster's registry.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn check_registered() -> Result<(), ErrorReport> {
    let unregistered = citus::is_worker().and_then(|is_worker| Ok(is_worker && !store::in_use()?));
    if unregistered.map_err(spi)? { Err(report(Unregistered)) } else { Ok(()) }
}

/// Returns whether the transaction has changed tags.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn registry_is_busy() -> bool {
    !(transaction_tags::is_empty() && seeded::is_empty())
}

/// Skips rows that arrive by logical replication. TRUNCATE fails, because a statement trigger cannot skip it.
#[pg_trigger(sql = "CREATE FUNCTION snowflake_ids_internal.keep_from_replication() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'keep_from_replication_trigger';")]
fn keep_from_replication<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, PgTriggerError> {
    let row = trigger.new().or(trigger.old());
    if !replication::is_applied() {
        return Ok(row);
    }
    if matches!(trigger.op()?, PgTriggerOperation::Truncate) {
        raise(CallError::Truncate { table: trigger.relation()?.name().to_owned() });
    }
    Ok(row.filter(|_| false))
}

/// Returns whether a row comes from a restore: from a COPY that no function runs. Other statements that insert a row again fail,
/// or have an ON CONFLICT clause.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn is_restored() -> bool {
    utility::copies_in() && !replication::is_within_spi()
}

/// Makes the launcher read this database's use of registries again when the transaction ends.
#[pg_trigger(sql = "CREATE FUNCTION snowflake_ids_internal.registry_changed() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'registry_changed_trigger';")]
fn registry_changed<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, PgTriggerError> {
    // A row in the table of leases makes this database a registry. This matters only while this server chooses its worker
    // id itself.
    if trigger.relation()?.name() == "registry_server" || join::is_alone() {
        join::record_change().unwrap_or_else(|error| raise(report(error)));
    }
    Ok(None::<PgHeapTuple<'a, AllocatedByPostgres>>)
}

/// Returns the health of a registry that this database uses, with counts since this server started.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe, strict)]
fn registry_health(
    position: i32,
) -> Result<
    TableIterator<
        'static,
        (
            name!(calls, i64),
            name!(failures, i64),
            name!(failures_in_a_row, i64),
            name!(last_answer, Option<TimestampWithTimeZone>),
            name!(last_duration, Option<Interval>),
            name!(last_failure, Option<TimestampWithTimeZone>),
            name!(error, Option<String>),
            name!(retry_at, Option<TimestampWithTimeZone>),
        ),
    >,
    ErrorReport,
> {
    let entry = registries::find(server::database(), position.cast_unsigned());
    let Some(entry) = entry else { return Ok(TableIterator::empty()) };
    let instant = |at: i64| (at != 0).then(|| time::to_sql(UnixMicros(at))).transpose();
    let took = Some(entry.last_duration.load(Relaxed)).filter(|took| *took > 0);
    Ok(TableIterator::once((
        entry.calls.load(Relaxed).cast_signed(),
        entry.failures.load(Relaxed).cast_signed(),
        entry.health().failures.into(),
        instant(entry.last_answer.load(Relaxed))?,
        took.map(Duration::from_micros).map(time::interval).transpose()?,
        instant(entry.last_failure.load(Relaxed))?,
        Some(legible(&entry.error())).filter(|error| !error.is_empty()),
        entry.retry_at().map(time::to_sql).transpose()?,
    )))
}

extension_sql_file!(
    "registry.sql",
    name = "registries",
    requires = [
        registry_serve,
        registry_take_over,
        registry_allow,
        registry_join,
        registry_forget,
        registry_use,
        registry_use_local,
        registry_seed,
        registry_is_busy,
        registry_health,
        keep_from_replication,
        is_restored,
        registry_changed,
        "generators",
        "series",
        "segments",
        "sequences",
        "workers"
    ]
);
