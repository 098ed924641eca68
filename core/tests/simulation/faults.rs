//! What goes wrong, and what operators do about it.

use super::disk::{Disk, File};
use super::registry::Dump;
use super::server::{EXPIRY, MAX_DRIFT, MAX_JUMP, MAX_SKEW, SECOND, Server};
use super::world::{Event, Scope, World};
use snowflake_ids_core::lease::Policy;
use snowflake_ids_core::state::StateError;
use snowflake_ids_core::{ClockRollback, Position, UnixMicros};
use std::rc::Rc;

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
    pub registry: Dump,
    pub last_commit: Option<UnixMicros>,
}

impl World {
    /// One fault, somewhere, and the next one later.
    pub fn fault(&mut self) {
        if self.is_healed() {
            return;
        }
        let delay = self.chance.between(SECOND / 10, 25 * SECOND);
        self.after(delay, Event::Fault);
        let server = self.chance.below(self.servers.len());
        self.back_up(server);
        let stormy = self.storm && self.chance.once_in(2);
        let stormy_fault = self.chance.one_of(&[Fault::StepBack, Fault::StepForward]);
        let fault = if stormy { stormy_fault } else { self.chance.one_of(&FAULTS) };
        if !self.servers[server].retired.get() && self.cause(fault, server) {
            self.faults.count(fault);
            self.note(|| format!("{fault:?} at server {server}"));
        }
    }

    /// Has a fault happen; whether it could.
    fn cause(&mut self, fault: Fault, server: usize) -> bool {
        let now = self.now();
        let this = Rc::clone(&self.servers[server]);
        match fault {
            Fault::Kill | Fault::Reboot => {
                let runs = this.is_running();
                if runs {
                    self.crash(server, fault == Fault::Reboot);
                }
                runs
            }
            // It counts itself.
            Fault::Stop => {
                self.stop(server);
                false
            }
            Fault::Pause => {
                let end = now + self.chance.between(SECOND, 2 * EXPIRY);
                match this.live().filter(|_| self.chance.once_in(2)) {
                    Some(live) => live.paused[self.chance.below(live.paused.len())].set(end),
                    None => this.paused.set(end),
                }
                true
            }
            Fault::StepBack | Fault::StepForward => self.step(fault == Fault::StepBack, server),
            Fault::Partition => {
                this.cut_off.set(now + self.chance.between(SECOND, 3 * EXPIRY));
                true
            }
            Fault::LostFile => {
                let there = this.has_issued();
                if there {
                    if this.is_running() {
                        self.crash(server, false);
                    }
                    this.disk.borrow_mut().put(None);
                }
                there
            }
            Fault::PutBack => self.put_back(server),
            Fault::Failover => self.fail_over(server),
            Fault::Copy | Fault::Takeover => self.copy(server, fault == Fault::Takeover),
            Fault::Release => self.release(server),
            Fault::RegistryClock => {
                let most = self.chance.one_of(&[MAX_SKEW / 2, 10 * SECOND]);
                this.registry.offset.set(self.chance.between(-most, most));
                true
            }
            Fault::Settings => {
                let rollbacks = [ClockRollback::Error, ClockRollback::Wait, ClockRollback::Switch];
                this.policy.set(self.policy());
                this.rollback.set(self.chance.one_of(&rollbacks));
                true
            }
        }
    }

    /// The wall clock is stepped. Where a standby may succeed under the same number, back by less than ids may be ahead of
    /// it, and not again before it is right: what the standby can't know of is said in the docs.
    fn step(&mut self, back: bool, server: usize) -> bool {
        let succession = self.scope == Scope::Succession;
        let clocks = &self.servers[server].clocks;
        if succession && clocks.offset.get().abs() > SECOND {
            return false;
        }
        let most = if succession {
            MAX_DRIFT / 4
        } else {
            self.chance.one_of(&[5 * SECOND, MAX_DRIFT + 5 * SECOND, 50 * SECOND, 3_600 * SECOND, 10 * YEAR])
        };
        let step = self.chance.between(1, most);
        clocks.step(if back { -step.min(2 * YEAR) } else { step });
        if !self.chance.once_in(3) {
            let delay = self.chance.between(SECOND, 90 * SECOND);
            self.after(delay, Event::ClockRight { server });
        }
        true
    }

    fn back_up(&mut self, server: usize) {
        let this = &self.servers[server];
        let backup = Backup {
            at: self.now(),
            disk: this.disk.borrow().clone(),
            registry: this.registry.dump(),
            last_commit: this.last_commit.get(),
        };
        let mut backups = this.backups.borrow_mut();
        backups.push(backup);
        if backups.len() > 3 {
            backups.remove(0);
        }
    }

    /// The file is put back from a backup, into the same directory.
    fn put_back(&mut self, server: usize) -> bool {
        let this = Rc::clone(&self.servers[server]);
        let count = this.backups.borrow().len();
        if !matches!(self.scope, Scope::Numbers | Scope::Shared) || count == 0 {
            return false;
        }
        let file = this.backups.borrow()[self.chance.below(count)].disk.file.clone();
        if !file.as_ref().is_some_and(|file| this.knows_itself(file)) {
            return false;
        }
        if this.is_running() {
            self.crash(server, false);
        }
        this.files.set(this.files.get() + 1);
        let file = file.map(|file| File { inode: this.files.get(), synced: true, ..file });
        this.disk.borrow_mut().put(file);
        true
    }

    /// A standby is promoted: its file is of an earlier moment than what it has replayed, and its primary goes on.
    fn fail_over(&mut self, server: usize) -> bool {
        let this = Rc::clone(&self.servers[server]);
        let refuses = matches!(self.scope, Scope::Numbers | Scope::Tight) || !this.has_issued();
        let count = this.backups.borrow().len();
        if this.succeeded.get() || refuses || count == 0 || this.timeline.get() > 6 {
            return false;
        }
        let base = self.chance.below(count);
        let replayed = base + self.chance.below(count - base);
        let (base, replayed) = (this.backups.borrow()[base].clone(), this.backups.borrow()[replayed].clone());
        let successor = self.offspring(server, base.disk, replayed.registry);
        successor.timeline.set(this.timeline.get() + 1);
        successor.replayed.set(replayed.last_commit);
        successor.clocks.step(-self.chance.between(0, MAX_DRIFT - SECOND));
        self.start(successor.number);
        this.succeeded.set(true);
        if self.scope == Scope::Succession {
            // What it issues from now on, and what was not replayed, is its own alone.
            let own = 1_000 + u32::try_from(server).unwrap();
            self.ledger.borrow_mut().split(server, replayed.at, this.scope.get(), own);
            this.scope.set(own);
        }
        true
    }

    /// The data directory is copied, and the copy started; the original goes on, or is gone for good.
    fn copy(&mut self, server: usize, takeover: bool) -> bool {
        let this = Rc::clone(&self.servers[server]);
        let refuses = matches!(self.scope, Scope::Alone | Scope::Tight) || !this.has_issued();
        if refuses || this.succeeded.get() || (takeover && !self.is_near_its_clock(server)) {
            return false;
        }
        if takeover {
            this.retired.set(true);
            self.kill(server, false);
        }
        let (disk, registry) = (this.disk.borrow().clone(), this.registry.dump());
        let copy = self.offspring(server, disk, registry);
        copy.last_commit.set(this.last_commit.get());
        copy.highest.set(this.highest.get());
        self.start(copy.number);
        true
    }

    fn is_near_its_clock(&self, server: usize) -> bool {
        let this = &self.servers[server];
        let tick = this.layout.position_at(UnixMicros(self.now() + MAX_DRIFT));
        this.clocks.offset.get().abs() <= MAX_SKEW && this.highest.get() <= tick
    }

    /// Another server out of one's data directory, on another machine.
    fn offspring(&mut self, server: usize, disk: Disk, registry: Dump) -> Rc<Server> {
        let new = self.add_server();
        let (parent, child) = (&self.servers[server], Rc::clone(&self.servers[new]));
        child.system_identifier.set(parent.system_identifier.get());
        child.timeline.set(parent.timeline.get());
        child.identity.set(parent.identity.get());
        child.scope.set(parent.scope.get());
        child.policy.set(parent.policy.get());
        let synced = |file: File| File { synced: true, inode: file.inode + 1_000_000, ..file };
        let file = disk.file.map(synced);
        *child.disk.borrow_mut() = Disk { named: file.clone(), file, new: None, ..disk };
        if child.alone {
            child.registry.restore(registry);
        }
        child
    }

    /// An operator takes a worker id away, or has its holder give it up.
    fn release(&mut self, server: usize) -> bool {
        let this = &self.servers[server];
        let state = this.disk.borrow().file.as_ref().and_then(|file| file.state().ok());
        let Some(lease) = state.and_then(|state| state.lease).filter(|_| this.is_running()) else {
            return false;
        };
        if !matches!(self.scope, Scope::Shared | Scope::Tight) {
            return false;
        }
        this.registry.forbid(lease.worker);
        true
    }

    /// What operators do where a server says that it needs them, and when all faults are over.
    pub fn operate(&mut self) {
        let delay = if self.is_healed() { 5 * SECOND } else { 40 * SECOND };
        self.after(delay, Event::Operator);
        for server in 0..self.servers.len() {
            let trouble = self.servers[server].live().and_then(|live| live.trouble.borrow().clone());
            match trouble {
                Some(StateError::Copy { .. }) => self.part(server),
                Some(_) => self.reset(server),
                None if self.is_healed() => self.help(server),
                None => {}
            }
        }
    }

    /// Which of two with one number goes on with it.
    fn part(&mut self, server: usize) {
        let system_identifier = self.servers[server].system_identifier.get();
        let gone = |other: &Rc<Server>| {
            other.number == server
                || other.retired.get()
                || other.system_identifier.get() != system_identifier
        };
        if self.servers.iter().all(gone) && self.is_near_its_clock(server) {
            self.operate_on(server, |host| _ = host.note(host.issuer().adopt()));
        } else {
            self.renumber(server);
        }
    }

    fn renumber(&mut self, server: usize) {
        let number = self.number();
        self.servers[server].identity.set(number);
        // Under the new number nothing was issued yet.
        self.servers[server].highest.set(Position(0));
        self.crash(server, false);
    }

    /// A new file. Where ids were ahead of the clock an operator has to say how far.
    fn reset(&mut self, server: usize) {
        let this = &self.servers[server];
        let (layout, highest) = (this.layout, this.highest.get());
        let default = layout.position_after(UnixMicros(this.clocks.wall(self.now()).0 + MAX_DRIFT));
        let above = (this.is_fixed() && highest >= default).then(|| layout.instant_of(highest));
        self.operate_on(server, move |host| _ = host.note(host.issuer().reset(above)));
    }

    /// A new file, by the word of an operator that no id of a later time was kept; or one that is so much later that it
    /// does not matter here. Sessions must be gone that may have some.
    fn begin_anew(&mut self, server: usize) {
        let this = Rc::clone(&self.servers[server]);
        let (layout, now) = (this.layout, self.now());
        let [soon, end] =
            [MAX_DRIFT + MAX_SKEW, 20 * EXPIRY].map(|time| layout.position_at(UnixMicros(now + time)));
        let highest = this.highest.get();
        let above = if (soon..end).contains(&highest) { highest } else { soon };
        if this.live().is_some_and(|live| live.shared.generator.furthest() > above) {
            return self.crash(server, false);
        }
        let above = Some(layout.instant_of(above));
        self.operate_on(server, move |host| _ = host.note(host.issuer().reset(above)));
    }

    /// The clocks are right: what is not in service by itself is helped as the docs say.
    fn help(&mut self, server: usize) {
        let (now, this) = (self.now(), &self.servers[server]);
        let Some(live) = this.live() else { return };
        let opened = live.issuing.try_borrow().is_ok_and(|issuing| issuing.opened);
        if this.is_ahead(now) {
            self.operate_on(server, |host| _ = host.note(host.issuer().accept_clock()));
        } else if opened && this.last.get().is_none_or(|(at, _)| now - at > 30 * SECOND) {
            self.unstick(server);
        }
    }

    /// A server that does not come back by itself now that its clock is right: its ids were far ahead, or what it was
    /// made to begin above, or the expiries of the worker ids it had.
    fn unstick(&mut self, server: usize) {
        let (now, this) = (self.now(), Rc::clone(&self.servers[server]));
        let Some(live) = this.live() else { return };
        let open = live.issuing.try_borrow().is_ok_and(|issuing| issuing.node.is_some());
        // What a term that has ended came to is in the way no more.
        let next = if open { live.shared.generator.next() } else { Position::ZERO };
        let ahead = this.layout.instant_of(next).0 - this.clocks.wall(now).0;
        let patient = this.rollback.get() != ClockRollback::Switch || this.policy.get() != Policy::Reuse;
        let leased = live.shared.counts.expiry().is_some();
        if patient {
            this.rollback.set(ClockRollback::Switch);
            this.policy.set(Policy::Reuse);
        } else if this.is_fixed() && this.highest.get() > Position::ZERO && ahead > MAX_DRIFT {
            self.renumber(server);
        } else if self.chance.once_in(if ahead > MAX_DRIFT { 2 } else { 12 }) {
            self.begin_anew(server);
        } else if this.alone && !leased && self.chance.once_in(2) {
            let expiry = UnixMicros(this.believed(now).0 + MAX_DRIFT + MAX_SKEW);
            // Who says that a holder is down also says that its ids are not ahead of the clock; or by so much that it
            // does not matter here.
            let ahead =
                this.layout.position_at(expiry)..this.layout.position_at(UnixMicros(now + 12 * EXPIRY));
            if !ahead.contains(&this.highest.get()) {
                this.registry.free_all(expiry);
            }
        }
    }

    /// Ends all faults: clocks are right, everybody is up and connected.
    pub fn heal(&mut self) {
        self.healed.set(true);
        for server in 0..self.servers.len() {
            let this = Rc::clone(&self.servers[server]);
            this.paused.set(0);
            this.cut_off.set(0);
            this.clocks.offset.set(self.small_offset());
            this.clocks.gain.set(0);
            this.registry.offset.set(0);
            if this.succeeded.get() && self.scope == Scope::Succession {
                this.retired.set(true);
                self.kill(server, false);
            }
            for paused in this.live().iter().flat_map(|live| &live.paused) {
                paused.set(0);
            }
            self.start(server);
        }
        self.after(SECOND, Event::Operator);
    }

    /// The servers that do not issue ids, or none near their clock.
    pub fn silent(&self) -> Vec<usize> {
        let serves = |server: &&Rc<Server>| {
            server.last.get().is_some_and(|(at, tick)| {
                let ahead = self.layout.instant(tick).0 - at;
                // Behind by as long as a session needs for what it took at once.
                let near = -100 * self.pace..MAX_DRIFT + 5 * SECOND;
                self.now() - at <= 4 * self.pace.max(5 * SECOND) && near.contains(&ahead)
            })
        };
        self.servers
            .iter()
            .filter(|server| !server.retired.get() && !serves(server))
            .map(|server| server.number)
            .collect()
    }
}

const _: () = assert!(MAX_JUMP > MAX_DRIFT);
