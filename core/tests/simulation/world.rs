//! Servers, registries and what travels between them, one event after the other.

use super::chance::Chance;
use super::faults::{Fault, Faults};
use super::guards::Guards;
use super::ledger::Ledger;
use super::registrar::{Answer, Question};
use super::registry::Registry;
use super::server::{Change, Clocks, Disk, MAX_SKEW, SECOND, Server};
use snowflake_ids_core::lease::Policy;
use snowflake_ids_core::state::Identity;
use snowflake_ids_core::{ClockRollback, Layout, SequenceStart};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// When every run begins: some instant of 2026.
pub const BEGIN: i64 = 1_770_000_000_000_000;

/// Where worker ids come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One registry for all.
    Shared,
    /// The same, with hardly more worker ids than servers.
    Tight,
    /// Each server's own.
    Alone,
    /// Numbers that an operator chose.
    Numbers,
    /// The same, with standbys that succeed under their number; their clocks are not stepped.
    Succession,
}

#[derive(Clone, Debug)]
pub enum Event {
    Session { server: usize, incarnation: u64, session: usize },
    Supervise { server: usize, incarnation: u64 },
    Locked { server: usize, incarnation: u64 },
    Question { server: usize, incarnation: u64, number: u64, question: Question },
    Answer { server: usize, incarnation: u64, number: u64, answer: Answer },
    Start { server: usize },
    Stop { server: usize, incarnation: u64 },
    ClockRight { server: usize },
    Fault,
    Operator,
}

struct At(i64, u64, Event);

impl PartialEq for At {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for At {}
impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for At {
    /// The earliest is the largest: a heap gives that first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.0, other.1).cmp(&(self.0, self.1))
    }
}

/// What went on beside ids.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// How many worker ids were taken that were not held before.
    pub leases: u64,
    /// How often a clock was found to be behind what others had issued.
    pub refusals: u64,
}

/// An instant of a run, for people.
pub fn seconds(at: i64) -> String {
    format!("{}.{:03}", (at - BEGIN) / SECOND, (at - BEGIN) % SECOND / 1_000)
}

pub struct World {
    pub now: i64,
    pub chance: Chance,
    pub guards: Guards,
    pub scope: Scope,
    pub layout: Layout,
    pub servers: Vec<Server>,
    pub registries: Vec<Registry>,
    pub ledger: Ledger,
    pub faults: Faults,
    pub healed: bool,
    /// Clocks are stepped back again and again, servers switch, and end in the middle of what they do.
    pub storm: bool,
    /// What removing a rule may cost where it repeats no id.
    pub cost: Cost,
    /// How long a session sleeps between two calls, at most.
    pub pace: i64,
    pub trace: Option<Vec<String>>,
    pub next_number: u32,
    events: BinaryHeap<At>,
    sequence: u64,
}

impl World {
    pub fn new(seed: u64, guards: Guards, scope: Scope, layout: Layout, pace: i64) -> Self {
        Self {
            now: BEGIN,
            chance: Chance::new(seed),
            guards,
            scope,
            layout,
            servers: Vec::new(),
            registries: vec![Registry::default()],
            ledger: Ledger::default(),
            faults: Faults::default(),
            healed: false,
            storm: seed.is_multiple_of(7) && scope != Scope::Succession,
            cost: Cost::default(),
            pace,
            trace: None,
            next_number: 0,
            events: BinaryHeap::new(),
            sequence: 0,
        }
    }

    pub fn note(&mut self, what: impl FnOnce() -> String) {
        let at = seconds(self.now);
        if let Some(trace) = self.trace.as_mut() {
            trace.push(format!("{at:>10} {}", what()));
        }
    }

    /// A new server with a data directory of its own.
    pub fn add_server(&mut self) -> usize {
        let number = self.servers.len();
        let alone = self.scope == Scope::Alone;
        let registry = if alone { self.registries.len() } else { 0 };
        if alone {
            self.registries.push(Registry::default());
        }
        let identity = match self.scope {
            Scope::Shared | Scope::Tight | Scope::Alone => Identity::Leased { datacenter: 0 },
            Scope::Numbers | Scope::Succession => self.number(),
        };
        let scope = if alone { u32::try_from(number).unwrap() + 1 } else { 0 };
        let server = Server {
            number,
            layout: self.layout,
            guards: self.guards,
            scope,
            registry,
            alone,
            system_identifier: self.chance.next(),
            timeline: 1,
            identity,
            policy: self.chance.one_of(&[Policy::Reuse, Policy::Reuse, Policy::Queue, Policy::Disposable]),
            rollback: if self.storm {
                ClockRollback::Switch
            } else {
                self.chance.one_of(&[ClockRollback::Error, ClockRollback::Wait, ClockRollback::Switch])
            },
            start: self.chance.one_of(&[
                SequenceStart::Zero,
                SequenceStart::Zero,
                SequenceStart::Random,
                SequenceStart::Rotate,
            ]),
            replayed: None,
            disk: Disk::default(),
            files: 0,
            clocks: self.clocks(),
            live: None,
            incarnation: 0,
            paused: 0,
            cut_off: 0,
            retired: false,
            last: None,
            highest: 0,
            last_commit: None,
            backups: Vec::new(),
            succeeded: false,
        };
        self.servers.push(server);
        number
    }

    /// A worker id that nobody was ever given.
    pub fn number(&mut self) -> Identity {
        self.next_number += 1;
        Identity::Fixed { datacenter: 0, worker: self.next_number - 1 }
    }

    /// The clocks of another machine, which are a little off.
    pub fn clocks(&mut self) -> Clocks {
        Clocks {
            offset: self.small_offset(),
            gain: self.chance.between(-100, 100),
            boot: self.chance.next(),
            booted: self.now - self.chance.between(0, 1_000 * SECOND),
        }
    }

    /// How far a clock is off that is right.
    pub fn small_offset(&mut self) -> i64 {
        let most = if self.scope == Scope::Tight { MAX_SKEW - SECOND / 5 } else { SECOND };
        self.chance.between(-most, most)
    }

    pub fn after(&mut self, delay: i64, event: Event) {
        self.sequence += 1;
        self.events.push(At(self.now + delay, self.sequence, event));
    }

    pub fn start(&mut self, server: usize) {
        if self.servers[server].retired || self.servers[server].live.is_some() {
            return;
        }
        let sessions = 1 + self.chance.below(3);
        self.servers[server].start(sessions);
        self.note(|| format!("server {server} starts"));
        let incarnation = self.servers[server].incarnation;
        for session in 0..sessions {
            let delay = self.chance.between(0, if self.storm { self.pace / 8 } else { self.pace });
            self.after(delay, Event::Session { server, incarnation, session });
        }
        self.after(self.pace.min(400_000), Event::Supervise { server, incarnation });
        if !self.healed && self.chance.once_in(8) {
            let delay = self.chance.between(1, self.pace);
            self.after(delay, Event::Stop { server, incarnation });
        }
    }

    pub fn crash(&mut self, server: usize, machine: bool) {
        self.servers[server].crash(machine);
        if machine {
            self.servers[server].clocks.boot = self.chance.next();
            self.servers[server].clocks.booted = self.now;
        }
        self.note(|| format!("server {server} ends, machine {machine}"));
        self.start_later(server);
    }

    /// Starts a server again, soon or not; now and then with a clock that was set back meanwhile.
    pub fn start_later(&mut self, server: usize) {
        let slowly = !self.healed && self.chance.once_in(2);
        let delay = self.chance.between(SECOND / 20, if slowly { 30 * SECOND } else { SECOND });
        self.after(delay, Event::Start { server });
        if !self.healed && self.scope != Scope::Succession && self.chance.once_in(10) {
            self.servers[server].clocks.offset -= self.chance.between(1, 30 * SECOND);
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
            self.now = at;
            self.happen(event);
        }
        self.now = end;
    }

    /// Whether something of a server can happen now; puts it off while the server is paused.
    fn is_up(&mut self, server: usize, incarnation: u64, event: &Event) -> bool {
        let (paused, now) = (self.servers[server].paused, self.now);
        let up = self.servers[server].live.is_some() && self.servers[server].incarnation == incarnation;
        if up && paused > now {
            // Not all at once: the pause may be ended early.
            self.after((paused - now).min(SECOND), event.clone());
        }
        up && paused <= now
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Session { server, incarnation, session } => {
                if self.is_up(server, incarnation, &event) {
                    self.session(server, session);
                }
            }
            Event::Supervise { server, incarnation } => {
                if self.is_up(server, incarnation, &event) {
                    self.supervise(server);
                    let delay = self.pace.min(400_000);
                    self.after(delay, Event::Supervise { server, incarnation });
                }
            }
            Event::Locked { server, incarnation } => {
                if self.is_up(server, incarnation, &event) {
                    self.locked(server);
                }
            }
            Event::Question { server, incarnation, number, question } => {
                self.asked(server, incarnation, number, &question);
            }
            Event::Answer { server, incarnation, number, ref answer } => {
                if self.is_up(server, incarnation, &event) {
                    let sent = self.servers[server].live.as_ref().map(|live| live.registrar.sent);
                    if sent == Some(number) && !self.answered(server, answer) {
                        self.after(20_000, event);
                    }
                }
            }
            Event::Start { server } => self.start(server),
            Event::Stop { server, incarnation } => {
                if self.is_up(server, incarnation, &event) && self.lock(server, Change::Stop, None) {
                    self.faults.count(Fault::Stop);
                }
            }
            Event::ClockRight { server } => {
                self.servers[server].clocks.offset = self.small_offset();
                self.note(|| format!("server {server}'s clock is set right"));
            }
            Event::Fault => self.fault(),
            Event::Operator => self.operate(),
        }
    }

    /// A server's state, for people.
    pub fn describe(&self, server: usize) -> String {
        let this = &self.servers[server];
        let live = this.live.as_ref().map(|live| {
            let (next, limit) = (live.generator.next() >> 6, live.generator.limit() >> 6);
            let (term, trouble, registrar) = (live.term, &live.trouble, &live.registrar);
            let locked = live.locked.as_ref().map(|locked| &locked.change);
            format!("{term:?} next {next} limit {limit} {trouble:?} {:?} needed {} switch {} lock {locked:?} lease {:?}", registrar.doing, registrar.needed, registrar.switch, live.lease)
        });
        let now = self.layout.tick(this.reading(self.now).wall);
        format!(
            "{server}: {:?} {:?} {:?} timeline {} now {now:?} last {:?} {live:?}",
            this.identity, this.policy, this.rollback, this.timeline, this.last
        )
    }
}
