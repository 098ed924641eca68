//! The parts of an issuer that all its actions need: its counters and their terms, the state and its file, and the clock.

use super::error::IssuerError;
use super::host::Host;
use super::shared::IssuerMemory;
use super::slot::Issuing;
use crate::clock::{UnixMicros, micros};
use crate::generator::snowflake::Generator;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::ids::position::{NodeBits, Position, Tick};
use crate::server::clock_reference::{Reading, Verdict};
use crate::server::state::{FileIdentity, Here, State, StateError};
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The smallest step forward of the clock that is counted. Smaller steps are normal corrections by NTP.
const NOTABLE: Duration = Duration::from_secs(1);

/// Returns the tick of an instant; the first tick if the instant is outside the layout.
pub(super) fn tick_of(layout: &Layout, at: UnixMicros) -> Tick {
    layout.tick(at).unwrap_or_default()
}

/// The issuer, as one process of the server uses it.
#[derive(Debug)]
pub struct Issuer<'a, H> {
    /// The part in shared memory.
    pub shared: &'a IssuerMemory,
    /// The server, or a simulated server.
    pub host: H,
}

/// The generator of one layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter<'a> {
    pub layout: Layout,
    pub generator: &'a Generator,
    /// The slot's index; None for the server's own layout.
    pub slot: Option<usize>,
}

/// A change of one layout's generator that takes effect once its high-water mark is durable.
pub(super) struct Step<'a> {
    pub counter: Counter<'a>,
    pub node: Node,
    pub node_bits: NodeBits,
    pub first: Position,
    pub limit: Position,
    pub begins: bool,
}

impl Step<'_> {
    pub fn take(&self) {
        let generator = self.counter.generator;
        if self.begins {
            generator.begin(self.node_bits, self.first, self.limit);
        } else {
            generator.raise(self.limit);
        }
    }
}

/// Returns the position at which a term begins: the node's high-water mark. The node's previous term may have
/// issued all positions below.
pub(super) fn first(state: &State, layout: &Layout, node: Node, at: UnixMicros) -> Position {
    if holds(Guard::StartAtHighWaterMark) {
        state.high_water_mark_in(layout, node)
    } else {
        layout.position_at(at)
    }
}

/// Ends a generator's term, and records the position that it reached.
pub(super) fn end(issuing: &mut Issuing, state: &mut State, counter: &Counter<'_>) {
    let Counter { layout, generator, slot } = counter;
    let ended = issuing.node_at_mut(*slot).take();
    let next = if holds(Guard::CloseFirst) { generator.close() } else { generator.next() };
    let present = || state.node_in(layout);
    if let Some(node) = if holds(Guard::SettleOwnTerm) { ended } else { ended.or_else(present) } {
        // A term that began at the start of its lease may have no high-water mark and no ids, because the clock is
        // behind.
        debug_assert!(
            generator.snapshot().last.is_none_or(|last| last < state.high_water_mark_in(layout, node))
                || !holds(Guard::HighWaterMarksKept),
            "issued above the mark"
        );
        state.settle(layout, node, next);
    }
}

impl<H: Host> Issuer<'_, H> {
    pub(super) fn own_counter(&self) -> Counter<'_> {
        Counter { layout: self.shared.layout, generator: &self.shared.generator, slot: None }
    }

    pub(super) fn counter_of(&self, index: usize, layout: Layout) -> Counter<'_> {
        Counter { layout, generator: &self.shared.slots[index].generator, slot: Some(index) }
    }

    /// Returns the server's own counter, and the counter of each slot that has a layout.
    pub(super) fn counters(&self, issuing: &Issuing) -> Vec<Counter<'_>> {
        let slots = issuing.used().enumerate();
        let slots = slots.filter_map(|(index, slot)| Some(self.counter_of(index, slot.layout?)));
        std::iter::once(self.own_counter()).chain(slots).collect()
    }

    /// Returns the counters with an open term.
    pub(super) fn open_counters(&self, issuing: &Issuing) -> Vec<Counter<'_>> {
        let mut counters = self.counters(issuing);
        counters.retain(|counter| issuing.node_at(counter.slot).is_some());
        counters
    }

    /// Returns the wall clock's time, or the time by the clock reference if the wall clock jumped too far ahead.
    pub fn believed_now(&self) -> UnixMicros {
        let now = self.host.reading();
        self.shared.believed(now.wall, now.since_boot, self.host.settings().max_clock_jump)
    }

    /// Checks the clock. Regular checks keep many small corrections from adding up to a jump.
    pub fn watch(&self) {
        self.judge(&self.host.reading());
    }

    /// Reads the clocks, and returns the time from which to reserve. A believed reading becomes the clock reference in
    /// memory and in the state.
    pub(super) fn believe(&self, state: &mut State) -> UnixMicros {
        let now = self.host.reading();
        let at = self.judge(&now);
        state.seen = now.wall;
        state.clock = self.shared.clock_reference(&now);
        at
    }

    /// Returns the time to use. Counts steps forward, and makes a believed reading the clock reference.
    fn judge(&self, now: &Reading) -> UnixMicros {
        let counts = &self.shared.counts;
        let (ahead, at) =
            match now.judged_by(&self.shared.clock_reference(now), self.host.settings().max_clock_jump) {
                Verdict::Believed { step } => {
                    if step >= NOTABLE {
                        counts.last_step_forward.store(micros(step), Relaxed);
                        counts.steps_forward.fetch_add(1, Relaxed);
                    }
                    self.shared.set_clock_reference(now.wall, now.since_boot);
                    (Duration::ZERO, now.wall)
                }
                Verdict::Behind => (Duration::ZERO, now.wall),
                Verdict::Ahead { by, instead } => (by, instead),
            };
        self.shared.status.clock_ahead.store(micros(ahead), Relaxed);
        at
    }

    /// Restores the generator's last tick and the clock reference from the stored state.
    pub(super) fn resume(&self, stored: &State, now: &Reading) {
        let tick = |at| tick_of(&self.shared.layout, at);
        self.shared.generator.resume(tick(stored.seen), tick(now.wall));
        if now.step_since(&stored.clock).is_some() {
            self.shared.set_clock_reference(stored.clock.wall, stored.clock.since_boot);
        } else if stored.clock.wall > now.wall {
            // The machine was started since the state was written. Its clock is behind and will be set, which is not a
            // jump.
            self.shared.set_clock_reference(stored.clock.wall, now.since_boot);
        }
    }

    /// Reads the state and the identity of its file. None if the server never had a state.
    pub(super) fn read(&self) -> Result<Option<(State, FileIdentity)>, IssuerError> {
        if let Some((text, file)) = self.host.read().map_err(IssuerError::Unreadable)? {
            return Ok(Some((State::from_text(&text)?, file)));
        }
        let witnessed = self.host.is_witnessed().map_err(IssuerError::Unreadable)?;
        if witnessed && holds(Guard::MarkerFile) { Err(StateError::Missing.into()) } else { Ok(None) }
    }

    /// Reads and opens the state. The first opening since the server's start writes the changes.
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

    /// Writes the state durably, and only then lets sessions use the reserved positions.
    pub(super) fn write_then(&self, state: &State, let_out: impl FnOnce()) -> Result<(), IssuerError> {
        if !holds(Guard::WriteFirst) {
            let_out();
            return self.write(state);
        }
        self.write(state)?;
        let_out();
        Ok(())
    }

    /// Replaces the state file durably. After an error the file may hold the old state or the new one, as after a crash.
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
        // The marker file is written last. A marker file without a state would stop a new server from starting.
        if self.host.is_witnessed()? { Ok(()) } else { self.host.marker_file() }
    }

    /// Copies the values for the status view into shared memory.
    pub(super) fn publish(&self, state: &State) {
        let status = &self.shared.status;
        let leased = state.lease.as_ref().filter(|lease| !lease.is_chosen());
        let expiry = leased.map_or(0, |lease| lease.expiry.0);
        status.expiry.store(expiry, Relaxed);
        status.registry.store(state.registry.unwrap_or(0).into(), Relaxed);
        status.alone.store(state.alone, Relaxed);
        status.moving_to.store(state.moving_to.unwrap_or(0).into(), Relaxed);
        let origin = state.lease.as_ref().and_then(|lease| lease.origin.as_ref());
        self.host.show_origin(origin.map_or("", |origin| &origin.server));
    }

    /// Returns the circumstances that are needed to open a state.
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
