//! Requests to registries on other servers: the choice of the host, reuse of connections, and the check that the expected
//! registry answered.

use crate::guard::{Guard, holds};
use crate::registry::error::{ConnectionError, RegistryError};
use crate::registry::hosts;
use crate::registry::link::{Endpoint, EndpointStatus};
use crate::registry::wire::{self, RegistryName, Request, RequestBody, Response, ResponseBody};
use std::collections::HashMap;
use std::time::Duration;

/// The time limit of the wait for a tag's row lock. The limit suffices even if many servers request ids of the tag at
/// the same time.
const TAG_TIMEOUT: Duration = Duration::from_millis(100);

/// libpq's connection options for a registry.
pub type Options = Vec<(String, String)>;

/// A statement that is sent over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteStatement {
    /// A call of `registry_serve`, for requests of background workers.
    Serve,
    /// A call of `registry_take_over`, for requests of administrators.
    TakeOver,
    /// BEGIN of a hand-over: several requests in one transaction.
    Begin,
    /// SET of time limits for the hand-over's transaction, so that the transaction's row locks end if this process
    /// dies.
    Bounds,
    /// COMMIT of the hand-over.
    Commit,
}

/// Access to registries on other servers.
pub trait Network: Clone {
    /// A connection. Dropping the value closes the connection.
    type Connection;
    /// The status of one registry, as the views show it.
    type Status: EndpointStatus;

    /// Returns the time of a monotonic clock.
    fn uptime(&self) -> Duration;
    /// Returns libpq's options for a foreign server, or [`RegistryError::NoServer`].
    fn options(&self, server: &str) -> Result<Options, RegistryError>;
    /// Connects to a host within a time limit.
    fn open(&self, host: &Options, limit: Duration) -> Result<Self::Connection, ConnectionError>;
    /// Returns whether an open connection looks usable.
    fn is_good(&self, connection: &mut Self::Connection) -> bool;
    /// Runs a statement with one argument, and returns its result.
    fn run(
        &self,
        connection: &mut Self::Connection,
        statement: RemoteStatement,
        argument: &str,
        limit: Duration,
    ) -> Result<String, ConnectionError>;
    /// Returns the status of a registry.
    fn status(&self, endpoint: &Endpoint) -> Self::Status;
    /// Writes to the log.
    fn log(&self, text: &str);
}

/// The registry connections of a process.
pub struct RegistryClient<N: Network> {
    network: N,
    kept: Vec<KeptConnection<N::Connection>>,
    /// For each foreign server, the index of the host to try first.
    first_hosts: HashMap<String, usize>,
}

/// The text of a request, and the name of the expected registry.
struct Message<'a> {
    statement: RemoteStatement,
    text: String,
    seen: Option<&'a RegistryName>,
}

struct KeptConnection<C> {
    server: String,
    options: Options,
    connection: C,
    /// The index of the connection's host in the foreign server's list of hosts.
    host: usize,
}

impl<N: Network> RegistryClient<N> {
    /// Returns a client without connections.
    pub fn new(network: N) -> Self {
        Self { network, kept: Vec::new(), first_hosts: HashMap::new() }
    }

    /// Returns the status of a registry.
    pub fn status(&self, endpoint: &Endpoint) -> N::Status {
        self.network.status(endpoint)
    }

    /// Sends a request to a registry, waits for the response within `limit`, and records the outcome in the status. After an
    /// error, the registry may have served the request nevertheless.
    pub fn ask(
        &mut self,
        endpoint: &Endpoint,
        ask: RequestBody,
        limit: Duration,
    ) -> Result<Response, RegistryError> {
        self.status(endpoint).asked();
        let started = self.network.uptime();
        let answer = self.ask_server(&endpoint.server, Some(&endpoint.seen), ask, limit);
        self.record(endpoint, answer.as_ref().err(), self.network.uptime().saturating_sub(started));
        answer
    }

    /// Records the outcome of a request in the registry's status, so that the view of registries shows every fault.
    /// Logs a fault if the fault is new, or if the registry was healthy before.
    fn record(&self, endpoint: &Endpoint, error: Option<&RegistryError>, took: Duration) {
        let status = self.status(endpoint);
        match error {
            // The process stopped waiting, which says nothing about the registry's health.
            Some(RegistryError::Failed(ConnectionError::GivenUp)) => status.given_up(),
            Some(error) if !error.is_of_tag() => {
                let complaint = error.complaint();
                if status.health().failures == 0 || status.is_news(&complaint) {
                    let (server, why) = (&endpoint.server, &complaint.why);
                    self.network.log(&format!("snowflake_ids could not ask registry \"{server}\": {why}"));
                }
                status.failed(&complaint);
            }
            _ => status.answered(took),
        }
    }

    /// Sends a request to the registry of a foreign server, and fails if another registry than `seen` answers. Records
    /// nothing in the status.
    pub fn ask_server(
        &mut self,
        server: &str,
        seen: Option<&RegistryName>,
        ask: RequestBody,
        limit: Duration,
    ) -> Result<Response, RegistryError> {
        let options = self.network.options(server)?;
        self.ask_hosts(server, &options, &Message::new(seen, ask, limit)?, limit)
    }

    fn ask_hosts(
        &mut self,
        server: &str,
        options: &Options,
        message: &Message<'_>,
        limit: Duration,
    ) -> Result<Response, RegistryError> {
        let deadline = self.network.uptime() + limit;
        let hosts = hosts::each(options);
        // A host that is not the primary of the expected registry is skipped.
        let mut answer = self.ask_host(server, options, &hosts, message, deadline);
        for _ in 1..hosts.len() {
            if !answer.as_ref().err().is_some_and(RegistryError::is_of_host) {
                break;
            }
            answer = self.ask_host(server, options, &hosts, message, deadline);
        }
        answer
    }

    /// Begins a transaction at a registry in use. `of` is the number of registries that the caller asks in turn. The
    /// transaction may be idle for longer if `of` is higher, because the caller asks the other registries meanwhile.
    pub fn begin(
        &mut self,
        endpoint: &Endpoint,
        of: usize,
        limit: Duration,
    ) -> Result<RegistryTransaction<N>, RegistryError> {
        let options = self.network.options(&endpoint.server)?;
        // Connects to a host of the expected registry.
        let introduce = Message::new(Some(&endpoint.seen), RequestBody::Introduce, limit)?;
        self.ask_hosts(&endpoint.server, &options, &introduce, limit)?;
        let lost = || ConnectionError::Lost("it was closed by the registry".to_owned());
        let kept = self.take(&endpoint.server, &options).ok_or_else(lost)?;
        let pause = limit.saturating_mul(u32::try_from(of).unwrap_or(u32::MAX)).min(wire::MAX_TIMEOUT * 4);
        let bounds = serde_json::json!({ "statement": limit.as_millis().to_string(), "pause": pause.as_millis().to_string() });
        let network = self.network.clone();
        let mut begun = RegistryTransaction { network, kept, seen: endpoint.seen.clone(), limit };
        begun.run(RemoteStatement::Begin, "")?;
        begun.run(RemoteStatement::Bounds, &bounds.to_string())?;
        Ok(begun)
    }

    /// Sends the request over the open connection to the server. If there is no open connection, first connects to the
    /// next host that accepts a connection.
    fn ask_host(
        &mut self,
        server: &str,
        options: &Options,
        hosts: &[Options],
        message: &Message<'_>,
        deadline: Duration,
    ) -> Result<Response, RegistryError> {
        // The connection is removed from `kept` here, and put back only if the connection is still usable after the
        // request.
        let mut kept = if let Some(kept) = self.take(server, options) {
            kept
        } else {
            let first = self.first_hosts.get(server).copied().unwrap_or(0);
            let (connection, host) = self.connect(hosts, first, deadline)?;
            KeptConnection { server: server.to_owned(), options: options.clone(), connection, host }
        };
        let limit = deadline.saturating_sub(self.network.uptime());
        let answer = kept.ask(&self.network, message, limit);
        let good = answer.as_ref().err().is_none_or(|error| !error.is_of_host());
        self.first_hosts.insert(server.to_owned(), if good { kept.host } else { kept.host + 1 });
        // After a failure the connection is dropped, because a late response could be mistaken for the response to the next
        // request.
        if good || !holds(Guard::LateResponses) {
            self.kept.push(kept);
        }
        answer
    }

    /// Connects to the first host that accepts a connection. The remaining time is divided evenly among the untried
    /// hosts.
    fn connect(
        &self,
        hosts: &[Options],
        first: usize,
        deadline: Duration,
    ) -> Result<(N::Connection, usize), ConnectionError> {
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
        Err(failure)
    }

    /// Removes the kept connection to a server. Returns the connection if it is usable and was opened with these options.
    fn take(&mut self, server: &str, options: &Options) -> Option<KeptConnection<N::Connection>> {
        let place = self.kept.iter().position(|kept| kept.server == server)?;
        let mut kept = self.kept.swap_remove(place);
        (kept.options == *options && self.network.is_good(&mut kept.connection)).then_some(kept)
    }
}

impl<'a> Message<'a> {
    fn new(seen: Option<&'a RegistryName>, ask: RequestBody, limit: Duration) -> Result<Self, RegistryError> {
        // A tag whose row is locked must not delay the other tags of the request.
        let is_short = matches!(ask, RequestBody::Reserve(_));
        let timeout = if is_short { TAG_TIMEOUT } else { limit }.min(limit / 4);
        let timeout = timeout.min(wire::MAX_TIMEOUT);
        let statement = if ask.takes_over() { RemoteStatement::TakeOver } else { RemoteStatement::Serve };
        let request = Request { version: wire::VERSION, registry: seen.cloned(), timeout, ask };
        let text = request.to_text().map_err(|error| RegistryError::Garbled(error.to_string()))?;
        Ok(Self { statement, text, seen })
    }
}

impl<C> KeptConnection<C> {
    /// Sends a request, and checks that the expected registry answered.
    fn ask<N: Network<Connection = C>>(
        &mut self,
        network: &N,
        message: &Message<'_>,
        limit: Duration,
    ) -> Result<Response, RegistryError> {
        let said = network.run(&mut self.connection, message.statement, &message.text, limit)?;
        let answer = Response::accept(&said).map_err(RegistryError::Garbled)?;
        match (&answer.said, message.seen) {
            (ResponseBody::Stranger(stranger), _) => Err((*stranger).into()),
            (ResponseBody::Version(version), _) => Err(RegistryError::Version(*version)),
            (_, Some(seen)) => Ok(answer.registry.check(seen).map(|()| answer)?),
            (_, None) => Ok(answer),
        }
    }
}

/// A transaction at a registry. Dropping the value without a commit closes the connection, and the transaction rolls back.
pub struct RegistryTransaction<N: Network> {
    network: N,
    kept: KeptConnection<N::Connection>,
    seen: RegistryName,
    limit: Duration,
}

impl<N: Network> RegistryTransaction<N> {
    /// Sends a request. A response is durable only after the commit. After an error the transaction cannot continue.
    pub fn ask(&mut self, ask: RequestBody) -> Result<Response, RegistryError> {
        let message = Message::new(Some(&self.seen), ask, self.limit)?;
        self.kept.ask(&self.network, &message, self.limit)
    }

    /// Commits the transaction. After an error, the registry may have committed nevertheless.
    pub fn commit(mut self) -> Result<(), ConnectionError> {
        self.run(RemoteStatement::Commit, "")
    }

    fn run(&mut self, statement: RemoteStatement, argument: &str) -> Result<(), ConnectionError> {
        self.network.run(&mut self.kept.connection, statement, argument, self.limit).map(drop)
    }
}
