//! Servers, registries and the messages between them. Events run one after the other.

use super::databases::Database;
use super::event::{At, Event, Scope};
use super::faults::{Fault, Faults};
use super::host::Host;
use super::lease_worker::{Sent, lease_worker, serve};
use super::process::{Process, Wait};
use super::registry::Registry;
use super::server::{Clocks, EXPIRY, MAX_SKEW, SECOND, Server};
use super::sessions::{launcher, session};
use super::sim::Sim;
use snowflake_ids_core::server::lease::Policy;
use snowflake_ids_core::server::state::Identity;
use snowflake_ids_core::{ClockRollback, Layout, SequenceStart};
use std::cell::{Cell, RefCell};
use std::collections::BinaryHeap;
use std::ops::Deref;
use std::rc::Rc;

/// A process, with the number of its next turn.
struct Slot {
    process: Process,
    turn: u64,
}

pub struct World {
    sim: Rc<Sim>,
    pub servers: Vec<Rc<Server>>,
    /// The servers' common registry.
    pub shared: Rc<Registry>,
    /// The common registry's processes; each serves one request.
    serving: Vec<Option<Process>>,
    pub faults: Faults,
    pub next_number: u32,
    processes: Vec<Vec<Option<Slot>>>,
    events: BinaryHeap<At>,
    sequence: u64,
}

impl Deref for World {
    type Target = Sim;

    fn deref(&self) -> &Sim {
        &self.sim
    }
}

impl World {
    pub fn new(seed: u64, scope: Scope, layout: Layout, pace: i64) -> Self {
        Self {
            sim: Rc::new(Sim::new(seed, scope, layout, pace)),
            servers: Vec::new(),
            shared: Rc::default(),
            serving: Vec::new(),
            faults: Faults::default(),
            next_number: 0,
            processes: Vec::new(),
            events: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// Adds a server with a data directory of its own.
    pub fn add_server(&mut self) -> usize {
        let number = self.servers.len();
        let alone = self.scope == Scope::Alone;
        let database = |draws| Database {
            draws: Cell::new(draws),
            registry: RefCell::default(),
            chosen: RefCell::default(),
        };
        let databases = vec![database(false), database(!alone)];
        let identity = match self.scope {
            Scope::Shared | Scope::Tight | Scope::Alone => Identity::Leased { datacenter: Some(0) },
            Scope::Numbers | Scope::Succession => self.number(),
        };
        let scope = if alone { u32::try_from(number).unwrap() + 1 } else { 0 };
        let rollbacks = [ClockRollback::Error, ClockRollback::Wait, ClockRollback::Switch];
        let starts = [SequenceStart::Zero, SequenceStart::Zero, SequenceStart::Random, SequenceStart::Rotate];
        let server = Server {
            number,
            layout: self.layout,
            scope: Cell::new(scope),
            databases,
            introduced: Cell::new(self.shared.generation.get()),
            system_identifier: Cell::new(self.chance.next()),
            timeline: Cell::new(1),
            identity: Cell::new(identity),
            policy: Cell::new(self.policy()),
            rollback: Cell::new(if self.storm {
                ClockRollback::Switch
            } else {
                self.chance.one_of(&rollbacks)
            }),
            start: self.chance.one_of(&starts),
            replayed: Cell::new(None),
            disk: RefCell::default(),
            files: Cell::new(0),
            clocks: self.clocks(),
            live: RefCell::new(None),
            slot_generation: Cell::new(0),
            paused: Cell::new(0),
            cut_off: Cell::new(0),
            retired: Cell::new(false),
            last: Cell::new(None),
            highest: Cell::default(),
            ticks: RefCell::default(),
            last_commit: Cell::new(None),
            backups: RefCell::default(),
            succeeded: Cell::new(false),
            copied: Cell::new(false),
            of_original: RefCell::default(),
        };
        self.servers.push(Rc::new(server));
        self.processes.push(Vec::new());
        number
    }

    /// A random policy. Without a registry, `disposable` is left out, because servers of one origin could choose the same
    /// worker id after a failover.
    pub fn policy(&self) -> Policy {
        let last = if self.scope == Scope::Alone { Policy::Reuse } else { Policy::Disposable };
        self.chance.one_of(&[Policy::Reuse, Policy::Reuse, Policy::Queue, last])
    }

    /// A worker id that no server had before.
    pub fn number(&mut self) -> Identity {
        self.next_number += 1;
        Identity::Fixed { datacenter: 0, worker_id: self.next_number - 1 }
    }

    /// The clocks of another machine, which are slightly off.
    fn clocks(&self) -> Clocks {
        Clocks {
            offset: Cell::new(self.small_offset()),
            gain: Cell::new(self.chance.between(-100, 100)),
            boot: Cell::new(self.chance.next()),
            booted: Cell::new(self.now() - self.chance.between(0, 1_000 * SECOND)),
        }
    }

    /// The error of a clock that still counts as right.
    pub fn small_offset(&self) -> i64 {
        let most = if self.scope == Scope::Tight { MAX_SKEW - SECOND / 5 } else { SECOND };
        self.chance.between(-most, most)
    }

    pub fn after(&mut self, delay: i64, event: Event) {
        self.sequence += 1;
        self.events.push(At(self.now() + delay, self.sequence, event));
    }

    pub fn start(&mut self, server: usize) {
        let this = Rc::clone(&self.servers[server]);
        if this.retired.get() || this.is_running() {
            return;
        }
        if self.scope == Scope::Alone && !this.is_alone() {
            this.scope.set(0);
        }
        let sessions = 1 + self.chance.below(3);
        this.start(sessions, self.max_slots.get(), self.now());
        self.record(|| format!("server {server} starts"));
        self.spawn(server, 0, launcher);
        let pace = if self.storm { self.pace / 8 } else { self.pace };
        for number in 0..sessions {
            let delay = self.chance.between(0, pace);
            self.spawn(server, delay, move |host| session(host, number));
        }
        if self.happens_once_in(8) {
            let (delay, slot_generation) = (self.chance.between(1, self.pace), this.slot_generation.get());
            self.after(delay, Event::Stop { server, slot_generation });
        }
    }

    /// Starts a process of a running server.
    pub fn spawn(&mut self, server: usize, delay: i64, body: impl FnOnce(&Host<'_>) + 'static) {
        let this = Rc::clone(&self.servers[server]);
        let Some(live) = this.live() else { return };
        let (sim, slot_generation) = (Rc::clone(&self.sim), this.slot_generation.get());
        let process = Process::new(move |pause| body(&Host::new(sim, this, live, pause)));
        let processes = &mut self.processes[server];
        processes.push(Some(Slot { process, turn: 0 }));
        let process = processes.len() - 1;
        self.after(delay.max(1), Event::Run { server, slot_generation, process, turn: 0 });
    }

    /// Starts an operator's work on a running server, unless an operator is at work there.
    pub fn operate_on(&mut self, server: usize, act: impl FnOnce(&Host<'_>) + 'static) {
        let Some(live) = self.servers[server].live().filter(|live| !live.operated.replace(true)) else {
            return;
        };
        self.spawn(server, 0, move |host| {
            act(host);
            live.operated.set(false);
        });
    }

    /// Ends a process's wait.
    pub fn wake(&mut self, server: usize, process: usize) {
        let slot_generation = self.servers[server].slot_generation.get();
        if let Some(Some(slot)) = self.processes[server].get(process) {
            let turn = slot.turn;
            self.after(1, Event::Run { server, slot_generation, process, turn });
        }
    }

    /// Ends a server immediately, as kill -9 does. With `machine`, unsynced data is lost too.
    pub fn kill(&mut self, server: usize, machine: bool) {
        self.processes[server].clear();
        let this = &self.servers[server];
        this.live.replace(None);
        this.slot_generation.set(this.slot_generation.get() + 1);
        if machine {
            this.disk.borrow_mut().lose_unsynced(self.chance.once_in(2));
            this.clocks.boot.set(self.chance.next());
            this.clocks.booted.set(self.now());
        }
    }

    pub fn crash(&mut self, server: usize, machine: bool) {
        self.kill(server, machine);
        self.record(|| format!("server {server} ends, machine {machine}"));
        self.start_later(server);
    }

    /// Starts a server again after a while, sometimes with its clock set back meanwhile.
    pub fn start_later(&mut self, server: usize) {
        let slowly = self.happens_once_in(2);
        let delay = self.chance.between(SECOND / 20, if slowly { 30 * SECOND } else { SECOND });
        self.after(delay, Event::Start { server });
        if self.happens_once_in(10) {
            self.servers[server].clocks.step(-self.chance.between(1, 30 * SECOND));
            let delay = self.chance.between(SECOND, 60 * SECOND);
            self.after(delay, Event::ClockRight { server });
        }
    }

    /// Runs all events up to an instant.
    pub fn run_until(&mut self, end: i64) {
        while let Some(At(at, ..)) = self.events.peek()
            && *at <= end
            && let Some(At(at, _, event)) = self.events.pop()
        {
            self.now.set(at);
            self.happen(event);
        }
        self.now.set(end);
    }

    /// Whether an event of a server can happen now. A paused server gets the event later.
    fn is_up(&mut self, server: usize, slot_generation: u64, event: &Event) -> bool {
        let this = &self.servers[server];
        let (paused, now) = (this.paused.get(), self.now());
        let up = this.slot_generation.get() == slot_generation && this.is_running();
        if up && paused > now {
            // The pause may end early, so the event is checked every second.
            self.after((paused - now).min(SECOND), event.clone());
        }
        up && paused <= now
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Run { server, slot_generation, process, turn } => {
                if self.is_up(server, slot_generation, &event) {
                    self.run(server, slot_generation, process, turn);
                }
            }
            Event::Request { server, slot_generation, number, text } => {
                let cut_off = self.servers[server].cut_off.get();
                self.receive(Sent { server, slot_generation, number, text, cut_off });
            }
            Event::Serve { process } => self.go_on_serving(process),
            Event::Answer { server, slot_generation, number, ref answer } => {
                if self.is_up(server, slot_generation, &event)
                    && let Some(live) = self.servers[server].live().filter(|live| live.sent.get() == number)
                {
                    live.answer.replace(Some(answer.clone()));
                    if let Some(process) = live.slot.process.get() {
                        self.wake(server, process);
                    }
                }
            }
            Event::LeaseWorker { server, slot_generation, task, database } => {
                if self.is_up(server, slot_generation, &event)
                    && let Some(live) = self.servers[server].live()
                {
                    live.slot.process.set(Some(self.processes[server].len()));
                    self.spawn(server, 0, move |host| lease_worker(host, task, database));
                }
            }
            Event::Start { server } => self.start(server),
            Event::Introduce { server } => self.introduce(server),
            Event::Stop { server, slot_generation } => {
                if self.is_up(server, slot_generation, &event) {
                    self.stop(server);
                }
            }
            Event::Stopped { server, slot_generation } => {
                if self.is_up(server, slot_generation, &event) {
                    self.kill(server, false);
                    let wall = self.servers[server].clocks.wall(self.now());
                    self.servers[server].disk.borrow_mut().checkpoint = Some(wall);
                    self.record(|| format!("server {server} has stopped"));
                    self.start_later(server);
                }
            }
            Event::ClockRight { server } => {
                self.servers[server].clocks.offset.set(self.small_offset());
                self.record(|| format!("server {server}'s clock is set right"));
            }
            Event::Fault => self.fault(),
            Event::Operator => self.operate(),
        }
    }

    /// Stops a server cleanly. Returns whether the server was running.
    pub fn stop(&mut self, server: usize) -> bool {
        let Some(live) = self.servers[server].live() else { return false };
        self.faults.count(Fault::Stop);
        live.stopping.set(true);
        true
    }

    /// Runs one turn of a process, until its next call to its surroundings.
    fn run(&mut self, server: usize, slot_generation: u64, process: usize, turn: u64) {
        let Some(Some(slot)) = self.processes[server].get_mut(process) else { return };
        if slot.turn != turn {
            return;
        }
        slot.turn += 1;
        let turn = slot.turn;
        let wait = slot.process.step();
        for (delay, event) in self.sim.take_sent() {
            self.after(delay, event);
        }
        let delay = match wait {
            None => {
                self.processes[server][process] = None;
                return;
            }
            Some(Wait::Until(at)) => (at - self.now()).max(1),
            Some(Wait::Turn) if self.ends_here(server) || self.lease_worker_ends(server, process) => return,
            Some(Wait::Turn) => {
                self.chance.between(1, if self.happens_once_in(80) { 6 * SECOND } else { 6_000 })
            }
        };
        self.after(delay, Event::Run { server, slot_generation, process, turn });
    }

    /// Whether a server ends in the middle of its work. Sometimes the server is paused there.
    fn ends_here(&mut self, server: usize) -> bool {
        if self.happens_once_in(800) {
            self.servers[server].paused.set(self.now() + self.chance.between(SECOND, 2 * EXPIRY));
            self.faults.count(Fault::Pause);
        }
        if !self.happens_once_in(if self.storm { 40 } else { 300 }) {
            return false;
        }
        let machine = self.chance.once_in(2);
        self.faults.count(if machine { Fault::Reboot } else { Fault::Kill });
        if self.scope == Scope::Tight && self.chance.once_in(3) {
            self.servers[server].cut_off.set(self.now() + EXPIRY);
        }
        self.crash(server, machine);
        true
    }

    /// Whether a process is a lease worker that ends in the middle of its work. A lease worker does not end while it holds the
    /// state lock.
    fn lease_worker_ends(&mut self, server: usize, process: usize) -> bool {
        let live = self.servers[server]
            .live()
            .filter(|live| live.slot.process.get() == Some(process) && live.issuing.try_borrow_mut().is_ok());
        let Some(live) = live.filter(|_| self.happens_once_in(40)) else { return false };
        self.processes[server][process] = None;
        live.slot.end();
        true
    }

    /// Begins to serve a request in the registry.
    fn receive(&mut self, sent: Sent) {
        let (sim, shared) = (Rc::clone(&self.sim), Rc::clone(&self.shared));
        self.serving.push(Some(Process::new(move |pause| serve(&sim, &shared, &sent, pause))));
        self.go_on_serving(self.serving.len() - 1);
    }

    /// Runs one turn of a registry process.
    fn go_on_serving(&mut self, process: usize) {
        let wait = self.serving[process].as_mut().and_then(Process::step);
        for (delay, event) in self.sim.take_sent() {
            self.after(delay, event);
        }
        if wait.is_none() {
            self.serving[process] = None;
            return;
        }
        let delay = self.chance.between(1, if self.happens_once_in(80) { 6 * SECOND } else { 6_000 });
        self.after(delay, Event::Serve { process });
    }

    /// A server's state, as text.
    pub fn describe(&self, server: usize) -> String {
        let this = &self.servers[server];
        let live = this.live().map(|live| {
            let generator = &live.shared.generator;
            let (next, limit) = (generator.next().0 >> 6, generator.limit().0 >> 6);
            let (trouble, expiry) = (live.trouble.borrow().clone(), live.shared.status.expiry());
            let wanted = live.requests.request.pending();
            format!(
                "next {next} limit {limit} {trouble:?} wants {wanted:?} lease until {expiry:?} {:?}",
                live.issuing
            )
        });
        let now = self.layout.tick(this.clocks.wall(self.now()));
        format!(
            "{server}: {:?} {:?} {:?} timeline {} now {now:?} last {:?} {live:?}",
            this.identity,
            this.policy,
            this.rollback,
            this.timeline.get(),
            this.last
        )
    }
}
