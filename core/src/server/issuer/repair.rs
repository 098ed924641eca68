//! Decisions that an operator, or the clock of a registry, makes for the server.

use super::error::IssuerError;
use super::host::Host;
use super::issuing::{Counter, Issuer};
use super::slot::Issuing;
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::registry::lease::{Skew, check_clock};
use crate::server::state::{FileIdentity, NodeHighWaterMarks, State, StateError};
use std::sync::atomic::Ordering::Relaxed;

/// The outcome of comparing the clock with a registry's.
#[derive(Debug)]
pub enum Compared {
    /// Nothing to tell.
    Agrees,
    /// This server's clock had jumped ahead, and is followed now.
    Followed,
    /// This server's clock had jumped ahead, and could not be followed although the registry's clock agrees with it.
    NotFollowed(IssuerError),
    /// They differ.
    Differs(Skew),
}

/// The outcome of an operator's word that the clock is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is followed.
    Followed,
    /// It is followed, and by it the lease of this worker id has ended.
    LeaseEnded {
        /// The worker id.
        worker: u32,
    },
    /// Nothing was changed: the registry on another server, which leases the worker id, is to be asked first. Where its clock agrees,
    /// the clock is followed by that ([`Issuer::compare`]).
    AskRegistry,
}

/// Warnings about a new state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Ids up to this instant may have been issued, and may come again.
    pub may_repeat: Option<UnixMicros>,
    /// No id comes before this instant, which the clock that ids follow has not reached, nor `max_drift` ahead of it.
    pub begins: Option<UnixMicros>,
}

impl<H: Host> Issuer<'_, H> {
    /// Begins a new state in place of one that can't be trusted. Every node begins above `above`: the operator who gives
    /// it says that no later id was kept of those from before the server's start. By default, above all that is known or
    /// could have been issued up to now.
    pub fn reset(&self, above: Option<UnixMicros>) -> Result<Renewed, IssuerError> {
        let mut issuing = self.host.lock();
        let layout = &self.shared.layout;
        let here = self.here(&issuing)?;
        let (here, former) = match self.former()? {
            Some((state, file)) => (here.with_file(file), Some(state)),
            None => (here, None),
        };
        // Before anything can fail: a generator that is closed has no node.
        for counter in self.open_counters(&issuing) {
            *issuing.node_at_mut(counter.slot) = None;
            counter.generator.close();
        }
        let former = former.as_ref();
        // Marks of another cluster do not count.
        let ours = former.filter(|former| former.is_of_cluster(&here));
        let known = |layout: &Layout| {
            ours.and_then(|ours| ours.high_water_marks_of(layout))
                .map_or(Position::ZERO, NodeHighWaterMarks::highest)
        };
        let now = self.believed_now().plus(here.max_drift);
        // A state taken up since the server's start tells all. Else ids may have been issued up to what the clock shows, also
        // where it is not believed: it was behind as the server started, and was set right since.
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
        // Sessions may hold ids of terms since the server's start, whatever an operator knows of them.
        issuing.gone.into_iter().for_each(|gone| state.others.raise_minimums(gone));
        for Counter { layout, generator, .. } in self.counters(&issuing) {
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

    /// The state that there is, as far as it can be read. One of a newer release is nothing to begin anew for.
    fn former(&self) -> Result<Option<(State, FileIdentity)>, IssuerError> {
        match self.read() {
            Err(error @ IssuerError::Untrusted(StateError::Newer(_))) => Err(error),
            read => Ok(read.ok().flatten()),
        }
    }

    /// Goes on in a copied data directory with the worker id of the one that it was copied from, which is gone for good.
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

    /// Follows the clock, however far it has jumped. A worker id that is leased from another server would end by that, and with it all
    /// ids, where that server's clock shows something else: so it is asked first. After an error the clock is followed no more than
    /// before.
    pub fn accept_clock(&self) -> Result<Accepted, IssuerError> {
        let mut issuing = self.host.lock();
        let state = self.open(&mut issuing)?;
        let is_elsewhere = state.lease.as_ref().is_some_and(|lease| lease.origin.is_some());
        if is_elsewhere && self.has_jumped() {
            return Ok(Accepted::AskRegistry);
        }
        self.follow(&mut issuing, state)
    }

    /// Returns whether the clock has jumped ahead and is not followed.
    fn has_jumped(&self) -> bool {
        self.host.reading().wall > self.believed_now()
    }

    fn follow(&self, issuing: &mut Issuing, mut state: State) -> Result<Accepted, IssuerError> {
        let (now, ahead) = (self.host.reading(), &self.shared.counts.clock_ahead);
        let former = (self.shared.clock_reference(&now), ahead.swap(0, Relaxed));
        self.shared.set_clock_reference(now.wall, now.since_boot);
        let ended = state.lease.as_ref().filter(|lease| state.node.is_some() && lease.expiry <= now.wall);
        let ended = ended.map(|lease| lease.worker);
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
        Ok(ended.map_or(Accepted::Followed, |worker| Accepted::LeaseEnded { worker }))
    }

    /// Compares the clock with a registry's. One that has jumped ahead is followed where the registry's agrees.
    pub fn compare(&self, registry: UnixMicros) -> Compared {
        let (max, wall) = (self.host.settings().max_clock_skew, self.host.reading().wall);
        self.shared.counts.registry_behind.store(wall.0.saturating_sub(registry.0), Relaxed);
        let skew = check_clock(wall, registry, None, max);
        let jumped = self.has_jumped();
        match skew {
            Ok(()) if jumped => {
                let mut issuing = self.host.lock();
                let followed = self.open(&mut issuing).and_then(|state| self.follow(&mut issuing, state));
                followed.map_or_else(Compared::NotFollowed, |_| Compared::Followed)
            }
            Err(skew) if !jumped => Compared::Differs(skew),
            _ => Compared::Agrees,
        }
    }
}
