//! Leases of worker ids: when a lease is renewed, and the search for a worker id among the registry's rows.
//!
//! The holder issues only ids of ticks before the expiry, and the next holder begins at or after the expiry. So two holders
//! never issue the same id, even if the first holder is paused, has no network or has a wrong clock. Clocks only decide
//! when a worker id is free. `docs/architecture.md` describes lease tokens and pending tokens.

use crate::clock::{UnixMicros, human};
use crate::error::Explain;
use crate::ids::id::Node;
use crate::ids::layout::{Field, Layout};
use crate::ids::position::Position;
use crate::ids::scatter::scatter;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A lease of a worker id, as the holder's state file records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The datacenter of the worker id.
    pub datacenter: u32,
    /// The worker id.
    pub worker_id: u32,
    /// The lease token of the registry's row.
    pub token: i64,
    /// The instant from which the holder may issue ids. Earlier ids may belong to the previous holder.
    pub since: UnixMicros,
    /// The end of the lease: the holder may issue only ids before this instant. [`Self::NO_END`] if the server chose
    /// the worker id itself.
    pub expiry: UnixMicros,
    /// The registry on another server that granted the lease. None if this server granted the lease, or chose the
    /// worker id itself.
    pub origin: Option<Origin>,
}

/// A registry that several servers share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The registry's identity.
    pub identity: String,
    /// The foreign server of the registry.
    pub server: String,
}

/// The largest number of worker ids that the registry's column can store.
pub const MOST_NUMBERS: u32 = i32::MAX.cast_unsigned();

/// Returns the number of worker ids of a layout, at most `MOST_NUMBERS`.
pub fn capacity(layout: &Layout) -> u32 {
    u32::try_from(layout.max(Field::Worker)).map_or(MOST_NUMBERS, |last| last.min(MOST_NUMBERS - 1) + 1)
}

/// A description of the holder, for views and messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The system identifier of the database cluster.
    pub system_identifier: i64,
    /// The timeline of the database cluster.
    pub timeline: u32,
    /// The name of the machine.
    pub host: String,
    /// The port that the server listens on.
    pub port: Option<i32>,
    /// The data directory.
    pub directory: String,
    /// The layout of the server's ids.
    pub layout: String,
}

impl Lease {
    /// The end of the year 9998: the expiry of a worker id that a server without a registry chose.
    pub const NO_END: UnixMicros = UnixMicros(253_370_764_799_999_999);

    /// Returns the lease of a worker id that a server without a registry chose. If the server uses a registry later,
    /// the registry recognizes the server by `token`.
    pub fn chosen(datacenter: u32, worker_id: u32, token: i64) -> Self {
        Self { datacenter, worker_id, token, since: UnixMicros(0), expiry: Self::NO_END, origin: None }
    }

    /// Returns whether the server chose the worker id itself, without a registry.
    pub fn is_chosen(&self) -> bool {
        self.expiry == Self::NO_END
    }

    /// Returns whether a node has the lease's datacenter and worker id.
    pub fn is_of(&self, node: Node) -> bool {
        node.is_of(self.datacenter, self.worker_id)
    }

    /// Returns whether two leases are of the same datacenter and worker id.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.datacenter, self.worker_id) == (other.datacenter, other.worker_id)
    }

    /// Returns the first position that the holder may use in a layout.
    pub fn start_in(&self, layout: &Layout) -> Position {
        layout.position_at(self.since)
    }
}

/// The shortest time between two renewals, even if a registry grants shorter leases.
pub const RENEWAL_PAUSE: Duration = Duration::from_secs(10);

/// Returns the time until the next renewal. A lease is renewed once a quarter of its length has passed. The length is
/// the shorter of `asked` and `granted`. `left` is the remaining time of the lease. `renewed` is the time since the
/// last renewal, if known.
pub fn until_renewal(
    left: Duration,
    asked: Duration,
    granted: Option<Duration>,
    renewed: Option<Duration>,
) -> Duration {
    let term = granted.map_or(asked, |granted| granted.min(asked));
    let pause = renewed.map_or(Duration::ZERO, |renewed| RENEWAL_PAUSE.saturating_sub(renewed));
    left.saturating_sub(term / 4 * 3).max(pause)
}

/// The policy by which a worker id is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// The server's previous worker id, or else the first free worker id.
    #[default]
    Reuse,
    /// A worker id that no server has ever had.
    Disposable,
    /// The server's previous worker id; or else a worker id that no server has ever had; or else the worker id that has been
    /// free the longest.
    Queue,
}

/// A row of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRow {
    /// The worker id.
    pub worker_id: u32,
    /// The holder's token. None if the holder gave the worker id back.
    pub token: Option<i64>,
    /// The end of the lease. The holder may issue only ids before this instant.
    pub expiry: UnixMicros,
    /// The time of the grant, or the end of the previous lease if this end is later.
    pub leased: UnixMicros,
}

impl LeaseRow {
    /// Returns whether the lease has expired.
    pub fn is_free(&self, now: UnixMicros) -> bool {
        self.expiry <= now
    }
}

/// The result of a search for a worker id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Choice {
    /// The server's own row, to be renewed.
    Own(LeaseRow),
    /// A worker id without a row.
    New {
        /// The worker id.
        worker_id: u32,
    },
    /// A free row, to be taken over if the row is still unchanged.
    Free(LeaseRow),
}

impl Choice {
    /// Returns the worker id.
    pub fn worker_id(&self) -> u32 {
        match self {
            Self::Own(row) | Self::Free(row) => row.worker_id,
            Self::New { worker_id } => *worker_id,
        }
    }
}

/// The parameters of a search for a worker id.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The policy.
    pub policy: Policy,
    /// The server's own tokens: the lease token and the pending token.
    pub own: [Option<i64>; 2],
    /// Worker ids that the server cannot use now, even if they are free.
    pub except: &'a [u32],
    /// The worker ids to try first.
    pub preferred: Preferred,
    /// The number of worker ids, at least 1. The lowest worker id is 0.
    pub capacity: u32,
    /// The registry's clock.
    pub now: UnixMicros,
    /// If this field is Some, worker ids without rows may be in use, because the registry was rebuilt. The inner value
    /// is the worker id that the server leased from the previous registry. The search then accepts only the server's
    /// own row or this worker id.
    pub former_leases: Option<Option<u32>>,
}

impl Search<'_> {
    /// Finds a worker id. `rows` are the rows of a datacenter, ordered by worker id. Returns None if no worker id is
    /// free. The cost depends on the number of rows and exceptions, not on the number of worker ids.
    pub fn choose(&self, rows: &[LeaseRow]) -> Option<Choice> {
        let mut except = self.except.to_vec();
        except.sort_unstable();
        let is_usable =
            |worker_id: u32| worker_id < self.capacity && except.binary_search(&worker_id).is_err();
        let is_own = |row: &&LeaseRow| row.token.is_some() && self.own.contains(&row.token);
        let own = rows.iter().find(|row| is_own(row) && is_usable(row.worker_id));
        if let Some(own) = own {
            return Some(Choice::Own(*own));
        }
        if let Some(held) = self.former_leases {
            let held = held.filter(|worker_id| is_usable(*worker_id))?;
            return match rows.iter().find(|row| row.worker_id == held) {
                Some(row) => row.is_free(self.now).then_some(Choice::Free(*row)),
                None => Some(Choice::New { worker_id: held }),
            };
        }
        let is_free = |row: &&LeaseRow| row.is_free(self.now) && is_usable(row.worker_id);
        let mut runs = self.runs().map(|run| {
            let from = rows.partition_point(|row| row.worker_id < run.from);
            let to = rows.partition_point(|row| row.worker_id < run.end);
            (run, rows.get(from..to.max(from)).unwrap_or_default())
        });
        let new = |(run, rows): (WorkerIdRun, &[LeaseRow])| {
            let taken = rows.iter().map(|row| row.worker_id);
            run.first_gap(taken, &except).map(|worker_id| Choice::New { worker_id })
        };
        match self.policy {
            Policy::Reuse => runs.find_map(|(run, rows)| {
                let free = rows.iter().filter(|row| run.has(row.worker_id)).find(is_free).copied();
                // A worker id without a row is better only if this worker id is lower than the free row's worker id.
                let end = free.map_or(run.end, |row| row.worker_id);
                new((WorkerIdRun { end, ..run }, rows)).or(free.map(Choice::Free))
            }),
            Policy::Disposable => runs.find_map(new),
            Policy::Queue => runs.clone().find_map(new).or_else(|| {
                let free = runs.flat_map(|(run, rows)| rows.iter().filter(move |row| run.has(row.worker_id)));
                free.filter(is_free).min_by_key(|row| row.expiry).copied().map(Choice::Free)
            }),
        }
    }

    /// Returns the ranges of worker ids to search, in order. First comes the range `preferred.first`, then the share of the
    /// preferred worker id, then all other worker ids.
    fn runs(&self) -> impl Iterator<Item = WorkerIdRun> + Clone {
        let capacity = self.capacity;
        let first = self.preferred.first.map(|(from, end)| (from.min(end).min(capacity), end.min(capacity)));
        let before = first.into_iter().flat_map(|(from, end)| {
            let begin = self.preferred.worker_id.clamp(from, end);
            [WorkerIdRun { from: begin, end, step: 1 }, WorkerIdRun { from, end: begin, step: 1 }]
        });
        before.chain(self.runs_of_share())
    }

    fn runs_of_share(&self) -> impl Iterator<Item = WorkerIdRun> + Clone {
        let (capacity, shares) = (self.capacity, self.preferred.shares.max(1));
        let share = self.preferred.share();
        // The share does not depend on the capacity, but the start within the share does.
        let count = capacity.saturating_sub(share).div_ceil(shares);
        let turn = (self.preferred.worker_id / shares).checked_rem(count).unwrap_or(0);
        let begin = share + turn * shares;
        let of_share = [
            WorkerIdRun { from: begin, end: capacity, step: shares },
            WorkerIdRun { from: share, end: begin, step: shares },
        ];
        let others = !self.preferred.only && shares > 1;
        let begin = begin.min(capacity);
        let all = [
            WorkerIdRun { from: begin, end: capacity, step: 1 },
            WorkerIdRun { from: 0, end: begin, step: 1 },
        ];
        of_share.into_iter().chain(all.into_iter().filter(move |_| others))
    }
}

/// A sequence of worker ids from `from` up to, but not including, `end`. Each worker id is `step` above the previous
/// worker id.
#[derive(Clone, Copy)]
struct WorkerIdRun {
    from: u32,
    end: u32,
    step: u32,
}

impl WorkerIdRun {
    fn has(&self, worker_id: u32) -> bool {
        (self.from..self.end).contains(&worker_id) && (worker_id - self.from).is_multiple_of(self.step)
    }

    /// Returns the run's lowest worker id that neither list contains. Both lists are in ascending order.
    fn first_gap(&self, taken: impl Iterator<Item = u32>, except: &[u32]) -> Option<u32> {
        let from = except.partition_point(|worker_id| *worker_id < self.from);
        let (mut taken, mut except) = (taken.peekable(), except.iter().copied().skip(from).peekable());
        let mut next = self.from;
        while next < self.end {
            let mut is_used = false;
            while let Some(worker_id) = taken.next_if(|worker_id| *worker_id <= next) {
                is_used |= worker_id == next;
            }
            while let Some(worker_id) = except.next_if(|worker_id| *worker_id <= next) {
                is_used |= worker_id == next;
            }
            if !is_used {
                return Some(next);
            }
            next = next.saturating_add(self.step);
        }
        None
    }
}

/// The worker ids that a server tries first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preferred {
    /// The worker id with which the search begins.
    pub worker_id: u32,
    /// The number of shares, at least 1. A share is the set of worker ids with the same remainder modulo `shares`. The
    /// share of `worker_id` is searched before all other shares. The share to which a worker id belongs does not depend on
    /// the number of worker ids.
    pub shares: u32,
    /// True if the server must not use worker ids of other shares.
    pub only: bool,
    /// A range of worker ids that is searched before all other worker ids: from the first field up to, but not
    /// including, the second field. The range contains `worker_id`.
    pub first: Option<(u32, u32)>,
}

impl Preferred {
    /// The number of shares if there are at least `FEW` worker ids.
    pub const SHARES: u32 = 8;
    /// The number of worker ids below which all worker ids form a single share, because each of eight shares would have
    /// fewer than four worker ids.
    const FEW: u32 = 32;

    /// Returns the preference for a server that chooses its worker id without a registry. `capacity` is the number of
    /// worker ids in the server's own layout.
    ///
    /// Servers that do not know each other should not all choose worker id 0, so the system identifier selects the
    /// start. After a promotion, the old and the new primary both choose a worker id without a registry, so each of
    /// eight consecutive timelines has a share of its own. Within a share, `home` (the identity of the data directory)
    /// separates servers that were promoted at the same time.
    pub fn alone(system_identifier: u64, timeline: u32, home: &str, capacity: u32) -> Self {
        Self::in_share(
            scatter(system_identifier).wrapping_add(timeline.into()),
            system_identifier,
            home,
            capacity,
        )
    }

    /// Returns the preference for one share. `share` is the index of the share, modulo the number of shares.
    pub fn in_share(share: u64, system_identifier: u64, home: &str, capacity: u32) -> Self {
        let shares = Self::shares(capacity);
        let of_share = u64::from((capacity / shares).max(1));
        let scattered = scatter(system_identifier);
        let share = share % u64::from(shares);
        let within = (scattered >> 32).wrapping_add(crc32fast::hash(home.as_bytes()).into()) % of_share;
        let worker_id = u32::try_from(share + within * u64::from(shares)).unwrap_or(0);
        Self { worker_id, shares, only: shares > 1, first: None }
    }

    /// Returns the preference for a registry that several servers share: a `random` worker id. A rebuilt registry does
    /// not know the leases of the previous registry, and a random worker id is rarely in use. A promoted standby may
    /// lack the last leases of its primary. Its fork therefore prefers another eighth of the worker ids.
    pub fn shared(fork: Option<i64>, capacity: u32, random: u32) -> Self {
        let (begin, end) = Self::eighth(fork, capacity);
        Self { first: Some((begin, end)), ..Self::from(begin + random % (end - begin)) }
    }

    /// Returns the preference for the worker id that a server already has, at a registry that several servers share.
    /// Returns None if another server may already hold the worker id: a promoted registry may lack the last leases of
    /// its former primary.
    pub fn kept(worker_id: u32, fork: Option<i64>, capacity: u32) -> Option<Self> {
        let (begin, end) = Self::eighth(fork, capacity);
        // If another server holds the worker id, the search continues in the same eighth.
        let first = (begin..end).contains(&worker_id).then_some((begin, end));
        (worker_id < capacity && (fork.is_none() || first.is_some()))
            .then(|| Self { first, ..Self::from(worker_id) })
    }

    /// Returns the preference for the lowest worker id, from `above` on, that no server was leased before, at a registry that
    /// several servers share. A promoted registry leases worker ids of its eighth only, because it may lack the last leases
    /// of its former primary. Returns None if no worker id is left.
    pub fn unused(above: u32, fork: Option<i64>, capacity: u32) -> Option<Self> {
        let (begin, end) = if fork.is_none() { (0, capacity) } else { Self::eighth(fork, capacity) };
        let worker_id = above.max(begin);
        (worker_id < end).then(|| Self { first: Some((begin, end)), ..Self::from(worker_id) })
    }

    /// Returns the range of worker ids that a registry prefers: an eighth of all worker ids, or all worker ids if there
    /// are few. Before the first promotion, it is the first eighth.
    fn eighth(fork: Option<i64>, capacity: u32) -> (u32, u32) {
        let eighths = Self::shares(capacity);
        let length = (capacity / eighths).max(1);
        let share = fork.unwrap_or(0).rem_euclid(eighths.into());
        let begin = u32::try_from(share).unwrap_or(0) * length;
        (begin, begin + length)
    }

    /// Returns a preference derived from the data directory, which differs between a server and its copies.
    pub fn of_home(system_identifier: u64, home: &str, capacity: u32) -> Self {
        let scattered = scatter(system_identifier ^ u64::from(crc32fast::hash(home.as_bytes())));
        Self::from(u32::try_from(scattered % u64::from(capacity.max(1))).unwrap_or(0))
    }

    /// Returns the preference for all worker ids, beginning with `worker_id` and wrapping around at the end.
    pub fn from(worker_id: u32) -> Self {
        Self { worker_id, shares: 1, only: false, first: None }
    }

    /// Returns the number of shares if there are `capacity` worker ids.
    pub fn shares(capacity: u32) -> u32 {
        if capacity < Self::FEW { 1 } else { Self::SHARES }
    }

    /// Returns the index of the share of `worker_id`: the remainder that all worker ids of this share have modulo
    /// `shares`.
    pub fn share(&self) -> u32 {
        self.worker_id % self.shares.max(1)
    }

    /// Returns the worker ids of the share of `worker_id` that are below `capacity`.
    pub fn of_share(&self, capacity: u32) -> impl Iterator<Item = u32> {
        let step = usize::try_from(self.shares).unwrap_or(usize::MAX).max(1);
        (self.share()..capacity).step_by(step)
    }
}

/// The reason why a server must not get a worker id: the server's clock differs too much from another clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(NotReady, hint = "Synchronise the clocks of all servers with one time service.")]
pub enum Skew {
    /// The clock differs from the registry's clock.
    #[error("the clock of this server differs from the registry's")]
    #[explain(detail = "The clock is {} {} the registry's; snowflake_ids.max_clock_skew is {}.",
              human(*by), if *is_ahead { "ahead of" } else { "behind" }, human(*max))]
    Registry {
        /// The difference.
        by: Duration,
        /// True if the server's clock is ahead.
        is_ahead: bool,
        /// The limit.
        max: Duration,
    },
    /// The clock is behind ids that other servers have issued.
    #[error("the clock of this server is behind ids that other servers have issued")]
    #[explain(detail = "The clock is {} behind these ids; snowflake_ids.max_clock_skew is {}.", human(*by), human(*max))]
    Peers {
        /// The difference.
        by: Duration,
        /// The limit.
        max: Duration,
    },
}

/// Compares the server's clock with the registry's clock, and with the time of the latest id that any holder reported.
///
/// # Errors
/// [`Skew`] if a difference is greater than `max`.
pub fn check_clock(
    local: UnixMicros,
    registry: UnixMicros,
    latest: Option<UnixMicros>,
    max: Duration,
) -> Result<(), Skew> {
    let is_ahead = local > registry;
    let by = if is_ahead { local.since(registry) } else { registry.since(local) };
    if by > max {
        return Err(Skew::Registry { by, is_ahead, max });
    }
    let behind = latest.map_or(Duration::ZERO, |latest| latest.since(local));
    if behind > max { Err(Skew::Peers { by: behind, max }) } else { Ok(()) }
}

/// The reason why a server has no worker id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, Explain)]
#[error("{message}")]
#[explain(NotReady, detail = "{}", format!("{detail} {holders}").trim_end(), hint = "{hint}", message = "{NONE_FREE}")]
#[explain(for_others = (!holders.is_empty()).then(|| (message.clone(), detail.clone())))]
pub struct LeaseError {
    /// The message.
    pub message: String,
    /// The DETAIL.
    pub detail: String,
    /// The HINT.
    pub hint: String,
    /// The holders of the worker ids, only for users that may see other servers. Empty if the error has another reason.
    pub holders: String,
}

/// The message if all worker ids of a datacenter are in use.
pub const NONE_FREE: &str = "no worker id is free";

impl LeaseError {
    /// Returns the error for sessions of a server that has no worker id yet.
    pub fn yet(detail: impl Into<String>, hint: impl Into<String>) -> Self {
        let message = "this server has no worker id yet".to_owned();
        Self { message, detail: detail.into(), hint: hint.into(), holders: String::new() }
    }

    /// Returns an error with the same texts as another error.
    pub fn of(error: &(impl Explain + ?Sized)) -> Self {
        let (detail, hint) = (error.detail().unwrap_or_default(), error.hint().unwrap_or_default());
        Self { message: error.to_string(), detail, hint, holders: String::new() }
    }
}

/// The hint if all worker ids are used up under the policy `disposable`.
pub(crate) const NOT_DISPOSABLE: &str = "Set snowflake_ids.worker_id_policy to reuse or queue, and reload the configuration; or use a \
                                         snowflake_ids.layout with more worker bits.";

/// The largest number of holders that an error message lists.
pub(crate) const LISTED: usize = 20;

/// Returns the first items of a list, for a message.
pub(crate) fn listed(all: impl IntoIterator<Item = impl ToString>) -> String {
    let shown: Vec<String> = all.into_iter().take(LISTED).map(|item| item.to_string()).collect();
    let more = if shown.len() < LISTED { "" } else { ", ..." };
    shown.join(", ") + more
}
