//! The worker id that is leased: from where, until when, and which ones are not to be had.

use super::high_water_marks::NodeHighWaterMarks;
use super::stored::{Here, Identity, State};
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::{Field, Layout};
use crate::ids::position::Position;
use crate::registry::lease::{Lease, Origin};
use std::collections::BTreeSet;
use std::time::Duration;

/// Time after the last id of a layout for which worker ids are leased that fit it.
const IN_USE: Duration = Duration::from_hours(7 * 24);

/// The age at which a note that ids of a layout are asked for is renewed: asking costs no write each time.
const RECORDED: Duration = Duration::from_mins(10);

impl State {
    /// Sets the node that issues, of a worker id that the server chooses where it is alone.
    pub(super) fn identify(&mut self, here: &Here) {
        if let (Identity::Leased { datacenter }, true) = (here.identity, self.alone) {
            self.choose(here, datacenter);
        }
        self.set_node(here.identity);
    }

    /// Sets the node that issues; the rollback value stays as long as the worker does.
    fn set_node(&mut self, identity: Identity) {
        let (datacenter, worker) = match identity {
            Identity::Fixed { datacenter, worker } => {
                self.forget_lease();
                (datacenter, Some(worker))
            }
            Identity::Leased { datacenter } => {
                // A claim may still become a lease.
                self.lease = self.lease.take().filter(|lease| lease.datacenter == datacenter);
                (datacenter, self.lease.as_ref().map(|lease| lease.worker))
            }
        };
        self.node = worker.map(|worker| {
            let same = self.node.filter(|node| node.is_of(datacenter, worker));
            same.unwrap_or(Node { datacenter, worker, rollback: 0 })
        });
    }

    pub(super) fn forget_lease(&mut self) {
        self.lease = None;
        self.former = None;
        self.pending_token = None;
        self.others.layouts.iter_mut().for_each(|other| other.worker = None);
    }

    /// Takes up a lease: its worker issues from now on.
    pub fn take_up(&mut self, lease: Lease) {
        let (datacenter, worker) = (lease.datacenter, lease.worker);
        self.forget_lease();
        self.lease = Some(lease);
        self.set_node(Identity::Leased { datacenter });
        debug_assert!(self.node.is_some_and(|node| node.worker == worker));
    }

    /// Worker ids are leased by way of this database from now on, from the registry that others share, if it is one.
    pub fn leased_from(&mut self, database: u32, origin: Option<&Origin>) {
        let same = self.registry.is_none_or(|registry| registry == database);
        self.leases_with = match origin {
            Some(origin) => Some(origin.identity.clone()),
            None => self.leases_with.take().filter(|_| same),
        };
        (self.registry, self.alone) = (Some(database), false);
    }

    /// The registry here, of this identity, leases worker ids to others: from now on to this server, too. Whether it has its own from
    /// there already, or an operator chose it.
    pub fn leases_out(&mut self, here: &Here, database: u32, identity: &str) -> bool {
        if matches!(here.identity, Identity::Fixed { .. }) {
            return true;
        }
        if self.registry.is_none_or(|registry| registry == database) {
            self.lease_by(database, true);
            self.leases_with = Some(identity.to_owned());
        }
        self.lease.as_ref().is_some_and(|lease| !lease.is_chosen())
    }

    /// Gives the lease up, because it is lost or released: no node issues until there is another.
    pub fn give_up(&mut self) {
        self.forget_lease();
        self.node = None;
    }

    /// The same for a lease of another registry than the one in use.
    pub fn leave_former(&mut self) {
        let former = self.lease.take().or(self.former.take());
        self.give_up();
        self.former = former;
    }

    /// The database that worker ids are leased by does not use the registry of this identity any more: gives the lease from it, if
    /// there is one, and the token of what it may have been asked for. An answer that is on its way is not taken up.
    pub fn leave_registry(&mut self, identity: &str) -> Option<(Lease, Option<i64>)> {
        let pending_token = self.pending_token.take();
        // Another database may use a registry, too.
        (self.registry, self.leases_with) = (None, None);
        let of_it = |lease: &&Lease| lease.origin.as_ref().is_some_and(|origin| origin.identity == identity);
        let lease = self.lease.as_ref().filter(of_it)?.clone();
        // None issues under it any more. A registry that took the place of this one is shown it.
        self.leave_former();
        Some((lease, pending_token))
    }

    /// The database for which this server has worker ids together with others, where another one is to have them leased
    /// from the registry of this identity: two registries would lease the same one.
    pub fn held_for(&self, database: u32, identity: &str) -> Option<u32> {
        let other = |of: &u32| *of != database;
        let moving = self.moving_to.filter(other).filter(|_| self.moving_with.as_deref() != Some(identity));
        let with = self.leases_with.as_deref().filter(|with| *with != identity);
        moving.or_else(|| with.and(self.registry.filter(other)))
    }

    /// The instant from which another server may issue as the worker of a lease: the tick after the last in which this one
    /// did.
    pub fn end_of(&self, lease: &Lease) -> UnixMicros {
        let end_in = |(layout, of): (&Layout, &NodeHighWaterMarks)| {
            let start = if *layout == self.layout { lease.start } else { Position::ZERO };
            let high_water_marks = of
                .high_water_marks
                .iter()
                .filter(|high_water_mark| lease.is_of(high_water_mark.node))
                .map(|high_water_mark| high_water_mark.position);
            // The floor: the mark of one of its nodes may have been dropped.
            layout
                .instant_of(high_water_marks.fold(start.max(of.minimum), Position::max))
                .plus_micros(layout.unit())
        };
        let counts =
            |(layout, _): &(&Layout, &NodeHighWaterMarks)| **layout == self.layout || holds(Guard::OthersEnd);
        self.tables().filter(counts).map(end_in).fold(self.others.minimum, UnixMicros::max)
    }

    /// The worker ids of a datacenter that this server has issued as and can't now: the clock has not passed their
    /// marks, or they are another server's.
    pub fn blocked_workers(&self, datacenter: u32, at: UnixMicros) -> Vec<u32> {
        let marked = self.tables().flat_map(|(layout, of)| {
            let now = layout.position_after(at);
            let high_water_marks = of
                .high_water_marks
                .iter()
                .filter(move |high_water_mark| high_water_mark.position > now)
                .map(|high_water_mark| high_water_mark.node);
            high_water_marks.filter(|node| node.datacenter == datacenter).map(|node| node.worker)
        });
        let now = self.layout.position_after(at);
        let leased = self.lease.iter().filter(|lease| lease.datacenter == datacenter && lease.start > now);
        let workers: BTreeSet<u32> = marked.chain(leased.map(|lease| lease.worker)).collect();
        workers.into_iter().collect()
    }

    /// The worker ids of a datacenter that a registry here must not lease to the server with these tokens: this one issues
    /// under them, or did under ids that the clock has not passed. None where that is this very server.
    pub fn taken_workers(&self, here: &Here, datacenter: u32, tokens: [Option<i64>; 2]) -> Option<Vec<u32>> {
        let own = [self.lease.as_ref().map(|lease| lease.token), self.pending_token];
        if own.iter().any(|token| token.is_some() && tokens.contains(token)) {
            return None;
        }
        let issuing = self.node.filter(|node| node.datacenter == datacenter).map(|node| node.worker);
        let blocked = self.blocked_workers(datacenter, here.clock.wall);
        Some(issuing.into_iter().chain(blocked).collect())
    }

    /// The largest worker id that all layouts in use have room for.
    pub fn worker_limit(&self, at: UnixMicros) -> u32 {
        let most = |layout: &Layout| u32::try_from(layout.max(Field::Worker)).unwrap_or(u32::MAX);
        let in_use = self.others.layouts.iter().filter(|other| other.used.plus(IN_USE) > at);
        in_use.map(|other| most(&other.layout)).fold(most(&self.layout), u32::min)
    }

    /// Notes that ids of a layout are asked for, so that the next worker id that is leased fits it.
    /// Returns whether that is news, which is to be written.
    pub fn want(&mut self, layout: &Layout, at: UnixMicros) -> bool {
        if self.others.used(layout).plus(RECORDED) > at || *layout == self.layout {
            return false;
        }
        self.others.get_mut(layout, at).used = at;
        true
    }
}
