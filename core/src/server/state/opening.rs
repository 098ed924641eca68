//! The opening of a stored state, with the changes after a promotion, a copy, a restore or a new layout.

use super::error::StateError;
use super::high_water_marks::{NodeHighWaterMarks, OF_ANOTHER, OtherLayout};
use super::pairs::has_room;
use super::source::WorkerIdSource;
use super::stored::{Copied, Here, Identity, State};
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::change::first_above;
use crate::ids::position::Position;
use crate::server::clock_reference::Verdict;
use crate::server::lease::{Lease, Policy};
use std::time::Duration;

/// Returns the time that a promoted server has to replicate with its commits: the time of the last commit that recovery
/// replayed, if the clock is behind it. Its own commits have earlier times, from which a standby would not know how far
/// the ids of the previous primary came. A time further ahead is left out, because an administrator has to repair the
/// ids, and no later server should refuse to issue any.
pub fn time_to_replicate(replayed: Option<UnixMicros>, now: UnixMicros) -> Option<UnixMicros> {
    const WRONG: Duration = Duration::from_hours(1);
    let is_ahead = |last: &UnixMicros| *last > now && *last <= now.plus(WRONG);
    replayed.filter(|last| is_ahead(last) && holds(Guard::PromotionReplicated))
}

impl State {
    /// Returns the state of a server that has never issued an id.
    pub fn fresh(here: &Here) -> Self {
        let mut state = Self {
            system_identifier: here.system_identifier,
            timeline: here.timeline,
            home: here.home.clone(),
            layout: here.layout,
            clock: here.clock.clone(),
            seen: here.clock.wall,
            ..Self::default()
        };
        if here.timeline > 1 {
            // This server is a standby that was copied before the primary issued an id, and that was promoted since.
            state.succeed(here);
        }
        state.identify(here);
        state
    }

    /// Opens a stored state. Adapts the state to a promotion, a copy, a restore, a restart or a new layout since the
    /// state was written. The field `clock` keeps its value.
    ///
    /// # Errors
    /// [`StateError`], if this server could repeat ids.
    pub fn open(mut self, here: &Here) -> Result<Self, StateError> {
        self.copied = self.copied_in(here);
        self.change_layout(here);
        if !self.is_of_cluster(here) {
            return Err(StateError::Foreign { stored: self.system_identifier, ours: here.system_identifier });
        } else if self.layout != here.layout {
            return Err(StateError::Layout { stored: self.layout, ours: here.layout });
        }
        if !self.is_of(here) {
            // After a promotion or a copy, the databases must be checked for registries again.
            self.doubt_source();
        }
        // True if an administrator restored an earlier state file into this data directory.
        let is_put_back = self.home.is_put_back(&here.home);
        let is_shared = self.lease.as_ref().is_some_and(|lease| lease.origin.is_some());
        if self.timeline != here.timeline {
            self.promote(here);
        } else if !self.home.is(&here.home) {
            self.settle_in_copy(here);
        }
        if is_put_back {
            self.rise_above_lost(is_shared, here);
        }
        // A copied server must not issue ids under a configured worker id that the original server has used.
        if let (Identity::Fixed { datacenter, worker_id }, Some(of)) = (here.identity, &self.copy_of)
            && self.marks().any(|(_, mark)| mark.is_of_another() && mark.node.is_of(datacenter, worker_id))
        {
            let homes = Box::new([of.clone(), here.home.clone()]);
            return Err(StateError::Copy { homes, datacenter, worker_id });
        }
        self.home = here.home.clone();
        if here.starts && matches!(here.identity, Identity::Leased { .. }) {
            self.start(here);
        }
        self.identify(here);
        Ok(self)
    }

    /// Gives up the worker id if the policy is `disposable`, under which a server uses a worker id until its next start
    /// only. Also gives up a chosen worker id if a crash may have interrupted a transaction in which a database joins a
    /// registry, because another node may have that worker id.
    fn start(&mut self, here: &Here) {
        if here.policy == Policy::Disposable {
            self.name_worker_id();
            self.forget_lease();
        }
        if self.source.moving().is_some() && self.source.is_alone() {
            self.doubt_source();
            self.leave_former();
        }
    }

    /// Makes the server check its databases for registries before it chooses a worker id again.
    fn doubt_source(&mut self) {
        if self.source.is_alone() {
            self.source.settle(WorkerIdSource::Unknown);
        }
    }

    /// Opens the state after a promotion. Gives up the previous primary's lease, because the previous primary may still
    /// be running.
    fn promote(&mut self, here: &Here) {
        self.timeline = here.timeline;
        if holds(Guard::PromotionForgets) {
            self.name_worker_id();
            self.forget_lease();
        }
        self.succeed(here);
    }

    /// Makes nodes begin above all ids that the previous primary issued before the last replayed commit. Ids of a new
    /// worker id are unique without this step, which only keeps the ids in order. So the start of new worker ids is not
    /// raised if the clock is so far behind that no ids could be issued.
    fn succeed(&mut self, here: &Here) {
        let now = self.believed(here);
        let last = here.replayed.unwrap_or(now);
        if holds(Guard::PromotionRises) {
            self.rise_above(last, here);
        }
        if matches!(here.identity, Identity::Leased { .. }) && last <= now.plus(here.max_drift) {
            self.raise_minimums(last, here);
        }
    }

    /// Returns the wall clock's time, or the time that this state's clock reference predicts if the wall clock jumped
    /// too far ahead.
    pub(super) fn believed(&self, here: &Here) -> UnixMicros {
        match here.clock.judged_by(&self.clock, here.max_clock_jump) {
            Verdict::Believed { .. } | Verdict::Behind => here.clock.wall,
            Verdict::Ahead { instead, .. } => instead,
        }
    }

    /// Makes each node with a high-water mark begin above all ids that the node may have issued until `last`. If the
    /// worker id is fixed, also raises the start of nodes without a high-water mark.
    fn rise_above(&mut self, last: UnixMicros, here: &Here) {
        let last = last.plus(here.max_drift);
        self.own.rise(here.layout.position_after(last));
        if holds(Guard::OthersRise) {
            self.others.rise(last);
        }
        if matches!(here.identity, Identity::Fixed { .. }) {
            self.raise_minimums(last, here);
        }
    }

    /// Makes each node without a high-water mark begin above `last`.
    fn raise_minimums(&mut self, last: UnixMicros, here: &Here) {
        self.own.raise_minimum(here.layout.position_after(last));
        if holds(Guard::OthersRise) {
            self.others.raise_minimums(last.plus_micros(1));
        }
    }

    /// Makes each node begin above all ids issued until now, including ids that the restored state does not record. If
    /// several servers share the registry, nodes without a high-water mark in a known layout begin where they began
    /// before, because the registry's leases keep the ids of these nodes unique. A minimum ahead of the clock would delay
    /// the time at which other servers can lease the worker ids that this server releases.
    fn rise_above_lost(&mut self, is_shared: bool, here: &Here) {
        let now = self.believed(here);
        self.rise_above(now, here);
        if !is_shared {
            self.raise_minimums(now.plus(here.max_drift), here);
        }
        // The same node may have used a layout that the restored state does not record.
        self.others.minimum = self.others.minimum.max(now.plus(here.max_drift).plus_micros(1));
    }

    /// Opens the state in a copied directory. The original server may still issue ids under the same worker id. Also
    /// opens a restored state, which does not record the ids that were issued after the copy was made.
    fn settle_in_copy(&mut self, here: &Here) {
        // An unused state means that the directory comes from an image. Administrators must set a different worker id on
        // each server.
        let is_image = self.is_unused() && !self.home.is_in(&here.home);
        if is_image && matches!(here.identity, Identity::Fixed { .. }) {
            return;
        }
        self.copy_of = Some(self.home.clone());
        self.first = self.first.filter(|_| self.home.is_in(&here.home));
        self.name_worker_id();
        self.forget_lease();
        if self.home.may_be_moved(&here.home) {
            // A container may have been made anew for the same directory. The server prefers worker ids that it never had, but
            // may return to former ones, because each new container takes another.
            return;
        }
        self.marks_mut().for_each(|mark| mark.position = OF_ANOTHER);
        if let Some(node) = self.node {
            self.own.set(node, OF_ANOTHER);
        }
    }

    /// Returns the last event after which this server's tables may lack ids of tags that were reserved elsewhere or later.
    /// The result is the same before and after the state is opened and written here, and if it cannot be opened. A
    /// promotion is no such event, because rows record timelines. Neither is a directory that may only have been moved.
    pub fn copied_in(&self, here: &Here) -> Option<Copied> {
        let (home, now) = (&self.home, &here.home);
        let is_here = self.timeline != here.timeline || home.is(now) || home.may_be_moved(now);
        let is_image = !self.has_reserved && self.is_unused() && !home.is_in(now);
        if is_here || is_image || !self.is_of_cluster(here) {
            return self.copied;
        }
        let before = self.copied.map_or(0, |copied| copied.number);
        let text = format!("{} {} {before} {}", home.told_apart(), now.told_apart(), self.seen.0);
        Some(Copied { number: crc32fast::hash(text.as_bytes()).into(), at: here.clock.wall })
    }

    /// Returns true if the state is from another data directory, or was restored from a copy. Returns false after
    /// [`State::adopt`] was called.
    pub fn is_copy(&self, here: &Here) -> bool {
        self.copy_of.is_some() || !self.home.is(&here.home)
    }

    /// Returns a copied state as this server's own state. The original server must have been removed for good.
    pub fn adopt(mut self, here: &Here) -> Result<Self, StateError> {
        self.copied = self.copied_in(here);
        self.change_layout(here);
        self.home = here.home.clone();
        self.copy_of = None;
        for mark in self.marks_mut().filter(|mark| mark.is_of_another()) {
            mark.position = Position::ZERO;
        }
        self.rise_above(self.believed(here), here);
        self.open(here)
    }

    /// Returns a new state in place of an untrusted state. Every node begins at or above `above`. The previous state's lease
    /// token becomes the pending token, so that the server can lease the same worker id again before the lease expires.
    pub fn anew(here: &Here, above: Position, former: Option<&Self>) -> Self {
        let mut state = Self {
            own: NodeHighWaterMarks { minimum: above, ..NodeHighWaterMarks::default() },
            copied: former.and_then(|former| former.copied_in(here)),
            has_reserved: former.is_none_or(|former| former.has_reserved),
            ..Self::fresh(here)
        };
        // Ids above all recorded positions may have been issued under the previous state's worker ids. Each of these
        // worker ids gets a high-water mark, so that the server does not treat the worker id as unused.
        if let (Some(former), Identity::Leased { .. }) = (former, here.identity) {
            former.node.iter().for_each(|node| state.own.set(*node, above));
            // The high-water marks of other servers come last, because a node may have marks in several layouts.
            for (of_another, position) in [(false, above), (true, OF_ANOTHER)] {
                let marks = former.marks().filter(|(_, mark)| mark.is_of_another() == of_another);
                marks.for_each(|(_, mark)| state.own.set(mark.node, position));
            }
        }
        let Some(former) = former.filter(|former| former.is_of(here)) else { return state };
        state.pending_token =
            former.lease.as_ref().filter(|lease| !lease.is_chosen()).map(|lease| lease.token);
        state.source = former.source.settled().clone();
        state.first = former.first;
        state.identify(here);
        state
    }

    fn is_unused(&self) -> bool {
        self.marks().all(|(_, mark)| mark.position == Position::ZERO)
            && self.tables().all(|(_, of)| of.minimum == Position::ZERO)
            && self.others.minimum == UnixMicros(0)
            && self.lease.as_ref().is_none_or(Lease::is_chosen)
    }

    /// Replaces the server's own layout with the configured layout, if the state is unused or an administrator has
    /// allowed the change. The previous layout's high-water marks are kept, and ids of the new layout begin above all
    /// of them.
    fn change_layout(&mut self, here: &Here) {
        let has_room = |lease: &Lease| has_room(&here.layout, lease.datacenter, lease.worker_id);
        if !self.is_of_cluster(here) {
            return;
        }
        let former = self.layout;
        if self.is_unused() {
            self.layout = here.layout;
            if !self.lease.as_ref().is_none_or(has_room) {
                self.forget_lease();
            }
            return;
        }
        if former == here.layout || self.next_layout != Some(here.layout) {
            return;
        }
        let Some(first) = first_above(&former, &here.layout, self.own.highest()) else { return };
        // UUIDs contain the instants of positions, so the instants of the new layout's positions must not go back
        // either.
        let first = first.max(here.layout.position_from(former.instant_above(self.own.highest())));
        let mut next = self.others.take(&here.layout);
        if holds(Guard::LayoutRises) {
            next.of.rise(first);
            next.of.raise_minimum(first);
        }
        if !self.lease.as_ref().is_none_or(has_room) {
            self.forget_lease();
        }
        let rollback = self.node.map_or(0, |node| node.rollback);
        let of = std::mem::replace(&mut self.own, next.of);
        self.node = self.node.map(|node| Node { rollback: next.rollback, ..node });
        self.layout = here.layout;
        self.told = Position::ZERO;
        self.next_layout = None;
        let former = OtherLayout { layout: former, node: None, rollback, used: UnixMicros(0), of };
        self.others.put(former, here.clock.wall);
    }
}
