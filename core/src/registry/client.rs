//! Sending requests to registries that are other servers: which of a server's hosts is asked, which connection is kept, and
//! which response is believed.

use crate::guard::{Guard, holds};
use crate::registry::error::{ConnectionError, RegistryError};
use crate::registry::hosts;
use crate::registry::link::{RegistryLink, RegistryNotes, Site};
use crate::registry::wire::{self, Request, RequestBody, Response, ResponseBody};
use std::collections::HashMap;
use std::time::Duration;

/// Time that the row of a tag, or of a key, is waited for: as long as many servers may need that want the same at once.
const TAG_TIMEOUT: Duration = Duration::from_millis(100);

/// libpq's options for a registry.
pub type Options = Vec<(String, String)>;

/// What is sent over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// A request of workers.
    Serve,
    /// A request of administrators.
    TakeOver,
    /// What a hand-over begins with: it is of several requests, and all of it is done or nothing.
    Begin,
    /// What ends it there should this process be gone, whose rows stay locked else.
    Bounds,
    /// Makes it durable.
    Commit,
}

/// The servers of registries, and connections to them.
pub trait Network: Clone {
    /// A connection that stays open for the next request. To drop it is to close it.
    type Connection;
    /// What is noted of one registry.
    type Notes: RegistryNotes;

    /// A clock that only goes forward.
    fn uptime(&self) -> Duration;
    /// libpq's options for a foreign server.
    ///
    /// # Errors
    /// [`RegistryError::NoServer`].
    fn options(&self, server: &str) -> Result<Options, RegistryError>;
    /// Connects to a host, within this time.
    fn open(&self, host: &Options, limit: Duration) -> Result<Self::Connection, ConnectionError>;
    /// Returns whether nothing is known against a connection.
    fn is_good(&self, connection: &mut Self::Connection) -> bool;
    /// Runs a statement with one argument, and gives its result.
    fn run(
        &self,
        connection: &mut Self::Connection,
        statement: Statement,
        argument: &str,
        limit: Duration,
    ) -> Result<String, ConnectionError>;
    /// Returns what is known of a registry.
    fn notes(&self, site: &Site) -> Self::Notes;
    /// Tells the log.
    fn log(&self, text: &str);
}

/// What keeps a process connected to registries.
pub struct RegistryClient<N: Network> {
    network: N,
    lines: Vec<KeptConnection<N::Connection>>,
    /// Which of the hosts of each server to try first.
    first_hosts: HashMap<String, usize>,
}

/// A request as it is sent.
struct Message {
    statement: Statement,
    text: String,
}

/// A connection that stays open for the next request.
struct KeptConnection<C> {
    server: String,
    options: Options,
    connection: C,
    /// Which of the hosts this is.
    host: usize,
}

impl<N: Network> RegistryLink for RegistryClient<N> {
    fn ask(&mut self, site: &Site, ask: RequestBody, limit: Duration) -> Result<Response, RegistryError> {
        self.notes(site).asked();
        let started = self.network.uptime();
        let options = self.network.options(&site.server);
        let answer =
            options.and_then(|options| self.ask_at(&site.server, &options, Some(&site.seen), ask, limit));
        self.note(site, answer.as_ref().err(), self.network.uptime().saturating_sub(started));
        answer
    }

    fn notes(&self, site: &Site) -> impl RegistryNotes {
        self.network.notes(site)
    }
}

impl<N: Network + Default> Default for RegistryClient<N> {
    fn default() -> Self {
        Self::new(N::default())
    }
}

impl<N: Network> RegistryClient<N> {
    /// One that is connected to none yet.
    pub fn new(network: N) -> Self {
        Self { network, lines: Vec::new(), first_hosts: HashMap::new() }
    }

    /// Notes how a request went. The log gets what is wrong once; the view of registries shows the rest.
    fn note(&self, site: &Site, error: Option<&RegistryError>, took: Duration) {
        let notes = self.network.notes(site);
        match error {
            // That says nothing of the registry.
            Some(RegistryError::Failed(ConnectionError::GivenUp)) => notes.given_up(),
            Some(error) if !error.is_of_tag() => {
                let complaint = error.complaint();
                if notes.health().failures == 0 || notes.is_news(&complaint) {
                    let (server, why) = (&site.server, &complaint.why);
                    self.network.log(&format!("snowflake_ids could not ask registry \"{server}\": {why}"));
                }
                notes.failed(&complaint);
            }
            _ => notes.answered(took),
        }
    }

    /// Sends a request to the registry with these options; `seen` says which one is meant.
    pub fn ask_at(
        &mut self,
        server: &str,
        options: &Options,
        seen: Option<&wire::Registry>,
        ask: RequestBody,
        limit: Duration,
    ) -> Result<Response, RegistryError> {
        let message = Message::new(seen, ask, limit)?;
        let deadline = self.network.uptime() + limit;
        let hosts = hosts::each(options);
        // A host that is not the registry any more, or not its primary, is passed over.
        let mut answer = self.ask_host(server, options, &hosts, seen, &message, deadline);
        for _ in 1..hosts.len() {
            if !answer.as_ref().err().is_some_and(RegistryError::is_of_host) {
                break;
            }
            answer = self.ask_host(server, options, &hosts, seen, &message, deadline);
        }
        answer
    }

    /// Begins a transaction at a registry in use, which is one of so many that are asked by turns.
    pub fn begin(
        &mut self,
        site: &Site,
        options: &Options,
        of: usize,
        limit: Duration,
    ) -> Result<Block<N>, RegistryError> {
        // Comes to a host that is the registry.
        self.ask_at(&site.server, options, Some(&site.seen), RequestBody::Introduce, limit)?;
        let lost =
            || RegistryError::Failed(ConnectionError::Lost("it was closed by the registry".to_owned()));
        let line = self.take(&site.server, options).ok_or_else(lost)?;
        let pause = limit.saturating_mul(u32::try_from(of).unwrap_or(u32::MAX)).min(wire::MAX_TIMEOUT * 4);
        let bounds = serde_json::json!({ "statement": limit.as_millis().to_string(), "pause": pause.as_millis().to_string() });
        let mut block = Block { network: self.network.clone(), line, seen: site.seen.clone(), limit };
        block.run(Statement::Begin, "")?;
        block.run(Statement::Bounds, &bounds.to_string())?;
        Ok(block)
    }

    /// Asks the host that answered last, or the next one that can be connected to.
    fn ask_host(
        &mut self,
        server: &str,
        options: &Options,
        hosts: &[Options],
        seen: Option<&wire::Registry>,
        message: &Message,
        deadline: Duration,
    ) -> Result<Response, RegistryError> {
        let first = self.first_hosts.get(server).copied().unwrap_or(0);
        // Taken out: one that fails is not kept.
        let mut line = if let Some(line) = self.take(server, options) {
            line
        } else {
            let (connection, host) = self.connect(hosts, first, deadline)?;
            KeptConnection { server: server.to_owned(), options: options.clone(), connection, host }
        };
        let limit = deadline.saturating_sub(self.network.uptime());
        let answer = line.ask(&self.network, message, limit).and_then(|answer| as_meant(answer, seen));
        let good = answer.as_ref().err().is_none_or(|error| !error.is_of_host());
        self.first_hosts.insert(server.to_owned(), if good { line.host } else { line.host + 1 });
        // What a connection has not answered in time it may answer later, as if it were to the next request.
        if good || !holds(Guard::LateResponses) {
            self.lines.push(line);
        }
        answer
    }

    /// Connects to the first host that answers, each with its part of the time that is left.
    fn connect(
        &self,
        hosts: &[Options],
        first: usize,
        deadline: Duration,
    ) -> Result<(N::Connection, usize), RegistryError> {
        let mut failure = ConnectionError::Unreachable("no host is given".to_owned());
        for step in 0..hosts.len() {
            let host = (first + step) % hosts.len();
            let left = deadline.saturating_sub(self.network.uptime());
            let share = left / u32::try_from(hosts.len() - step).unwrap_or(1).max(1);
            match self.network.open(&hosts[host], share) {
                Ok(connection) => return Ok((connection, host)),
                Err(failed) => failure = failed,
            }
        }
        Err(RegistryError::Failed(failure))
    }

    /// The open connection to a server, if it is still good and what is wanted.
    fn take(&mut self, server: &str, options: &Options) -> Option<KeptConnection<N::Connection>> {
        let place = self.lines.iter().position(|line| line.server == server)?;
        let mut line = self.lines.swap_remove(place);
        (line.options == *options && self.network.is_good(&mut line.connection)).then_some(line)
    }
}

/// An answer of the registry that is meant.
fn as_meant(answer: Response, seen: Option<&wire::Registry>) -> Result<Response, RegistryError> {
    match seen.map(|seen| answer.registry.check(seen)) {
        Some(Err(stranger)) => Err(RegistryError::Stranger(stranger)),
        _ => Ok(answer),
    }
}

impl Message {
    fn new(seen: Option<&wire::Registry>, ask: RequestBody, limit: Duration) -> Result<Self, RegistryError> {
        // One whose row is locked must not hold the others up for long.
        let is_short = matches!(ask, RequestBody::Reserve(_));
        let timeout = if is_short { TAG_TIMEOUT } else { limit }.min(limit / 4);
        let timeout = timeout.min(wire::MAX_TIMEOUT);
        let statement = if ask.takes_over() { Statement::TakeOver } else { Statement::Serve };
        let request = Request { version: wire::VERSION, registry: seen.cloned(), timeout, ask };
        let text = request.to_text().map_err(|error| RegistryError::Garbled(error.to_string()))?;
        Ok(Self { statement, text })
    }
}

impl<C> KeptConnection<C> {
    fn ask<N: Network<Connection = C>>(
        &mut self,
        network: &N,
        message: &Message,
        limit: Duration,
    ) -> Result<Response, RegistryError> {
        let Message { statement, text } = message;
        let told =
            network.run(&mut self.connection, *statement, text, limit).map_err(RegistryError::Failed)?;
        let answer = Response::accept(&told).map_err(RegistryError::Garbled)?;
        match answer.said {
            ResponseBody::Stranger(stranger) => Err(RegistryError::Stranger(stranger)),
            ResponseBody::Version(version) => Err(RegistryError::Version(version)),
            _ => Ok(answer),
        }
    }
}

/// A transaction at a registry. Unless it is committed it ends with this, by which its connection is closed.
pub struct Block<N: Network> {
    network: N,
    line: KeptConnection<N::Connection>,
    seen: wire::Registry,
    limit: Duration,
}

impl<N: Network> Block<N> {
    /// Asks within the transaction: what is answered is not durable yet.
    ///
    /// # Errors
    /// [`RegistryError`]; the transaction is of no use then.
    pub fn ask(&mut self, ask: RequestBody) -> Result<Response, RegistryError> {
        let message = Message::new(Some(&self.seen), ask, self.limit)?;
        let answer = self.line.ask(&self.network, &message, self.limit)?;
        as_meant(answer, Some(&self.seen))
    }

    /// Makes it durable.
    ///
    /// # Errors
    /// [`RegistryError`]; whether it is durable is not known then.
    pub fn commit(mut self) -> Result<(), RegistryError> {
        self.run(Statement::Commit, "")
    }

    /// Has a statement run whose result is of no interest.
    fn run(&mut self, statement: Statement, argument: &str) -> Result<(), RegistryError> {
        let done = self.network.run(&mut self.line.connection, statement, argument, self.limit);
        done.map(drop).map_err(RegistryError::Failed)
    }
}
