//! Servers, their processes and the messages between them. Events run one after the other.

use super::chance::Chance;
use super::database::Db;
use super::fault::FAULTS;
use super::ledger::Ledger;
use super::network::Connection;
use super::node::Node;
use super::process::{Pause, Process, Wait};
use super::registry::Registry;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::client::RemoteStatement;
use snowflake_ids_core::registry::error::ConnectionError;
use snowflake_ids_core::registry::wire;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// Times are milliseconds since the run began.
pub const SECOND: u64 = 1_000;
/// A node that has issued no id of some tag for this long is silent.
const SILENCE: u64 = 15 * SECOND;

/// The tags. Other structures refer to a tag by its index.
pub const TAGS: [&str; 2] = ["orders", "items"];
pub type Tag = usize;
/// The number of a process.
pub type Pid = u64;

#[derive(Clone)]
pub enum Event {
    /// A process continues, unless it was woken earlier.
    Step {
        pid: Pid,
        turn: u64,
    },
    /// A node starts.
    Start {
        node: usize,
    },
    /// A request arrives at a server.
    Deliver {
        connection: u64,
        statement: RemoteStatement,
        text: String,
    },
    /// A response arrives at its client.
    Reply {
        connection: u64,
        result: Result<String, ConnectionError>,
    },
    /// The client of a connection notices that it was closed.
    Close {
        connection: u64,
    },
    Fault,
    Operator,
}

/// A cluster, with one database.
pub struct Server {
    pub who: wire::RegistryName,
    pub cluster: i64,
    pub db: Rc<Db>,
    pub hung_until: u64,
    pub down_until: u64,
}

struct Running {
    /// None while the process runs.
    process: Option<Process>,
    server: usize,
    /// How often the process has stopped.
    turn: u64,
    /// The number of turns until the process is killed together with its server.
    doomed: Option<u32>,
}

pub type Shared = Rc<RefCell<World>>;

pub struct World {
    pub now: u64,
    pub chance: Chance,
    pub servers: Vec<Server>,
    pub nodes: Vec<Node>,
    pub registries: Vec<Registry>,
    pub connections: BTreeMap<u64, Connection>,
    /// The number of registry identities that exist so far.
    pub identities: usize,
    /// Whether the rows of all registries are shares of one another.
    pub shared: bool,
    /// The time from which the rows may become shares.
    pub shared_from: u64,
    /// Whether faults are over.
    pub calm: bool,
    pub ledger: Ledger,
    pub faults: [u64; FAULTS.len()],
    pub longest_wait: u64,
    pub trace: Option<Vec<String>>,
    pub me: Weak<RefCell<World>>,
    processes: BTreeMap<Pid, Running>,
    /// Killed processes. Dropping a process releases its locks, so processes are dropped once nothing is borrowed.
    killed: Vec<Process>,
    /// Events in their order.
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
}

/// The world as seen by a process.
pub struct Env<'p> {
    pause: &'p Pause,
    pub pid: Pid,
    /// The server on which the process runs.
    pub server: usize,
    world: Weak<RefCell<World>>,
}

impl World {
    pub fn new(seed: u64, registries: usize) -> Shared {
        Rc::new_cyclic(|me| {
            let mut world = Self {
                now: 0,
                chance: Chance::new(seed),
                servers: Vec::new(),
                nodes: Vec::new(),
                registries: Vec::new(),
                connections: BTreeMap::new(),
                identities: 0,
                shared: false,
                shared_from: 0,
                calm: false,
                ledger: Ledger::default(),
                faults: [0; FAULTS.len()],
                longest_wait: 0,
                trace: None,
                me: me.clone(),
                processes: BTreeMap::new(),
                killed: Vec::new(),
                events: BTreeMap::new(),
                sequence: 0,
            };
            for _ in 0..registries {
                let primary = world.add_server();
                world.registries.push(Registry::new(primary));
            }
            RefCell::new(world)
        })
    }

    /// A world without random faults, in which all nodes use all registries.
    pub fn of_several(seed: u64, registries: usize, nodes: usize) -> Shared {
        let shared = Self::new(seed, registries);
        let mut world = shared.borrow_mut();
        world.calm = true;
        for _ in 0..nodes {
            let node = world.add_node(1, None);
            world.nodes[node].wants_all = true;
        }
        world.after(1, Event::Operator);
        drop(world);
        shared
    }

    /// Adds a cluster with an identity of its own.
    pub fn add_server(&mut self) -> usize {
        let who = wire::RegistryName {
            identity: format!("registry {}", self.identities),
            timeline: 1,
            ..Default::default()
        };
        let cluster = i64::try_from(self.identities).unwrap();
        self.identities += 1;
        self.servers.push(Server { who, cluster, db: Rc::default(), hung_until: 0, down_until: 0 });
        self.servers.len() - 1
    }

    /// A number from `from` up to but not including `to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        self.chance.between(from.cast_signed(), to.cast_signed()).cast_unsigned()
    }

    pub fn after(&mut self, delay: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((self.now + delay, self.sequence), event);
    }

    /// A number that was not used before.
    pub fn number(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    pub fn record(&mut self, what: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{}.{:03} {}", now / SECOND, now % SECOND, what()));
        }
    }

    /// Starts a process on a server.
    pub fn spawn(&mut self, server: usize, body: impl FnOnce(&Env<'_>) + 'static) -> Pid {
        let (pid, world) = (self.number(), self.me.clone());
        let process = Process::new(move |pause| body(&Env { pause, pid, server, world }));
        self.processes.insert(pid, Running { process: Some(process), server, turn: 0, doomed: None });
        self.after(0, Event::Step { pid, turn: 0 });
        pid
    }

    pub fn runs(&self, pid: Pid) -> bool {
        self.processes.contains_key(&pid)
    }

    /// Makes a process check its condition again.
    pub fn wake(&mut self, pid: Pid) {
        if let Some(running) = self.processes.get(&pid).filter(|running| running.process.is_some()) {
            let turn = running.turn;
            self.after(0, Event::Step { pid, turn });
        }
    }

    /// Kills all processes of a server.
    pub fn kill(&mut self, server: usize) {
        let theirs = self.processes.extract_if(.., |_, running| running.server == server);
        self.killed.extend(theirs.filter_map(|(_, running)| running.process));
        for (connection, open) in &self.connections {
            if open.server == server {
                self.sequence += 1;
                self.events.insert((self.now + 50, self.sequence), Event::Close { connection: *connection });
            }
        }
    }

    /// Crashes the node of the process `pid` once the process has made `turns` more calls.
    pub fn doom(&mut self, pid: Pid, turns: u32) -> bool {
        self.processes.get_mut(&pid).map(|running| running.doomed = Some(turns)).is_some()
    }

    /// Takes a process out of the list, so that the caller can continue it. None: the process was woken earlier, its server hangs, or
    /// the process is gone.
    fn begin_step(&mut self, pid: Pid, turn: u64) -> Option<Process> {
        let running = self.processes.get_mut(&pid).filter(|running| running.turn == turn)?;
        let hung_until = self.servers[running.server].hung_until;
        if hung_until > self.now {
            self.sequence += 1;
            self.events.insert((hung_until, self.sequence), Event::Step { pid, turn });
            return None;
        }
        if let Some(turns) = &mut running.doomed {
            *turns = turns.saturating_sub(1);
            if *turns == 0 {
                let server = running.server;
                let node = self.nodes.iter().position(|node| node.server == server);
                if let Some(node) = node {
                    self.crash(node);
                }
                return None;
            }
        }
        running.process.take()
    }

    fn end_step(&mut self, pid: Pid, process: Process, wait: Option<Wait>) {
        let Some(wait) = wait else {
            self.processes.remove(&pid);
            return;
        };
        let Some(running) = self.processes.get_mut(&pid) else { return self.killed.push(process) };
        running.turn += 1;
        running.process = Some(process);
        let turn = running.turn;
        let until = match wait {
            Wait::Turn => self.now + self.chance.next() % 3,
            Wait::Until(until) => until.cast_unsigned().max(self.now),
        };
        self.after(until - self.now, Event::Step { pid, turn });
    }

    /// Nodes without recent ids of at least one tag. `registry`: only nodes that use this registry; None: any node.
    pub fn silent(&self, registry: Option<usize>) -> Vec<usize> {
        let served = |node: &Node| {
            let used = self.used_by(node);
            used.is_empty() || registry.is_none_or(|registry| used.contains(&registry))
        };
        let silent = |node: &Node| node.last.iter().any(|last| self.now - last > SILENCE);
        let nodes = self.nodes.iter().enumerate().filter(|(_, node)| served(node) && silent(node));
        nodes.map(|(node, _)| node).collect()
    }

    /// The registries that a node uses.
    pub fn used_by(&self, node: &Node) -> Vec<usize> {
        let store = self.servers[node.server].db.store.borrow();
        store.endpoints.iter().map(|endpoint| registry_of(&endpoint.server)).collect()
    }
}

/// The name under which nodes know a registry. The next function finds the registry of a name.
pub fn server_name(registry: usize) -> String {
    format!("r{registry}")
}

pub fn registry_of(server: &str) -> usize {
    server[1..].parse().unwrap()
}

/// Runs the events up to a time.
pub fn run_until(shared: &Shared, end: u64) {
    loop {
        let event = {
            let mut world = shared.borrow_mut();
            let Some(entry) = world.events.first_entry().filter(|entry| entry.key().0 <= end) else { break };
            let ((now, _), event) = entry.remove_entry();
            world.now = now;
            event
        };
        match event {
            Event::Step { pid, turn } => {
                let process = shared.borrow_mut().begin_step(pid, turn);
                if let Some(mut process) = process {
                    let wait = process.step();
                    shared.borrow_mut().end_step(pid, process, wait);
                }
            }
            Event::Start { node } => shared.borrow_mut().start(node),
            Event::Deliver { connection, statement, text } => {
                shared.borrow_mut().deliver(connection, statement, text);
            }
            Event::Reply { connection, result } => shared.borrow_mut().reply(connection, result),
            Event::Close { connection } => shared.borrow_mut().close(connection),
            Event::Fault => shared.borrow_mut().fault(),
            Event::Operator => shared.borrow_mut().operate(),
        }
        // Dropping the killed processes releases their locks. Nothing may be borrowed at that moment.
        let killed = std::mem::take(&mut shared.borrow_mut().killed);
        drop(killed);
    }
    shared.borrow_mut().now = end;
}

impl Env<'_> {
    pub fn world(&self) -> Shared {
        self.world.upgrade().unwrap()
    }

    /// Reads or changes the world while nothing else happens.
    pub fn with<T>(&self, work: impl FnOnce(&mut World) -> T) -> T {
        work(&mut self.world().borrow_mut())
    }

    pub fn weak(&self) -> Weak<RefCell<World>> {
        self.world.clone()
    }

    pub fn now(&self) -> u64 {
        self.with(|world| world.now)
    }

    pub fn clock(&self) -> UnixMicros {
        UnixMicros(self.now().cast_signed() * 1_000)
    }

    /// Lets other processes run before this one continues.
    pub fn turn(&self) {
        self.pause.suspend(Wait::Turn);
    }

    /// Sleeps until the process is woken, or until a time at the latest.
    pub fn sleep_until(&self, until: u64) {
        self.pause.suspend(Wait::Until(until.cast_signed()));
    }

    pub fn sleep(&self, delay: u64) {
        let until = self.now() + delay;
        while self.now() < until {
            self.sleep_until(until);
        }
    }

    /// Waits until `look` finds something, or until a time at the latest.
    pub fn wait<T>(&self, until: u64, mut look: impl FnMut(&mut World) -> Option<T>) -> Option<T> {
        loop {
            if let Some(found) = self.with(&mut look) {
                return Some(found);
            }
            if self.now() >= until {
                return None;
            }
            self.sleep_until(until);
        }
    }
}
