//! The state from its file, and back into it.

use super::error::IssuerError;
use super::host::Host;
use super::issuing::{Issuer, Issuing};
use crate::guard::{Guard, holds};
use crate::server::state::{Birth, Here, State, StateError};
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A state, and the file that it was found in.
pub(super) struct Stored {
    pub state: State,
    pub file: Birth,
}

impl<H: Host> Issuer<'_, H> {
    /// Reads the state; None where there never was one.
    pub(super) fn read(&self) -> Result<Option<Stored>, IssuerError> {
        let Some((text, file)) = self.host.read().map_err(IssuerError::Unreadable)? else {
            let witnessed = self.host.is_witnessed().map_err(IssuerError::Unreadable)?;
            return if witnessed && holds(Guard::Witness) {
                Err(StateError::Missing.into())
            } else {
                Ok(None)
            };
        };
        Ok(Some(Stored { state: State::from_text(&text)?, file }))
    }

    /// Reads the state and takes it up. What that changes is written at once when it is the first time.
    pub(super) fn open(&self, issuing: &mut Issuing) -> Result<State, IssuerError> {
        let here = self.here(issuing)?;
        let Some(Stored { state: stored, file }) = self.read()? else {
            issuing.opened = true;
            return Ok(State::fresh(&here));
        };
        let here = here.with_file(file);
        let state = stored.clone().open(&here)?;
        if !issuing.opened {
            if state != stored {
                self.write(&state)?;
            }
            self.resume(&state, &here.clock);
            issuing.opened = true;
            self.publish(&state);
        }
        Ok(state)
    }

    /// Writes the state, durably.
    pub(super) fn write(&self, state: &State) -> Result<(), IssuerError> {
        self.shared.counts.reservations.fetch_add(1, Relaxed);
        let written = self.replace_file(state);
        self.shared.counts.unwritable.store(written.is_err(), Relaxed);
        written.map_err(IssuerError::Unwritable)
    }

    /// Writes the state, durably, and only then lets sessions have what was reserved in it.
    pub(super) fn write_then(&self, state: &State, let_out: impl FnOnce()) -> Result<(), IssuerError> {
        if !holds(Guard::WriteFirst) {
            let_out();
            return self.write(state);
        }
        self.write(state)?;
        let_out();
        Ok(())
    }

    /// When it returns, the state is durable. After an error the old state is still there, or already the new one: as after
    /// a crash.
    fn replace_file(&self, state: &State) -> io::Result<()> {
        let (mut file, birth) = self.host.create()?;
        self.host.fill(&mut file, &state.in_file(birth).to_text()?)?;
        if holds(Guard::SyncFile) {
            self.host.sync(file)?;
        }
        self.host.rename()?;
        if holds(Guard::SyncDirectory) {
            self.host.sync_directory()?;
        }
        // Only now: a witness of a state that was never written would stand in the way of a fresh server.
        if self.host.is_witnessed()? { Ok(()) } else { self.host.witness() }
    }

    /// Makes known what the view shows.
    pub(super) fn publish(&self, state: &State) {
        let counts = &self.shared.counts;
        let leased = state.lease.as_ref().filter(|lease| !lease.is_chosen());
        let expiry = leased.map_or(0, |lease| lease.expiry.0);
        counts.expiry.store(expiry, Relaxed);
        counts.registry.store(state.registry.unwrap_or(0).into(), Relaxed);
        counts.alone.store(state.alone, Relaxed);
        counts.moving_to.store(state.moving_to.unwrap_or(0).into(), Relaxed);
        let origin = state.lease.as_ref().and_then(|lease| lease.origin.as_ref());
        self.host.show_origin(origin.map_or("", |origin| &origin.server));
    }

    /// Returns what there is to know before a state can be taken up.
    pub(super) fn here(&self, issuing: &Issuing) -> Result<Here, IssuerError> {
        let home = self.host.data_directory().map_err(IssuerError::Unreadable)?;
        let (cluster, settings) = (self.host.cluster(), self.host.settings());
        Ok(Here {
            system_identifier: cluster.system_identifier,
            timeline: cluster.timeline,
            home,
            layout: self.shared.layout,
            identity: self.shared.identity,
            clock: self.host.reading(),
            replayed: cluster.replayed.max(self.shared.checkpoint),
            max_drift: Duration::from_micros(settings.rules.max_drift),
            max_clock_jump: settings.max_clock_jump,
            token: self.host.token(),
            policy: settings.policy,
            starts: !issuing.opened,
        })
    }
}
