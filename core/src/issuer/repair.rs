//! What an operator can decide that the server must not decide by itself; or the clock of a registry.

use super::counter::Counter;
use super::durable::Stored;
use super::error::IssuerError;
use super::host::Host;
use super::issuing::{By, Issuer};
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::layout::Layout;
use crate::lease::{Skew, check_clock};
use crate::position::Position;
use crate::state::{State, StateError};
use std::sync::atomic::Ordering::Relaxed;

/// What came of comparing the clock with a registry's.
#[derive(Debug)]
pub enum Compared {
    /// Nothing to tell.
    Agrees,
    /// It had jumped ahead, and is followed now.
    Followed,
    /// It had jumped ahead, and could not be followed although the registry's agrees.
    NotFollowed(IssuerError),
    /// They differ.
    Differs(Skew),
}

/// What is to be said of a new state.
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
        let layout = self.layout();
        let here = self.here(&issuing)?;
        let (here, former) = match self.former()? {
            Some(Stored { state, file }) => (here.with_file(file), Some(state)),
            None => (here, None),
        };
        // Before anything can fail: a generator that is closed has no node.
        for counter in self.open_counters(&issuing) {
            *issuing.node_at_mut(counter.place) = None;
            counter.generator.close();
        }
        let former = former.as_ref();
        let known =
            |layout: &Layout| former.map_or(Position::ZERO, |former| former.highest_mark(&here, layout));
        let now = self.believed_now().plus(here.max_drift);
        // What was taken up since the server's start tells all. Else ids may have been issued up to what the clock shows, also
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
        state.others.raise_floors(last.plus_micros(1));
        if let Some(former) = former.filter(|former| above.is_none() && former.is_of_cluster(&here)) {
            state.others.raise_floors(former.others.floor);
        }
        for other in former.map_or_else(Vec::new, |former| former.layouts_beside(&here)) {
            state.begin_above(&other, begin(&other));
        }
        // Sessions may hold ids of terms since the server's start, whatever an operator knows of them.
        issuing.gone.into_iter().for_each(|gone| state.others.raise_floors(gone));
        for Counter { layout, generator, .. } in self.counters(&issuing) {
            state.begin_above(&layout, generator.furthest());
        }
        self.believe(&mut state);
        self.write(&state)?;
        issuing.opened = true;
        self.publish(&state);
        let mut layouts = vec![*layout];
        layouts.extend(state.others.layouts.iter().map(|other| other.layout));
        let floor = |layout: &Layout| state.marks_of(layout).map_or(Position::ZERO, |marks| marks.floor);
        let above_floor =
            |layout: &Layout| (known(layout) > floor(layout)).then(|| layout.instant_of(known(layout)));
        let ahead = |layout: &Layout| {
            (floor(layout) > layout.position_after(now)).then(|| layout.instant_of(floor(layout)))
        };
        Ok(Renewed {
            may_repeat: layouts.iter().filter_map(above_floor).max(),
            begins: layouts.iter().filter_map(ahead).max(),
        })
    }

    /// The state that there is, as far as it can be read. One of a newer release is nothing to begin anew for.
    fn former(&self) -> Result<Option<Stored>, IssuerError> {
        match self.read() {
            Err(error @ IssuerError::Untrusted(StateError::Newer(_))) => Err(error),
            read => Ok(read.ok().flatten()),
        }
    }

    /// Goes on in a copied data directory with the worker id of the one that it was copied from, which is gone for good.
    pub fn adopt(&self) -> Result<(), IssuerError> {
        let mut issuing = self.host.lock();
        let here = self.here(&issuing)?;
        let Some(Stored { state: stored, file }) = self.read()? else { return Ok(()) };
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

    /// Follows the clock, however far it has jumped.
    pub fn accept_clock(&self) -> Result<(), IssuerError> {
        let mut issuing = self.host.lock();
        let now = self.host.reading();
        self.shared.set_anchor(now.wall, now.since_boot);
        self.shared.counts.clock_ahead.store(0, Relaxed);
        let mut state = self.open(&mut issuing)?;
        state.seen = now.wall;
        state.clock = now;
        if state.node.is_some() {
            let own = self.own_counter();
            self.advance(&mut issuing, &mut state, Some(&own), By::Caller)
        } else {
            self.write(&state)
        }
    }

    /// Compares the clock with a registry's. One that has jumped ahead is followed where the registry's agrees.
    pub fn compare(&self, registry: UnixMicros) -> Compared {
        let max = self.host.settings().max_clock_skew;
        let skew = check_clock(self.host.reading().wall, registry, None, max);
        let jumped = self.shared.counts.clock_ahead.load(Relaxed) > 0;
        match skew {
            Ok(()) if jumped => {
                self.accept_clock().map_or_else(Compared::NotFollowed, |()| Compared::Followed)
            }
            Err(skew) if !jumped => Compared::Differs(skew),
            _ => Compared::Agrees,
        }
    }
}
