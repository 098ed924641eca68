//! Asking a registry that is another server.

use super::RegistryError;
use crate::pg::catalog::is_superuser;
use crate::pg::clock::uptime;
use crate::pg::libpq::{Connection, Failure, options_of, owner_of};
use crate::pg::report::raise;
use crate::pg::{server, worker};
use crate::shared::registries::{self, Entry};
use crate::store::registry::Site;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode as Code, function_name};
use snowflake_ids_core::hosts;
use snowflake_ids_core::wire::{self, Request, RequestBody, Response, ResponseBody};
use std::collections::HashMap;
use std::time::Duration;

/// What is sent: by workers,
const SERVE: &str = "SELECT snowflake_ids.registry_serve($1)";
/// and by administrators.
const TAKE_OVER: &str = "SELECT snowflake_ids.registry_take_over($1)";

/// What a hand-over begins with: it is of several questions, and all of it is done or nothing.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
/// What ends it there should this process be gone, whose rows stay locked else: looked for once a second, where the
/// registry's version can do so; and a time limit for each statement and for the pauses between them.
const BOUNDS: &str = "SELECT max(pg_catalog.set_config(s.name, CASE s.name
         WHEN 'client_connection_check_interval' THEN '1s' WHEN 'statement_timeout' THEN $1::pg_catalog.json ->> 'statement'
         ELSE $1::pg_catalog.json ->> 'pause' END, true))
     FROM pg_catalog.pg_settings AS s
     WHERE s.name IN ('client_connection_check_interval', 'statement_timeout', 'idle_in_transaction_session_timeout')";
const COMMIT: &str = "COMMIT";

/// How long the row of a tag is waited for: as long as many servers may need that want the same tag at once.
const TAG_TIMEOUT: Duration = Duration::from_millis(100);

/// libpq's options for a registry.
pub type Options = Vec<(String, String)>;

/// What keeps this process connected to registries.
#[derive(Default)]
pub struct Caller {
    lines: Vec<Line>,
    /// Of each server, which of its hosts to try first.
    first_hosts: HashMap<String, usize>,
}

/// What is asked.
struct Question {
    statement: &'static str,
    text: String,
}

/// A connection that stays open for the next question.
struct Line {
    server: String,
    options: Options,
    connection: Connection,
    /// Which of the hosts this is.
    host: usize,
}

impl Caller {
    /// Asks a registry of this database, and notes how that went. For workers, outside of transactions.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn ask(&mut self, site: &Site, ask: RequestBody, limit: Duration) -> Result<Response, RegistryError> {
        let entry = entry(site);
        let started = uptime();
        if let Some(entry) = entry {
            entry.asked();
        }
        let options = worker::transaction(|| options(&site.server));
        let answer = match options {
            Ok(options) => self.ask_at(&site.server, &options, Some(&site.seen), ask, limit),
            Err(failed) => Err(RegistryError::NoServer(failed.message)),
        };
        note(entry, &site.server, &answer, uptime().saturating_sub(started));
        answer
    }

    /// Asks a registry with these options; `seen` says which one is meant.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn ask_at(
        &mut self,
        server: &str,
        options: &Options,
        seen: Option<&wire::Registry>,
        ask: RequestBody,
        limit: Duration,
    ) -> Result<Response, RegistryError> {
        let question = Question::new(seen, ask, limit)?;
        let deadline = uptime() + limit;
        let hosts = hosts::each(options);
        // A host that is not the registry any more, or not its primary, is passed over.
        let mut answer = self.ask_host(server, options, &hosts, seen, &question, deadline);
        for _ in 1..hosts.len() {
            if !answer.as_ref().err().is_some_and(RegistryError::is_of_host) {
                break;
            }
            answer = self.ask_host(server, options, &hosts, seen, &question, deadline);
        }
        answer
    }

    /// Begins a transaction at a registry in use, which is one of so many that are asked by turns.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn begin(
        &mut self,
        site: &Site,
        options: &Options,
        of: usize,
        limit: Duration,
    ) -> Result<Block, RegistryError> {
        // Comes to a host that is the registry.
        self.ask_at(&site.server, options, Some(&site.seen), RequestBody::Introduce, limit)?;
        let lost = || RegistryError::Failed(Failure::Lost("it was closed by the registry".to_owned()));
        let mut line = self.take(&site.server, options).ok_or_else(lost)?;
        let pause = limit.saturating_mul(u32::try_from(of).unwrap_or(u32::MAX)).min(wire::MAX_TIMEOUT * 4);
        let bounds = serde_json::json!({ "statement": limit.as_millis().to_string(), "pause": pause.as_millis().to_string() });
        line.run(BEGIN, "", limit)?;
        line.run(BOUNDS, &bounds.to_string(), limit)?;
        Ok(Block { line, seen: site.seen.clone(), limit })
    }

    /// Asks the host that answered last, or the next one that can be connected to.
    fn ask_host(
        &mut self,
        server: &str,
        options: &Options,
        hosts: &[Options],
        seen: Option<&wire::Registry>,
        question: &Question,
        deadline: Duration,
    ) -> Result<Response, RegistryError> {
        let first = self.first_hosts.get(server).copied().unwrap_or(0);
        // Taken out: one that fails is not kept.
        let mut line = if let Some(line) = self.take(server, options) {
            line
        } else {
            let (connection, host) = connect(hosts, first, deadline)?;
            Line { server: server.to_owned(), options: options.clone(), connection, host }
        };
        let answer = line.ask(question, deadline.saturating_sub(uptime())).and_then(|answer| match seen {
            Some(seen) => answer.registry.check(seen).map_err(RegistryError::Stranger).map(|()| answer),
            None => Ok(answer),
        });
        let good = answer.as_ref().err().is_none_or(|error| !error.is_of_host());
        self.first_hosts.insert(server.to_owned(), if good { line.host } else { line.host + 1 });
        if good {
            self.lines.push(line);
        }
        answer
    }

    /// The open connection to a server, if it is still good and what is wanted.
    fn take(&mut self, server: &str, options: &Options) -> Option<Line> {
        let place = self.lines.iter().position(|line| line.server == server)?;
        let mut line = self.lines.swap_remove(place);
        (line.options == *options && line.connection.is_good()).then_some(line)
    }
}

impl Question {
    fn new(seen: Option<&wire::Registry>, ask: RequestBody, limit: Duration) -> Result<Self, RegistryError> {
        // A tag whose row is locked must not hold the others up for long.
        let timeout = if matches!(ask, RequestBody::Reserve(_)) { TAG_TIMEOUT } else { limit }.min(limit / 4);
        let timeout = timeout.min(wire::MAX_TIMEOUT);
        let statement = if ask.takes_over() { TAKE_OVER } else { SERVE };
        let request = Request { version: wire::VERSION, registry: seen.cloned(), timeout, ask };
        let text = request.to_text().map_err(|error| RegistryError::Garbled(error.to_string()))?;
        Ok(Self { statement, text })
    }
}

/// A transaction at a registry. Unless it is committed it ends with this, by which its connection is closed.
pub struct Block {
    line: Line,
    seen: wire::Registry,
    limit: Duration,
}

impl Block {
    /// Asks within the transaction: what is answered is not durable yet.
    ///
    /// # Errors
    /// [`RegistryError`]; the transaction is of no use then.
    pub fn ask(&mut self, ask: RequestBody) -> Result<Response, RegistryError> {
        let answer = self.line.ask(&Question::new(Some(&self.seen), ask, self.limit)?, self.limit)?;
        answer.registry.check(&self.seen).map_err(RegistryError::Stranger).map(|()| answer)
    }

    /// Makes it durable.
    ///
    /// # Errors
    /// [`RegistryError`]; whether it is durable is not known then.
    pub fn commit(mut self) -> Result<(), RegistryError> {
        self.line.run(COMMIT, "", self.limit)
    }
}

impl Line {
    /// Has a statement run whose result is of no interest.
    fn run(&mut self, statement: &str, argument: &str, limit: Duration) -> Result<(), RegistryError> {
        self.connection
            .ask(statement, argument, limit, wire::MAX_BYTES)
            .map(drop)
            .map_err(RegistryError::Failed)
    }

    fn ask(&mut self, question: &Question, limit: Duration) -> Result<Response, RegistryError> {
        let Question { statement, text } = question;
        let told =
            self.connection.ask(statement, text, limit, wire::MAX_BYTES).map_err(RegistryError::Failed)?;
        let answer = Response::accept(&told).map_err(RegistryError::Garbled)?;
        match answer.said {
            ResponseBody::Stranger(stranger) => Err(RegistryError::Stranger(stranger)),
            ResponseBody::Version(version) => Err(RegistryError::Version(version)),
            _ => Ok(answer),
        }
    }
}

/// Connects to the first host that answers, each with its part of the time that is left.
fn connect(
    hosts: &[Options],
    first: usize,
    deadline: Duration,
) -> Result<(Connection, usize), RegistryError> {
    let mut failure = Failure::Unreachable("no host is given".to_owned());
    for step in 0..hosts.len() {
        let host = (first + step) % hosts.len();
        let left = deadline.saturating_sub(uptime());
        let share = left / u32::try_from(hosts.len() - step).unwrap_or(1).max(1);
        match Connection::open(&hosts[host], share) {
            Ok(connection) => return Ok((connection, host)),
            Err(failed) => failure = failed,
        }
    }
    Err(RegistryError::Failed(failure))
}

/// What is known of a registry of this database; None where there is no place for it.
pub fn entry(site: &Site) -> Option<&'static Entry> {
    registries::entry(server::database(), site.position, &site.server)
}

/// libpq's options for a foreign server, with the user mapping of the extension's owner. Only within a transaction; what
/// is missing is an SQL error. Connections are made with the server's own account, so nobody else may say where to.
pub fn options(server: &str) -> Options {
    let owner = super::role().unwrap_or(pgrx::pg_sys::InvalidOid);
    let theirs = owner_of(server);
    for (owner, what) in [
        (owner, "table \"snowflake_ids.segment\"".to_owned()),
        (theirs, format!("foreign server \"{server}\"")),
    ] {
        if !is_superuser(owner) {
            raise(not_trusted(&what));
        }
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

fn note(entry: Option<&Entry>, server: &str, answer: &Result<Response, RegistryError>, took: Duration) {
    if matches!(answer, Err(RegistryError::Failed(Failure::GivenUp))) {
        // That says nothing of it.
        if let Some(entry) = entry {
            entry.given_up();
        }
        return;
    }
    let failure = answer.as_ref().err().filter(|error| !error.is_of_tag());
    let complaint = failure.map(RegistryError::complaint);
    // The log gets it once; the view shows the rest.
    if let Some(complaint) = &complaint
        && entry.is_none_or(|entry| entry.health().failures == 0 || entry.is_news(complaint))
    {
        pgrx::log!("snowflake_ids could not ask registry \"{server}\": {}", complaint.why);
    }
    match (entry, complaint) {
        (Some(entry), Some(complaint)) => entry.failed(&complaint),
        (Some(entry), None) => entry.answered(took),
        (None, _) => {}
    }
}
