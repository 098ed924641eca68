//! The issuer: a server's right to issue, as which node, and up to where.
//!
//! All changes go the same way, one at a time, under the *state lock*: read the stored state, take it up as what it is
//! here and now, change it, write it durably. Only then sessions have what was reserved. A *term* is a time of
//! issuing as one node.
//!
//! What an issuer touches it reaches through the traits of [`host`]: the state's file, the machine's clocks, the lock.
//! The server implements them over what Postgres and the system have, the simulation in memory; each call may be the last
//! before a crash.

mod clock;
mod counts;
mod durable;
mod error;
pub mod host;
mod issuing;
mod obstacle;
mod repair;
mod shared;

pub use counts::Counts;
pub use error::{IssuerError, UNWRITABLE};
pub use host::{Clocks, Cluster, Host, Settings, StateLock, StateStore};
pub use issuing::{Issuer, Issuing};
pub use repair::{Compared, Renewed};
pub use shared::Shared;

use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::id::Node;
use crate::layout::Layout;
use crate::position::Position;
use crate::state::{Here, State};
use issuing::By;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How many microseconds more than `reserve` the mark is raised, and how long before it is met: the time in which the
/// launcher wakes up and the disk takes it.
pub const LEAD: Duration = Duration::from_millis(100);

/// The least time between two looks at the mark.
const BREATH: Duration = Duration::from_millis(20);

/// The durable state of an issuer, for processes that change it for reasons of their own.
pub trait IssuerState {
    /// Changes the state, durably, under the state lock. A term of a node that is not to issue any more is ended.
    ///
    /// # Errors
    /// [`IssuerError`], and nothing was changed.
    fn change<T>(&self, change: impl FnOnce(&mut State, &Here) -> T) -> Result<T, IssuerError>;
    /// The wall clock, or the time by the anchor where it has jumped too far ahead.
    fn believed_now(&self) -> UnixMicros;
    /// Compares the clock with a registry's. One that has jumped ahead is followed where the registry's agrees.
    fn compare(&mut self, registry: UnixMicros) -> Compared;
    /// What all processes of the server share.
    fn shared(&self) -> &Shared;
}

impl<H: Host> IssuerState for Issuer<'_, H> {
    fn change<T>(&self, change: impl FnOnce(&mut State, &Here) -> T) -> Result<T, IssuerError> {
        Self::change(self, change)
    }

    fn believed_now(&self) -> UnixMicros {
        Self::believed_now(self)
    }

    fn compare(&mut self, registry: UnixMicros) -> Compared {
        Self::compare(self, registry)
    }

    fn shared(&self) -> &Shared {
        self.shared
    }
}

impl<H: Host> Issuer<'_, H> {
    /// Sees to it that the next call finds something to take: raises the mark, or begins a term. For a session that
    /// found nothing.
    pub fn provide(&self) -> Result<(), IssuerError> {
        let mut issuing = self.host.lock();
        let at = self.believed_now();
        if issuing.node.is_some()
            && self.limit() > self.layout().position_at(at).max(self.shared.generator.next())
        {
            return Ok(());
        }
        let mut state = self.open(&mut issuing)?;
        self.advance(&mut issuing, &mut state, By::Caller)
    }

    /// Raises the mark before it is met, where ids flow: for the launcher. Gives the time until that is due again.
    pub fn keep_ahead(&self) -> Result<Option<Duration>, IssuerError> {
        let mut issuing = self.host.lock();
        if issuing.node.is_none() || self.limit() >= self.layout().end_position() {
            return Ok(None);
        }
        if self.until_due().is_zero() {
            let mut state = self.open(&mut issuing)?;
            self.advance(&mut issuing, &mut state, By::Launcher)?;
        }
        // Not far enough where the expiry of a lease is near.
        Ok(Some(self.until_due().max(BREATH)))
    }

    /// The time until the mark has to be raised, if ids keep pace with the clock.
    fn until_due(&self) -> Duration {
        let layout = self.layout();
        let at = self.believed_now().max(layout.instant_of(self.shared.generator.next()));
        let left = layout.instant_of(self.limit()).since(at);
        left.saturating_sub(LEAD)
    }

    /// Takes up a stored state as soon as the server runs: what it says of a promotion is known best now, and errors are
    /// in the log before a session needs an id.
    pub fn begin(&self) -> Result<(), IssuerError> {
        let mut issuing = self.host.lock();
        if self.read()?.is_some() {
            self.open(&mut issuing)?;
        }
        Ok(())
    }

    /// Ends the term, and notes exactly how far ids were issued. A session that goes on after that, because it is the
    /// launcher that ends and not the server, begins another.
    ///
    /// # Errors
    /// [`IssuerError`]: the next start begins at the mark, as after a crash.
    pub fn stop(&self) -> Result<(), IssuerError> {
        let mut issuing = self.host.lock();
        if issuing.node.is_none() {
            return Ok(());
        }
        let mut state = self.open(&mut issuing)?;
        self.end(&mut issuing, &mut state);
        self.believe(&mut state);
        self.write(&state)
    }

    /// Has another rollback value issue, because the clock was stepped back behind the present one's ids; whether there
    /// was one whose mark the clock has passed. `era` is the generator's as it was before the clock was found behind:
    /// where it has changed, another process was faster.
    pub fn switch_rollback(&self, era: u64) -> Result<bool, IssuerError> {
        let mut issuing = self.host.lock();
        if self.shared.generator.era() != era {
            return Ok(true);
        }
        let mut state = self.open(&mut issuing)?;
        let at = self.believed_now();
        if !state.clone().switch_rollback(self.layout(), at) {
            return Ok(false);
        }
        self.end(&mut issuing, &mut state);
        state.switch_rollback(self.layout(), at);
        self.advance(&mut issuing, &mut state, By::Caller)?;
        self.shared.counts.switches.fetch_add(1, Relaxed);
        Ok(true)
    }

    /// Changes the state, durably. A term of a node that is not to issue any more is ended.
    ///
    /// # Errors
    /// [`IssuerError`], and nothing was changed.
    pub fn change<T>(&self, change: impl FnOnce(&mut State, &Here) -> T) -> Result<T, IssuerError> {
        let mut issuing = self.host.lock();
        let mut state = self.open(&mut issuing)?;
        let before = state.clone();
        let done = change(&mut state, &self.here(&issuing)?);
        if state.node != issuing.node {
            self.end(&mut issuing, &mut state);
        }
        if state != before {
            self.write(&state)?;
        }
        self.publish(&state);
        Ok(done)
    }

    /// Raises the mark of the node that is to issue, writes it, and lets sessions have what is below; begins the node's
    /// term where it has not.
    fn advance(&self, issuing: &mut Issuing, state: &mut State, by: By) -> Result<(), IssuerError> {
        let (layout, generator) = (self.layout(), &self.shared.generator);
        let settings = self.host.settings();
        let node = state.node.ok_or(IssuerError::NoWorkerId)?;
        let node_bits = layout.place(node).map_err(IssuerError::Misfit)?;
        let at = self.believe(state);
        let begun = issuing.node == Some(node);
        let end = layout.end_position();
        let next = if begun { generator.next() } else { self.first(state, node, at).min(end) };
        let ahead = settings.reserve + LEAD;
        if !begun && next >= settings.rules.drift_end(layout, at) {
            // Nothing may be issued, so there is nothing to reserve.
            if layout.instant_of(next) > at.plus(ahead).plus_micros(settings.rules.max_drift) {
                generator.blame_clock(next, layout);
            }
            generator.begin(node_bits, next, next);
            issuing.node = Some(node);
            return Ok(());
        }
        let limit = state.reserve(layout, at, next, ahead).ok_or(IssuerError::NoWorkerId)?;
        let first = next.max(layout.position_at(at));
        if limit <= first && first < end {
            return Err(IssuerError::expired(state));
        } else if begun && limit <= self.limit() {
            return Ok(());
        }
        debug_assert!(state.mark(node) >= limit.max(next), "the mark is below what is issued");
        self.write_then(state, || {
            if begun {
                generator.raise(limit);
            } else {
                generator.begin(node_bits, next, limit);
            }
        })?;
        issuing.node = Some(node);
        if by == By::Caller {
            self.shared.counts.by_callers.fetch_add(1, Relaxed);
        }
        self.publish(state);
        self.check(issuing, state);
        Ok(())
    }

    /// The position that a term begins with: where the last one of this node may have come to.
    fn first(&self, state: &State, node: Node, at: UnixMicros) -> Position {
        if holds(Guard::StartAtMark) { state.mark(node) } else { self.layout().position_at(at) }
    }

    /// Ends the term that the generator is in, and notes how far it came.
    fn end(&self, issuing: &mut Issuing, state: &mut State) {
        let generator = &self.shared.generator;
        let ended = issuing.node.take();
        let next = if holds(Guard::CloseFirst) { generator.close() } else { generator.next() };
        if let Some(node) = if holds(Guard::SettleOwnTerm) { ended } else { ended.or(state.node) } {
            // A term may begin where its lease does, without a mark, and issue nothing: the clock is behind that.
            debug_assert!(
                generator.snapshot().last.is_none_or(|last| last < state.mark(node))
                    || !holds(Guard::MarksKept),
                "issued above the mark"
            );
            state.settle(node, next);
        }
    }

    /// What holds whenever the state lock is given back.
    fn check(&self, issuing: &Issuing, state: &State) {
        let generator = &self.shared.generator;
        debug_assert_eq!(issuing.node.is_some(), generator.is_open(), "a term is as open as the generator");
        if let Some(node) = issuing.node {
            debug_assert!(state.mark(node) >= generator.next(), "the mark is below what was issued");
            let expiry = state.lease.as_ref().filter(|lease| lease.is_of(node)).map(|lease| lease.expiry);
            let expiry = expiry.map_or(Position::MAX, |expiry| self.layout().position_at(expiry));
            let limit = self.limit();
            debug_assert!(limit <= expiry.max(generator.next()), "the limit is beyond the lease's expiry");
        }
    }

    fn layout(&self) -> &Layout {
        &self.shared.layout
    }

    /// The position below which sessions may take; 0 while no node issues.
    fn limit(&self) -> Position {
        self.shared.generator.limit()
    }
}
