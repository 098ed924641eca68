//! Changes of the state at an administrator's request, or after a comparison of the clock with a registry's clock.

use super::counter::Counter;
use super::error::IssuerError;
use super::host::Host;
use super::shared::Issuer;
use super::slot::Issuing;
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::server::lease::{Skew, check_clock};
use crate::server::state::{FileIdentity, NodeHighWaterMarks, State, StateError};
use std::sync::atomic::Ordering::Relaxed;

/// The outcome of comparing the clock with a registry's clock.
#[derive(Debug)]
pub enum Compared {
    /// The two clocks agree, or this server's clock has jumped ahead and ids do not follow this clock.
    Agrees,
    /// This server's clock had jumped ahead, agrees with the registry's clock, and ids follow this server's clock now.
    Followed,
    /// This server's clock had jumped ahead, and agrees with the registry's clock, but ids could not follow this
    /// server's clock.
    NotFollowed(IssuerError),
    /// The two clocks differ.
    Differs(Skew),
}

/// The outcome of an administrator's statement that the clock is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Ids follow the clock.
    Followed,
    /// Ids follow the clock, and by this clock the lease of the worker id has ended.
    LeaseEnded {
        /// The worker id.
        worker_id: u32,
    },
    /// Nothing was changed. The worker id is leased from a remote registry, so this server's clock must first be
    /// compared with the registry's clock. If the two clocks agree, [`Issuer::compare`] makes ids follow this server's
    /// clock.
    AskRegistry,
}

/// Warnings about a new state that replaced an untrusted state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Ids up to this instant may have been issued, and may be issued again.
    pub may_repeat: Option<UnixMicros>,
    /// Ids begin at this instant, which is more than `max_drift` ahead of the clock. No earlier id is issued.
    pub begins: Option<UnixMicros>,
}

impl<H: Host> Issuer<'_, H> {
    /// Replaces an untrusted state with a new state. If an administrator gives `above`, every node begins above that
    /// time. The administrator thereby asserts that no id was kept that is later than `above` and was issued before the
    /// server's start. Without `above`, every node begins above all known ids, and above all ids that could have been
    /// issued until now.
    pub fn reset(&self, above: Option<UnixMicros>) -> Result<Renewed, IssuerError> {
        let mut issuing = self.host.lock();
        let layout = &self.shared.layout;
        let here = self.here(&issuing)?;
        let (here, former) = match self.former()? {
            Some((state, file)) => (here.with_file(file), Some(state)),
            None => (here, None),
        };
        for counter in self.open_counters(&issuing) {
            counter.generator.close();
        }
        let former = former.as_ref();
        // The high-water marks in a state of another cluster do not count.
        let ours = former.filter(|former| former.is_of_cluster(&here));
        let known = |layout: &Layout| {
            ours.and_then(|ours| ours.high_water_marks_of(layout))
                .map_or(Position::ZERO, NodeHighWaterMarks::highest)
        };
        let now = self.believed_now().plus(here.max_drift);
        // If a process has opened this server's state since the server's start, the state's high-water marks are above
        // all ids. If not, ids may have been issued up to the wall clock's time, even if that time is not trusted: the
        // clock reference may come from a clock that was behind at the server's start.
        let told = issuing.opened && former.is_some_and(|former| former.is_of(&here));
        let latest = if told || !holds(Guard::ResetAtClock) {
            now
        } else {
            now.max(here.clock.wall.plus(here.max_drift))
        };
        let last = above.unwrap_or(latest);
        let begin = |layout: &Layout| {
            let position = layout.position_after(last);
            if above.is_some() { position } else { position.max(known(layout)) }
        };
        self.host.keep_rejected().map_err(IssuerError::Unwritable)?;
        let mut state = State::anew(&here, begin(layout), former);
        state.others.raise_minimums(last.plus_micros(1));
        if let Some(ours) = ours.filter(|_| above.is_none()) {
            state.others.raise_minimums(ours.others.minimum);
        }
        for (other, _) in ours.iter().flat_map(|ours| ours.tables()).filter(|(other, _)| *other != layout) {
            state.begin_above(other, begin(other));
        }
        // Sessions may hold ids of terms that began since the server's start. The administrator's assertion (`above`)
        // does not cover these ids.
        issuing.gone.into_iter().for_each(|gone| state.others.raise_minimums(gone));
        for Counter { layout, generator } in self.counters(&issuing) {
            state.begin_above(&layout, generator.furthest());
        }
        self.believe(&mut state);
        self.write(&state)?;
        issuing.opened = true;
        self.publish(&state);
        let above_minimum = state.tables().filter(|(layout, of)| known(layout) > of.minimum);
        let ahead = state.tables().filter(|(layout, of)| of.minimum > layout.position_after(now));
        Ok(Renewed {
            may_repeat: above_minimum.map(|(layout, _)| layout.instant_of(known(layout))).max(),
            begins: ahead.map(|(layout, of)| layout.instant_of(of.minimum)).max(),
        })
    }

    /// Returns the current state, if it can be read. Fails for a state of an unknown form, because such a state must
    /// not be replaced.
    fn former(&self) -> Result<Option<(State, FileIdentity)>, IssuerError> {
        match self.read() {
            Err(error @ IssuerError::Untrusted(StateError::UnknownForm(_))) => Err(error),
            read => Ok(read.ok().flatten()),
        }
    }

    /// Lets a server in a copied data directory use the worker id of the original server, which no longer exists.
    pub fn adopt(&self) -> Result<(), IssuerError> {
        let mut issuing = self.host.lock();
        let here = self.here(&issuing)?;
        let Some((stored, file)) = self.read()? else { return Ok(()) };
        let here = here.with_file(file);
        if !stored.is_copy(&here) {
            return Ok(());
        }
        let state = stored.adopt(&here)?;
        self.write(&state)?;
        issuing.opened = true;
        self.publish(&state);
        Ok(())
    }

    /// Makes ids follow the clock, however far the clock has jumped. If the worker id is leased from a remote registry,
    /// this server's clock must first be compared with the registry's clock: by a wrong clock, the lease could seem to
    /// have expired, and no ids could be issued. After an error the clock reference is unchanged.
    pub fn accept_clock(&self) -> Result<Accepted, IssuerError> {
        let mut issuing = self.host.lock();
        let state = self.open(&mut issuing)?;
        let is_elsewhere = state.lease.as_ref().is_some_and(|lease| lease.origin.is_some());
        if is_elsewhere && self.has_jumped() {
            return Ok(Accepted::AskRegistry);
        }
        self.follow(&issuing, state)
    }

    fn has_jumped(&self) -> bool {
        self.host.reading().wall > self.believed_now()
    }

    fn follow(&self, issuing: &Issuing, mut state: State) -> Result<Accepted, IssuerError> {
        let (now, ahead) = (self.host.reading(), &self.shared.status.clock_ahead);
        let former = (self.shared.clock_reference(&now), ahead.swap(0, Relaxed));
        self.shared.set_clock_reference(now.wall, now.since_boot);
        let ended = state.lease.as_ref().filter(|lease| state.node.is_some() && lease.expiry <= now.wall);
        let ended = ended.map(|lease| lease.worker_id);
        state.seen = now.wall;
        state.clock = now;
        let stored = if state.node.is_some() && ended.is_none() {
            let own = self.own_counter();
            self.advance(issuing, &mut state, Some(&own))
        } else {
            self.write(&state)
        };
        if let Err(error) = stored {
            self.shared.set_clock_reference(former.0.wall, former.0.since_boot);
            ahead.store(former.1, Relaxed);
            return Err(error);
        }
        Ok(ended.map_or(Accepted::Followed, |worker_id| Accepted::LeaseEnded { worker_id }))
    }

    /// Compares the clock with a registry's clock. If this server's clock has jumped ahead and agrees with the registry's
    /// clock, ids follow this server's clock.
    pub fn compare(&self, registry: UnixMicros) -> Compared {
        let (max, wall) = (self.host.settings().max_clock_skew, self.host.reading().wall);
        self.shared.status.registry_behind.store(wall.0.saturating_sub(registry.0), Relaxed);
        let skew = check_clock(wall, registry, None, max);
        let jumped = self.has_jumped();
        match skew {
            Ok(()) if jumped => {
                let mut issuing = self.host.lock();
                let followed = self.open(&mut issuing).and_then(|state| self.follow(&issuing, state));
                followed.map_or_else(Compared::NotFollowed, |_| Compared::Followed)
            }
            Err(skew) if !jumped => Compared::Differs(skew),
            _ => Compared::Agrees,
        }
    }
}
