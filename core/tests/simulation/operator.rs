//! Actions of operators: when a server reports that it needs an operator, and after all faults.

use super::event::{Event, Scope};
use super::server::{EXPIRY, MAX_DRIFT, MAX_SKEW, SECOND, Server};
use super::world::World;
use snowflake_ids_core::server::lease::Policy;
use snowflake_ids_core::server::state::StateError;
use snowflake_ids_core::{ClockRollback, Position, UnixMicros};
use std::rc::Rc;

/// How long a run continues after its faults. A server may wait for another server's expiry, a renewal and an operator. A
/// server may also wait for the clock to pass ids issued while the clock was ahead.
pub const MAX_RECOVERY: i64 = 18 * EXPIRY;

impl World {
    /// Acts on servers that need an operator, and on silent servers after all faults.
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

    /// Decides whether a copy keeps the worker id of its original.
    fn part(&mut self, server: usize) {
        let system_identifier = self.servers[server].system_identifier.get();
        let gone = |other: &Rc<Server>| {
            other.number == server
                || other.retired.get()
                || other.system_identifier.get() != system_identifier
        };
        if self.servers.iter().all(gone) && self.is_near_its_clock(server) {
            self.operate_on(server, |host| _ = host.record(host.issuer().adopt()));
        } else {
            self.renumber(server);
        }
    }

    fn renumber(&mut self, server: usize) {
        let number = self.number();
        self.servers[server].identity.set(number);
        // Nothing was issued under the new worker id yet.
        self.servers[server].highest.set(Position(0));
        self.servers[server].ticks.take();
        self.crash(server, false);
    }

    /// Resets the state file. If ids were ahead of the clock, the operator names the highest id. A server with a registry needs
    /// no such id, because another worker id is leased. A clock that is ahead may be set right before the reset takes effect.
    fn reset(&mut self, server: usize) {
        let this = &self.servers[server];
        let (layout, highest, now) = (this.layout, this.highest.get(), self.now());
        let default = layout.position_after(UnixMicros(this.clocks.wall(now).0.min(now) + MAX_DRIFT));
        let untold = this.is_fixed() || this.is_alone();
        let above = (untold && highest >= default).then(|| layout.instant_of(highest));
        this.of_original.take();
        self.operate_on(server, move |host| _ = host.record(host.issuer().reset(above)));
    }

    /// Resets the state file to a point above all ids that the clock can pass in this run. The operator promises that no higher
    /// id was kept, or that its repetition does not matter in this run. Sessions that hold higher ids must end first. If the clock
    /// cannot pass the lower ids before the run ends, the operator gives up the server.
    fn begin_anew(&mut self, server: usize) {
        let this = Rc::clone(&self.servers[server]);
        let ends = self.healed_at.get() + MAX_RECOVERY;
        let [soon, late, end] =
            [self.now() + MAX_DRIFT + MAX_SKEW, ends - 4 * EXPIRY, ends + MAX_DRIFT + MAX_SKEW]
                .map(|at| self.layout.position_at(UnixMicros(at)));
        let (layout, highest) = (this.layout, this.highest_before(end));
        if highest >= late.max(soon) {
            this.retired.set(true);
            return self.kill(server, false);
        }
        let above = highest.max(soon);
        if this.live().is_some_and(|live| live.shared.generator.furthest() > above) {
            return self.crash(server, false);
        }
        let above = Some(layout.instant_of(above));
        this.of_original.take();
        self.operate_on(server, move |host| _ = host.record(host.issuer().reset(above)));
    }

    /// Helps a server that does not return to service by itself, as the documents say. The clocks are right at that time.
    fn help(&mut self, server: usize) {
        let (now, this) = (self.now(), &self.servers[server]);
        let Some(live) = this.live() else { return };
        let opened = live.issuing.try_borrow().is_ok_and(|issuing| issuing.opened);
        if this.is_ahead(now) {
            self.operate_on(server, |host| _ = host.record(host.issuer().accept_clock().map(drop)));
        } else if opened && this.last.get().is_none_or(|(at, _)| now - at > 30 * SECOND) {
            self.unstick(server);
        }
    }

    /// Unblocks a server that stays silent after its clock was set right. One of three values may be far ahead: the server's ids, the
    /// minimum in the server's state, or the expiries of the server's former worker ids.
    fn unstick(&mut self, server: usize) {
        let (now, this) = (self.now(), Rc::clone(&self.servers[server]));
        let Some(live) = this.live() else { return };
        let open = live.issuing.try_borrow().is_ok() && live.shared.generator.is_open();
        // The end of a closed term does not block.
        let next = if open { live.shared.generator.next() } else { Position(0) };
        let ahead = this.layout.instant_of(next).0 - this.clocks.wall(now).0;
        let patient = this.rollback.get() != ClockRollback::Switch || this.policy.get() != Policy::Reuse;
        if patient {
            this.rollback.set(ClockRollback::Switch);
            this.policy.set(Policy::Reuse);
        } else if this.is_fixed() && this.highest.get() > Position(0) && ahead > MAX_DRIFT {
            self.renumber(server);
        } else if self.chance.once_in(if ahead > MAX_DRIFT { 2 } else { 12 }) {
            self.begin_anew(server);
        }
    }

    /// Ends all faults: clocks are right, and every server runs and is connected.
    pub fn heal(&mut self) {
        self.healed.set(true);
        self.healed_at.set(self.now());
        self.shared.offset.set(0);
        for server in 0..self.servers.len() {
            let this = Rc::clone(&self.servers[server]);
            this.paused.set(0);
            this.cut_off.set(0);
            this.clocks.offset.set(self.small_offset());
            this.clocks.gain.set(0);
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

    /// The servers that issue no ids, or only ids far from their clocks.
    pub fn silent(&self) -> Vec<usize> {
        let serves = |server: &&Rc<Server>| {
            server.last.get().is_some_and(|(at, tick)| {
                let ahead = self.layout.instant(tick).0 - at;
                // Ids may lag behind the clock by the time that a session needs to hand out all ids of one take.
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
