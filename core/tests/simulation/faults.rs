//! Faults, and actions of operators that cause trouble.

use super::disk::{Disk, File};
use super::event::{Event, Scope};
use super::membership::{join, leave};
use super::server::{EXPIRY, FORMER, MAX_DRIFT, MAX_SKEW, SECOND, Server};
use super::world::World;
use snowflake_ids_core::server::state::Chosen;
use snowflake_ids_core::{ClockRollback, Layout, Position, UnixMicros};
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
    RegistryAnew,
    Join,
    Leave,
    Settings,
}

pub const FAULTS: [Fault; 18] = [
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
    Fault::RegistryAnew,
    Fault::Join,
    Fault::Leave,
    Fault::Settings,
];

/// Counts of each kind of fault.
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

/// An earlier state of a primary, as a standby has it.
#[derive(Clone)]
pub struct Backup {
    pub at: i64,
    pub disk: Disk,
    /// The table of chosen worker ids.
    pub chosen: Option<Vec<Chosen>>,
    /// Whether the primary uses the common registry, followed by the scope of its ids.
    pub draws: bool,
    pub scope: u32,
    pub last_commit: Option<UnixMicros>,
    /// The highest issued position.
    pub highest: Position,
}

impl Backup {
    /// Whether the ids of this state end at most the maximum drift after the state's last commit. If the primary's clock was stepped
    /// back before that commit, ids may lie further ahead. The standby cannot know how far; the documents say so.
    fn tells_how_far_ids_came(&self, layout: &Layout) -> bool {
        self.last_commit.is_none_or(|at| self.highest < layout.position_after(UnixMicros(at.0 + MAX_DRIFT)))
    }
}

impl World {
    /// Causes a fault somewhere, and schedules the next one.
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
        let moves = self.scope == Scope::Alone && self.chance.once_in(6);
        let fault = match self.servers[server].is_alone() {
            _ if !moves => fault,
            true => Fault::Join,
            false => Fault::Leave,
        };
        if !self.servers[server].retired.get() && self.cause(fault, server) {
            self.faults.count(fault);
            self.record(|| format!("{fault:?} at server {server}"));
        }
    }

    /// Causes a fault. Returns whether that was possible.
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
            // `stop` counts the fault itself.
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
                self.shared.offset.set(self.chance.between(-most, most));
                true
            }
            Fault::RegistryAnew => self.make_registry_anew(server),
            Fault::Join | Fault::Leave => self.change_registry(server, fault == Fault::Join),
            Fault::Settings => {
                let rollbacks = [ClockRollback::Error, ClockRollback::Wait, ClockRollback::Switch];
                this.policy.set(self.policy());
                this.rollback.set(self.chance.one_of(&rollbacks));
                true
            }
        }
    }

    /// Steps the wall clock.
    fn step(&mut self, back: bool, server: usize) -> bool {
        let most = [5 * SECOND, MAX_DRIFT + 5 * SECOND, 50 * SECOND, 3_600 * SECOND, 10 * YEAR];
        let step = self.chance.between(1, self.chance.one_of(&most));
        self.servers[server].clocks.step(if back { -step.min(2 * YEAR) } else { step });
        if !self.chance.once_in(3) {
            let delay = self.chance.between(SECOND, 90 * SECOND);
            self.after(delay, Event::ClockRight { server });
        }
        true
    }

    pub fn back_up(&mut self, server: usize) {
        let this = &self.servers[server];
        let backup = Backup {
            at: self.now(),
            disk: this.disk.borrow().clone(),
            chosen: this.chosen(),
            draws: !this.is_alone(),
            scope: this.scope.get(),
            last_commit: this.last_commit.get(),
            highest: this.highest.get(),
        };
        let mut backups = this.backups.borrow_mut();
        backups.push(backup);
        if backups.len() > 3 {
            backups.remove(0);
        }
    }

    /// Restores the state file from a backup into the same directory.
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

    /// Promotes a standby, while its primary keeps running. The standby's state file is older than the tables that the standby
    /// has replayed.
    pub fn fail_over(&mut self, server: usize) -> bool {
        let this = Rc::clone(&self.servers[server]);
        // A copy and its standby have no shares of worker ids.
        let of_copy = self.scope == Scope::Alone && this.copied.get();
        let refuses = matches!(self.scope, Scope::Numbers | Scope::Tight) || !this.has_issued() || of_copy;
        let count = this.backups.borrow().len();
        if this.succeeded.get() || refuses || count == 0 || this.timeline.get() > 6 {
            return false;
        }
        let base = self.chance.below(count);
        let replayed = base + self.chance.below(count - base);
        let (base, replayed) = (this.backups.borrow()[base].clone(), this.backups.borrow()[replayed].clone());
        // If the extension was not replayed before the promotion, the successor never learned of its primary.
        let is_stranger = !replayed.draws && replayed.chosen.is_none();
        if is_stranger || self.scope == Scope::Succession && !replayed.tells_how_far_ids_came(&self.layout) {
            return false;
        }
        let successor = self.offspring(server, base.disk, replayed.chosen);
        successor.databases[1].draws.set(replayed.draws);
        if self.scope == Scope::Alone {
            successor.scope.set(if replayed.draws { 0 } else { replayed.scope });
        }
        successor.timeline.set(this.timeline.get() + 1);
        successor.replayed.set(replayed.last_commit);
        successor.clocks.step(-self.chance.between(0, MAX_DRIFT - SECOND));
        self.start(successor.number);
        this.succeeded.set(true);
        if self.scope == Scope::Succession {
            // Two kinds of ids belong to the primary's scope alone: ids that were not replayed, and ids that the primary issues
            // from now on.
            let own = 1_000 + u32::try_from(server).unwrap();
            self.ledger.borrow_mut().split(server, replayed.at, this.scope.get(), own);
            this.scope.set(own);
            // The successor's operator finds the primary's ids in the tables.
            successor.highest.set(replayed.highest);
            successor.ticks.replace(this.ticks.borrow().range(..=replayed.highest).copied().collect());
        }
        true
    }

    /// Copies the data directory and starts the copy. `takeover`: the original is gone for good. Without `takeover`, the
    /// original keeps running.
    fn copy(&mut self, server: usize, takeover: bool) -> bool {
        let this = Rc::clone(&self.servers[server]);
        let refuses = self.scope == Scope::Tight || !this.has_issued();
        if refuses || this.succeeded.get() || (takeover && !self.is_near_its_clock(server)) {
            return false;
        }
        if takeover {
            this.retired.set(true);
            self.kill(server, false);
        }
        let (disk, chosen) = (this.disk.borrow().clone(), this.chosen());
        let copy = self.offspring(server, disk, chosen);
        copy.copied.set(true);
        copy.last_commit.set(this.last_commit.get());
        copy.highest.set(this.highest.get());
        copy.ticks.replace(this.ticks.borrow().clone());
        if this.is_alone() {
            // Two copies may choose the same worker id. A copy may not choose a worker id that the original's file names.
            copy.scope.set(2_000 + u32::try_from(copy.number).unwrap());
            copy.of_original.replace(this.disk.borrow().file.as_ref().map(File::workers).unwrap_or_default());
        }
        self.start(copy.number);
        true
    }

    pub fn is_near_its_clock(&self, server: usize) -> bool {
        let this = &self.servers[server];
        let tick = this.layout.position_at(UnixMicros(self.now() + MAX_DRIFT));
        this.clocks.offset.get().abs() <= MAX_SKEW && this.highest.get() <= tick
    }

    /// Adds a server on another machine, made from the data directory of a server.
    fn offspring(&mut self, server: usize, disk: Disk, chosen: Option<Vec<Chosen>>) -> Rc<Server> {
        let new = self.add_server();
        let (parent, child) = (&self.servers[server], Rc::clone(&self.servers[new]));
        child.system_identifier.set(parent.system_identifier.get());
        child.timeline.set(parent.timeline.get());
        child.identity.set(parent.identity.get());
        child.scope.set(parent.scope.get());
        child.introduced.set(parent.introduced.get());
        child.policy.set(parent.policy.get());
        let synced = |file: File| File { synced: true, inode: file.inode + 1_000_000, ..file };
        let file = disk.file.map(synced);
        *child.disk.borrow_mut() = Disk { named: file.clone(), file, new: None, ..disk };
        child.databases[1].draws.set(!parent.is_alone());
        child.databases[0].chosen.replace(chosen);
        if child.introduced.get() != self.shared.generation.get() {
            self.after(SECOND, Event::Introduce { server: new });
        }
        child
    }

    /// Replaces the common registry. The servers begin to use the new registry at different times. The new registry knows no
    /// former leases, so this server shows its lease.
    fn make_registry_anew(&mut self, server: usize) -> bool {
        let this = &self.servers[server];
        let state = this.disk.borrow().file.as_ref().and_then(|file| file.state().ok());
        let lease = state.and_then(|state| state.lease).filter(|lease| lease.expiry.0 > self.now());
        let is_first = this.introduced.get() == self.shared.generation.get();
        let Some(lease) = lease.filter(|_| is_first && self.scope == Scope::Shared) else {
            return false;
        };
        self.shared.make_anew();
        self.shared.record_former(&lease, UnixMicros(self.now() + FORMER));
        for server in 0..self.servers.len() {
            let delay = self.chance.between(0, 2 * EXPIRY);
            self.after(delay, Event::Introduce { server });
        }
        true
    }

    /// Lets a server use the new registry. The server immediately asks the registry for a worker id.
    pub fn introduce(&mut self, server: usize) {
        let this = &self.servers[server];
        this.introduced.set(self.shared.generation.get());
        if let Some(live) = this.live() {
            live.requests.ask_to_renew();
        }
    }

    /// Starts a session that makes a server join or leave the common registry. A server without a registry chooses its own worker id.
    pub fn change_registry(&mut self, server: usize, joins: bool) -> bool {
        let this = &self.servers[server];
        let may = self.scope == Scope::Alone && this.is_running() && this.has_issued();
        if !may || this.is_alone() != joins {
            return false;
        }
        this.introduced.set(self.shared.generation.get());
        self.spawn(server, 0, move |host| if joins { join(host) } else { leave(host) });
        true
    }

    /// Has an operator take a worker id away from its holder.
    fn release(&mut self, server: usize) -> bool {
        let this = &self.servers[server];
        let state = this.disk.borrow().file.as_ref().and_then(|file| file.state().ok());
        let Some(lease) = state.and_then(|state| state.lease).filter(|_| this.is_running()) else {
            return false;
        };
        if !matches!(self.scope, Scope::Shared | Scope::Tight) {
            return false;
        }
        self.shared.forbid(lease.worker_id);
        true
    }
}
