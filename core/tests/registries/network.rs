//! Connections between nodes and registries, and the processes that serve them. Messages are lost, delayed or duplicated.

use super::database::{Locked, Tx, millis};
use super::node::Live;
use super::registry::Trouble;
use super::world::{Env, Event, Pid, SECOND, TAGS, World, registry_of};
use serde_json::value::RawValue;
use snowflake_ids_core::registry::accept::{Admission, admit};
use snowflake_ids_core::registry::client::{Network, Options, RemoteStatement};
use snowflake_ids_core::registry::error::{Complaint, ConnectionError, RegistryError, SqlError};
use snowflake_ids_core::registry::failover::Health;
use snowflake_ids_core::registry::forks::Fork;
use snowflake_ids_core::registry::handover::take_over;
use snowflake_ids_core::registry::link::{Endpoint, EndpointStatus};
use snowflake_ids_core::registry::tags;
use snowflake_ids_core::registry::wire::{RegistryName, Request, RequestBody, Response, ResponseBody};
use snowflake_ids_core::server::form::RELEASE;
use snowflake_ids_core::tag::reservation::Outcome;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// A connection, as both of its ends see it.
pub struct Connection {
    pub server: usize,
    /// The process at the server.
    backend: Pid,
    /// The process that connected.
    client: Pid,
    requests: VecDeque<(RemoteStatement, String)>,
    responses: VecDeque<Result<String, ConnectionError>>,
    closed: bool,
    /// The number of requests that have not arrived yet.
    coming: usize,
}

/// The client's end.
pub struct Line {
    id: u64,
    world: Weak<RefCell<World>>,
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(world) = self.world.upgrade() {
            world.borrow_mut().hang_up(self.id);
        }
    }
}

impl World {
    fn connect(&mut self, server: usize, client: Pid) -> u64 {
        let id = self.number();
        let backend = self.spawn(server, move |env| serve(env, id));
        let (requests, responses) = (VecDeque::new(), VecDeque::new());
        self.connections.insert(
            id,
            Connection { server, backend, client, requests, responses, closed: false, coming: 0 },
        );
        id
    }

    pub fn deliver(&mut self, id: u64, statement: RemoteStatement, text: String) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.coming -= 1;
        connection.requests.push_back((statement, text));
        let backend = connection.backend;
        self.wake(backend);
    }

    pub fn reply(&mut self, id: u64, result: Result<String, ConnectionError>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.responses.push_back(result);
        let client = connection.client;
        self.wake(client);
    }

    /// Closes a connection. Each end notices at its next check.
    pub fn close(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.closed = true;
        let ends = [connection.backend, connection.client];
        for end in ends {
            self.wake(end);
        }
    }

    /// Closes the client's end. Requests that the client has sent are still served.
    fn hang_up(&mut self, id: u64) {
        self.close(id);
        let backend = self.connections.get(&id).map(|connection| connection.backend);
        if backend.is_some_and(|backend| !self.runs(backend)) {
            self.connections.remove(&id);
        }
    }

    /// Schedules a request's arrival.
    fn send(&mut self, id: u64, delay: u64, statement: RemoteStatement, text: String) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.coming += 1;
            self.after(delay, Event::Deliver { connection: id, statement, text });
        }
    }

    /// A message's delay, which is short or long. None: the message is lost.
    fn travel(&mut self) -> Option<u64> {
        if !self.calm && self.chance.once_in(30) {
            return None;
        }
        let late = !self.calm && self.chance.once_in(25);
        Some(if late { self.between(SECOND, 12 * SECOND) } else { self.between(1, 40) })
    }
}

/// Serves a connection until it ends.
fn serve(env: &Env<'_>, id: u64) {
    let mut block: Option<Tx<'_>> = None;
    loop {
        let request = env.wait(u64::MAX >> 2, |world| match world.connections.get_mut(&id) {
            None => Some(None),
            Some(connection) => match connection.requests.pop_front() {
                Some(request) => Some(Some(request)),
                None if connection.closed && connection.coming == 0 => Some(None),
                None => None,
            },
        });
        let Some(Some((statement, text))) = request else {
            env.with(|world| world.connections.remove(&id));
            return;
        };
        let result = match statement {
            RemoteStatement::Begin => {
                block = Some(Tx::begin(env, 5 * SECOND));
                Ok(String::new())
            }
            RemoteStatement::Bounds => Ok(String::new()),
            RemoteStatement::Commit => {
                block.take().unwrap().commit();
                Ok(String::new())
            }
            RemoteStatement::Serve | RemoteStatement::TakeOver => {
                let may_take_over = statement == RemoteStatement::TakeOver;
                answer(env, &text, may_take_over, &mut block)
            }
        };
        env.with(|world| {
            if let Some(delay) = world.travel() {
                world.after(delay, Event::Reply { connection: id, result });
            }
        });
    }
}

/// Does the work of `registry_serve` and `registry_take_over`.
fn answer<'e>(
    env: &'e Env<'e>,
    text: &str,
    may_take_over: bool,
    block: &mut Option<Tx<'e>>,
) -> Result<String, ConnectionError> {
    let (this, forks) = env.with(|world| {
        let server = &world.servers[env.server];
        (server.who.clone(), server.db.store.borrow().forks.clone())
    });
    let request = Request::accept(text).unwrap();
    let timeout = request.as_ref().map_or(0, |request| millis(request.timeout));
    let said = match admit(request, &this, &forks, may_take_over, block.is_some()) {
        Admission::Say(said) => said,
        Admission::InBlock | Admission::TakesOver => panic!("no server asks so"),
        Admission::Serve(unknown, ask) => {
            let mut own = None;
            let tx = match block {
                Some(tx) => tx,
                None => own.insert(Tx::begin(env, 0)),
            };
            tx.lock_timeout = timeout;
            for number in unknown {
                tx.change(move |store| {
                    let is_known = store.forks.0.iter().any(|known| known.number == number);
                    store.forks.0.extend((!is_known).then_some(Fork { number, timeline: None }));
                });
            }
            let said = said(tx, ask).map_err(|Locked| refused())?;
            if let Some(tx) = own {
                tx.commit();
            }
            said
        }
    };
    let answer = Response { registry: this, clock: env.clock(), said };
    Ok(answer.to_text().unwrap())
}

fn said(tx: &mut Tx<'_>, ask: RequestBody) -> Result<ResponseBody, Locked> {
    Ok(match ask {
        RequestBody::Introduce => {
            ResponseBody::Introduced { version: RELEASE.to_owned(), layout: String::new() }
        }
        RequestBody::HandOver { rows, received, share } => {
            let rows: Vec<&RawValue> = rows.iter().map(AsRef::as_ref).collect();
            ResponseBody::HandedOver(take_over(tx, &rows, &received, share)?)
        }
        RequestBody::Tags { after } => ResponseBody::Tags(tx.page(after.as_deref())),
        RequestBody::Reserve(wants) => {
            let tags: Vec<usize> = wants.iter().map(|want| index(&want.tag)).collect();
            let outcomes = tags::reserve_all(tx, wants)?;
            tx.doubt(&tags, &outcomes);
            ResponseBody::Reserved(outcomes)
        }
        other => panic!("no node asks this: {other:?}"),
    })
}

fn index(tag: &str) -> usize {
    TAGS.iter().position(|name| *name == tag).unwrap()
}

fn refused() -> ConnectionError {
    let message = "canceling statement due to lock timeout";
    ConnectionError::Refused(SqlError::new(*b"55P03", message))
}

impl Tx<'_> {
    /// Records ranges of a registry that was set back, or that has not heard of a fork yet. The registry may have reserved
    /// these ranges before.
    fn doubt(&self, tags: &[usize], outcomes: &[Outcome]) {
        let forks = self.look(|store| store.forks.clone());
        self.env().with(|world| {
            let server = self.env().server;
            let lacks = |number: &i64| !forks.0.iter().any(|fork| fork.number == *number);
            let set_back = world.registries.iter().any(|this| {
                this.primary == server && (this.is(Trouble::SetBack) || this.unheard.iter().any(lacks))
            });
            for (tag, outcome) in tags.iter().zip(outcomes).filter(|_| set_back) {
                if let Outcome::Reserved(reserved) = outcome {
                    world.ledger.doubt(*tag, reserved.supply.range);
                }
            }
        });
    }
}

/// The network as seen by a process of a node.
#[derive(Clone)]
pub struct Net<'e> {
    pub env: &'e Env<'e>,
    pub live: Rc<Live>,
}

impl<'e> Network for Net<'e> {
    type Connection = Line;
    type Status = Status<'e>;

    fn uptime(&self) -> Duration {
        Duration::from_millis(self.env.now())
    }

    /// Lists the present primary and the former primary of a registry, as an administrator's host list does.
    fn options(&self, server: &str) -> Result<Options, RegistryError> {
        let hosts = self.env.with(|world| {
            let this = &world.registries[registry_of(server)];
            let former = this.former.map(|(former, _)| former);
            former.into_iter().chain([this.primary]).map(|server| server.to_string()).collect::<Vec<_>>()
        });
        Ok(vec![("host".to_owned(), hosts.join(","))])
    }

    fn open(&self, host: &Options, limit: Duration) -> Result<Line, ConnectionError> {
        self.env.turn();
        let server: usize = host.iter().find(|(name, _)| name == "host").unwrap().1.parse().unwrap();
        let until = self.env.now() + millis(limit);
        let (env, pid) = (self.env, self.env.pid);
        let opened = self.env.wait(until, |world| {
            if !world.is_reachable(env.server, server) {
                return Some(None);
            }
            let works = world.servers[server].hung_until <= world.now;
            works.then(|| Some(world.connect(server, pid)))
        });
        match opened {
            Some(Some(id)) => Ok(Line { id, world: env.weak() }),
            Some(None) => Err(ConnectionError::Unreachable("connection refused".to_owned())),
            None => Err(ConnectionError::Silent(limit)),
        }
    }

    fn is_good(&self, line: &mut Line) -> bool {
        self.env.with(|world| world.connections.get(&line.id).is_some_and(|connection| !connection.closed))
    }

    fn run(
        &self,
        line: &mut Line,
        statement: RemoteStatement,
        argument: &str,
        limit: Duration,
    ) -> Result<String, ConnectionError> {
        self.env.turn();
        let (id, until) = (line.id, self.env.now() + millis(limit));
        self.env.with(|world| {
            if let Some(delay) = world.travel() {
                world.send(id, delay, statement, argument.to_owned());
            }
            // A pooler between node and server may send the request again. No node waits for the second response.
            let server = world.connections.get(&id).map(|connection| connection.server);
            if let Some(server) = server
                && statement == RemoteStatement::Serve
                && !world.calm
                && world.chance.once_in(30)
            {
                let copy = world.connect(server, 0);
                world.send(copy, 20, statement, argument.to_owned());
                world.after(20, Event::Close { connection: copy });
            }
        });
        let found = self.env.wait(until, |world| match world.connections.get_mut(&id) {
            None => Some(None),
            Some(connection) => match connection.responses.pop_front() {
                Some(response) => Some(Some(response)),
                None if connection.closed => Some(None),
                None => None,
            },
        });
        match found {
            Some(Some(response)) => response,
            Some(None) => Err(ConnectionError::Lost("it was closed".to_owned())),
            None => Err(ConnectionError::Silent(limit)),
        }
    }

    fn status(&self, endpoint: &Endpoint) -> Status<'e> {
        Status { env: self.env, live: self.live.clone(), position: endpoint.position }
    }

    fn log(&self, text: &str) {
        let server = self.env.server;
        self.env.with(|world| world.record(|| format!("server {server}: {text}")));
    }
}

impl World {
    /// Whether one server can reach another. A former primary is cut off from nodes that do not know its successor.
    fn is_reachable(&self, from: usize, to: usize) -> bool {
        if self.servers[to].down_until > self.now {
            return false;
        }
        if self.registries.iter().any(|this| this.primary == to) {
            return true;
        }
        let is_former = |former: &(usize, u64)| former.0 == to;
        let former =
            self.registries.iter().enumerate().find_map(|(registry, this)| {
                this.former.filter(is_former).map(|(_, until)| (registry, until))
            });
        // Primaries before the former one are gone.
        let Some((registry, until)) = former else { return false };
        let store = self.servers[from].db.store.borrow();
        let RegistryName { timeline, fork, .. } = &self.servers[to].who;
        let knows = store.endpoints.iter().any(|endpoint| {
            let seen = &endpoint.seen;
            let is_later = seen.timeline > *timeline || fork.is_some_and(|fork| seen.left.contains(&fork));
            registry_of(&endpoint.server) == registry && is_later
        });
        until > self.now && knows
    }
}

/// A node's record of a registry's health, in its memory.
pub struct Status<'e> {
    env: &'e Env<'e>,
    live: Rc<Live>,
    position: u32,
}

impl Status<'_> {
    fn with<T>(&self, work: impl FnOnce(&mut (Health, String)) -> T) -> T {
        work(self.live.status.borrow_mut().entry(self.position).or_default())
    }
}

impl EndpointStatus for Status<'_> {
    fn health(&self) -> Health {
        self.with(|(health, _)| *health)
    }

    fn asked(&self) {}

    fn given_up(&self) {}

    fn answered(&self, _: Duration) {
        self.with(|(health, _)| *health = Health::default());
    }

    fn failed(&self, complaint: &Complaint) {
        let failed_at = Duration::from_millis(self.env.now());
        self.with(|(health, why)| {
            *health = Health { failures: health.failures + 1, failed_at };
            complaint.why.clone_into(why);
        });
    }

    fn complain(&self, complaint: &Complaint) {
        self.with(|(_, why)| complaint.why.clone_into(why));
    }

    fn is_news(&self, complaint: &Complaint) -> bool {
        self.with(|(_, why)| *why != complaint.why)
    }

    fn clear_complaint(&self) {
        self.with(|(_, why)| why.clear());
    }
}
