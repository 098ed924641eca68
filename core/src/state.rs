//! What a server keeps of itself: which server it is, which node it issues as, and how far each node may have issued.
//!
//! A *mark*, the high-water mark, is the position below which a node may issue. It is raised in the state, the
//! state is made durable, and only then are positions below it handed out. So a server that starts again begins at
//! the mark, and clock steps and crashes need no special case. What follows are pure transitions of the state;
//! the shell keeps it in a file, and writes it before it acts on it.

use crate::anchor::{Reading, Verdict};
use crate::clock::UnixMicros;
use crate::guard::{Guard, holds};
use crate::id::Node;
use crate::layout::change::first_above;
use crate::layout::{Field, Layout};
use crate::lease::{Lease, Origin};
use crate::position::Position;
use serde::{Deserialize, Serialize};
use std::time::Duration;

mod data_directory;
mod error;
mod file;
mod marks;
mod others;

pub use data_directory::{Birth, DataDirectory};
pub use error::StateError;
pub use file::FILE;
pub use marks::{Mark, Marks};
pub use others::{OtherLayout, Others};

use marks::OF_ANOTHER;

/// How long after the last id of a layout worker ids are leased that fit it.
const IN_USE: Duration = Duration::from_hours(7 * 24);

/// How old a note that ids of a layout are asked for becomes before it is made anew: asking costs no write each time.
const NOTED: Duration = Duration::from_mins(10);

/// The state of one server. Serialises as the content of its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The system identifier of the cluster that wrote it.
    pub system_identifier: u64,
    /// The timeline that the cluster was on.
    pub timeline: u32,
    /// The data directory and the file that it was written to.
    pub home: DataDirectory,
    /// Where it was copied from, if it was.
    pub copy_of: Option<DataDirectory>,
    /// The server's own layout, as text.
    pub layout: String,
    /// What it is to be from the next restart on, if an operator has said so and nothing stands in the way.
    #[serde(default)]
    pub next_layout: Option<String>,
    /// The clocks when it was written, as far as they were believed: the anchor.
    pub clock: Reading,
    /// What the wall clock showed then.
    pub seen: UnixMicros,
    /// The node that issues, or did last.
    pub node: Option<Node>,
    /// How far nodes may have issued in the server's own layout.
    #[serde(flatten)]
    pub own: Marks,
    /// How far they may have in others.
    #[serde(flatten)]
    pub others: Others,
    /// The worker id that was leased.
    pub lease: Option<Lease>,
    /// The token that is about to be written to the registry, and may be there already.
    pub claim: Option<i64>,
    /// The database that holds the registry, by its oid.
    pub registry: Option<u32>,
    /// The database that is to be the registry, if the transaction that said so was committed.
    #[serde(default)]
    pub moving_to: Option<u32>,
    /// The registry, by its identity, from which this server and others have worker ids: a shared one, or its own where that
    /// has leased some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leases_with: Option<String>,
}

/// The node that a server is to issue as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A number that an operator chose.
    Fixed {
        /// 0 to the layout's largest.
        datacenter: u32,
        /// 0 to the layout's largest.
        worker: u32,
    },
    /// A worker id leased from the registry.
    Leased {
        /// 0 to the layout's largest.
        datacenter: u32,
    },
}

/// What the process that opens a state knows here and now.
#[derive(Clone, Debug)]
pub struct Here {
    /// The system identifier in `pg_control`.
    pub system_identifier: u64,
    /// The timeline of the cluster, from 1; it grows with each promotion.
    pub timeline: u32,
    /// The data directory, and the state file if one was read.
    pub home: DataDirectory,
    /// `snowflake_ids.layout`.
    pub layout: Layout,
    /// What `snowflake_ids.worker_id` asks for.
    pub identity: Identity,
    /// The clocks at the moment of opening.
    pub clock: Reading,
    /// The time of the last commit or checkpoint that was replayed, as far as is known.
    pub replayed: Option<UnixMicros>,
    /// How far ids may run ahead of the clock.
    pub max_drift: Duration,
    /// The largest step forward of the clock to be followed.
    pub max_clock_jump: Duration,
    /// Whether the worker id leased before is not to be used again.
    pub disposable: bool,
}

impl Here {
    /// The same where the state was read from this file.
    #[must_use]
    pub fn with_file(mut self, file: Birth) -> Self {
        self.home.file = Some(file);
        self
    }
}

impl State {
    /// The content of the file, in the present form.
    ///
    /// # Errors
    /// None that could happen: a state is plain data.
    pub fn to_text(&self) -> serde_json::Result<String> {
        file::to_text(self)
    }

    /// What a file holds, whether this release wrote it or an older one.
    pub fn from_text(text: &[u8]) -> Result<Self, StateError> {
        file::from_text(text)
    }

    /// The state of a server that has never issued anything.
    pub fn fresh(here: &Here) -> Self {
        let mut state = Self {
            system_identifier: here.system_identifier,
            timeline: here.timeline,
            home: here.home.clone(),
            copy_of: None,
            layout: here.layout.to_string(),
            next_layout: None,
            clock: here.clock.clone(),
            seen: here.clock.wall,
            node: None,
            own: Marks::default(),
            others: Others::default(),
            lease: None,
            claim: None,
            registry: None,
            moving_to: None,
            leases_with: None,
        };
        if here.timeline > 1 {
            // A standby that was copied before its primary issued anything, and promoted since.
            state.succeed(here);
        }
        state.identify(here.identity);
        state
    }

    /// Takes up a stored state: as it is where this is the server that wrote it, changed where the server was promoted
    /// or copied meanwhile. `clock` stays what it was.
    ///
    /// # Errors
    /// [`StateError`], where going on could repeat ids.
    pub fn open(mut self, here: &Here) -> Result<Self, StateError> {
        self.change_layout(here);
        self.check_origin(here)?;
        let stored = self.is_put_back(here).then(|| self.clone());
        if self.timeline != here.timeline {
            self.promote(here);
        } else if !self.home.is(&here.home) {
            self.settle_in_copy(here)?;
        }
        if let Some(stored) = stored {
            self.rise_above_lost(&stored, here);
        }
        self.refuse_twin(here)?;
        self.home = here.home.clone();
        if here.disposable {
            self.forget_lease();
        }
        self.identify(here.identity);
        Ok(self)
    }

    /// Whether its positions mean anything here.
    fn check_origin(&self, here: &Here) -> Result<(), StateError> {
        if self.system_identifier != here.system_identifier {
            Err(StateError::Foreign { stored: self.system_identifier, ours: here.system_identifier })
        } else if self.layout.parse().ok() != Some(here.layout) {
            Err(StateError::Layout { stored: self.layout.clone(), ours: here.layout })
        } else {
            Ok(())
        }
    }

    /// After a promotion the server that this state came from may still be running: its lease is not ours.
    fn promote(&mut self, here: &Here) {
        self.timeline = here.timeline;
        if holds(Guard::PromotionForgets) {
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
            self.raise_floors(last, here);
        }
    }

    /// The time, as far as this state believes the clock.
    fn believed(&self, here: &Here) -> UnixMicros {
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
            self.raise_floors(last, here);
        }
    }

    /// Has every node that has no mark begin above an instant.
    fn raise_floors(&mut self, last: UnixMicros, here: &Here) {
        self.own.raise_floor(here.layout.position_after(last));
        if holds(Guard::OthersRise) {
            self.others.raise_floors(last.plus_micros(1));
        }
    }

    /// Has every node begin above what any may have issued here up to now, those included that the state which was put back
    /// does not know of. Not where worker ids come from a registry that many share: what was leased there since still is,
    /// and ids ahead of the clock would keep other servers from leasing.
    fn rise_above_lost(&mut self, stored: &Self, here: &Here) {
        let now = self.believed(here);
        self.rise_above(now, here);
        if stored.lease.as_ref().is_none_or(|lease| lease.origin.is_none()) {
            self.raise_floors(now.plus(here.max_drift), here);
        }
        // A layout that it does not know of may have been used since, as the same node.
        self.others.floor = self.others.floor.max(now.plus(here.max_drift).plus_micros(1));
    }

    /// Whether this is an earlier state of this very directory that an operator put back.
    fn is_put_back(&self, here: &Here) -> bool {
        self.home.is_in(&here.home) && !self.home.is(&here.home)
    }

    /// A directory that was copied without a promotion: two servers would issue as one. Or a state that was put back from a
    /// copy: what was issued since is not in it.
    fn settle_in_copy(&mut self, here: &Here) -> Result<(), StateError> {
        if let Identity::Fixed { datacenter, worker } = here.identity
            && self.knows(datacenter, worker)
        {
            let homes = Box::new([self.home.clone(), here.home.clone()]);
            return Err(StateError::Copy { homes, datacenter, worker });
        }
        self.copy_of = Some(self.home.clone());
        self.forget_lease();
        for mark in self.all_marks_mut() {
            mark.position = OF_ANOTHER;
        }
        Ok(())
    }

    /// In a copy, refuses a number of the server that it was copied from.
    fn refuse_twin(&self, here: &Here) -> Result<(), StateError> {
        match (here.identity, &self.copy_of) {
            (Identity::Fixed { datacenter, worker }, Some(of)) if self.is_of_another(datacenter, worker) => {
                let homes = Box::new([of.clone(), here.home.clone()]);
                Err(StateError::Copy { homes, datacenter, worker })
            }
            _ => Ok(()),
        }
    }

    fn is_of_another(&self, datacenter: u32, worker: u32) -> bool {
        let same = |node: Node| (node.datacenter, node.worker) == (datacenter, worker);
        self.all_marks().any(|mark| mark.is_of_another() && same(mark.node))
    }

    /// The same in the file of this birth, to which it is to be written.
    #[must_use]
    pub fn in_file(&self, birth: Birth) -> Self {
        let mut state = self.clone();
        state.home.file = Some(birth);
        state
    }

    /// Whether this was copied from another home, or put back from a copy, and not adopted.
    pub fn is_copy(&self, here: &Here) -> bool {
        self.copy_of.is_some() || !self.home.is(&here.home)
    }

    /// The worker ids of a datacenter that this server has issued as and can't now: the clock has not passed their
    /// marks, or they are another server's. `layout` is the server's own.
    pub fn blocked_workers(&self, layout: &Layout, datacenter: u32, at: UnixMicros) -> Vec<u32> {
        let now = layout.position_after(at);
        let others = self.others.layouts.iter().map(|other| (&other.of, other.layout.position_after(at)));
        let all = std::iter::once((&self.own, now)).chain(others);
        let marked = all.flat_map(|(of, now)| {
            let blocked = move |mark: &&Mark| mark.node.datacenter == datacenter && mark.position > now;
            of.marks.iter().filter(blocked).map(|mark| mark.node.worker)
        });
        let leased = self.lease.iter().filter(|lease| lease.datacenter == datacenter && lease.start > now);
        let mut workers: Vec<u32> = marked.chain(leased.map(|lease| lease.worker)).collect();
        workers.sort_unstable();
        workers.dedup();
        workers
    }

    /// The worker ids of a datacenter that a registry here must not lease to the server with these tokens: this one issues
    /// under them, or did under ids that the clock has not passed. None where that is this very server.
    pub fn taken_workers(&self, here: &Here, datacenter: u32, tokens: [Option<i64>; 2]) -> Option<Vec<u32>> {
        let own = [self.lease.as_ref().map(|lease| lease.token), self.claim];
        if own.iter().any(|token| token.is_some() && tokens.contains(token)) {
            return None;
        }
        let issuing = self.node.filter(|node| node.datacenter == datacenter).map(|node| node.worker);
        let blocked = self.blocked_workers(&here.layout, datacenter, here.clock.wall);
        Some(issuing.into_iter().chain(blocked).collect())
    }

    /// The database for which this server has worker ids together with others, where another one is to have them leased
    /// from the registry of this identity: two registries would lease the same one.
    pub fn held_for(&self, database: u32, identity: &str) -> Option<u32> {
        let other = |of: &u32| *of != database;
        let moving = self.moving_to.filter(other);
        let with = self.leases_with.as_deref().filter(|with| *with != identity);
        moving.or_else(|| with.and(self.registry.filter(other)))
    }

    /// Whether the clock is behind the ids that any worker of this server may have issued: another one is no help.
    /// `layout` is the server's own.
    pub fn blocks_all_workers(&self, layout: &Layout, at: UnixMicros) -> bool {
        let blocks = |other: &OtherLayout| other.of.floor > other.layout.position_after(at);
        self.own.floor > layout.position_after(at) || self.others.layouts.iter().any(blocks)
    }

    /// A copied state, when the one it was copied from is gone for good.
    ///
    /// # Errors
    /// [`StateError`], for other reasons than that it is a copy.
    pub fn adopt(mut self, here: &Here) -> Result<Self, StateError> {
        self.change_layout(here);
        self.home = here.home.clone();
        self.copy_of = None;
        for mark in self.all_marks_mut().filter(|mark| mark.is_of_another()) {
            mark.position = Position::ZERO;
        }
        self.rise_above(self.believed(here), here);
        self.open(here)
    }

    /// The highest mark of a layout that counts here; 0 where the state is another cluster's.
    pub fn highest_mark(&self, here: &Here, layout: &Layout) -> Position {
        let marks = self.marks_of(layout).filter(|_| self.is_of_cluster(here));
        marks.map_or(Position::ZERO, Marks::highest)
    }

    /// In place of a state that can't be trusted: every node begins above this position. What the former one knew of a
    /// lease is kept as a claim, so that the worker id need not wait for its expiry.
    pub fn anew(here: &Here, above: Position, former: Option<&Self>) -> Self {
        let former = former.filter(|former| former.is_of(here));
        let claim = former.and_then(|former| Some(former.lease.as_ref()?.token));
        let own = Marks { floor: above, ..Marks::default() };
        Self { own, claim, registry: former.and_then(|former| former.registry), ..Self::fresh(here) }
    }

    /// Whether this very server wrote it last, and neither copied nor promoted it since.
    pub fn is_of(&self, here: &Here) -> bool {
        self.home.is(&here.home)
            && (self.system_identifier, self.timeline) == (here.system_identifier, here.timeline)
    }

    /// Whether this cluster wrote it, or one that it is a copy of.
    pub fn is_of_cluster(&self, here: &Here) -> bool {
        self.system_identifier == here.system_identifier
    }

    fn knows(&self, datacenter: u32, worker: u32) -> bool {
        let same = |node: Node| (node.datacenter, node.worker) == (datacenter, worker);
        self.node.is_some_and(same) || self.all_marks().any(|mark| same(mark.node))
    }

    fn forget_lease(&mut self) {
        self.lease = None;
        self.claim = None;
    }

    /// Sets the node that issues; the rollback value stays as long as the worker does.
    fn identify(&mut self, identity: Identity) {
        let leased = |datacenter: u32| {
            let lease = self.lease.as_ref().filter(|lease| lease.datacenter == datacenter)?;
            Some((lease.datacenter, lease.worker))
        };
        let worker = match identity {
            Identity::Fixed { datacenter, worker } => Some((datacenter, worker)),
            Identity::Leased { datacenter } => leased(datacenter),
        };
        match identity {
            Identity::Fixed { .. } => self.forget_lease(),
            // A claim may still become a lease.
            Identity::Leased { .. } if worker.is_none() => self.lease = None,
            Identity::Leased { .. } => {}
        }
        self.node = worker.map(|(datacenter, worker)| {
            let same = self.node.filter(|node| (node.datacenter, node.worker) == (datacenter, worker));
            same.unwrap_or(Node { datacenter, worker, rollback: 0 })
        });
    }

    /// How far a node may have issued in the server's own layout: a server that issues as that node begins here.
    pub fn mark(&self, node: Node) -> Position {
        let lease =
            self.lease.as_ref().filter(|lease| lease.is_of(node)).map_or(Position::ZERO, |lease| lease.start);
        self.own.of(node).max(lease)
    }

    /// Raises the mark of the node that issues in a layout to `ahead` beyond the clock, or beyond `next`, the position
    /// after the last one issued, where ids run ahead of the clock. Under a lease not beyond its expiry. Gives the
    /// position below which it may issue once this state is durable; None where no node issues. That is not above
    /// `next` where the expiry or the layout's end is reached.
    pub fn reserve(
        &mut self,
        layout: &Layout,
        at: UnixMicros,
        next: Position,
        ahead: Duration,
    ) -> Option<Position> {
        let node = self.node_in(layout)?;
        let base = at.max(layout.instant_of(next));
        let wish = layout.position_after(base.plus(ahead));
        let lease = self.lease.as_ref().filter(|_| holds(Guard::ExpiryClamps));
        let expiry = lease.map_or(Position::MAX, |lease| layout.position_at(lease.expiry));
        let limit = wish.min(expiry).min(layout.end_position());
        let mark = limit.max(self.mark_in(layout, node));
        self.set_mark(layout, node, mark, at);
        Some(limit)
    }

    /// The instant from which another server may issue as the worker of a lease: the tick after the last in which this one
    /// did. `layout` is the server's own.
    pub fn end_of(&self, lease: &Lease, layout: &Layout) -> UnixMicros {
        let end_in = |of: &Marks, start: Position, layout: &Layout| {
            let marks = of.marks.iter().filter(|mark| lease.is_of(mark.node));
            // The floor: the mark of one of its nodes may have been dropped.
            let end = marks.map(|mark| mark.position).fold(start.max(of.floor), Position::max);
            layout.instant_of(end).plus_micros(layout.unit())
        };
        let others = self.others.layouts.iter().filter(|_| holds(Guard::OthersEnd));
        let others = others.map(|other| end_in(&other.of, Position::ZERO, &other.layout));
        others.fold(end_in(&self.own, lease.start, layout), UnixMicros::max).max(self.others.floor)
    }

    /// Notes the exact position after the last one that a node issued in a layout, when it does not any more.
    pub fn settle(&mut self, layout: &Layout, node: Node, next: Position) {
        let used = self.others.get(layout).map_or(UnixMicros(0), |other| other.used);
        self.set_mark(layout, node, next, used);
    }

    /// Has another rollback value of the same worker issue in a layout, one whose mark the clock has passed; whether there is
    /// one.
    pub fn switch_rollback(&mut self, layout: &Layout, at: UnixMicros) -> bool {
        let Some(node) = self.node_in(layout) else { return false };
        let values = u32::try_from(layout.max(Field::Rollback)).unwrap_or(0) + 1;
        let now = layout.position_at(at);
        let other = (1..values)
            .map(|step| Node { rollback: (node.rollback + step) % values, ..node })
            .find(|other| self.mark_in(layout, *other) <= now);
        if let Some(Node { rollback, .. }) = other {
            self.set_rollback(layout, rollback, at);
        }
        other.is_some()
    }

    /// Takes up a lease: its worker issues from now on.
    pub fn take_up(&mut self, lease: Lease) {
        self.claim = None;
        let (datacenter, worker) = (lease.datacenter, lease.worker);
        self.lease = Some(lease);
        self.identify(Identity::Leased { datacenter });
        debug_assert!(self.node.is_some_and(|node| node.worker == worker));
    }

    /// Worker ids are leased by way of this database from now on, from the registry that others share, if it is one.
    pub fn leased_from(&mut self, database: u32, origin: Option<&Origin>) {
        let same = self.registry.is_none_or(|registry| registry == database);
        self.leases_with = match origin {
            Some(origin) => Some(origin.identity.clone()),
            None => self.leases_with.take().filter(|_| same),
        };
        self.registry = Some(database);
        self.moving_to = None;
    }

    /// The registry here, of this identity, leases worker ids to others.
    pub fn leases_out(&mut self, database: u32, identity: &str) {
        if self.registry.is_none_or(|registry| registry == database) {
            self.leases_with = Some(identity.to_owned());
        }
    }

    /// The registry is where it was, this database where that is not known: what was begun to move it was rolled back.
    pub fn stay(&mut self, database: u32) {
        self.moving_to = None;
        self.registry = self.registry.or(Some(database));
    }

    /// Gives the lease up, because it is lost or released: no node issues until there is another.
    pub fn give_up(&mut self) {
        self.forget_lease();
        self.node = None;
    }

    /// Gives up the lease with this token, whose row was rolled back with the registry that it was in.
    pub fn take_back(&mut self, token: i64) {
        if self.lease.as_ref().is_some_and(|lease| lease.token == token) {
            self.give_up();
            self.registry = None;
        }
    }

    /// Whether it is the server's own layout.
    fn is_own(&self, layout: &Layout) -> bool {
        self.layout.parse().is_ok_and(|own: Layout| own == *layout)
    }

    fn all_marks(&self) -> impl Iterator<Item = &Mark> {
        self.own.marks.iter().chain(self.others.marks())
    }

    fn all_marks_mut(&mut self) -> impl Iterator<Item = &mut Mark> {
        self.own.marks.iter_mut().chain(self.others.marks_mut())
    }

    /// The node that issues in a layout: the server's, with a rollback value of the layout's.
    pub fn node_in(&self, layout: &Layout) -> Option<Node> {
        let node = self.node?;
        if self.is_own(layout) {
            return Some(node);
        }
        let rollback = self.others.get(layout).map_or(0, |other| other.rollback);
        Some(Node { rollback, ..node })
    }

    /// How far a node may have issued in a layout: a server that issues as that node begins here.
    pub fn mark_in(&self, layout: &Layout, node: Node) -> Position {
        let Ok(own) = self.layout.parse::<Layout>() else { return Position::MAX };
        if own == *layout {
            return self.mark(node);
        }
        let lease = self.lease.as_ref().filter(|lease| lease.is_of(node) && holds(Guard::OthersStart));
        let lease = lease.map_or(Position::ZERO, |lease| lease.start_in(layout, &own));
        self.others.mark(layout, node).max(lease)
    }

    /// `at`: when ids of the layout were asked for last.
    fn set_mark(&mut self, layout: &Layout, node: Node, position: Position, at: UnixMicros) {
        if self.is_own(layout) {
            return self.own.set(node, position);
        }
        let other = self.others.get_mut(layout, at);
        other.used = at;
        other.of.set(node, position);
    }

    fn set_rollback(&mut self, layout: &Layout, rollback: u32, at: UnixMicros) {
        if self.is_own(layout) {
            self.node = self.node.map(|node| Node { rollback, ..node });
        } else {
            self.others.get_mut(layout, at).rollback = rollback;
        }
    }

    /// Notes that ids of a layout are asked for, so that the next worker id that is leased fits it.
    /// Whether that is news, which is to be written.
    pub fn want(&mut self, layout: &Layout, at: UnixMicros) -> bool {
        let is_noted = self.others.get(layout).is_some_and(|other| other.used.plus(NOTED) > at);
        if is_noted || self.is_own(layout) {
            return false;
        }
        self.others.get_mut(layout, at).used = at;
        true
    }

    /// The largest worker id that all layouts in use have room for. `layout` is the server's own.
    pub fn worker_limit(&self, layout: &Layout, at: UnixMicros) -> u32 {
        let most = |layout: &Layout| u32::try_from(layout.max(Field::Worker)).unwrap_or(u32::MAX);
        let in_use = self.others.layouts.iter().filter(|other| other.used.plus(IN_USE) > at);
        in_use.map(|other| most(&other.layout)).fold(most(layout), u32::min)
    }

    /// Whether ids of some layout come to an instant. `own` is the server's own layout.
    pub fn comes_to(&self, at: UnixMicros, own: &Layout) -> bool {
        let comes = |layout: &Layout| {
            self.node_in(layout).is_some_and(|node| self.mark_in(layout, node) >= layout.position_at(at))
        };
        comes(own) || self.others.layouts.iter().any(|other| comes(&other.layout))
    }

    /// Makes the layout of here and now the server's own, if that is what an operator has said it is to be: the marks of
    /// the former are kept, and ids of the new one begin above all of them.
    fn change_layout(&mut self, here: &Here) {
        let said = self.next_layout.as_ref().and_then(|next| next.parse::<Layout>().ok());
        let Ok(former) = self.layout.parse::<Layout>() else { return };
        if !self.is_of_cluster(here) || former == here.layout || said != Some(here.layout) {
            return;
        }
        let Some(first) = first_above(&former, &here.layout, self.own.highest()) else { return };
        // Nor do UUIDs go back, which follow the instants of positions.
        let first = first.max(here.layout.position_from(former.instant_above(self.own.highest())));
        let mut next = self.others.take(&here.layout);
        if holds(Guard::LayoutRises) {
            next.of.rise(first);
            next.of.raise_floor(first);
        }
        let max_worker = here.layout.max(Field::Worker);
        if self.lease.as_ref().is_some_and(|lease| u64::from(lease.worker) > max_worker) {
            self.forget_lease();
        }
        if let Some(lease) = &mut self.lease {
            lease.start = lease.start_in(&here.layout, &former);
        }
        let rollback = self.node.map_or(0, |node| node.rollback);
        let of = std::mem::replace(&mut self.own, next.of);
        self.node = self.node.map(|node| Node { rollback: next.rollback, ..node });
        self.layout = here.layout.to_string();
        self.next_layout = None;
        self.others.put(OtherLayout { layout: former, rollback, used: UnixMicros(0), of });
    }

    /// All layouts whose marks count here but for the server's own of now.
    pub fn layouts_beside(&self, here: &Here) -> Vec<Layout> {
        let own = self.layout.parse().ok();
        let all = self.others.layouts.iter().map(|other| other.layout).chain(own);
        all.filter(|layout| *layout != here.layout && self.is_of_cluster(here)).collect()
    }

    /// Has every node begin at or above a position of a layout that has no mark in it.
    pub fn begin_above(&mut self, layout: &Layout, above: Position) {
        if self.is_own(layout) {
            self.own.raise_floor(above);
        } else if above > Position::ZERO {
            let used = self.others.get(layout).map_or(UnixMicros(0), |other| other.used);
            self.others.get_mut(layout, used).of.raise_floor(above);
        }
    }

    /// The marks of a layout.
    pub fn marks_of(&self, layout: &Layout) -> Option<&Marks> {
        if self.is_own(layout) { Some(&self.own) } else { self.others.get(layout).map(|other| &other.of) }
    }
}
