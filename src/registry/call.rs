//! Connections to registries that are other servers, and what is noted of them in shared memory.

use crate::pg::catalog::{Source, is_superuser};
use crate::pg::clock::uptime;
use crate::pg::libpq::{Connection, options_of, owner_of};
use crate::pg::report::{log, raise, report, spi};
use crate::pg::{guc, server, worker};
use crate::shared::registries::{self, RegistryEntry};
use crate::store::citus;
use crate::store::tables::SEGMENT;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode as Code, function_name};
use snowflake_ids_core::registry::citus::COORDINATOR;
pub use snowflake_ids_core::registry::client::Options;
use snowflake_ids_core::registry::client::{self, Network, RegistryClient, Statement};
use snowflake_ids_core::registry::error::{Complaint, ConnectionError, RegistryError};
use snowflake_ids_core::registry::failover::Health;
use snowflake_ids_core::registry::link::{RegistryNotes, Site};
use snowflake_ids_core::registry::wire;
use std::time::Duration;

/// What keeps this process connected to registries.
pub type RegistryCaller = RegistryClient<Libpq>;
/// A transaction at a registry.
pub type Block = client::Block<Libpq>;

/// What is sent: by workers,
const SERVE: &str = "SELECT snowflake_ids.registry_serve($1)";
/// and by administrators.
const TAKE_OVER: &str = "SELECT snowflake_ids.registry_take_over($1)";

/// What a hand-over begins with: it is of several requests, and all of it is done or nothing.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/// What ends it there should this process be gone: its rows would stay locked. The registry looks for it once a second,
/// where its version can; and each statement, and the pauses between them, have a time limit.
const BOUNDS: &str = "SELECT max(pg_catalog.set_config(s.name, CASE s.name
         WHEN 'client_connection_check_interval' THEN '1s' WHEN 'statement_timeout' THEN $1::pg_catalog.json ->> 'statement'
         ELSE $1::pg_catalog.json ->> 'pause' END, true))
     FROM pg_catalog.pg_settings AS s
     WHERE s.name IN ('client_connection_check_interval', 'statement_timeout', 'idle_in_transaction_session_timeout')";
const COMMIT: &str = "COMMIT";

/// Registries as libpq reaches them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Libpq;

impl Network for Libpq {
    type Connection = Connection;
    type Notes = Noted;

    fn uptime(&self) -> Duration {
        uptime()
    }

    fn options(&self, server: &str) -> Result<Options, RegistryError> {
        worker::transaction(|| options(server)).map_err(|failed| RegistryError::NoServer(failed.message))
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
        statement: Statement,
        argument: &str,
        limit: Duration,
    ) -> Result<String, ConnectionError> {
        let sql = match statement {
            Statement::Serve => SERVE,
            Statement::TakeOver => TAKE_OVER,
            Statement::Begin => BEGIN,
            Statement::Bounds => BOUNDS,
            Statement::Commit => COMMIT,
        };
        connection.ask(sql, argument, limit, wire::MAX_BYTES)
    }

    fn notes(&self, site: &Site) -> Noted {
        Noted(entry(site))
    }

    fn log(&self, text: &str) {
        log(text);
    }
}

/// What is noted of a registry; None where there is no place for that.
#[derive(Clone, Copy)]
pub struct Noted(Option<&'static RegistryEntry>);

impl RegistryNotes for Noted {
    fn health(&self) -> Health {
        self.0.map(RegistryEntry::health).unwrap_or_default()
    }

    fn asked(&self) {
        self.0.into_iter().for_each(RegistryEntry::asked);
    }

    fn given_up(&self) {
        self.0.into_iter().for_each(RegistryEntry::given_up);
    }

    fn answered(&self, took: Duration) {
        self.0.into_iter().for_each(|entry| entry.answered(took));
    }

    fn failed(&self, complaint: &Complaint) {
        self.0.into_iter().for_each(|entry| entry.failed(complaint));
    }

    fn complain(&self, complaint: &Complaint) {
        self.0.into_iter().for_each(|entry| entry.complain(complaint));
    }

    fn is_news(&self, complaint: &Complaint) -> bool {
        self.0.is_none_or(|entry| entry.is_news(complaint))
    }

    fn be_content(&self) {
        self.0.into_iter().for_each(RegistryEntry::be_content);
    }
}

/// Returns what is known of a registry of this database; None where there is no place for it.
pub fn entry(site: &Site) -> Option<&'static RegistryEntry> {
    registries::entry(server::database(), site.position, &site.server)
}

/// libpq's options for a foreign server, with the user mapping of the extension's owner; or for the coordinator of the Citus
/// cluster that this server is a worker of, where that is named. Only within a transaction; what is missing is an SQL error.
/// Connections are made with the server's own account, so no other role may say where to.
pub fn options(server: &str) -> Options {
    let source = SEGMENT.find();
    let owner = source.map_or(pgrx::pg_sys::InvalidOid, Source::owner);
    if !is_superuser(owner) {
        raise(not_trusted("table \"snowflake_ids.segment\""));
    }
    if let Some(source) = source.filter(|_| server == COORDINATOR) {
        // Citus' catalog is written by superusers only. It is read each time: a coordinator that moves is followed.
        let found = source.as_owner(|| {
            guc::set_for_now(c"jit", c"off");
            citus::coordinator()
        });
        let found = found.unwrap_or_else(|error| raise(spi(&error)));
        return found.unwrap_or_else(|error| raise(report(&error)));
    }
    if !is_superuser(owner_of(server)) {
        raise(not_trusted(&format!("foreign server \"{server}\"")));
    }
    options_of(server, owner)
}

fn not_trusted(what: &str) -> ErrorReport {
    ErrorReport::new(
        Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("{what} must belong to a superuser"),
        function_name!(),
    )
    .set_detail(
        "Its owner decides where this server's background workers connect, with the server's own account.",
    )
    .set_hint("Change its owner with ALTER ... OWNER TO.")
}
