//! Taking a stored state up: as it is, or changed where the server was promoted, copied, put back or given another layout.

use super::error::StateError;
use super::high_water_marks::{NodeHighWaterMark, NodeHighWaterMarks, OF_ANOTHER, OtherLayout, Others};
use super::stored::{Here, Identity, State};
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::Field;
use crate::ids::layout::change::first_above;
use crate::ids::position::Position;
use crate::registry::lease::{Lease, Policy};
use crate::server::clock_reference::Verdict;

impl State {
    /// The state of a server that has never issued anything.
    pub fn fresh(here: &Here) -> Self {
        let mut state = Self {
            system_identifier: here.system_identifier,
            timeline: here.timeline,
            home: here.home.clone(),
            copy_of: None,
            layout: here.layout,
            next_layout: None,
            clock: here.clock.clone(),
            seen: here.clock.wall,
            node: None,
            own: NodeHighWaterMarks::default(),
            others: Others { layouts: Vec::new(), minimum: UnixMicros(0) },
            lease: None,
            former: None,
            pending_token: None,
            registry: None,
            moving_to: None,
            moving_with: None,
            leases_with: None,
            alone: false,
            is_installed: false,
            first: None,
        };
        if here.timeline > 1 {
            // A standby that was copied before its primary issued anything, and promoted since.
            state.succeed(here);
        }
        state.identify(here);
        state
    }

    /// Takes up a stored state: as it is where this is the server that wrote it, changed where the server was promoted
    /// or copied meanwhile. `clock` stays what it was.
    ///
    /// # Errors
    /// [`StateError`], where going on could repeat ids.
    pub fn open(mut self, here: &Here) -> Result<Self, StateError> {
        self.change_layout(here);
        if !self.is_of_cluster(here) {
            return Err(StateError::Foreign { stored: self.system_identifier, ours: here.system_identifier });
        } else if self.layout != here.layout {
            return Err(StateError::Layout { stored: self.layout, ours: here.layout });
        }
        if !self.is_of(here) {
            // The known registries are of another time, or place.
            self.alone = false;
        }
        // An earlier state of this very directory that an operator put back.
        let is_put_back = self.home.is_in(&here.home) && !self.home.is(&here.home);
        let is_shared = self.lease.as_ref().is_some_and(|lease| lease.origin.is_some());
        if self.timeline != here.timeline {
            self.promote(here);
        } else if !self.home.is(&here.home) {
            self.settle_in_copy(here)?;
        }
        if is_put_back {
            self.rise_above_lost(is_shared, here);
        }
        // A copy is refused the numbers of the server that it was copied from.
        if let (Identity::Fixed { datacenter, worker }, Some(of)) = (here.identity, &self.copy_of)
            && self.all_high_water_marks().any(|high_water_mark| {
                high_water_mark.is_of_another() && high_water_mark.node.is_of(datacenter, worker)
            })
        {
            let homes = Box::new([of.clone(), here.home.clone()]);
            return Err(StateError::Copy { homes, datacenter, worker });
        }
        self.home = here.home.clone();
        if here.starts && matches!(here.identity, Identity::Leased { .. }) {
            self.start(here);
        }
        self.identify(here);
        Ok(self)
    }

    /// A worker id may be for one start only. One that was chosen is not for a server that may draw from a registry by now, as a crash
    /// has cut short a transaction, or what it was followed by.
    fn start(&mut self, here: &Here) {
        if here.policy == Policy::Disposable {
            self.name_worker();
            self.forget_lease();
        }
        if self.moving_to.is_some() && self.alone {
            self.alone = false;
            self.leave_former();
        }
    }

    /// After a promotion the server that this state came from may still be running: its lease is not ours.
    fn promote(&mut self, here: &Here) {
        self.timeline = here.timeline;
        if holds(Guard::PromotionForgets) {
            self.name_worker();
            self.forget_lease();
        }
        self.succeed(here);
    }

    /// Begins above all that the former primary issued before the last commit that came here. Under another worker id
    /// only for the sake of order: so not where the clock is so far behind that there would be no ids.
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

    /// The time, as far as this state believes the clock.
    pub(super) fn believed(&self, here: &Here) -> UnixMicros {
        match here.clock.judged_by(&self.clock, here.max_clock_jump) {
            Verdict::Believed { .. } | Verdict::Behind => here.clock.wall,
            Verdict::Ahead { instead, .. } => instead,
        }
    }

    /// Has every node begin above what one that was ours until this instant may have issued.
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

    /// Has every node that has no mark begin above an instant.
    fn raise_minimums(&mut self, last: UnixMicros, here: &Here) {
        self.own.raise_minimum(here.layout.position_after(last));
        if holds(Guard::OthersRise) {
            self.others.raise_minimums(last.plus_micros(1));
        }
    }

    /// Has every node begin above what any may have issued here up to now, those included that the state which was put back
    /// does not know of. Not where worker ids come from a registry that many share: what was leased there since still is,
    /// and ids ahead of the clock would keep other servers from leasing.
    fn rise_above_lost(&mut self, is_shared: bool, here: &Here) {
        let now = self.believed(here);
        self.rise_above(now, here);
        if !is_shared {
            self.raise_minimums(now.plus(here.max_drift), here);
        }
        // A layout that it does not know of may have been used since, as the same node.
        self.others.minimum = self.others.minimum.max(now.plus(here.max_drift).plus_micros(1));
    }

    /// A directory that was copied without a promotion: two servers would issue as one. Or a state that was put back from a
    /// copy: what was issued since is not in it.
    fn settle_in_copy(&mut self, here: &Here) -> Result<(), StateError> {
        // The numbers of servers out of an image are for operators to tell apart.
        let is_image = self.is_unused() && !self.home.is_in(&here.home);
        if is_image && matches!(here.identity, Identity::Fixed { .. }) {
            return Ok(());
        }
        if let Identity::Fixed { datacenter, worker } = here.identity
            && self
                .all_high_water_marks()
                .map(|high_water_mark| high_water_mark.node)
                .chain(self.node)
                .any(|node| node.is_of(datacenter, worker))
        {
            let homes = Box::new([self.home.clone(), here.home.clone()]);
            return Err(StateError::Copy { homes, datacenter, worker });
        }
        self.copy_of = Some(self.home.clone());
        self.first = self.first.filter(|_| self.home.is_in(&here.home));
        self.name_worker();
        self.forget_lease();
        for high_water_mark in self.all_high_water_marks_mut() {
            high_water_mark.position = OF_ANOTHER;
        }
        Ok(())
    }

    /// Returns whether this was copied from another home, or put back from a copy, and not adopted.
    pub fn is_copy(&self, here: &Here) -> bool {
        self.copy_of.is_some() || !self.home.is(&here.home)
    }

    /// A copied state, when the one it was copied from is gone for good.
    ///
    /// # Errors
    /// [`StateError`], for other reasons than that it is a copy.
    pub fn adopt(mut self, here: &Here) -> Result<Self, StateError> {
        self.change_layout(here);
        self.home = here.home.clone();
        self.copy_of = None;
        for high_water_mark in
            self.all_high_water_marks_mut().filter(|high_water_mark| high_water_mark.is_of_another())
        {
            high_water_mark.position = Position::ZERO;
        }
        self.rise_above(self.believed(here), here);
        self.open(here)
    }

    /// In place of a state that can't be trusted: every node begins above this position. What the former one knew of a
    /// lease is kept as a claim, so that the worker id need not wait for its expiry.
    pub fn anew(here: &Here, above: Position, former: Option<&Self>) -> Self {
        let mut state = Self {
            own: NodeHighWaterMarks { minimum: above, ..NodeHighWaterMarks::default() },
            ..Self::fresh(here)
        };
        // Its ids may come after all that is known: it is to choose none of its worker ids again.
        if let (Some(former), Identity::Leased { .. }) = (former, here.identity) {
            former.node.iter().for_each(|node| state.own.set(*node, above));
            let (of_another, free): (Vec<&NodeHighWaterMark>, Vec<&NodeHighWaterMark>) =
                former.all_high_water_marks().partition(|high_water_mark| high_water_mark.is_of_another());
            for high_water_mark in free.into_iter().chain(of_another) {
                state.own.set(
                    high_water_mark.node,
                    if high_water_mark.is_of_another() { OF_ANOTHER } else { above },
                );
            }
        }
        let Some(former) = former.filter(|former| former.is_of(here)) else { return state };
        state.pending_token =
            former.lease.as_ref().filter(|lease| !lease.is_chosen()).map(|lease| lease.token);
        state.registry = former.registry;
        state.alone = former.alone;
        state.first = former.first;
        state.identify(here);
        state
    }

    fn is_unused(&self) -> bool {
        self.all_high_water_marks().all(|high_water_mark| high_water_mark.position == Position::ZERO)
            && self.tables().all(|(_, of)| of.minimum == Position::ZERO)
            && self.others.minimum == UnixMicros(0)
            && self.lease.as_ref().is_none_or(Lease::is_chosen)
    }

    /// Makes the layout of here and now the server's own, if that is what an operator has said it is to be: the marks of
    /// the former are kept, and ids of the new one begin above all of them.
    fn change_layout(&mut self, here: &Here) {
        let has_room = |lease: &Lease| u64::from(lease.worker) <= here.layout.max(Field::Worker);
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
        // Nor do UUIDs go back, which follow the instants of positions.
        let first = first.max(here.layout.position_from(former.instant_above(self.own.highest())));
        let mut next = self.others.take(&here.layout);
        if holds(Guard::LayoutRises) {
            next.of.rise(first);
            next.of.raise_minimum(first);
        }
        if !self.lease.as_ref().is_none_or(has_room) {
            self.forget_lease();
        }
        if let Some(lease) = &mut self.lease {
            lease.start = lease.start_in(&here.layout, &former);
        }
        let rollback = self.node.map_or(0, |node| node.rollback);
        let of = std::mem::replace(&mut self.own, next.of);
        self.node = self.node.map(|node| Node { rollback: next.rollback, ..node });
        self.layout = here.layout;
        self.next_layout = None;
        let former = OtherLayout { layout: former, worker: None, rollback, used: UnixMicros(0), of };
        self.others.put(former, here.clock.wall);
    }
}
