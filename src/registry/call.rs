//! Connections to registries on other servers, and the connections' status in shared memory.

use crate::pg::catalog::{Source, is_superuser};
use crate::pg::clock::uptime;
use crate::pg::libpq::{Connection, options_of, owner_of};
use crate::pg::report::{caught, letters, log, raise, report, spi};
use crate::pg::{guc, process, server, transaction};
use crate::registry::serve::RegistryFailure;
use crate::settings;
use crate::shared::registries::{self, SharedEndpointStatus};
use crate::store::citus;
use crate::store::tables::SEGMENT;
use pgrx::{PgSqlErrorCode as Code, PgTryBuilder};
use snowflake_ids_core::registry::citus::COORDINATOR;
use snowflake_ids_core::registry::client::{Network, Options, RegistryClient, RemoteStatement};
use snowflake_ids_core::registry::error::{ConnectionError, RegistryError, SqlError};
use snowflake_ids_core::registry::handover::Registries;
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::wire;
use std::time::Duration;

/// This process's connections to registries.
pub type RegistryCaller = RegistryClient<Libpq>;

/// Sets up a session on the registry. From Postgres 14 on, the registry checks once a second if this client is still
/// connected. Also limits the duration of each statement, and of each pause between statements.
const BOUNDS: &str = "SELECT max(pg_catalog.set_config(s.name, CASE s.name
         WHEN 'client_connection_check_interval' THEN '1s' WHEN 'statement_timeout' THEN $1::pg_catalog.json ->> 'statement'
         ELSE $1::pg_catalog.json ->> 'pause' END, true))
     FROM pg_catalog.pg_settings AS s
     WHERE s.name IN ('client_connection_check_interval', 'statement_timeout', 'idle_in_transaction_session_timeout')";

/// Access to registries through libpq.
#[derive(Clone, Copy, Debug)]
pub struct Libpq;

impl Network for Libpq {
    type Connection = Connection;
    type Status = SharedEndpointStatus;

    fn uptime(&self) -> Duration {
        uptime()
    }

    fn options(&self, server: &str) -> Result<Options, RegistryError> {
        if !transaction::is_open() {
            return process::transaction(|| options(server)).map_err(RegistryError::NoServer);
        }
        PgTryBuilder::new(|| Ok(options(server)))
            .catch_when(Code::ERRCODE_QUERY_CANCELED, |error| error.rethrow())
            .catch_when(Code::ERRCODE_LOCK_NOT_AVAILABLE, |error| error.rethrow())
            .catch_when(Code::ERRCODE_T_R_DEADLOCK_DETECTED, |error| error.rethrow())
            .catch_others(|error| {
                let report = caught(error);
                Err(RegistryError::NoServer(SqlError {
                    code: letters(report.sql_error_code() as i32),
                    message: report.message().to_owned(),
                    detail: report.detail().map(str::to_owned),
                    hint: report.hint().map(str::to_owned),
                }))
            })
            .execute()
    }

    fn open(&self, host: &Options, limit: Duration) -> Result<Connection, ConnectionError> {
        Connection::open(host, limit)
    }

    fn is_good(&self, connection: &mut Connection) -> bool {
        connection.is_good()
    }

    fn run(
        &self,
        connection: &mut Connection,
        statement: RemoteStatement,
        argument: &str,
        limit: Duration,
    ) -> Result<String, ConnectionError> {
        let sql = match statement {
            RemoteStatement::Serve => "SELECT snowflake_ids.registry_serve($1)",
            RemoteStatement::TakeOver => "SELECT snowflake_ids.registry_take_over($1)",
            RemoteStatement::Begin => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            RemoteStatement::Bounds => BOUNDS,
            RemoteStatement::Commit => "COMMIT",
        };
        connection.ask(sql, argument, limit, wire::MAX_BYTES)
    }

    fn status(&self, endpoint: &Endpoint) -> SharedEndpointStatus {
        SharedEndpointStatus(registries::entry(server::database(), endpoint.position, &endpoint.server))
    }

    fn log(&self, text: &str) {
        log(text);
    }
}

/// Returns a client for the registries on other servers.
pub fn others() -> Registries<Libpq> {
    Registries::new(Libpq, settings::registry_timeout())
}

/// Returns libpq's options for a foreign server, with the user mapping of the extension's owner. If `server` is the name
/// [`COORDINATOR`], returns options for the Citus coordinator of this worker's cluster.
///
/// Needs a transaction; raises an SQL error if something is missing. The owners of the extension and of the foreign server
/// must be superusers. Connections run under the server's operating-system account, so only superusers may choose their
/// targets.
fn options(server: &str) -> Options {
    let source = SEGMENT.find();
    let owner = source.map_or(pgrx::pg_sys::InvalidOid, Source::owner);
    if !is_superuser(owner) {
        raise(RegistryFailure::NotTrusted { object: "table \"snowflake_ids.segment\"".to_owned() });
    }
    if let Some(source) = source.filter(|_| server == COORDINATOR) {
        // Only superusers can write to Citus' catalog. The catalog is read each time, so that connections follow the
        // coordinator to a new address.
        let found = source.as_owner(|| {
            guc::set_for_now(c"jit", c"off");
            citus::coordinator()
        });
        let found = found.unwrap_or_else(|error| raise(spi(error)));
        return found.unwrap_or_else(|error| raise(report(error)));
    }
    if !is_superuser(owner_of(server)) {
        raise(RegistryFailure::NotTrusted { object: format!("foreign server \"{server}\"") });
    }
    options_of(server, owner)
}
