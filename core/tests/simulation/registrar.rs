//! The conversation with the registry: one question or statement at a time, any of which may be lost.

use super::guards::Guard;
use super::registry::{Outcome, Statement};
use super::server::{Change, EXPIRY, MAX_DRIFT, MAX_SKEW, SECOND, Server};
use super::world::{Event, Scope, World};
use snowflake_ids_core::lease::{Choice, Lease, Preferred, Row, Search, Skew, check_clock};
use snowflake_ids_core::state::Identity;
use snowflake_ids_core::{Field, UnixMicros};

/// What the lease worker of a server is about.
#[derive(Default)]
pub struct Registrar {
    pub doing: Doing,
    /// Numbers what it sends, so that a late answer is not taken for another one's.
    pub sent: u64,
    /// Not before this.
    pub retry: i64,
    /// When it last renewed since the start.
    pub renewed: Option<i64>,
    /// A lease is missing or at its end.
    pub needed: bool,
    /// Another worker id is wanted, because the clock is behind the ids of this one.
    pub switch: bool,
}

#[derive(Clone, Debug, Default)]
pub enum Doing {
    #[default]
    Nothing,
    /// The claim is being written.
    Claiming { renew: bool },
    /// An answer is awaited until this instant.
    Asking { until: i64, about: About },
    /// What it said is being written.
    Writing { old: Option<Lease> },
}

#[derive(Clone, Debug)]
pub enum About {
    Rows,
    Take { choice: Choice },
    Renew { lease: Lease },
}

/// What travels to the registry.
#[derive(Clone, Debug)]
pub enum Question {
    Rows { own: Option<i64> },
    Run(Statement),
}

/// And back.
#[derive(Clone, Debug)]
pub enum Answer {
    Rows { rows: Vec<Row>, latest: Option<UnixMicros>, now: UnixMicros },
    Ran(Outcome),
}

impl World {
    pub fn supervise(&mut self, server: usize) {
        let now = self.now;
        let this = &self.servers[server];
        let Some(live) = this.live.as_ref().filter(|live| !live.stopping) else { return };
        let soon = this.layout.position_at(UnixMicros(this.believed(now).0 + SECOND));
        if live.term.is_some() && live.generator.limit() <= soon {
            self.lock(server, Change::Reserve, None);
        }
        if matches!(self.servers[server].identity, Identity::Leased { .. }) {
            self.registrar(server);
        }
    }

    pub fn registrar(&mut self, server: usize) {
        let now = self.now;
        let random = self.chance.next().cast_signed();
        let pause = self.chance.between(SECOND, 3 * SECOND);
        let Some(live) = self.servers[server].live.as_mut() else { return };
        let registrar = &mut live.registrar;
        match registrar.doing {
            Doing::Asking { until, .. } if now > until => {
                registrar.doing = Doing::Nothing;
                registrar.retry = now + pause;
            }
            Doing::Nothing if now >= registrar.retry => {
                let due = registrar.renewed.is_none_or(|renewed| now >= renewed + EXPIRY / 4);
                let (acquire, renew) = (registrar.needed || registrar.switch, live.lease.is_some() && due);
                if !acquire && !renew {
                    return;
                }
                if !self.guards.keep(Guard::ClaimFirst) {
                    live.claim = Some(random);
                    return self.ask(server, !acquire);
                }
                if self.lock(server, Change::Claim(random), None) {
                    let live = self.servers[server].live.as_mut().expect("it runs");
                    live.registrar.doing = Doing::Claiming { renew: !acquire };
                }
            }
            _ => {}
        }
    }

    /// Asks the registry for its rows, or to renew.
    pub fn ask(&mut self, server: usize, renew: bool) {
        let last = self.told(server);
        let Some(live) = self.servers[server].live.as_mut() else { return };
        let until = self.now + 5 * SECOND;
        let claim = live.claim.unwrap_or(0);
        let (about, question) = match live.lease.clone().filter(|_| renew) {
            Some(lease) => {
                let statement = Statement::Renew { worker: lease.worker, token: lease.token, claim, last };
                (About::Renew { lease }, Question::Run(statement))
            }
            None => (About::Rows, Question::Rows { own: live.lease.as_ref().map(|lease| lease.token) }),
        };
        live.registrar.doing = Doing::Asking { until, about };
        self.send(server, question);
    }

    /// The tick that a server tells the registry of.
    pub fn told(&self, server: usize) -> UnixMicros {
        let this = &self.servers[server];
        let next = this.live.as_ref().map_or(0, |live| live.generator.next());
        let last = self.layout.instant_of(next);
        let bound = UnixMicros(this.believed(self.now).0 + MAX_DRIFT);
        if self.guards.keep(Guard::PeersBounded) { last.min(bound) } else { last }
    }

    pub fn is_lost(&mut self, server: usize) -> bool {
        self.servers[server].cut_off > self.now
            || (!self.healed && self.chance.once_in(if self.scope == Scope::Tight { 6 } else { 25 }))
    }

    pub fn send(&mut self, server: usize, question: Question) {
        let Some(live) = self.servers[server].live.as_mut() else { return };
        live.registrar.sent += 1;
        let (number, incarnation) = (live.registrar.sent, self.servers[server].incarnation);
        if self.is_lost(server) {
            return;
        }
        // Now and then one that is on its way for longer than its sender waits.
        let slow = !self.healed && self.chance.once_in(40);
        let delay = self.chance.between(100, if slow { 20 * SECOND } else { 50_000 });
        self.after(delay, Event::Question { server, incarnation, number, question });
    }

    /// The registry runs a statement, whatever has become of who sent it.
    pub fn asked(&mut self, server: usize, incarnation: u64, number: u64, question: &Question) {
        let this = &self.servers[server];
        // A registry of its own ends with the server.
        if this.alone && (this.live.is_none() || this.incarnation != incarnation || this.paused > self.now) {
            return;
        }
        let believed = this.believed(self.now);
        let registry = &mut self.registries[this.registry];
        let now = if this.alone { believed } else { UnixMicros(self.now + registry.offset) };
        let answer = match question {
            Question::Rows { own } => {
                Answer::Rows { rows: registry.read(), latest: registry.latest(*own), now }
            }
            Question::Run(statement) => {
                let outcome = registry.run(statement, now, EXPIRY, self.guards);
                let anew =
                    matches!(statement, Statement::Take { choice: Choice::New { .. } | Choice::Free(_), .. });
                self.cost.leases += u64::from(outcome.changed && anew);
                Answer::Ran(outcome)
            }
        };
        if !self.is_lost(server) {
            let delay = self.chance.between(100, 50_000);
            self.after(delay, Event::Answer { server, incarnation, number, answer });
        }
    }

    /// Whether an answer could be dealt with.
    pub fn answered(&mut self, server: usize, answer: &Answer) -> bool {
        let Some(live) = self.servers[server].live.as_ref() else { return true };
        let Doing::Asking { about, .. } = live.registrar.doing.clone() else { return true };
        let claim = live.claim;
        match (about, answer) {
            (About::Rows, Answer::Rows { rows, latest, now }) => {
                self.choose(server, rows, *latest, *now);
                true
            }
            (About::Take { choice }, Answer::Ran(outcome)) => {
                if let Some(row) = outcome.row.filter(|_| outcome.changed) {
                    return self.take_up(server, choice, row);
                }
                self.retry(server, SECOND);
                true
            }
            (About::Renew { lease }, Answer::Ran(outcome)) => {
                let ours =
                    outcome.row.filter(|row| outcome.changed || (row.token.is_some() && row.token == claim));
                let change = match (ours, claim) {
                    (Some(row), Some(claim)) => {
                        Change::Renewed { token: lease.token, claim, expiry: row.expiry }
                    }
                    _ => Change::GiveUp,
                };
                self.write_answer(server, change, None)
            }
            _ => true,
        }
    }

    pub fn write_answer(&mut self, server: usize, change: Change, old: Option<Lease>) -> bool {
        let begun = self.lock(server, change, None);
        let Some(live) = self.servers[server].live.as_mut() else { return true };
        if begun {
            live.registrar.doing = Doing::Writing { old };
        } else if live.locked.is_none() {
            live.registrar.doing = Doing::Nothing;
            return true;
        }
        begun
    }

    pub fn retry(&mut self, server: usize, most: i64) {
        let pause = self.chance.between(1, most);
        let Some(live) = self.servers[server].live.as_mut() else { return };
        live.registrar.doing = Doing::Nothing;
        live.registrar.retry = self.now + pause;
    }

    /// Chooses a worker id among the registry's rows, and asks for it.
    pub fn choose(&mut self, server: usize, rows: &[Row], latest: Option<UnixMicros>, now: UnixMicros) {
        let this = &self.servers[server];
        let Some(live) = this.live.as_ref() else { return };
        let believed = this.believed(self.now);
        let Some(state) = this.disk.file.as_ref().and_then(|file| file.state().ok()) else {
            return self.retry(server, SECOND);
        };
        if let Err(skew) = check_clock(believed, now, latest, MAX_SKEW.cast_unsigned()) {
            self.cost.refusals += u64::from(matches!(skew, Skew::Peers { .. }));
            return self.retry(server, 3 * SECOND);
        }
        let lease = live.lease.clone();
        let (switch, claim) = (live.registrar.switch, live.claim);
        let capacity = u32::try_from(self.layout.max(Field::Worker) + 1).unwrap();
        let preferred = self.preferred(this, capacity);
        let mut except = state.blocked_workers(&self.layout, 0, believed);
        if let Some(lease) = lease.as_ref().filter(|_| !switch) {
            except.retain(|worker| *worker != lease.worker);
        }
        let own = [lease.as_ref().map(|lease| lease.token), claim];
        let search = Search { policy: this.policy, own, except: &except, preferred, capacity, now };
        let Some(choice) = search.choose(rows) else { return self.retry(server, SECOND / 2) };
        let release = lease
            .filter(|lease| lease.worker != choice.worker() && !self.guards.keep(Guard::ReleaseLast))
            .map(|old| (old.worker, old.token, self.given_back(&state, &old)));
        let last = self.told(server);
        let until = self.now + 5 * SECOND;
        let live = self.servers[server].live.as_mut().expect("it runs");
        live.registrar.doing = Doing::Asking { until, about: About::Take { choice } };
        let claim = claim.unwrap_or(0);
        self.send(server, Question::Run(Statement::Take { choice, claim, last, release }));
    }

    /// The worker ids to begin with.
    pub fn preferred(&self, server: &Server, capacity: u32) -> Preferred {
        let home = server.number.to_string();
        let preferred = Preferred::alone(server.system_identifier, server.timeline, &home, capacity);
        Preferred { only: server.alone && self.guards.keep(Guard::Shares), ..preferred }
    }

    /// The row is ours: its terms go into the file.
    pub fn take_up(&mut self, server: usize, choice: Choice, row: Row) -> bool {
        let Some(live) = self.servers[server].live.as_ref() else { return true };
        let lease = live.lease.clone();
        let keep = |guard| self.guards.keep(guard);
        let start = match choice {
            Choice::Free(seen) if keep(Guard::StartAtExpiry) => self.layout.position_at(seen.expiry),
            Choice::New { .. } | Choice::Free(_) => 0,
            Choice::Own(seen) => match &lease {
                Some(lease) if Some(lease.token) == seen.token => lease.start,
                _ if keep(Guard::ClaimStart) => self.layout.position_after(seen.leased),
                _ => 0,
            },
        };
        let token = row.token.unwrap_or(0);
        let ours =
            Lease { datacenter: 0, worker: row.worker, token, start, expiry: row.expiry, origin: None };
        self.write_answer(server, Change::TakeUp(ours), lease)
    }
}
