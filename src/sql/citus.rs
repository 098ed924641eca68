//! The nodes of a Citus cluster. What is only a query, or copies rows, is SQL, in `citus.sql`.

use crate::column::schema;
use crate::pg::encoding::legible;
use crate::pg::text::{Text, TextOut};
use crate::pg::{database, server, transaction};
use crate::registry::{self, cluster};
use crate::shared::generator::SHARED;
use crate::sql::attach::extension_keep;
use crate::store::citus;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::registry::citus::Judged;
use snowflake_ids_core::registry::wire::RegistryName;

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

/// Returns whether the caller has begun a transaction block, and may roll it back. `attach_all` and `detach_all` have begun none.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn in_transaction_block() -> bool {
    transaction::is_block() && !schema::commits()
}

/// Returns whether this database may join a cluster in a transaction of Citus. Such a transaction cannot change the source of
/// the worker id, so the answer is false if the server leases its worker id through another database.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn citus_may_join() -> bool {
    let leases = SHARED.get().and_then(|shared| shared.status.registry());
    leases.is_none_or(|of| of == server::database() || database::name(of).is_none())
}

/// Runs a statement on each active worker of the cluster, as the current user.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn citus_run_on_workers(command: Text<'_>) -> Result<(), ErrorReport> {
    /// A limit in bytes. The definitions that all nodes must have are smaller.
    const MOST: usize = 64 << 20;
    cluster::run_on_workers(TextOut::of_bytes(command.bytes(MOST, "command")?))
}

/// Fails if this database belongs to no cluster.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
fn citus_check() -> Result<(), ErrorReport> {
    cluster::check()
}

/// Makes this node use the registry with this identity. The coordinator runs this function on each node.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
#[search_path(pg_catalog, pg_temp)]
fn citus_use(server: Text<'_>, identity: Text<'_>, timeline: i64) -> Result<(), ErrorReport> {
    let (server, identity) =
        (server.read_up_to(MOST_OF_NAME, "server")?, identity.read("identity")?.into_owned());
    let timeline = timeline.try_into().unwrap_or(u32::MAX);
    cluster::use_named(&server, &RegistryName { identity, timeline, ..RegistryName::default() })
}

/// Makes all nodes of the cluster use one registry. All roles may call this function, which checks the caller's rights.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe)]
#[search_path(pg_catalog, pg_temp)]
fn citus_unite(server: Option<Text<'_>>) -> Result<(), ErrorReport> {
    extension_keep()?;
    let bytes = |server: Text<'_>| server.bytes(MOST_OF_NAME, "server").map(TextOut::of_bytes);
    cluster::unite(server.map(bytes).transpose()?)
}

/// Returns the nodes of the cluster, each with its problem, if any.
#[pg_extern(schema = "snowflake_ids", volatile, parallel_unsafe, security_definer)]
#[search_path(pg_catalog, pg_temp)]
fn citus_status() -> Result<
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
            name!(problem, Option<TextOut>),
        ),
    >,
    ErrorReport,
> {
    extension_keep()?;
    cluster::check()?;
    let nodes = cluster::look()?;
    // The keys concern all nodes, so they are reported once, for the coordinator.
    let keys = citus::text(&citus::UNCHECKED_KEYS)?;
    let row = move |Judged { node, report, problem }| {
        let said = report.as_ref();
        let problem = problem.and_then(|problem| TextOut::of(legible(&problem.with_hint())));
        (
            node.node_id,
            legible(&node.node_name),
            node.node_port,
            node.group_id,
            said.and_then(|said| said.worker_id).and_then(|worker_id| worker_id.try_into().ok()),
            said.map(|said| legible(&said.layout)),
            said.and_then(|said| said.registry.as_deref()).map(legible),
            node.version.as_deref().filter(|version| !version.is_empty()).map(legible),
            problem.or_else(|| keys.clone().filter(|_| node.group_id == 0)),
        )
    };
    Ok(TableIterator::new(nodes.into_iter().map(row)))
}

extension_sql_file!(
    "citus.sql",
    name = "citus",
    requires = [
        registry_identity,
        registry_timeline,
        citus_status,
        citus_unite,
        "registries",
        "series",
        "status_view"
    ]
);
