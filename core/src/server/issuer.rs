//! The issuer, which chooses the node under which a server issues ids, and raises the node's high-water mark. The
//! *state lock* admits one change at a time: see "The state file" in `docs/architecture.md`.

mod clock;
mod counter;
mod error;
mod host;
mod repair;
mod shared;
mod slot;
mod slot_assignment;
mod state_file;

pub use crate::server::state::MAX_SLOTS;
pub use error::{IssuerError, NoIds, NoRoom, UNWRITABLE};
pub use host::{Cluster, Host, Settings};
pub use repair::{Accepted, Compared, Renewed};
pub use shared::{Issuer, IssuerCounts, IssuerMemory, IssuerStatus};
pub use slot::{DEFAULT_SLOTS, GeneratorSlot, Issuing, LayoutGenerator, Occupancy, PositionSource, SlotRef};

use crate::clock::UnixMicros;
use crate::generator::drift::{CATCH_UP, GeneratorError};
use crate::generator::snowflake::Generator;
use crate::guard::{Guard, holds};
use crate::ids::layout::Layout;
use crate::ids::position::Position;
use crate::server::state::{Here, NodeHighWaterMarks, State};
use counter::{Counter, PendingChange, end, first};
use error::{FREE_SPACE, SEE_LOG};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The time by which the launcher raises the high-water mark before ids reach the mark. Each raise reserves positions
/// for this time in addition to `reserve`. The time suffices for the launcher to wake up and for the disk to write.
pub const LEAD: Duration = Duration::from_millis(100);

/// The launcher's shortest pause between two checks of the high-water mark.
const BREATH: Duration = Duration::from_millis(20);

impl<H: Host> Issuer<'_, H> {
    /// Provides positions of a layout, after a session found no positions. Assigns a slot if the layout has none, and
    /// raises the high-water mark or begins a term. Returns the source of the layout's ids.
    pub fn provide_in(&self, layout: &Layout) -> Result<SlotRef, IssuerError> {
        let mut issuing = self.host.lock();
        let slot_ref = self.assign_slot_in(&mut issuing, layout)?;
        let Some(counter) = self.counter_at(&issuing, slot_ref) else { return Ok(slot_ref) };
        let Counter { layout, generator } = counter;
        let next = layout.position_at(self.believed_now()).max(generator.next());
        if !generator.is_open() || generator.limit() <= next {
            let mut state = self.open(&mut issuing)?;
            self.advance(&issuing, &mut state, Some(&counter))?;
        }
        Ok(slot_ref)
    }

    /// Raises the high-water marks of open terms before ids reach these marks. The launcher calls this function.
    /// Returns the time until the next call is due; None if no open term can be raised.
    pub fn keep_ahead(&self) -> Result<Option<Duration>, IssuerError> {
        let mut issuing = self.host.lock();
        self.observe_slots(&mut issuing);
        let mut open = self.open_counters(&issuing);
        open.retain(|counter| counter.generator.limit() < counter.layout.end_position());
        if open.is_empty() {
            return Ok(None);
        }
        let until_due = || open.iter().map(|counter| self.until_due(counter)).min().unwrap_or_default();
        let at = self.believed_now();
        // In a burst, ids run ahead of the clock, so the next check must come soon.
        let is_burst = open.iter().any(|counter| counter.layout.instant_of(counter.generator.next()) > at);
        if until_due().is_zero() {
            let mut state = self.open(&mut issuing)?;
            self.advance(&issuing, &mut state, None)?;
        }
        // Near the expiry of a lease, raises are short, and the next check could be due immediately. The launcher still
        // pauses for `BREATH`.
        Ok(Some(if is_burst { BREATH } else { until_due().max(BREATH) }))
    }

    /// Returns the time until the high-water mark must be raised, if ids keep pace with the clock.
    fn until_due(&self, Counter { layout, generator }: &Counter<'_>) -> Duration {
        let at = self.believed_now().max(layout.instant_of(generator.next()));
        let left = layout.instant_of(generator.limit()).since(at);
        left.saturating_sub(LEAD)
    }

    /// Opens the state when the server starts, so that a promotion is handled and errors are logged before a session
    /// needs an id. If there is no state, writes the server's first state, by which later starts recognise copies of
    /// this server.
    pub fn begin(&self) -> Result<(), IssuerError> {
        let mut issuing = self.host.lock();
        let mut state = self.open(&mut issuing)?;
        // Without a file identity, the state is new and was not read from a file.
        if state.home.file.is_none() {
            self.believe(&mut state);
            self.write(&state)?;
            self.publish(&state);
        }
        Ok(())
    }

    /// Ends all terms, and records the exact position that each term has reached. If the launcher exits while the
    /// server runs, the next call for ids begins a new term.
    ///
    /// # Errors
    /// [`IssuerError`]. The terms after the next start then begin at the high-water marks, as after a crash.
    pub fn stop(&self) -> Result<(), IssuerError> {
        let mut issuing = self.host.lock();
        if self.open_counters(&issuing).is_empty() {
            return Ok(());
        }
        let mut state = self.open(&mut issuing)?;
        for counter in self.open_counters(&issuing) {
            end(&issuing, &mut state, &counter);
        }
        self.believe(&mut state);
        self.write(&state)
    }

    /// Switches the layout at `slot_ref` to another rollback value, because the clock is behind the ids of the current
    /// rollback value. Returns false if the clock is below the high-water marks of all other rollback values.
    /// `generation` is the generator's generation before the caller noticed the step back. If the generation has
    /// changed since, another process has already switched.
    pub fn switch_rollback_at(&self, slot_ref: SlotRef, generation: u64) -> Result<bool, IssuerError> {
        let mut issuing = self.host.lock();
        let Some(counter) = self.counter_at(&issuing, slot_ref) else { return Ok(true) };
        if counter.generator.generation() != generation {
            return Ok(true);
        }
        let mut state = self.open(&mut issuing)?;
        if !state.switch_rollback(&counter.layout, self.believed_now()) {
            return Ok(false);
        }
        end(&issuing, &mut state, &counter);
        self.advance(&issuing, &mut state, Some(&counter))?;
        self.shared.counts.switches.fetch_add(1, Relaxed);
        Ok(true)
    }

    /// Switches to another worker id because the clock is behind the ids of the current worker id. Returns None if the
    /// server does not choose its worker id itself, and Some(false) if no other worker id can be used.
    pub fn take_another(&self, slot_ref: SlotRef, generation: u64) -> Result<Option<bool>, IssuerError> {
        let now = self.believed_now();
        let taken = self.change_of(|issuing, state, here| {
            match self.counter_at(issuing, slot_ref) {
                Some(counter) if counter.generator.generation() == generation => {
                    state.take_another(here, now)
                }
                // Another process has already switched.
                _ => state.source.is_alone().then_some(true),
            }
        })?;
        if taken == Some(true) {
            self.shared.counts.switches.fetch_add(1, Relaxed);
        }
        Ok(taken)
    }

    /// Prepares the server for readers of a [safe position](crate::generator::safe_position). From now on, each
    /// reservation records in the state an upper bound of the safe positions that readers may get. The terms of all
    /// nodes begin at or above this bound, also after a restart.
    pub fn admit_readers(&self) -> Result<(), IssuerError> {
        let mut issuing = self.host.lock();
        if issuing.has_readers {
            return Ok(());
        }
        let mut state = self.open(&mut issuing)?;
        let generator = &self.shared.generator;
        let reached = generator.limit().max(generator.next());
        state.told = state.told.max(self.shared.layout.first_from(reached));
        self.write(&state)?;
        issuing.has_readers = true;
        Ok(())
    }

    /// Changes the state durably. Ends each term whose node may no longer issue ids.
    pub fn change<T>(&self, change: impl FnOnce(&mut State, &Here) -> T) -> Result<T, IssuerError> {
        self.change_of(|_, state, here| change(state, here))
    }

    fn change_of<T>(&self, change: impl FnOnce(&Issuing, &mut State, &Here) -> T) -> Result<T, IssuerError> {
        let mut issuing = self.host.lock();
        let mut state = self.open(&mut issuing)?;
        let before = state.clone();
        let here = self.here(&issuing)?;
        let done = change(&issuing, &mut state, &here);
        for counter in self.counters(&issuing) {
            if state.node_in(&counter.layout) != counter.node() {
                end(&issuing, &mut state, &counter);
            }
        }
        if state != before {
            self.write(&state)?;
        }
        self.publish(&state);
        Ok(done)
    }

    /// Raises the high-water marks of all open terms, records the marks in one write of the state file, and lets
    /// sessions use the new positions. Begins a term for `wanted` if `wanted` has no open term.
    fn advance(
        &self,
        issuing: &Issuing,
        state: &mut State,
        wanted: Option<&Counter<'_>>,
    ) -> Result<(), IssuerError> {
        let at = self.believe(state);
        let mut changes = Vec::new();
        let mut failed = Ok(());
        for counter in self.counters(issuing) {
            let is_wanted = wanted.is_some_and(|wanted| wanted.layout == counter.layout);
            if !is_wanted && !counter.generator.is_open() {
                continue;
            }
            match self.pending_change(issuing, state, counter, at) {
                Ok(change) => changes.extend(change),
                Err(error) if is_wanted => return Err(error),
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        let reserved = changes.iter().any(|change| change.first != change.limit || !change.begins);
        if reserved && holds(Guard::WriteFirst) {
            self.write(state)?;
        }
        changes.iter().for_each(PendingChange::take);
        if reserved && !holds(Guard::WriteFirst) {
            self.write(state)?;
        }
        if reserved {
            if wanted.is_some() {
                self.shared.counts.by_callers.fetch_add(1, Relaxed);
            }
            self.publish(state);
            self.check(issuing, state);
        }
        if wanted.is_some() { Ok(()) } else { failed }
    }

    /// Raises the high-water mark of one layout in the state. Returns the change for the layout's generator; None if
    /// the generator stays as it is.
    fn pending_change<'c>(
        &self,
        issuing: &Issuing,
        state: &mut State,
        counter: Counter<'c>,
        at: UnixMicros,
    ) -> Result<Option<PendingChange<'c>>, IssuerError> {
        let Counter { layout, generator } = counter;
        let settings = self.host.settings();
        self.check_room(state, &layout)?;
        let node = state.node_in(&layout).ok_or(IssuerError::NoWorkerId)?;
        let node_bits = layout.place(node).map_err(IssuerError::Misfit)?;
        let begun = counter.node() == Some(node);
        let end = layout.end_position();
        let next = if begun { generator.next() } else { first(state, &layout, node, at).min(end) };
        let ahead = settings.reserve + LEAD;
        let change = PendingChange { counter, node_bits, first: next, limit: next, begins: !begun };
        if !begun && next >= settings.rules.drift_end(&layout, at) {
            // The clock does not allow ids now, so no positions are reserved.
            if layout.instant_of(next) > at.plus(ahead).plus_micros(settings.rules.max_drift) {
                generator.blame_clock(next, &layout);
            }
            return Ok(Some(change));
        }
        let limit = state.reserve(&layout, at, next, ahead).ok_or(IssuerError::NoWorkerId)?;
        if issuing.has_readers && layout == state.layout {
            state.told = state.told.max(layout.first_from(limit));
        }
        let first = next.max(layout.position_at(at));
        if limit <= first && first < end {
            let lease = state.lease.as_ref().ok_or(IssuerError::NoWorkerId)?;
            return Err(IssuerError::LeaseEnded { worker_id: lease.worker_id, expiry: lease.expiry });
        } else if begun && limit <= generator.limit() {
            return Ok(None);
        }
        debug_assert!(
            state.high_water_mark_in(&layout, node) >= limit.max(next),
            "the mark is below what is issued"
        );
        Ok(Some(PendingChange { limit, ..change }))
    }

    /// Checks the invariants that hold when the state lock is released.
    fn check(&self, issuing: &Issuing, state: &State) {
        if !cfg!(debug_assertions) {
            return;
        }
        for counter in self.counters(issuing) {
            let Counter { layout, generator } = counter;
            let Some(node) = counter.node() else { continue };
            debug_assert!(
                generator.snapshot().last.is_none_or(|last| last < state.high_water_mark_in(&layout, node)),
                "the mark is below what was issued"
            );
            let expiry = state.lease.as_ref().filter(|lease| lease.is_of(node)).map(|lease| lease.expiry);
            let expiry = expiry.map_or(Position::MAX, |expiry| layout.position_at(expiry));
            let limit = generator.limit();
            debug_assert!(limit <= expiry.max(generator.next()), "the limit is beyond the lease's expiry");
        }
    }

    /// Returns a position of the layout above all ids that this server issued or reserved, under any node. Takes no lock,
    /// because any role may ask: each state is in the file before sessions use it.
    pub fn highest_in(&self, layout: &Layout) -> Result<Position, IssuerError> {
        // An opened state is only read.
        let state = self.open(&mut Issuing { opened: true, ..Issuing::default() })?;
        let unknown = || layout.position_from(state.others.minimum);
        Ok(state.high_water_marks_of(layout).map_or_else(unknown, NodeHighWaterMarks::highest))
    }

    /// Returns the reason why the server's own layout can issue no ids. Returns None if no such reason is visible without
    /// taking ids.
    pub fn obstacle(&self) -> Option<NoIds> {
        self.obstacle_in(&self.shared.layout, &self.shared.generator)
    }

    /// Returns the reason why no ids of a layout can be issued; else None. `generator` is the layout's generator, or the
    /// server's own generator if the layout has no slot.
    pub fn obstacle_in(&self, layout: &Layout, generator: &Generator) -> Option<NoIds> {
        let (status, is_own) = (&self.shared.status, layout == &self.shared.layout);
        match self.next_position() {
            Err(error) => Some(error.into()),
            Ok(_) if status.unwritable.load(Relaxed) => Some(NoIds::new(UNWRITABLE, FREE_SPACE)),
            Ok(_) if status.expiry().is_some_and(|expiry| expiry <= self.believed_now()) => {
                Some(NoIds::new("the lease of the worker id has ended", SEE_LOG))
            }
            Ok(next) if is_own => self.out_of_time(layout, next),
            Ok(_) if std::ptr::eq(generator, &raw const self.shared.generator) => {
                self.out_of_time(layout, Position::ZERO)
            }
            Ok(_) => self.out_of_time(layout, generator.next()),
        }
    }

    fn out_of_time(&self, layout: &Layout, next: Position) -> Option<NoIds> {
        let now = self.believed_now();
        if let Err(error) = layout.tick(now) {
            return Some(GeneratorError::from(error).into());
        }
        let too_far = next >= self.host.settings().rules.drift_end(layout, now);
        too_far.then(|| NoIds::new("ids are further ahead of the clock than max_drift", CATCH_UP))
    }

    /// Returns the position that the server's own layout would issue next; 0 if no node issues.
    fn next_position(&self) -> Result<Position, IssuerError> {
        let here = self.here(&Issuing { opened: true, ..Issuing::default() })?;
        let open = |(state, file): (State, _)| state.open(&here.with_file(file));
        let state = self.read()?.map(open).transpose()?;
        if self.shared.generator.limit() > Position::ZERO {
            return Ok(self.shared.generator.next());
        }
        Ok(state.and_then(|state| Some(state.high_water_mark(state.node?))).unwrap_or_default())
    }
}
