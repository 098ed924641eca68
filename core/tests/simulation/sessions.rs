//! Sessions: what a call for an id does.

use super::guards::Guard;
use super::server::{Change, Held, SECOND};
use super::world::{Event, Scope, World, seconds};
use snowflake_ids_core::{Cause, ClockRollback, Drift, Refusal, UnixMicros};
use std::num::NonZeroU32;

impl World {
    pub fn wake(&mut self, server: usize, session: usize, delay: i64) {
        let incarnation = self.servers[server].incarnation;
        self.after(delay, Event::Session { server, incarnation, session });
    }

    pub fn session(&mut self, server: usize, session: usize) {
        let now = self.now;
        let Some(live) = self.servers[server].live.as_mut() else { return };
        let mine = &mut live.sessions[session];
        if mine.paused > now {
            let delay = (mine.paused - now).min(SECOND);
            return self.wake(server, session, delay);
        }
        if live.locked.as_ref().is_some_and(|locked| locked.session == Some(session)) {
            return;
        }
        if let Some(held) = mine.holding.take() {
            self.use_up(server, held);
        } else if let Some(change) = self.call(server, session)
            && self.lock(server, change, Some(session))
        {
            return;
        }
        let delay = if !self.healed && self.chance.once_in(400) {
            self.chance.between(0, 60 * SECOND)
        } else {
            self.chance.between(1, self.pace)
        };
        let Some(live) = self.servers[server].live.as_mut() else { return };
        live.sessions[session].early = live.generator.snapshot().node_bits;
        self.wake(server, session, delay);
    }

    /// One call for an id; gives the change that has to be made to the file first, if one has.
    pub fn call(&mut self, server: usize, session: usize) -> Option<Change> {
        let now = self.now;
        let want = if self.chance.once_in(3) { 1 + self.chance.below(40) } else { 1 };
        let later = self.chance.once_in(6);
        let this = &mut self.servers[server];
        let (layout, rules) = (this.layout, this.rules());
        let (wall, believed) = (this.reading(now).wall, this.believed(now));
        let live = this.live.as_mut()?;
        let era = live.era();
        let mine = &mut live.sessions[session];
        let allows = |position| live.generator.allows(&layout, &rules, &believed, position);
        let popped = mine
            .block
            .pop(era)
            .or_else(|| mine.block.renew(era, allows).then(|| mine.block.pop(era)).flatten());
        if let Some(position) = popped {
            mine.holding = Some(Held { position, node_bits: mine.block.node_bits() });
        } else {
            let want = NonZeroU32::new(u32::try_from(want).unwrap()).unwrap();
            let take = |at: UnixMicros| live.generator.take(&layout, &rules, &at, want);
            let taken = match take(wall) {
                Err(Refusal::Unreserved) if believed != wall => take(believed),
                taken => taken,
            };
            match taken {
                Ok(mut taken) => {
                    if !self.guards.keep(Guard::TermRead) {
                        taken.node_bits = mine.early;
                    }
                    mine.keep(taken, era);
                }
                Err(Refusal::Unreserved) => return Some(Change::Reserve),
                Err(Refusal::Drift(Drift { cause: Cause::StepBack, .. }))
                    if this.rollback == ClockRollback::Switch =>
                {
                    return Some(Change::Switch { definition: live.definition });
                }
                Err(_) => return None,
            }
        }
        if !later && let Some(held) = live.sessions[session].holding.take() {
            self.use_up(server, held);
        }
        None
    }

    /// Makes an id of a position, for good.
    pub fn use_up(&mut self, server: usize, held: Held) {
        let now = self.now;
        let this = &mut self.servers[server];
        let Some(live) = this.live.as_ref() else { return };
        let node_bits = if self.guards.keep(Guard::BlockKeepsBits) {
            held.node_bits
        } else {
            live.generator.snapshot().node_bits
        };
        let id = this.layout.id(held.position, node_bits);
        let tick = held.position >> this.layout.widths().sequence;
        this.last = Some((now, tick));
        this.highest = this.highest.max(held.position);
        this.last_commit = Some(this.reading(now).wall);
        let (node, definition) = (live.term, live.definition);
        let scope = this.scope;
        self.ledger.issue(scope, id, || {
            format!("{}: server {server} issued {id} (tick {tick}, position {}) again, as {node:?} of term {definition}", seconds(now), held.position)
        });
        if self.scope == Scope::Succession {
            self.ledger.not_yet_replicated(server, now, id);
        }
    }
}
