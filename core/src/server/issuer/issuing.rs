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

/// The smallest step forward that is counted: less is a clock that is kept right.
const NOTABLE: Duration = Duration::from_secs(1);

/// The tick of an instant; the first where it has none.
pub(super) fn tick_of(layout: &Layout, at: UnixMicros) -> Tick {
    layout.tick(at).unwrap_or_default()
}

/// The issuer, as a process of the server uses it.
#[derive(Debug)]
pub struct Issuer<'a, H> {
    /// The part in shared memory.
    pub shared: &'a IssuerMemory,
    /// The server, or a simulated one.
    pub host: H,
}

/// The generator of one layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter<'a> {
    pub layout: Layout,
    pub generator: &'a Generator,
    /// Its slot; None: it is that of the server's own layout.
    pub slot: Option<usize>,
}

/// A change of one layout's generator that is made once its mark is durable.
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

/// Has all nodes begin above the tick of a position that is reserved: readers are told positions up to there.
pub(super) fn begin_above_reads(state: &mut State, layout: &Layout, limit: Position) {
    if limit > Position::ZERO && holds(Guard::ReadsRaise) {
        state.begin_above(layout, layout.first_from(limit));
    }
}

/// Ends the term that a generator is in, and notes how far it came.
pub(super) fn end(issuing: &mut Issuing, state: &mut State, counter: &Counter<'_>) {
    let Counter { layout, generator, slot } = counter;
    let ended = issuing.node_at_mut(*slot).take();
    let next = if holds(Guard::CloseFirst) { generator.close() } else { generator.next() };
    let present = || state.node_in(layout);
    if let Some(node) = if holds(Guard::SettleOwnTerm) { ended } else { ended.or_else(present) } {
        // A term may begin where its lease does, without a mark, and issue nothing: the clock is behind that.
        debug_assert!(
            generator.snapshot().last.is_none_or(|last| last < state.high_water_mark_in(layout, node))
                || !holds(Guard::HighWaterMarksKept),
            "issued above the mark"
        );
        state.settle(layout, node, next);
    }
}

impl<H: Host> Issuer<'_, H> {
    /// The position that a term begins with: where the last one of this node may have come to, and in the server's own layout
    /// above what readers were told.
    pub(super) fn first(&self, state: &State, counter: &Counter<'_>, node: Node, at: UnixMicros) -> Position {
        let Counter { layout, slot, .. } = counter;
        let first = if holds(Guard::StartAtHighWaterMark) {
            state.high_water_mark_in(layout, node)
        } else {
            layout.position_at(at)
        };
        let told = self.shared.frontier.position();
        if slot.is_some() || first >= told || !holds(Guard::TermAboveFrontier) {
            return first;
        }
        layout.first_from(told)
    }

    pub(super) fn own_counter(&self) -> Counter<'_> {
        Counter { layout: self.shared.layout, generator: &self.shared.generator, slot: None }
    }

    pub(super) fn counter_of(&self, index: usize, layout: Layout) -> Counter<'_> {
        Counter { layout, generator: &self.shared.slots[index].generator, slot: Some(index) }
    }

    /// All of them: the server's own, and that of each slot which a layout has.
    pub(super) fn counters(&self, issuing: &Issuing) -> Vec<Counter<'_>> {
        let slots = issuing.used().enumerate();
        let slots = slots.filter_map(|(index, slot)| Some(self.counter_of(index, slot.layout?)));
        std::iter::once(self.own_counter()).chain(slots).collect()
    }

    /// Those that have begun a term.
    pub(super) fn open_counters(&self, issuing: &Issuing) -> Vec<Counter<'_>> {
        let mut counters = self.counters(issuing);
        counters.retain(|counter| issuing.node_at(counter.slot).is_some());
        counters
    }

    /// The wall clock, or the time by the clock reference where it has jumped too far ahead.
    pub fn believed_now(&self) -> UnixMicros {
        let now = self.host.reading();
        self.shared.believed(now.wall, now.since_boot, self.host.settings().max_clock_jump)
    }

    /// Looks at the clock once in a while, so that many small corrections do not add up to a jump.
    pub fn watch(&self) {
        self.judge(&self.host.reading());
    }

    /// Reads the clocks, and gives the time to reserve for. What is believed becomes the clock reference, here and in the state.
    pub(super) fn believe(&self, state: &mut State) -> UnixMicros {
        let now = self.host.reading();
        let at = self.judge(&now);
        state.seen = now.wall;
        state.clock = self.shared.clock_reference(&now);
        at
    }

    /// The time to go by; counts steps forward, and makes a reading that is believed the clock reference.
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
        counts.clock_ahead.store(micros(ahead), Relaxed);
        at
    }

    /// Goes on from the clock as it was when the state was written.
    pub(super) fn resume(&self, stored: &State, now: &Reading) {
        let tick = |at| tick_of(&self.shared.layout, at);
        self.shared.generator.resume(tick(stored.seen), tick(now.wall));
        if now.step_since(&stored.clock).is_some() {
            self.shared.set_clock_reference(stored.clock.wall, stored.clock.since_boot);
        } else if stored.clock.wall > now.wall {
            // The machine was started since then, with a clock that cannot be right, and will be set: no jump.
            self.shared.set_clock_reference(stored.clock.wall, now.since_boot);
        }
    }

    /// Reads the state, and tells which file it was found in; None where there never was one.
    pub(super) fn read(&self) -> Result<Option<(State, FileIdentity)>, IssuerError> {
        if let Some((text, file)) = self.host.read().map_err(IssuerError::Unreadable)? {
            return Ok(Some((State::from_text(&text)?, file)));
        }
        let witnessed = self.host.is_witnessed().map_err(IssuerError::Unreadable)?;
        if witnessed && holds(Guard::MarkerFile) { Err(StateError::Missing.into()) } else { Ok(None) }
    }

    /// Reads the state and takes it up. What that changes is written at once when it is the first time.
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

    /// The state is durable when it returns. After an error the old state is still there, or already the new one: as after
    /// a crash.
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
        // Only now: a witness of a state that was never written would stand in the way of a fresh server.
        if self.host.is_witnessed()? { Ok(()) } else { self.host.marker_file() }
    }

    /// Shows what the view needs.
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
