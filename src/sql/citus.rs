//! The nodes of a Citus cluster. Most of the code is SQL, in `citus.sql`; this file has the checks of the nodes.

use crate::pg::encoding::legible;
use crate::pg::report::report;
use crate::pg::text::Text;
use crate::pg::{database, server, transaction};
use crate::registry;
use crate::shared::generator::SHARED;
use crate::sql::error::CallError;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::registry::citus::{ClusterNode, Judged, judge};

/// The limit of the list of nodes in bytes. The reports of all nodes together are smaller.
const MOST: usize = 64 << 20;
/// The limit of a server's name in bytes.
const MOST_OF_NAME: usize = 256;

/// Returns the identity that this database has, or would have, as a registry.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn registry_identity() -> Option<String> {
    registry::this().map(|this| this.identity)
}

/// Returns this server's timeline, which grows with each promotion and each recovery to an older state.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn registry_timeline() -> Option<i64> {
    registry::this().map(|this| this.timeline.into())
}

/// Returns the identity and timeline of the registry behind a foreign server, in JSON.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn registry_look(server: Text<'_>) -> Result<String, ErrorReport> {
    let server = server.read_up_to(MOST_OF_NAME, "server")?;
    let found = registry::look(&server).map_err(report)?;
    Ok(serde_json::to_string(&found).map_err(CallError::RegistryNotWritten)?)
}

/// Returns whether the caller has begun a transaction block, and may roll it back.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn in_transaction_block() -> bool {
    transaction::is_block()
}

/// Returns whether this database may join a cluster in a transaction of Citus. Such a transaction cannot change the source of
/// the worker id, so the answer is false if the server leases its worker id through another database.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn citus_may_join() -> bool {
    let leases = SHARED.get().and_then(|shared| shared.status.registry());
    leases.is_none_or(|of| of == server::database() || database::name(of).is_none())
}

/// Returns the problem of each node, if any, and whether the problem may disappear without action. `nodes` is a JSON array of
/// the nodes' reports.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn citus_judge(
    nodes: Text<'_>,
) -> Result<
    TableIterator<
        'static,
        (
            name!(node_id, i32),
            name!(node_name, String),
            name!(node_port, i32),
            name!(group_id, i32),
            name!(worker_id, Option<i32>),
            name!(layout, Option<String>),
            name!(registry, Option<String>),
            name!(version, Option<String>),
            name!(problem, Option<String>),
            name!(may_pass, bool),
        ),
    >,
    ErrorReport,
> {
    let nodes: Vec<ClusterNode> =
        serde_json::from_str(&nodes.read_up_to(MOST, "nodes")?).map_err(CallError::BadNodes)?;
    let row = |Judged { node, report, problem }| {
        let said = report.as_ref();
        (
            node.node_id,
            legible(&node.node_name),
            node.node_port,
            node.group_id,
            said.and_then(|said| said.worker_id).and_then(|worker_id| worker_id.try_into().ok()),
            said.map(|said| legible(&said.layout)),
            said.and_then(|said| said.registry.as_deref()).map(legible),
            node.version.as_deref().filter(|version| !version.is_empty()).map(legible),
            problem.as_ref().map(|problem| legible(&format!("{problem}. Hint: {}.", problem.hint()))),
            problem.is_some_and(|problem| problem.may_pass()),
        )
    };
    Ok(TableIterator::new(judge(nodes).into_iter().map(row)))
}

extension_sql_file!(
    "citus.sql",
    name = "citus",
    requires = [registry_identity, registry_timeline, "registries", "series", "status_view"]
);
