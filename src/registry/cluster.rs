//! The nodes of a Citus cluster: their reports, and the call by which all of them begin to use one registry. What other nodes
//! have changed stays if the call fails.
#![allow(clippy::result_large_err, reason = "pgrx takes the SQLSTATE from a report by value")]

use super::handover;
use super::serve::this;
use crate::pg::catalog::{self, is_superuser};
use crate::pg::clock::uptime;
use crate::pg::report::{report, spi, tell};
use crate::pg::statement::Statement;
use crate::pg::text::TextOut;
use crate::pg::wait::{Event, pause};
use crate::pg::{guc, role};
use crate::store::citus::{self, ON_ALL, ON_COORDINATOR, ON_WORKERS};
use crate::store::registry::endpoints;
use crate::store::tables::SEGMENT;
use crate::tag::error::SegmentError;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::spi::quote_literal;
use snowflake_ids_core::registry::citus::{
    COORDINATOR, ClusterError, ClusterFacts, ClusterNotice, Faults, Judged, NodeAnswer, check_changed,
    check_found, conclude, judge, lines,
};
use snowflake_ids_core::registry::wire::RegistryName;
use std::time::Duration;

/// The limit of the wait for worker ids. The registry usually leases them within about a second.
const LONGEST: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);
/// Runs a statement on a node. The message of an error has its detail and its hint, too.
const RUN: &str = "SELECT snowflake_ids_internal.citus_run(%L)";

/// Fails if this database belongs to no cluster.
pub fn check() -> Result<(), ErrorReport> {
    let is_there = catalog::has_system_table(c"pg_dist_node") && citus::is_there();
    if is_there { Ok(()) } else { Err(report(ClusterError::NoCitus)) }
}

/// Returns the nodes with their reports and their problems.
pub fn look() -> Result<Vec<Judged>, ErrorReport> {
    citus::REPORTS.json(&[]).map(judge)
}

/// Runs a command on each active worker. If the command fails on some nodes, the other nodes keep their changes.
pub fn run_on_workers(command: TextOut) -> Result<(), ErrorReport> {
    check_changed(&answers(&ON_WORKERS, RUN, &[command], |answer| !answer.is_done)?).map_err(report)
}

/// Makes this node use the registry that the coordinator named, unless it uses that registry. Other nodes may use another one.
pub fn use_named(server: &str, named: &RegistryName) -> Result<(), ErrorReport> {
    let source = SEGMENT.find().ok_or(SegmentError::NoTable)?;
    let used = source.as_owner(endpoints).map_err(spi)?.into_iter();
    let (identities, servers): (Vec<_>, Vec<_>) = used.map(|used| (used.seen.identity, used.server)).unzip();
    if !servers.is_empty() && identities.join(",") != named.identity {
        return Err(report(ClusterError::Uses(servers.join(","))));
    }
    // On this node the name may lead to another server than on the coordinator, or to a former primary.
    let found = handover::look(servers.first().map_or(server, String::as_str)).map_err(report)?;
    check_found(server, &found, named).map_err(report)?;
    if !servers.is_empty() {
        let seen = [found.identity.into(), i64::from(found.timeline).into()];
        return source.as_owner(|| citus::SEE_TIMELINE.run(&seen)).map_err(spi);
    }
    // Another session may hold the locks, because it also sets the registry.
    guc::set_for_transaction(c"lock_timeout", c"20s");
    Ok(handover::join(&[server.to_owned()], None)?)
}

/// Makes the nodes of this cluster use one registry: the database of a foreign server, or else this database.
pub fn unite(server: Option<TextOut>) -> Result<(), ErrorReport> {
    let began = uptime();
    if !is_superuser(role::current()) {
        return Err(report(ClusterError::Denied));
    }
    check()?;
    let server = server.unwrap_or_else(|| TextOut::of_bytes(COORDINATOR.as_bytes()));
    let name = server.to_utf8_lossy();
    let is_registry = name == COORDINATOR;
    let named = Some(&server).filter(|_| !is_registry).cloned();
    let facts: ClusterFacts = citus::FACTS.json(&[named.into()])?.pop().unwrap_or_default();
    facts.check(Some(name.as_str()).filter(|_| !is_registry)).map_err(report)?;
    facts.inactive.into_iter().for_each(|node| tell(ClusterNotice::Skipped(node)));
    let registry = if is_registry {
        this().ok_or(SegmentError::NoTable)?
    } else {
        handover::look(&name).map_err(report)?
    };
    let identity = TextOut::of_bytes(registry.identity.as_bytes());
    let others = "SELECT coalesce(pg_catalog.string_agg(pg_catalog.format('registry \"%%s\"', r.server), ', ' ORDER BY r.position)
            FILTER (WHERE r.identity OPERATOR(pg_catalog.<>) %L::pg_catalog.text), '') FROM snowflake_ids.registry_server AS r";
    let others = answers(&ON_ALL, others, &[identity], |answer| answer.is_done && !answer.said.is_empty())?;
    if !others.is_empty() {
        return Err(report(ClusterError::OtherRegistry(lines(&others))));
    }
    // The workers lack this extension if it was created on the coordinator before the extension citus.
    let create = "DO $do$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake_ids') THEN
            PERFORM pg_catalog.set_config('citus.enable_ddl_propagation', 'off', true);
            CREATE EXTENSION snowflake_ids VERSION %L;
        END IF;
    END$do$ ";
    let created = faults(&ON_WORKERS, create, &[text(facts.version)])?;
    let uses = [name, registry.identity, registry.timeline.to_string()].map(quote_literal).join(", ");
    let uses = &[text(format!("SELECT snowflake_ids_internal.citus_use({uses})"))];
    let (mut joined, mut mapped) = (Faults::new(), Faults::new());
    if let Some(mapping) = facts.mapping {
        // A worker without this function would log the statement, which contains the password.
        let lacks = "SELECT pg_catalog.to_regprocedure('snowflake_ids_internal.citus_map(pg_catalog.name, pg_catalog.text[])') IS NULL";
        let lacking = answers(&ON_WORKERS, lacks, &[], |answer| answer.is_done && answer.said != "f")?;
        if !lacking.is_empty() {
            let places: Vec<_> = lacking.into_iter().map(|answer| answer.place).collect();
            return Err(report(ClusterError::OtherVersion(places.join("\n"))));
        }
        // These settings keep the statement out of the log, whatever its errors or duration. They take effect before the
        // function is called.
        let map =
            "SELECT CASE WHEN pg_catalog.set_config('log_min_error_statement', 'panic', false) IS NOT NULL
            AND pg_catalog.set_config('log_min_duration_statement', '-1', false) IS NOT NULL
            AND pg_catalog.set_config('log_min_duration_sample', '-1', false) IS NOT NULL
            AND pg_catalog.set_config('log_transaction_sample_rate', '0', false) IS NOT NULL
            THEN snowflake_ids_internal.citus_map(%L, %L) END";
        mapped = faults(&ON_WORKERS, map, &[server, text(mapping)])?;
        // Each node commits in its own transaction, so that other nodes see the change before this transaction ends.
        joined = faults(&ON_COORDINATOR, RUN, uses)?;
    } else {
        // A new registry knows no leases. The nodes' leases are committed before any node asks for a lease, and stay if this
        // transaction fails.
        let hold = "SELECT snowflake_ids_internal.citus_hold(%L)";
        let failed = faults(&ON_COORDINATOR, hold, citus::text(&citus::HELD)?.as_slice())?;
        if !failed.is_empty() {
            let failed: Vec<_> = failed.iter().map(|(node, fault)| format!("node {node}: {fault}")).collect();
            return Err(report(ClusterError::NotHeld(failed.join("\n"))));
        }
    }
    // The other nodes join the registry only after the coordinator has joined, and so gives no ids of its own any more.
    if joined.is_empty() {
        joined = faults(&ON_WORKERS, RUN, uses)?;
    }
    // Defaults on workers may name generators and series. A tag that is restricted here must be restricted there, too.
    let take = "SELECT snowflake_ids_internal.citus_take(%L)";
    let taken = faults(&ON_WORKERS, take, citus::text(&citus::DEFINITIONS)?.as_slice())?;
    // A later one of these counts.
    let told = [taken, created, joined, mapped].into_iter().flatten().collect();
    loop {
        // Each node first issues an id, because a server acquires its worker id when it issues its first id.
        let idle = answers(&ON_ALL, "SELECT pg_catalog.snowflake_nextval()", &[], |answer| !answer.is_done)?;
        let idle = idle.into_iter().map(|answer| (answer.node, format!("it gives no id: {}", answer.said)));
        let nodes = look()?;
        let is_whole = nodes.iter().all(|judged| judged.node.is_active);
        match conclude(nodes, &told, &idle.collect()) {
            Err((_, true)) if uptime().saturating_sub(began) < LONGEST => pause(Event::Lease, PAUSE),
            Err((error, _)) => return Err(report(error)),
            Ok(united) => {
                if is_whole && is_registry {
                    // All nodes have joined, and each kept its worker id.
                    citus::END_FORMER.run(&[]).map_err(spi)?;
                }
                tell(united);
                return Ok(());
            }
        }
    }
}

/// Runs a command, a format for up to two values, and returns the answers that are meant.
fn answers(
    on: &Statement,
    command: &str,
    values: &[TextOut],
    is_meant: fn(&NodeAnswer) -> bool,
) -> Result<Vec<NodeAnswer>, ErrorReport> {
    let value = |at| values.get(at).cloned().into();
    let answers: Vec<NodeAnswer> = on.json(&[command.into(), value(0), value(1)])?;
    Ok(answers.into_iter().filter(is_meant).collect())
}

/// Runs a command. Returns the errors of nodes, and their answers other than those of a statement without a result.
fn faults(on: &Statement, command: &str, values: &[TextOut]) -> Result<Faults, ErrorReport> {
    let is_fault = |answer: &NodeAnswer| !(answer.is_done && ["", "DO"].contains(&answer.said.as_str()));
    let found = answers(on, command, values, is_fault)?;
    Ok(found.into_iter().map(|answer| (answer.node, answer.said)).collect())
}

fn text(text: String) -> TextOut {
    TextOut::of(text).unwrap_or_else(|| TextOut::of_bytes(b""))
}
