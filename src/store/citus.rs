//! Facts from the Citus catalog: whether this database is a Citus worker, and the connection options of the coordinator.

use crate::pg::catalog;
use crate::pg::libpq::options_of_string;
use crate::pg::statement::Statement;
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
    Ok(has_nodes && HAS_WORKERS.first(&[], |row| row.get::<bool>(1))?.flatten().unwrap_or(false))
}

/// Returns whether this database is a Citus worker. A worker must not take ids from its own table of tags, because the
/// coordinator serves the same ids.
pub fn is_worker() -> Result<bool, SpiError> {
    Ok(is_there() && IS_WORKER.first(&[], |row| row.get::<bool>(1))?.flatten().unwrap_or(false))
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
