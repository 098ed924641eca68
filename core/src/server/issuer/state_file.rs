//! The steps that read, open, replace and publish the state.

use super::error::IssuerError;
use super::host::Host;
use super::shared::Issuer;
use super::slot::Issuing;
use crate::guard::{Guard, holds};
use crate::server::state::{Copied, DataDirectory, FileIdentity, Here, Identity, State, StateError};
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl<H: Host> Issuer<'_, H> {
    /// Reads the state and the identity of the state file. Returns None if the server never had a state.
    pub(super) fn read(&self) -> Result<Option<(State, FileIdentity)>, IssuerError> {
        if let Some((text, file)) = self.host.read().map_err(IssuerError::Unreadable)? {
            let mut state = State::from_text(&text)?;
            // Administrators who set worker ids may move a data directory to another machine, with its worker id.
            if matches!(self.shared.identity, Identity::Fixed { .. }) {
                state.home.machine = self.host.data_directory().map_err(IssuerError::Unreadable)?.machine;
            }
            return Ok(Some((state, file)));
        }
        let is_marked = self.host.has_marker_file().map_err(IssuerError::Unreadable)?;
        if is_marked && holds(Guard::MarkerFile) { Err(StateError::Missing.into()) } else { Ok(None) }
    }

    /// Reads and opens the state. The first call since the server's start also writes the changes of the state that a
    /// promotion, a copy or a restore requires.
    pub(super) fn open(&self, issuing: &mut Issuing) -> Result<State, IssuerError> {
        let here = self.here(issuing)?;
        let Some((stored, file)) = self.read()? else {
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

    pub(super) fn write(&self, state: &State) -> Result<(), IssuerError> {
        self.shared.counts.reservations.fetch_add(1, Relaxed);
        let written = self.replace_file(state);
        self.shared.status.unwritable.store(written.is_err(), Relaxed);
        written.map_err(IssuerError::Unwritable)
    }

    /// Replaces the state file durably. After an error or a crash, the state file contains the old or the new state.
    fn replace_file(&self, state: &State) -> io::Result<()> {
        let (mut file, file_identity) = self.host.create()?;
        self.host.fill(&mut file, &state.clone().in_file(file_identity).to_text()?)?;
        if holds(Guard::SyncFile) {
            self.host.sync(file)?;
        }
        self.host.rename()?;
        if holds(Guard::SyncDirectory) {
            self.host.sync_directory()?;
        }
        // The marker file is written last, because a crash could otherwise leave a marker file without a state file,
        // which would look like a lost state.
        if self.host.has_marker_file()? { Ok(()) } else { self.host.marker_file() }
    }

    /// Copies the values for the status view into shared memory.
    pub(super) fn publish(&self, state: &State) {
        let status = &self.shared.status;
        let leased = state.lease.as_ref().filter(|lease| !lease.is_chosen());
        let expiry = leased.map_or(0, |lease| lease.expiry.0);
        status.expiry.store(expiry, Relaxed);
        status.registry.store(state.source.database().unwrap_or(0).into(), Relaxed);
        status.alone.store(state.source.is_alone(), Relaxed);
        status.moving_to.store(state.source.moving().unwrap_or(0).into(), Relaxed);
        let origin = state.lease.as_ref().and_then(|lease| lease.origin.as_ref());
        self.host.show_origin(origin.map_or("", |origin| &origin.server));
    }

    /// Returns the last event that may have set the server's tables back. The result stays the same while the server runs.
    /// Takes no lock, because each transaction that changes a tag asks.
    pub fn copied(&self) -> Result<Option<Copied>, IssuerError> {
        let here = self.here(&Issuing { opened: true, ..Issuing::default() })?;
        Ok(self.read()?.and_then(|(state, file)| state.copied_in(&here.with_file(file))))
    }

    /// Returns true if a copy of the data directory may look like the original, so that both issue under one worker id.
    pub fn copies_look_alike(&self) -> bool {
        let is_alike = |home: DataDirectory| home.machine.is_some_and(|machine| machine.container.is_empty());
        matches!(self.shared.identity, Identity::Leased { .. })
            && self.host.data_directory().is_ok_and(is_alike)
    }

    /// Returns the server's identity, clocks and settings, which are needed to open a state.
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
