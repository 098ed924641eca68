//! The file: what is done under its lock, step by step.

use super::faults::Fault;
use super::guards::Guard;
use super::registrar::{Doing, Question};
use super::registry::Statement;
use super::server::{Change, EXPIRY, Locked, Publish, SECOND, Trouble};
use super::world::{Event, Scope, World};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::lease::Lease;
use snowflake_ids_core::state::State;

impl World {
    /// Begins a change, if nobody is at one; whether it has begun.
    pub fn lock(&mut self, server: usize, change: Change, session: Option<usize>) -> bool {
        let now = self.now;
        let this = &mut self.servers[server];
        let Some(live) = this.live.as_mut() else { return false };
        if live.locked.is_some() {
            return false;
        }
        match this.change(&change, now) {
            Ok((state, publish)) => {
                if !self.guards.keep(Guard::WriteFirst) {
                    this.publish(&state, publish);
                }
                let locked = Locked { change, state, publish, stage: 0, session };
                this.live.as_mut().expect("it runs").locked = Some(locked);
                self.step(server);
                true
            }
            Err(trouble) => {
                let live = this.live.as_mut().expect("it runs");
                match trouble {
                    Trouble::File(error) => live.trouble = Some(error),
                    Trouble::Worker if matches!(change, Change::Switch { .. }) => {
                        live.registrar.switch = true;
                    }
                    Trouble::Worker => live.registrar.needed = true,
                    Trouble::Moot => {}
                }
                false
            }
        }
    }

    pub fn step(&mut self, server: usize) {
        // Now and then the disk is slow.
        let slow = !self.healed && self.chance.once_in(30);
        let delay = self.chance.between(1, if slow { 6 * SECOND } else { 20_000 });
        let incarnation = self.servers[server].incarnation;
        self.after(delay, Event::Locked { server, incarnation });
    }

    /// The next step of the change under way: write, sync, publish. Any of them may be the last.
    pub fn locked(&mut self, server: usize) {
        let tight = self.scope == Scope::Tight;
        if !self.healed && self.chance.once_in(if self.storm { 15 } else { 120 }) {
            let machine = self.chance.once_in(2);
            self.faults.count(if machine { Fault::Reboot } else { Fault::Kill });
            if tight && self.chance.once_in(3) {
                self.servers[server].cut_off = self.now + EXPIRY;
            }
            return self.crash(server, machine);
        }
        if !self.healed && self.chance.once_in(300) {
            self.servers[server].paused = self.now + self.chance.between(SECOND, 2 * EXPIRY);
            self.faults.count(Fault::Pause);
            return self.step(server);
        }
        let guards = self.guards;
        let this = &mut self.servers[server];
        let Some(mut locked) = this.live.as_mut().and_then(|live| live.locked.take()) else { return };
        let publish_at = if guards.keep(Guard::SyncFirst) { 2 } else { 0 };
        let last = locked.stage == 2;
        if locked.stage == publish_at && guards.keep(Guard::WriteFirst) {
            this.publish(&locked.state, locked.publish);
        }
        match locked.stage {
            0 => this.write(&locked.state),
            1 => this.disk.synced.clone_from(&this.disk.file),
            _ => {}
        }
        if last {
            return self.unlocked(server, &locked);
        }
        locked.stage += 1;
        this.live.as_mut().expect("it runs").locked = Some(locked);
        self.step(server);
    }

    /// What follows a change.
    pub fn unlocked(&mut self, server: usize, locked: &Locked) {
        let now = self.now;
        if let Some(session) = locked.session {
            self.wake(server, session, 1);
        }
        if matches!(locked.publish, Publish::Stopped) {
            self.servers[server].crash(false);
            self.note(|| format!("server {server} has stopped"));
            return self.start_later(server);
        }
        let Some(live) = self.servers[server].live.as_mut() else { return };
        let doing = live.registrar.doing.clone();
        match (&locked.change, doing) {
            (Change::Claim(_), Doing::Claiming { renew }) => self.ask(server, renew),
            (Change::TakeUp(lease), Doing::Writing { old }) => {
                live.registrar.doing = Doing::Nothing;
                (live.registrar.needed, live.registrar.switch) = (false, false);
                live.registrar.renewed = Some(now);
                let (worker, state) = (lease.worker, &locked.state);
                if let Some(old) =
                    old.filter(|old| old.worker != worker && self.guards.keep(Guard::ReleaseLast))
                {
                    let expiry = self.given_back(state, &old);
                    let statement = Statement::Release { worker: old.worker, token: old.token, expiry };
                    self.send(server, Question::Run(statement));
                }
                self.note(|| format!("server {server} has worker {worker}"));
            }
            (Change::Renewed { .. }, _) => {
                live.registrar.doing = Doing::Nothing;
                live.registrar.needed = false;
                live.registrar.renewed = Some(now);
            }
            (Change::GiveUp, _) => {
                live.registrar.doing = Doing::Nothing;
                live.registrar.needed = true;
                self.note(|| format!("server {server} gives its lease up"));
            }
            _ => {}
        }
    }

    /// From when on a worker id may be another's: after the last that was reserved of it.
    pub fn given_back(&self, state: &State, old: &Lease) -> UnixMicros {
        let mark = state.marks.iter().filter(|mark| old.is_of(mark.node)).map(|mark| mark.position).max();
        let mark = mark.unwrap_or(0).max(old.start);
        let unit = self.layout.unit().cast_signed();
        UnixMicros((self.layout.instant_of(mark).0 + unit).min(old.expiry.0))
    }
}
