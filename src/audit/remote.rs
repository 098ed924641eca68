//! The rows of the same table on another server.
//!
//! The connection is made with this server's own account, so that only superusers may say where to. What is there is read
//! with the rights of the role that the connection names, in a transaction that writes nothing.

use crate::pg::catalog::is_superuser;
use crate::pg::cluster;
use crate::pg::column::Column;
use crate::pg::encoding::{legible, to_utf8};
use crate::pg::libpq::{Connection, options_of, options_of_string, owner_of};
use crate::pg::report::{bad_argument, spi};
use crate::pg::role;
use crate::pg::server;
use crate::progress;
use crate::settings;
use crate::store::citus;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode as Code, function_name};
use snowflake_ids_core::audit::Stored;
use snowflake_ids_core::hosts;
use snowflake_ids_core::progress::Command;
use snowflake_ids_core::registry_error::{ConnectionError, RegistryError};
use std::time::Duration;

/// What came of something, or the report of why nothing did.
type Checked<T> = Result<T, Box<ErrorReport>>;

/// The longest that one batch is waited for: the first of them comes when all rows there are sorted.
const LONGEST: Duration = Duration::from_hours(24);

/// What is read of one answer but for rows: some words.
const MOST: usize = 4_096;

const BEGIN: &str = "BEGIN READ ONLY";
/// A policy that would hide rows is an error; all rows are wanted, not the first ones soon.
const SETTINGS: &str = "SELECT pg_catalog.set_config('search_path', 'pg_catalog', true)
     || pg_catalog.set_config('row_security', 'off', true) || pg_catalog.set_config('cursor_tuple_fraction', '1', true)";
/// What is there, as words: which cluster and database, what the relation is, and of what type the column.
const LOOK: &str = "SELECT (SELECT c.system_identifier FROM pg_catalog.pg_control_system() AS c)
         || ' ' || (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
         || ' ' || coalesce((SELECT c.relkind::pg_catalog.text FROM pg_catalog.pg_class AS c WHERE c.oid = t.relation), '-')
         || ' ' || coalesce((SELECT coalesce(nullif(y.typbasetype, 0), y.oid)::pg_catalog.text
             FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS y ON y.oid = a.atttypid
             WHERE a.attrelid = t.relation AND a.attname = ($1::pg_catalog.json ->> 2) AND a.attnum > 0), '-')
     FROM (SELECT max(c.oid) AS relation FROM pg_catalog.pg_class AS c
         JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
         WHERE n.nspname = ($1::pg_catalog.json ->> 0) AND c.relname = ($1::pg_catalog.json ->> 1)) AS t";
/// The kinds of relations that are tables,
const TABLES: [&str; 3] = ["r", "p", "f"];
/// and the types of ids, by the numbers that they have everywhere: bigint, integer and smallint.
const TYPES: [&str; 3] = ["20", "23", "21"];
const FETCH: &str = "FETCH 10000 FROM snowflake_ids_audit";

/// Rows that are not looked at yet.
pub struct Remote {
    /// Which of the connections, from 1 on.
    number: usize,
    /// None after the last row.
    connection: Option<Connection>,
    read: std::vec::IntoIter<Option<i64>>,
}

impl Remote {
    /// Connects, and begins to read the table of the same name.
    ///
    /// # Errors
    /// The caller is no superuser; it can't be connected; there is no such table.
    pub fn open(number: usize, connection: Option<&[u8]>, column: &Column) -> Checked<Self> {
        if !is_superuser(role::current()) {
            return Err(Box::new(not_allowed()));
        }
        let options = options(number, connection)?;
        let failed = |error| Box::new(cannot_read(number, &error));
        let mut connection = connect(&options).map_err(failed)?;
        let names = column.names();
        let argument = serde_json::to_string(&names).unwrap_or_default();
        let limit = settings::registry_timeout();
        refuse_same_cluster(number, &mut connection)?;
        connection.ask(BEGIN, "", limit, MOST).map_err(failed)?;
        connection.ask(SETTINGS, "", limit, MOST).map_err(failed)?;
        let there = connection.ask(LOOK, &argument, limit, MOST).map_err(failed)?;
        check(number, &there, &names)?;
        connection.ask(&declaration(&names), "", LONGEST, MOST).map_err(failed)?;
        Ok(Self { number, connection: Some(connection), read: Vec::new().into_iter() })
    }

    /// The next row.
    ///
    /// # Errors
    /// The connection broke, or reading failed there.
    pub fn next(&mut self) -> Checked<Option<Stored>> {
        loop {
            if let Some(id) = self.read.next() {
                return Ok(Some(Stored { id, table: 0 }));
            }
            let Some(mut connection) = self.connection.take() else { return Ok(None) };
            let read = connection.integers(FETCH, LONGEST);
            let read = read.map_err(|error| Box::new(cannot_read(self.number, &error)))?;
            progress::add_rows(Command::Audit, read.len());
            // The last batch closes the connection.
            if !read.is_empty() {
                self.connection = Some(connection);
            }
            self.read = read.into_iter();
        }
    }
}

/// Libpq's options of a connection: of a connection string, or of the foreign server of that name.
fn options(number: usize, connection: Option<&[u8]>) -> Checked<Vec<(String, String)>> {
    let wrong = |why: &str| {
        let report = bad_argument(format!("connection {number} cannot be used"), why);
        Box::new(report.set_hint("Give a connection string of libpq's, or the name of a foreign server."))
    };
    let Some(text) = connection else { return Err(wrong("It is null.")) };
    let Some(text) = to_utf8(text) else { return Err(wrong("It is not text in this database's encoding.")) };
    if text.trim().is_empty() {
        return Err(wrong("It is empty."));
    }
    let is_uri = ["postgresql://", "postgres://"].iter().any(|scheme| text.starts_with(scheme));
    if is_uri || text.contains('=') {
        return options_of_string(&text).map_err(|why| wrong(&format!("libpq says: {}.", legible(&why))));
    }
    // A superuser may use each; what is missing is the server's error. But its owner says where it leads, and as which role.
    if !is_superuser(owner_of(&text)) {
        return Err(Box::new(not_trusted(&text)));
    }
    Ok(options_of(&text, role::current()))
}

fn connect(options: &[(String, String)]) -> Result<Connection, ConnectionError> {
    let mut failed = ConnectionError::Unreachable("it has no host".to_owned());
    for host in hosts::each(options) {
        match Connection::open(&host, settings::registry_timeout()) {
            Ok(connection) => return Ok(connection),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Whether what is there can be read, and is not what is here.
fn check(number: usize, there: &str, names: &[String; 3]) -> Checked<()> {
    let [schema, table, column] = names;
    let words: Vec<_> = there.split(' ').collect();
    let [cluster, database, kind, of_type] = words[..] else {
        let lost = ConnectionError::Lost("it does not say what it is".to_owned());
        return Err(Box::new(cannot_read(number, &lost)));
    };
    let refuse = |code, message: String, detail: &str, hint: &str| {
        let report = ErrorReport::new(code, legible(&message), function_name!());
        Err(Box::new(report.set_detail(detail).set_hint(hint)))
    };
    if cluster.parse() == Ok(cluster::system_identifier()) && database.parse() == Ok(server::database()) {
        let message = format!("connection {number} leads to this database");
        return refuse(
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            message,
            "It is this server, or a copy of it: all ids would be there twice.",
            "Leave it out.",
        );
    }
    let hint = "See that the table is the same on all servers.";
    let table = format!("table \"{schema}\".\"{table}\" of connection {number}");
    if kind == "-" {
        let message = format!("{table} does not exist");
        return refuse(Code::ERRCODE_UNDEFINED_TABLE, message, "It is looked for by its name.", hint);
    }
    if !TABLES.contains(&kind) {
        let detail = "Ordinary, partitioned and foreign tables can be read in the order of their ids.";
        return refuse(Code::ERRCODE_WRONG_OBJECT_TYPE, format!("{table} is not a table"), detail, hint);
    }
    if !TYPES.contains(&of_type) {
        let message = format!("{table} has no column \"{column}\" of integers");
        let detail = "Ids are bigint, integer or smallint.";
        return refuse(Code::ERRCODE_DATATYPE_MISMATCH, message, detail, hint);
    }
    Ok(())
}

/// Refuses a node of the Citus cluster that this database is in: a distributed table is the same through each of them. A server without
/// Citus fails to say which nodes it has.
fn refuse_same_cluster(number: usize, connection: &mut Connection) -> Checked<()> {
    let Some((nodes, ask)) = citus::nodes().map_err(|error| Box::new(spi(&error)))? else { return Ok(()) };
    if connection.ask(ask, "", settings::registry_timeout(), MOST).is_ok_and(|theirs| theirs == nodes) {
        let message = format!("connection {number} leads to a node of this cluster");
        let report = ErrorReport::new(Code::ERRCODE_INVALID_PARAMETER_VALUE, message, function_name!());
        return Err(Box::new(
            report
                .set_detail("Through each node the table has the same rows: all ids would be there twice.")
                .set_hint("Leave it out."),
        ));
    }
    Ok(())
}

fn declaration(names: &[String; 3]) -> String {
    let [schema, table, column] = names.each_ref().map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
    format!(
        "DECLARE snowflake_ids_audit NO SCROLL CURSOR FOR
         SELECT x.{column}::pg_catalog.int8 FROM {schema}.{table} AS x ORDER BY x.{column}"
    )
}

/// Why nothing comes of a connection. Superusers may know all.
fn cannot_read(number: usize, error: &ConnectionError) -> ErrorReport {
    let said = RegistryError::Failed(error.clone());
    let code = match error {
        ConnectionError::Refused { code, .. } => match code {
            b"42501" => Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
            _ => Code::ERRCODE_FDW_ERROR,
        },
        ConnectionError::Unreachable(_) => Code::ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION,
        _ => Code::ERRCODE_CONNECTION_FAILURE,
    };
    let report = ErrorReport::new(
        code,
        legible(&format!("cannot read connection {number}: {said}")),
        function_name!(),
    );
    let report = if said.detail().is_empty() { report } else { report.set_detail(legible(said.detail())) };
    report.set_hint("See that the server runs, and that the role of the connection may read the table.")
}

fn not_trusted(server: &str) -> ErrorReport {
    let message = format!("foreign server \"{server}\" must belong to a superuser");
    ErrorReport::new(Code::ERRCODE_INSUFFICIENT_PRIVILEGE, legible(&message), function_name!())
        .set_detail("Its owner decides where this server connects, with the server's own account.")
        .set_hint("Change its owner with ALTER SERVER ... OWNER TO, or give a connection string.")
}

fn not_allowed() -> ErrorReport {
    ErrorReport::new(
        Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
        "must be superuser to audit other servers",
        function_name!(),
    )
    .set_detail("Connections are made with this server's own account.")
    .set_hint("Audit foreign tables, or partitions that are some, with the rights of a user mapping.")
}
