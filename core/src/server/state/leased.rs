//! The lease of a worker id: its registry, its end, and the worker ids that the server must not lease.

use super::high_water_marks::NodeHighWaterMarks;
use super::source::WorkerIdSource;
use super::stored::{Here, Identity, State};
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::{Field, Layout};
use crate::ids::position::Position;
use crate::server::lease::{Lease, Origin};
use std::collections::BTreeSet;
use std::time::Duration;

/// The time after the last call for ids of a layout during which leased worker ids must fit the layout.
const IN_USE: Duration = Duration::from_hours(7 * 24);

/// The age at which the record of a layout's last use is renewed. While the record is younger, calls for ids do not
/// write the state.
const RECORDED: Duration = Duration::from_mins(10);

impl State {
    /// Sets the node that issues ids. A server without a registry chooses its worker id here.
    pub(super) fn identify(&mut self, here: &Here) {
        if let (Identity::Leased { datacenter }, true) = (here.identity, self.source.is_alone()) {
            self.choose(here, datacenter);
        }
        self.set_node(here.identity);
    }

    /// Sets the node that issues ids. Keeps the rollback value if the worker id is unchanged.
    fn set_node(&mut self, identity: Identity) {
        let (datacenter, worker_id) = match identity {
            Identity::Fixed { datacenter, worker_id } => {
                self.forget_lease();
                (datacenter, Some(worker_id))
            }
            Identity::Leased { datacenter } => {
                // The pending token stays, because the registry may still grant the pending request.
                let is_kept =
                    |lease: &Lease| datacenter.is_none_or(|datacenter| lease.datacenter == datacenter);
                self.lease = self.lease.take().filter(is_kept);
                let held = self.lease.as_ref().map(|lease| (lease.datacenter, lease.worker_id));
                held.map_or((0, None), |(datacenter, worker_id)| (datacenter, Some(worker_id)))
            }
        };
        self.node = worker_id.map(|worker_id| {
            let same = self.node.filter(|node| node.is_of(datacenter, worker_id));
            same.unwrap_or(Node { datacenter, worker_id, rollback: 0 })
        });
    }

    pub(super) fn forget_lease(&mut self) {
        self.lease = None;
        self.former = None;
        self.pending_token = None;
        self.others.layouts.iter_mut().for_each(|other| other.node = None);
    }

    /// Starts to use a lease: the server issues ids under the lease's worker id from now on.
    pub fn take_up(&mut self, lease: Lease) {
        let (datacenter, worker_id) = (lease.datacenter, lease.worker_id);
        self.forget_lease();
        self.lease = Some(lease);
        self.set_node(Identity::Leased { datacenter: Some(datacenter) });
        debug_assert!(self.node.is_some_and(|node| node.worker_id == worker_id));
    }

    /// Records the database through which worker ids are leased from now on. `origin` is the registry if other servers
    /// share the registry, else None.
    pub fn leased_from(&mut self, database: u32, origin: Option<&Origin>) {
        let shared = match origin {
            Some(origin) => Some(origin.identity.as_str()),
            None => self.source.shared().filter(|_| self.source.database() == Some(database)),
        };
        let shared = shared.map(str::to_owned);
        self.source.settle(WorkerIdSource::Leased { database, shared });
    }

    /// Records that this server's registry leases worker ids to other servers. This server must lease its own worker id
    /// from the same registry. Returns true if the server already leases from its registry, or if an administrator set
    /// the worker id.
    pub fn leases_out(&mut self, here: &Here, database: u32, identity: &str) -> bool {
        if matches!(here.identity, Identity::Fixed { .. }) {
            return true;
        }
        if self.source.database().is_none_or(|registry| registry == database) {
            self.source.settle(WorkerIdSource::Leased { database, shared: Some(identity.to_owned()) });
        }
        self.lease.as_ref().is_some_and(|lease| !lease.is_chosen())
    }

    /// Gives up a lease that was lost or released. No node issues ids until there is another lease.
    pub fn give_up(&mut self) {
        self.forget_lease();
        self.node = None;
    }

    /// Gives up the lease because another registry replaces the lease's registry. Keeps the lease as `former`.
    pub fn leave_former(&mut self) {
        let former = self.lease.take().or(self.former.take());
        self.give_up();
        self.former = former;
    }

    /// Gives up the lease from the registry with the identity `identity`, because the database no longer uses that
    /// registry. Returns the lease and the pending token; None if the lease is not from that registry. Forgets the
    /// pending token, so that a late answer to the pending request is ignored.
    pub fn leave_registry(&mut self, identity: &str) -> Option<(Lease, Option<i64>)> {
        let pending_token = self.pending_token.take();
        // If another database also uses a registry, the server leases from that registry next.
        if self.source.database().is_some() {
            self.source.settle(WorkerIdSource::Unknown);
        }
        let of_it = |lease: &&Lease| lease.origin.as_ref().is_some_and(|origin| origin.identity == identity);
        let lease = self.lease.as_ref().filter(of_it)?.clone();
        // No node issues ids under this lease from now on. The lease is kept as `former`, so that the server can show
        // this lease to the registry that replaces this registry.
        self.leave_former();
        Some((lease, pending_token))
    }

    /// Returns the database through which worker ids are or will be leased; None if this is `database`, or if its
    /// registry has the identity `identity`. If the result is a database, `database` must not join the registry
    /// `identity`, because two registries could lease the same worker id.
    pub fn held_for(&self, database: u32, identity: &str) -> Option<u32> {
        let source = &self.source;
        let held = || source.database().filter(|_| source.shared().is_some_and(|shared| shared != identity));
        source.moving_elsewhere(database, identity).or_else(|| held().filter(|holder| *holder != database))
    }

    /// Returns the instant from which another server may issue ids under a lease's worker id: the tick after the last
    /// tick of this server's ids.
    pub fn end_of(&self, lease: &Lease) -> UnixMicros {
        let end_in = |(layout, of): (&Layout, &NodeHighWaterMarks)| {
            let start = if *layout == self.layout { lease.start_in(layout) } else { Position::ZERO };
            let marks = of.high_water_marks.iter().filter(|mark| lease.is_of(mark.node));
            // The minimum counts, too, because the high-water mark of one of the lease's nodes may have been dropped.
            let last = marks.map(|mark| mark.position).fold(start.max(of.minimum), Position::max);
            layout.instant_of(last).plus_micros(layout.unit())
        };
        let counts =
            |(layout, _): &(&Layout, &NodeHighWaterMarks)| **layout == self.layout || holds(Guard::OthersEnd);
        self.tables().filter(counts).map(end_in).fold(self.others.minimum, UnixMicros::max)
    }

    /// Returns the datacenter's worker ids that this server has used and cannot use now. The clock has not passed the
    /// high-water marks of these worker ids, or another server has them.
    pub fn blocked_worker_ids(&self, datacenter: u32, at: UnixMicros) -> Vec<u32> {
        let blocked = self.blocked_pairs(at).into_iter().filter(|(of, _)| *of == datacenter);
        blocked.map(|(_, worker_id)| worker_id).collect()
    }

    /// Returns the pairs of datacenter and worker id that this server has used and cannot use now.
    pub fn blocked_pairs(&self, at: UnixMicros) -> BTreeSet<(u32, u32)> {
        let marked = self.marks().filter(|(layout, mark)| mark.position > layout.position_after(at));
        let marked = marked.map(|(_, mark)| (mark.node.datacenter, mark.node.worker_id));
        let now = self.layout.position_after(at);
        let leased = self.lease.iter().filter(|lease| lease.start_in(&self.layout) > now);
        marked.chain(leased.map(|lease| (lease.datacenter, lease.worker_id))).collect()
    }

    /// Returns the worker ids that this server's registry must not lease to the server with these tokens: the worker id
    /// under which this server issues ids, and worker ids whose ids the clock has not passed. Returns None if one of
    /// the tokens is this server's own token, because a server may lease its worker id from its own registry.
    pub fn taken_worker_ids(
        &self,
        here: &Here,
        datacenter: u32,
        tokens: [Option<i64>; 2],
    ) -> Option<Vec<u32>> {
        let own = [self.lease.as_ref().map(|lease| lease.token), self.pending_token];
        if own.iter().any(|token| token.is_some() && tokens.contains(token)) {
            return None;
        }
        let issuing = self.node.filter(|node| node.datacenter == datacenter).map(|node| node.worker_id);
        let blocked = self.blocked_worker_ids(datacenter, here.clock.wall);
        Some(issuing.into_iter().chain(blocked).collect())
    }

    /// Returns the largest worker id that fits all layouts in use.
    pub fn worker_id_limit(&self, at: UnixMicros) -> u32 {
        self.limit(Field::Worker, at)
    }

    /// Returns the largest datacenter id or worker id that fits all layouts in use.
    pub fn limit(&self, field: Field, at: UnixMicros) -> u32 {
        let most = |layout: &Layout| u32::try_from(layout.max(field)).unwrap_or(u32::MAX);
        let in_use = self.others.layouts.iter().filter(|other| other.used.plus(IN_USE) > at);
        in_use.map(|other| most(&other.layout)).fold(most(&self.layout), u32::min)
    }

    /// Records that ids of a layout are needed, so that the next leased worker id fits the layout. Returns true if the
    /// state changed and must be written.
    pub fn want(&mut self, layout: &Layout, at: UnixMicros) -> bool {
        if self.others.used(layout).plus(RECORDED) > at || *layout == self.layout {
            return false;
        }
        self.others.get_mut(layout, at).used = at;
        true
    }
}
