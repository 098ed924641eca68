//! Facts from the Citus catalog, and commands that Citus runs on other nodes.
#![allow(clippy::result_large_err, reason = "pgrx takes the SQLSTATE from a report by value")]

use crate::pg::catalog;
use crate::pg::libpq::options_of_string;
use crate::pg::report::spi;
use crate::pg::statement::Statement;
use crate::pg::text::TextOut;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::spi::SpiError;
use snowflake_ids_core::registry::citus::{Coordinator, NoCoordinatorError};
use snowflake_ids_core::registry::client::Options;

/// Group 0 is the coordinator. A server outside a cluster also has group 0.
static IS_WORKER: Statement = Statement::new(
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_local_group AS g WHERE g.groupid OPERATOR(pg_catalog.<>) 0)",
);

/// Columns that some Citus versions lack are read through JSON.
static COORDINATOR: Statement = Statement::new(
    "SELECT convert_to(n.nodename, 'UTF8'), n.nodeport, coalesce((to_jsonb(n) ->> 'nodeid')::integer, 0),
            convert_to(current_database()::text, 'UTF8'), convert_to(current_user::text, 'UTF8'),
            convert_to(coalesce(current_setting('citus.node_conninfo', true), ''), 'UTF8')
     FROM pg_catalog.pg_dist_node AS n
     WHERE n.groupid = 0 AND coalesce(to_jsonb(n) ->> 'noderole', 'primary') = 'primary'
           AND coalesce((to_jsonb(n) ->> 'isactive')::boolean, true)
     ORDER BY 3 LIMIT 1",
);

/// An entry for the coordinator's node takes precedence over an entry for all nodes (node 0).
static AUTHINFO: Statement = Statement::new(
    "SELECT convert_to(a.authinfo, 'UTF8') FROM pg_catalog.pg_dist_authinfo AS a
     WHERE a.rolename = current_user AND a.nodeid IN (0, $1) ORDER BY a.nodeid DESC LIMIT 1",
);

static HAS_WORKERS: Statement = Statement::new(
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_node AS n WHERE n.groupid OPERATOR(pg_catalog.<>) 0)",
);

/// Returns whether workers of a Citus cluster take ids from this database's tags.
pub fn has_workers() -> Result<bool, SpiError> {
    let has_nodes = catalog::has_system_table(c"pg_dist_node");
    Ok(has_nodes && HAS_WORKERS.value::<bool>(&[])?.unwrap_or(false))
}

/// The nodes that can issue ids, without standbys. Columns that some versions lack are read through JSON.
macro_rules! nodes {
    () => {
        "(SELECT n.nodeid AS id, n.nodename::text AS name, n.nodeport AS port, n.groupid AS in_group,
            coalesce((to_jsonb(n) ->> 'isactive')::boolean, true) AS is_active
        FROM pg_catalog.pg_dist_node AS n WHERE coalesce(to_jsonb(n) ->> 'noderole', 'primary') = 'primary') AS n"
    };
}

/// The nodes with their reports. The first query to a node also works if the node lacks the extension.
pub static REPORTS: Statement = Statement::new(concat!(
    "SELECT json_build_object('node_id', n.id, 'node_name', n.name, 'node_port', n.port, 'group_id', n.in_group,
        'is_active', n.is_active, 'version', CASE WHEN v.success THEN left(v.result, 100) END,
        'report', CASE WHEN r.success THEN left(r.result, 10000) END,
        'error', left(CASE WHEN v.success THEN r.result ELSE v.result END, 1000))::text
     FROM ", nodes!(), "
        LEFT JOIN pg_catalog.run_command_on_all_nodes(
            $command$SELECT coalesce((SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake_ids'), '')$command$
        ) AS v ON v.nodeid = n.id
        LEFT JOIN pg_catalog.run_command_on_all_nodes('SELECT snowflake_ids_internal.citus_report()') AS r ON r.nodeid = n.id
     ORDER BY n.in_group, n.id"
));

/// Facts for a call of `use_citus`. User mappings of other roles than the extension's owner are ignored.
pub static FACTS: Statement = Statement::new(concat!(
    "SELECT json_build_object('isolation', current_setting('transaction_isolation'),
        'is_worker', EXISTS (SELECT FROM pg_catalog.pg_dist_local_group AS g WHERE g.groupid <> 0),
        'coordinator', (SELECT format('%s, port %s', n.name, n.port) FROM ", nodes!(), " WHERE n.in_group = 0 ORDER BY n.id LIMIT 1),
        'is_busy', snowflake_ids_internal.registry_is_busy(),
        'is_new', coalesce(e.xmin = pg_current_xact_id_if_assigned()::xid, false), 'version', e.extversion,
        'used', (SELECT string_agg(r.server, ',' ORDER BY r.position) FROM snowflake_ids.registry_server AS r),
        'mapping', (SELECT coalesce(m.umoptions, '{}')::text FROM pg_user_mappings AS m JOIN pg_class AS c ON c.oid = 'snowflake_ids.segment'::regclass
            WHERE m.srvname = $1 COLLATE \"C\" AND m.umuser IN (c.relowner, 0) ORDER BY m.umuser DESC LIMIT 1),
        'inactive', (SELECT coalesce(json_agg(format('%s (%s:%s)', n.id, n.name, n.port) ORDER BY n.in_group, n.id), '[]')
            FROM ", nodes!(), " WHERE NOT n.is_active))::text
     FROM pg_extension AS e WHERE e.extname = 'snowflake_ids'"
));

/// The answers of active nodes to a command, the format `$1` with its values. Each node runs it in a session of its own.
macro_rules! answers {
    ($function:literal, $of:literal) => {
        Statement::new(concat!(
            "SELECT json_build_object('node', coalesce(n.id, 0), 'place', format('node %s (%s:%s)', n.id, n.name, n.port),
                'is_done', a.success IS TRUE, 'said', left(coalesce(a.result, 'no answer'), 1000))::text
             FROM pg_catalog.", $function, "(format($1, $2, $3)) AS a LEFT JOIN ", nodes!(), " ON ", $of, " ORDER BY n.id"
        ))
    };
}

pub static ON_ALL: Statement = answers!("run_command_on_all_nodes", "n.id = a.nodeid");
pub static ON_WORKERS: Statement =
    answers!("run_command_on_workers", "(n.name, n.port) = (a.nodename, a.nodeport)");
pub static ON_COORDINATOR: Statement = answers!("run_command_on_coordinator", "n.id = a.nodeid");

/// The worker ids that nodes hold.
pub static HELD: Statement = Statement::new(concat!(
    "SELECT coalesce(jsonb_agg(r.result::jsonb || jsonb_build_object('host', n.name, 'port', n.port)), '[]')::text
     FROM pg_catalog.run_command_on_all_nodes('SELECT snowflake_ids_internal.worker_held()') AS r JOIN ", nodes!(), " ON n.id = r.nodeid
     WHERE r.success AND r.result <> ''"
));

pub static DEFINITIONS: Statement = Statement::new("SELECT snowflake_ids_internal.citus_definitions()::text");

/// The unique keys that Citus does not check, and that ids of this extension do not keep unique either.
pub static UNCHECKED_KEYS: Statement = Statement::new(
    "SELECT left(string_agg(format('Citus does not check key \"%s\" of relation \"%s\" across shards, and %s. Hint: %s.',
        k.key, k.key_of, k.fault, k.hint), ' ' ORDER BY k.key_of::text COLLATE \"C\", k.key), 10000)
     FROM snowflake_ids_internal.citus_keys(NULL) AS k WHERE k.fault IS NOT NULL",
);

pub static END_FORMER: Statement = Statement::new(
    "UPDATE snowflake_ids.worker_lease AS w SET former_until = clock_timestamp() WHERE w.former_until > clock_timestamp()",
);

pub static SEE_TIMELINE: Statement = Statement::new(
    "UPDATE snowflake_ids.registry_server AS r SET timeline = $2 WHERE r.identity = $1 AND r.timeline < $2",
);

/// Returns whether this database is a Citus worker. A worker must not take ids from its own table of tags, because the
/// coordinator serves the same ids.
pub fn is_worker() -> Result<bool, SpiError> {
    Ok(is_there() && IS_WORKER.value::<bool>(&[])?.unwrap_or(false))
}

/// Returns whether this database has the extension Citus. Reads the catalog cache only. Call only within a transaction.
pub fn is_there() -> bool {
    catalog::has_system_table(c"pg_dist_local_group")
}

/// Returns the libpq options for a connection of the current role to the coordinator. Call this function with the rights of
/// the owner of the extension's tables, because other roles may not read all options.
pub fn coordinator() -> Result<Result<Options, NoCoordinatorError>, SpiError> {
    if !is_worker()? {
        return Ok(Err(NoCoordinatorError::NotWorker));
    }
    if !catalog::has_system_table(c"pg_dist_node") {
        return Ok(Err(NoCoordinatorError::Unknown));
    }
    let found = COORDINATOR.first(&[], |row| {
        let text = |column| Ok::<_, SpiError>(utf8(row.get::<Vec<u8>>(column)?));
        let port = u16::try_from(row.get::<i32>(2)?.unwrap_or_default()).unwrap_or_default();
        let place = Coordinator { host: text(1)?, port, database: text(4)?, user: text(5)? };
        Ok((place, row.get::<i32>(3)?.unwrap_or_default(), text(6)?))
    })?;
    let Some((place, node, of_all)) = found else { return Ok(Err(NoCoordinatorError::Unknown)) };
    let of_role = if catalog::has_system_table(c"pg_dist_authinfo") {
        AUTHINFO.first(&[node.into()], |row| Ok(utf8(row.get::<Vec<u8>>(1)?)))?.unwrap_or_default()
    } else {
        String::new()
    };
    // libpq's message is dropped, because it may contain a password.
    let read = |name, said: &str| options_of_string(said).map_err(|_| NoCoordinatorError::Options(name));
    let options = read("citus.node_conninfo", &of_all).and_then(|of_all| {
        let of_role = read("pg_dist_authinfo", &of_role)?;
        Ok(place.options(of_all, of_role))
    });
    Ok(options)
}

fn utf8(bytes: Option<Vec<u8>>) -> String {
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// Returns the text that a statement gives.
pub fn text(statement: &Statement) -> Result<Option<TextOut>, ErrorReport> {
    statement.value::<TextOut>(&[]).map_err(spi)
}
