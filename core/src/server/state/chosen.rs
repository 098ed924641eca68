//! The choice of a worker id by a server without a registry. The choice depends on the identity of the data directory. If
//! no datacenter id is configured, the server chooses among all pairs of datacenter and worker id.
//! The server avoids worker ids that this server has used, or that the server from which this server was copied has
//! used.

use super::high_water_marks::OF_ANOTHER;
use super::pairs::{Pairs, has_room};
use super::source::WorkerIdSource;
use super::stored::{Chosen, First, Here, Identity, State};
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::ids::id::Node;
use crate::ids::layout::Layout;
use crate::server::lease::{
    Lease, LeaseError, LeaseRow, NONE_FREE, NOT_DISPOSABLE, Policy, Preferred, Search, listed,
};
use std::collections::BTreeMap;

/// The instant from which this server may use another server's worker id: never.
const OF_OTHERS: UnixMicros = UnixMicros(i64::MAX);

impl State {
    /// Records that no database of the server uses or is a registry. The server chooses its worker id itself.
    /// `is_changing` is true while an open transaction starts or stops the use of a registry.
    pub fn be_alone(&mut self, here: &Here, is_changing: bool) {
        self.settle_source(WorkerIdSource::Alone, is_changing);
        self.identify(here);
        self.former = None;
    }

    /// Records that `database` uses or is a registry. The server leases its next worker id through this database, and
    /// issues ids under its current worker id until the registry has answered.
    pub fn lease_by(&mut self, database: u32, is_changing: bool) {
        let shared = self.source.shared().map(str::to_owned);
        self.settle_source(WorkerIdSource::Leased { database, shared }, is_changing);
    }

    fn settle_source(&mut self, source: WorkerIdSource, is_changing: bool) {
        if !is_changing {
            self.source.end_move();
        }
        self.source.settle(source);
    }

    /// Records that a committed transaction made a database join the registry with the identity `identity`, or leave
    /// its registry if `identity` is None. A server that joins gives up a worker id that it chose itself, or leased from
    /// another registry or from its own tables, because the registry may lease the same worker id to another server.
    /// Returns true if a worker id was given up.
    pub fn draw_from(&mut self, database: u32, identity: Option<&str>) -> bool {
        if self.source.moving() == Some(database) && (identity.is_some() || !self.source.is_alone()) {
            self.source.end_move();
        }
        let is_foreign = |lease: &Lease| self.granted_by(lease) != identity;
        let has_foreign = self.lease.as_ref().is_some_and(is_foreign) && holds(Guard::ForeignLeft);
        // Another registry than before is left by this database, or was used by a database that is gone: see `held_for`.
        let is_other = |identity: &&str| self.source.shared().is_some_and(|shared| shared != *identity);
        let Some(identity) = identity.filter(|identity| has_foreign || is_other(identity)) else {
            return false;
        };
        self.source.settle(WorkerIdSource::Leased { database, shared: Some(identity.to_owned()) });
        if has_foreign {
            self.leave_former();
        }
        has_foreign
    }

    /// Returns the identity of the registry that granted this lease, if other servers lease from it, too. For a lease from
    /// this server's own tables, that is the identity that `source` has.
    fn granted_by<'a>(&'a self, lease: &'a Lease) -> Option<&'a str> {
        match &lease.origin {
            Some(origin) => Some(&origin.identity),
            None => self.source.shared().filter(|_| !lease.is_chosen()),
        }
    }

    /// Gives up a worker id that the server chose itself, because `database` belongs to a Citus cluster. The nodes of a
    /// Citus cluster lease their worker ids.
    pub fn leave_alone(&mut self, database: u32) {
        if self.source.is_alone() || self.lease.as_ref().is_some_and(Lease::is_chosen) {
            self.lease_by(database, true);
            self.give_up();
        }
    }

    /// Switches to another worker id, because the clock is behind the ids of the current worker id. Returns None if the
    /// server does not choose its worker id itself, and Some(false) if no other worker id can be used.
    pub fn take_another(&mut self, here: &Here, now: UnixMicros) -> Option<bool> {
        let is_choosing = matches!(here.identity, Identity::Leased { .. }) && self.source.is_alone();
        if is_choosing && self.blocks_all_worker_ids(now) {
            return Some(false);
        }
        self.switch_worker_id(here, now)
    }

    fn switch_worker_id(&mut self, here: &Here, now: UnixMicros) -> Option<bool> {
        let Identity::Leased { datacenter } = here.identity else { return None };
        if !self.source.is_alone() {
            return None;
        }
        self.name_worker_id();
        let Some(lease) = self.take_free(here, datacenter, now) else { return Some(false) };
        self.forget_lease();
        self.lease = Some(lease);
        self.identify(here);
        Some(true)
    }

    /// Switches to another worker id if the server issues ids under `worker_id` and has no registry. Returns true if the
    /// server switched. The clock is not behind, so the switch does not have to help against that: while there are
    /// readers of a safe position, ids of every worker id begin slightly ahead of the clock.
    pub fn leave_worker_id(
        &mut self,
        here: &Here,
        now: UnixMicros,
        datacenter: u32,
        worker_id: u32,
    ) -> Result<bool, LeaseError> {
        if !self.node.is_some_and(|node| node.is_of(datacenter, worker_id)) {
            return Ok(false);
        }
        match self.switch_worker_id(here, now) {
            Some(false) => Err(self.none_free(here)),
            taken => Ok(taken.is_some()),
        }
    }

    /// Keeps the current worker id if the server chose this worker id itself, or leased it from the server's own
    /// registry. Otherwise chooses a worker id.
    pub(super) fn choose(&mut self, here: &Here, datacenter: Option<u32>) {
        self.lease = self.lease.take().or(self.former.take_if(|former| former.is_chosen()));
        match &mut self.lease {
            Some(lease) if datacenter.is_none_or(|of| of == lease.datacenter) && lease.origin.is_none() => {
                lease.expiry = Lease::NO_END;
            }
            _ => {
                self.name_worker_id();
                self.forget_lease();
                let usable = self.believed(here).plus(here.max_drift);
                self.lease = self.take_free(here, datacenter, usable);
            }
        }
    }

    fn take_free(&mut self, here: &Here, datacenter: Option<u32>, at: UnixMicros) -> Option<Lease> {
        let pairs = Pairs::of(&here.layout, datacenter);
        let (used, most) = (self.used_numbers(pairs), pairs.count);
        let is_first = self.first.is_none()
            && (self.is_copied() || used.is_empty() && self.timeline == 1 && !self.is_installed);
        let preferred = if is_first { self.any(&used, most) } else { self.of_timeline(pairs, here.policy) };
        // A full list of high-water marks must not forget which pairs were used: copies avoid these pairs.
        let known =
            if self.own.is_full() { passed_longest_ago(&used, preferred, here.policy, at) } else { None };
        let number = known.or_else(|| free_number(&used, most, preferred, here.policy, at))?;
        let (datacenter, worker_id) = pairs.pair(number);
        if is_first {
            self.first = Some(First { datacenter, worker_id, timeline: self.timeline });
        }
        Some(Lease::chosen(datacenter, worker_id, here.token))
    }

    /// Chooses a node for a layout that has no room for the server's own node. The first choice is the number of the
    /// server's node modulo the number of nodes in the layout. The second choice is another number in the share of the
    /// server's timeline (see `of_timeline`). `datacenter` is the configured datacenter id, if any.
    ///
    /// After `pg_upgrade`, all worker ids of the share may be recorded as worker ids of other servers, because the
    /// table `worker_chosen` still has the previous cluster's rows. The server then chooses from another share. Returns
    /// true if a node was found.
    pub fn choose_in(
        &mut self,
        layout: &Layout,
        datacenter: Option<u32>,
        policy: Policy,
        at: UnixMicros,
    ) -> bool {
        let Some(node) = self.node.filter(|_| self.source.is_alone()) else { return false };
        let (own, pairs) = (Pairs::of(&self.layout, datacenter), Pairs::of(layout, datacenter));
        let Some(number) = own.number(node.datacenter, node.worker_id) else { return false };
        let mut used = BTreeMap::new();
        for (of, end) in self.used_numbers(own) {
            if of != number {
                let known = used.entry(of % pairs.count).or_insert(end);
                *known = end.max(*known);
            }
        }
        let begin = number % pairs.count;
        let is_ours = used.get(&begin).is_none_or(|end| *end < OF_OTHERS);
        let preferred = Preferred { first: Some((begin, begin + 1)), ..self.of_timeline(own, policy) };
        // If the clock is behind the ids of all these nodes, the server uses the first choice, and the call waits for the
        // clock.
        let number = free_number(&used, pairs.count, preferred, policy, at)
            .or(Some(begin).filter(|_| is_ours))
            .or_else(|| beyond_share(&used, preferred, pairs.count));
        let pair = number.map(|number| pairs.pair(number));
        let node = pair.map(|(datacenter, worker_id)| Node { datacenter, worker_id, rollback: 0 });
        self.others.get_mut(layout, at).node = node;
        node.is_some()
    }

    /// Takes over the rows of one database's table, in which each server records the first worker id that it chose. The
    /// oldest row comes first. Rows may be from other servers of this cluster, or of the cluster from which this cluster was
    /// upgraded. This server marks the worker ids of other servers, and never chooses them.
    pub fn record_chosen(&mut self, here: &Here, rows: &[Chosen]) {
        self.is_installed = true;
        if !holds(Guard::RecordedNamed) {
            return;
        }
        if !self.is_copied() {
            let ours = rows.iter().find(|row| row.system_identifier == here.system_identifier);
            self.first = self.first.or(ours.map(|row| row.first));
        }
        for Chosen { first, .. } in rows.iter().filter(|row| row.home != here.home.identity) {
            let First { datacenter, worker_id, .. } = *first;
            if !self.node.is_some_and(|node| node.is_of(datacenter, worker_id)) {
                let node = Node { datacenter, worker_id, rollback: 0 };
                self.own.set(node, OF_ANOTHER);
            }
        }
    }

    /// Returns the reason why a server that chooses its worker id has no worker id; None if the server has a worker id.
    pub fn no_worker(&self, here: &Here) -> Option<LeaseError> {
        let may_choose = matches!(here.identity, Identity::Leased { .. });
        (may_choose && self.node.is_none()).then(|| self.none_free(here))
    }

    /// Returns the reason why no worker id is free.
    pub fn none_free(&self, here: &Here) -> LeaseError {
        let datacenter = match here.identity {
            Identity::Fixed { datacenter, .. } => Some(datacenter),
            Identity::Leased { datacenter } => datacenter,
        };
        let pairs = Pairs::of(&here.layout, datacenter);
        let shown = |number: u32| match pairs.pair(number) {
            (_, worker_id) if datacenter.is_some() => worker_id.to_string(),
            (datacenter, worker_id) => format!("{worker_id} of datacenter {datacenter}"),
        };
        let preferred = self.of_timeline(pairs, here.policy);
        let may = if preferred.only {
            let of_share = listed(preferred.of_share(pairs.count).map(shown));
            format!(" This server, which has no registry, may choose {of_share}.")
        } else {
            String::new()
        };
        let used = listed(self.used_numbers(pairs).into_keys().map(shown));
        let of = match datacenter {
            Some(datacenter) => format!("Datacenter {datacenter} has"),
            None => "All datacenters together have".into(),
        };
        let mut detail = format!(
            "{of} {} worker ids.{may} This server, or the server that it was copied from, has used {used}.",
            pairs.count
        );
        let hint = if here.policy == Policy::Disposable {
            detail.push_str(" snowflake_ids.worker_id_policy is disposable, so no worker id is used again.");
            NOT_DISPOSABLE
        } else {
            "Set snowflake_ids.worker_id to a number that no other server has and restart the server, or let the servers share a registry."
        };
        LeaseError { message: NONE_FREE.into(), ..LeaseError::yet(detail, hint) }
    }

    /// Records a high-water mark for the current worker id, so that the server does not choose this worker id again
    /// later.
    pub(super) fn name_worker_id(&mut self) {
        let Some(Lease { datacenter, worker_id, .. }) = self.lease else { return };
        let node = Node { datacenter, worker_id, rollback: 0 };
        self.own.set(node, self.high_water_mark(node));
    }

    /// Returns the numbers of the pairs that have a high-water mark, each with the instant from which the pair may be used.
    fn used_numbers(&self, pairs: Pairs) -> BTreeMap<u32, UnixMicros> {
        let mut used = BTreeMap::new();
        for (layout, mark) in self.marks().filter(|_| holds(Guard::UsedNamed)) {
            let Some(number) = pairs.number(mark.node.datacenter, mark.node.worker_id) else { continue };
            let end = if mark.is_of_another() { OF_OTHERS } else { layout.instant_above(mark.position) };
            let known = used.entry(number).or_insert(end);
            *known = end.max(*known);
        }
        used
    }

    /// Computes a preferred number from the identity of the data directory, so that independent servers rarely choose the
    /// same worker id. A copied server prefers a share (an eighth of all numbers) that the original server has not used.
    /// All later choices of the copied server are in the same share.
    fn any(&self, used: &BTreeMap<u32, UnixMicros>, most: u32) -> Preferred {
        let preferred = Preferred::of_home(self.system_identifier, &self.home.told_apart(), most);
        let shares = Preferred::shares(most);
        let is_used = |share: &u32| used.keys().any(|worker_id| worker_id % shares == *share);
        let left: Vec<u32> = (0..shares).filter(|share| !is_used(share)).collect();
        let turn = usize::try_from(preferred.worker_id).unwrap_or(0).checked_rem(left.len());
        match turn {
            Some(turn) if shares > 1 => {
                let worker_id = preferred.worker_id - preferred.worker_id % shares + left[turn];
                Preferred { worker_id, shares, ..preferred }
            }
            _ => preferred,
        }
    }

    /// Returns a preference for the worker ids in the share of the server's timeline. There are eight shares. The first
    /// worker id that the server chose determines the share of the timeline on which the server was at that time. Each
    /// promotion moves the server to the next share. Two servers on different timelines thus choose different worker
    /// ids.
    fn of_timeline(&self, pairs: Pairs, policy: Policy) -> Preferred {
        let most = pairs.count;
        let (id, home) = (self.system_identifier, &self.home.identity);
        let preferred = match self.first {
            Some(first) => {
                let number = pairs.number(first.datacenter, first.worker_id).unwrap_or(first.worker_id);
                let share = number.wrapping_add(self.timeline).wrapping_sub(first.timeline);
                Preferred::in_share(share.into(), id, home, most)
            }
            None => Preferred::alone(id, self.timeline, home, most),
        };
        // Under `disposable` each worker id is used once, so a server may leave its share when the share is used up.
        let only = preferred.only && policy != Policy::Disposable && holds(Guard::Shares);
        Preferred { only, ..preferred }
    }

    /// Returns true if the state was copied from another server's directory.
    fn is_copied(&self) -> bool {
        self.copy_of.as_ref().is_some_and(|of| !of.is_in(&self.home))
    }

    /// Returns the node that issues ids of a layout: the node that was chosen for the layout if the server's own node does
    /// not fit. Each layout has its own rollback value.
    pub fn node_in(&self, layout: &Layout) -> Option<Node> {
        let node = self.node?;
        if *layout == self.layout {
            return Some(node);
        }
        let other = self.others.get(layout);
        let rollback = other.map_or(0, |other| other.rollback);
        let is_own = !self.source.is_alone() || has_room(layout, node.datacenter, node.worker_id);
        let instead = other.and_then(|other| other.node).filter(|_| !is_own);
        Some(Node { rollback, ..instead.unwrap_or(node) })
    }
}

/// Returns a never-used number of another share. The search begins at the previous share and goes backwards, because
/// promotions move servers forwards and reach the previous share last.
fn beyond_share(used: &BTreeMap<u32, UnixMicros>, preferred: Preferred, capacity: u32) -> Option<u32> {
    (1..preferred.shares).find_map(|back| {
        let share = (preferred.share() + preferred.shares - back) % preferred.shares;
        Preferred { worker_id: share, ..preferred }
            .of_share(capacity)
            .find(|number| !used.contains_key(number))
    })
}

/// Returns the used number of the preferred share whose ids the clock passed earliest, if the policy allows reuse.
fn passed_longest_ago(
    used: &BTreeMap<u32, UnixMicros>,
    preferred: Preferred,
    policy: Policy,
    at: UnixMicros,
) -> Option<u32> {
    let is_of_share = |number: u32| !preferred.only || number % preferred.shares == preferred.share();
    let passed = used.iter().filter(|(number, end)| is_of_share(**number) && **end <= at);
    let passed = passed.filter(|_| policy != Policy::Disposable);
    passed.min_by_key(|(_, end)| **end).map(|(number, _)| *number)
}

/// Returns an unused number. If all numbers are used and the policy allows reuse, returns the number whose ids the clock
/// passed earliest.
fn free_number(
    used: &BTreeMap<u32, UnixMicros>,
    capacity: u32,
    preferred: Preferred,
    policy: Policy,
    at: UnixMicros,
) -> Option<u32> {
    let policy = if policy == Policy::Disposable { policy } else { Policy::Queue };
    let row = |(&worker_id, &expiry)| LeaseRow { worker_id, token: None, expiry, leased: expiry };
    let rows: Vec<LeaseRow> = used.iter().map(row).collect();
    let search =
        Search { policy, own: [None; 2], except: &[], preferred, capacity, now: at, former_leases: None };
    search.choose(&rows).map(|choice| choice.worker_id())
}
