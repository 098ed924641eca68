//! What goes wrong, and what operators do about it.

use super::registry::Registry;
use super::server::{Change, Disk, EXPIRY, File, MAX_DRIFT, MAX_JUMP, MAX_SKEW, SECOND, Server};
use super::world::{Event, Scope, World};
use snowflake_ids_core::lease::Policy;
use snowflake_ids_core::state::{Identity, StateError};
use snowflake_ids_core::{ClockRollback, UnixMicros};

const YEAR: i64 = 365 * 86_400 * SECOND;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Kill,
    Stop,
    Reboot,
    Pause,
    StepBack,
    StepForward,
    Partition,
    LostFile,
    PutBack,
    Failover,
    Copy,
    Takeover,
    Release,
    RegistryClock,
    Settings,
}

pub const FAULTS: [Fault; 15] = [
    Fault::Kill,
    Fault::Stop,
    Fault::Reboot,
    Fault::Pause,
    Fault::StepBack,
    Fault::StepForward,
    Fault::Partition,
    Fault::LostFile,
    Fault::PutBack,
    Fault::Failover,
    Fault::Copy,
    Fault::Takeover,
    Fault::Release,
    Fault::RegistryClock,
    Fault::Settings,
];

/// How often each kind has happened.
#[derive(Clone, Default)]
pub struct Faults(pub [u64; FAULTS.len()]);

impl Faults {
    pub fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }

    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}

/// What a standby has of its primary.
#[derive(Clone)]
pub struct Backup {
    pub at: i64,
    pub disk: Disk,
    pub registry: Registry,
    pub last_commit: Option<UnixMicros>,
}

impl World {
    /// One fault, somewhere, and the next one later.
    pub fn fault(&mut self) {
        if self.healed {
            return;
        }
        let delay = self.chance.between(SECOND / 10, 25 * SECOND);
        self.after(delay, Event::Fault);
        let server = self.chance.below(self.servers.len());
        self.back_up(server);
        let stormy = self.storm && self.chance.once_in(2);
        let stormy_fault = self.chance.one_of(&[Fault::StepBack, Fault::StepForward]);
        let fault = if stormy { stormy_fault } else { self.chance.one_of(&FAULTS) };
        let steps = matches!(fault, Fault::StepBack | Fault::StepForward);
        if self.servers[server].retired || (self.scope == Scope::Succession && steps) {
            return;
        }
        if self.cause(fault, server) {
            self.faults.count(fault);
            self.note(|| format!("{fault:?} at server {server}"));
        }
    }

    /// Has a fault happen; whether it could.
    fn cause(&mut self, fault: Fault, server: usize) -> bool {
        let now = self.now;
        match fault {
            Fault::Kill | Fault::Reboot => {
                let runs = self.servers[server].live.is_some();
                if runs {
                    self.crash(server, fault == Fault::Reboot);
                }
                runs
            }
            Fault::Stop => self.lock(server, Change::Stop, None),
            Fault::Pause => {
                let end = now + self.chance.between(SECOND, 2 * EXPIRY);
                let sessions = self.servers[server].live.as_ref().map_or(0, |live| live.sessions.len());
                if sessions > 0 && self.chance.once_in(2) {
                    let session = self.chance.below(sessions);
                    self.servers[server].live.as_mut().expect("it runs").sessions[session].paused = end;
                } else {
                    self.servers[server].paused = end;
                }
                true
            }
            Fault::StepBack | Fault::StepForward => {
                let most = self.chance.one_of(&[
                    5 * SECOND,
                    MAX_DRIFT + 5 * SECOND,
                    50 * SECOND,
                    3_600 * SECOND,
                    10 * YEAR,
                ]);
                let step = self.chance.between(1, most);
                let clocks = &mut self.servers[server].clocks;
                clocks.offset += if fault == Fault::StepBack { -step.min(2 * YEAR) } else { step };
                if !self.chance.once_in(3) {
                    let delay = self.chance.between(SECOND, 90 * SECOND);
                    self.after(delay, Event::ClockRight { server });
                }
                true
            }
            Fault::Partition => {
                self.servers[server].cut_off = now + self.chance.between(SECOND, 3 * EXPIRY);
                true
            }
            Fault::LostFile => {
                let there = self.servers[server].has_issued();
                if there {
                    if self.servers[server].live.is_some() {
                        self.crash(server, false);
                    }
                    let disk = &mut self.servers[server].disk;
                    (disk.file, disk.synced) = (None, None);
                }
                there
            }
            Fault::PutBack => self.put_back(server),
            Fault::Failover => self.fail_over(server),
            Fault::Copy | Fault::Takeover => self.copy(server, fault == Fault::Takeover),
            Fault::Release => self.release(server),
            Fault::RegistryClock => {
                let most = self.chance.one_of(&[MAX_SKEW / 2, 10 * SECOND]);
                let step = self.chance.between(-most, most);
                let registry = self.servers[server].registry;
                self.registries[registry].offset = step;
                true
            }
            Fault::Settings => {
                let policy = self.chance.one_of(&[Policy::Reuse, Policy::Queue, Policy::Disposable]);
                let rollback =
                    self.chance.one_of(&[ClockRollback::Error, ClockRollback::Wait, ClockRollback::Switch]);
                let this = &mut self.servers[server];
                (this.policy, this.rollback) = (policy, rollback);
                true
            }
        }
    }

    fn back_up(&mut self, server: usize) {
        let this = &self.servers[server];
        let backup = Backup {
            at: self.now,
            disk: this.disk.clone(),
            registry: self.registries[this.registry].clone(),
            last_commit: this.last_commit,
        };
        let backups = &mut self.servers[server].backups;
        backups.push(backup);
        if backups.len() > 3 {
            backups.remove(0);
        }
    }

    /// The file is put back from a backup, into the same directory.
    fn put_back(&mut self, server: usize) -> bool {
        let this = &self.servers[server];
        if !matches!(self.scope, Scope::Numbers | Scope::Shared) || this.backups.is_empty() {
            return false;
        }
        let backup = this.backups[self.chance.below(this.backups.len())].disk.clone();
        let this = &self.servers[server];
        if !backup.file.as_ref().is_some_and(|file| this.knows_itself(file)) {
            return false;
        }
        if this.live.is_some() {
            self.crash(server, false);
        }
        let this = &mut self.servers[server];
        this.files += 1;
        let file = backup.file.map(|file| File { inode: this.files, ..file });
        (this.disk.file, this.disk.synced) = (file.clone(), file);
        true
    }

    /// A standby is promoted: its file is of an earlier moment than what it has replayed, and its primary goes on.
    fn fail_over(&mut self, server: usize) -> bool {
        let this = &self.servers[server];
        let refuses = matches!(self.scope, Scope::Numbers | Scope::Tight) || !this.has_issued();
        if this.succeeded || refuses || this.backups.is_empty() || this.timeline > 6 {
            return false;
        }
        let count = this.backups.len();
        let base = self.chance.below(count);
        let replayed = base + self.chance.below(count - base);
        let (base, replayed) = (this.backups[base].clone(), this.backups[replayed].clone());
        let successor = self.offspring(server, base.disk, replayed.registry);
        self.servers[successor].timeline += 1;
        self.servers[successor].replayed = replayed.last_commit;
        self.servers[successor].clocks.offset -= self.chance.between(0, MAX_DRIFT - SECOND);
        self.servers[server].succeeded = true;
        if self.scope == Scope::Succession {
            // What it issues from now on, and what was not replayed, is nobody's but its own.
            let own = 1_000 + u32::try_from(server).unwrap();
            let scope = self.servers[server].scope;
            self.ledger.split(server, replayed.at, scope, own);
            self.servers[server].scope = own;
        }
        true
    }

    /// The data directory is copied, and the copy started; the original goes on, or is gone for good.
    fn copy(&mut self, server: usize, takeover: bool) -> bool {
        let this = &self.servers[server];
        let refuses = matches!(self.scope, Scope::Alone | Scope::Tight) || !this.has_issued();
        if refuses || this.succeeded || (takeover && !self.is_near_its_clock(server)) {
            return false;
        }
        if takeover {
            self.servers[server].retired = true;
            self.servers[server].crash(false);
        }
        let (disk, registry) =
            (self.servers[server].disk.clone(), self.registries[self.servers[server].registry].clone());
        let copy = self.offspring(server, disk, registry);
        self.servers[copy].scope = self.servers[server].scope;
        self.servers[copy].last_commit = self.servers[server].last_commit;
        self.servers[copy].highest = self.servers[server].highest;
        true
    }

    fn is_near_its_clock(&self, server: usize) -> bool {
        let this = &self.servers[server];
        let tick = this.layout.position_at(UnixMicros(self.now + MAX_DRIFT));
        this.clocks.offset.abs() <= MAX_SKEW && this.highest <= tick
    }

    /// Another server out of one's data directory, on another machine.
    fn offspring(&mut self, server: usize, disk: Disk, registry: Registry) -> usize {
        let new = self.add_server();
        let parent = &self.servers[server];
        let (system_identifier, timeline, identity) =
            (parent.system_identifier, parent.timeline, parent.identity);
        let (scope, policy) = (parent.scope, parent.policy);
        let child = &mut self.servers[new];
        (child.system_identifier, child.timeline, child.identity) = (system_identifier, timeline, identity);
        (child.scope, child.policy, child.disk) = (scope, policy, disk);
        let alone = child.alone;
        let own = child.registry;
        if alone {
            self.registries[own] = registry;
        }
        self.start(new);
        new
    }

    /// An operator takes a worker id away, or has its holder give it up.
    fn release(&mut self, server: usize) -> bool {
        let this = &self.servers[server];
        let Some(lease) = this.live.as_ref().and_then(|live| live.lease.clone()) else { return false };
        if !matches!(self.scope, Scope::Shared | Scope::Tight) {
            return false;
        }
        let registry = this.registry;
        self.registries[registry].forbid(lease.worker);
        true
    }

    /// What operators do where a server says that it needs them, and when all faults are over.
    pub fn operate(&mut self) {
        let delay = if self.healed { 5 * SECOND } else { 40 * SECOND };
        self.after(delay, Event::Operator);
        for server in 0..self.servers.len() {
            let trouble = self.servers[server].live.as_ref().and_then(|live| live.trouble.clone());
            match trouble {
                Some(StateError::Copy { .. }) => self.part(server),
                Some(_) => self.reset(server),
                None if self.healed => self.help(server),
                None => {}
            }
        }
    }

    /// Which of two with one number goes on with it.
    fn part(&mut self, server: usize) {
        let system_identifier = self.servers[server].system_identifier;
        let gone = |other: &Server| {
            other.number == server || other.retired || other.system_identifier != system_identifier
        };
        if self.servers.iter().all(gone) && self.is_near_its_clock(server) {
            self.lock(server, Change::Adopt, None);
        } else {
            self.renumber(server);
        }
    }

    fn renumber(&mut self, server: usize) {
        self.servers[server].identity = self.number();
        // Of the new number nothing was issued yet.
        self.servers[server].highest = 0;
        self.crash(server, false);
    }

    /// A new file. Where ids were ahead of the clock an operator has to say how far.
    fn reset(&mut self, server: usize) {
        let this = &self.servers[server];
        let fixed = matches!(this.identity, Identity::Fixed { .. });
        let default = this.layout.position_after(UnixMicros(this.reading(self.now).wall.0 + MAX_DRIFT));
        let bits = this.layout.widths().sequence;
        let above = (fixed && this.highest >= default).then_some(((this.highest >> bits) + 1) << bits);
        self.lock(server, Change::Reset { above }, None);
    }

    /// The clocks are right: what is not in service by itself is helped as the docs say.
    fn help(&mut self, server: usize) {
        let (now, this) = (self.now, &self.servers[server]);
        let Some(live) = this.live.as_ref() else { return };
        if this.is_ahead(now) {
            self.lock(server, Change::Accept, None);
        } else if live.opened && this.last.is_none_or(|(at, _)| now - at > 30 * SECOND) {
            self.unstick(server);
        }
    }

    /// A server that does not come back by itself now that its clock is right: its ids were far ahead, or what it was
    /// made to begin above, or the expiries of the worker ids it had.
    fn unstick(&mut self, server: usize) {
        let (now, this) = (self.now, &self.servers[server]);
        let Some(live) = this.live.as_ref() else { return };
        // Of a term that has ended nothing is in the way any more.
        let next = live.term.map_or(0, |_| live.generator.next());
        let ahead = this.layout.instant_of(next).0 - this.reading(now).wall.0;
        let fixed = matches!(this.identity, Identity::Fixed { .. });
        let patient = this.rollback != ClockRollback::Switch || this.policy != Policy::Reuse;
        if patient {
            let this = &mut self.servers[server];
            (this.rollback, this.policy) = (ClockRollback::Switch, Policy::Reuse);
        } else if fixed && this.highest > 0 && ahead > MAX_DRIFT {
            self.renumber(server);
        } else if self.chance.once_in(if ahead > MAX_DRIFT { 2 } else { 12 }) {
            self.reset(server);
        } else if this.alone && live.lease.is_none() && self.chance.once_in(2) {
            let expiry = UnixMicros(this.believed(now).0 + MAX_DRIFT + MAX_SKEW);
            // Who says that a holder is down also says that its ids are not ahead of the clock; or by so much that it
            // does not matter here.
            let ahead =
                this.layout.position_at(expiry)..this.layout.position_at(UnixMicros(now + 12 * EXPIRY));
            if !ahead.contains(&this.highest) {
                self.registries[this.registry].free_others(None, expiry);
            }
        }
    }

    /// Ends all faults: clocks are right, everybody is up and connected.
    pub fn heal(&mut self) {
        self.healed = true;
        for server in 0..self.servers.len() {
            let offset = self.small_offset();
            let this = &mut self.servers[server];
            (this.paused, this.cut_off, this.clocks.offset, this.clocks.gain) = (0, 0, offset, 0);
            if this.succeeded && self.scope == Scope::Succession {
                (this.retired, this.live) = (true, None);
                this.incarnation += 1;
            }
            for session in this.live.iter_mut().flat_map(|live| &mut live.sessions) {
                session.paused = 0;
            }
            self.start(server);
        }
        for registry in &mut self.registries {
            registry.offset = 0;
        }
        self.after(SECOND, Event::Operator);
    }

    /// The servers that do not issue ids, or none near their clock.
    pub fn silent(&self) -> Vec<usize> {
        let serves = |server: &&Server| {
            server.last.is_some_and(|(at, tick)| {
                let ahead = self.layout.instant(tick).0 - at;
                // Behind by as long as a session needs for what it took at once.
                let near = -100 * self.pace..MAX_DRIFT + 5 * SECOND;
                self.now - at <= 4 * self.pace.max(5 * SECOND) && near.contains(&ahead)
            })
        };
        self.servers
            .iter()
            .filter(|server| !server.retired && !serves(server))
            .map(|server| server.number)
            .collect()
    }
}

const _: () = assert!(MAX_JUMP > MAX_DRIFT);
