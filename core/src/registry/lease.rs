//! Worker ids on lease: the choice among the registry's rows, and its terms.
//!
//! A row of the registry names the holder of a worker id by a random *lease token*, and its *expiry*: the instant below
//! whose tick the holder may issue. The next holder starts at or above it. So a holder that is paused, cut off or
//! forgotten can't collide with the next one, whatever its clock shows: times only decide when an id is free.
//!
//! Every change of a row is a compare-and-swap on its token. The next token is noted in the state first (the *pending
//! token*), so that a server that ends in between knows its own row again.

use crate::clock::{UnixMicros, human};
use crate::error::Explain;
use crate::generator::snowflake::scatter;
use crate::ids::id::Node;
use crate::ids::layout::{Field, Layout};
use crate::ids::position::Position;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A worker id on lease, as its holder knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The datacenter that the worker id belongs to.
    pub datacenter: u32,
    /// The worker id.
    pub worker: u32,
    /// The token of the row while the lease is ours.
    pub token: i64,
    /// Positions below this one of the server's own layout, from before the former lease's expiry, may be another holder's.
    pub start: Position,
    /// The instant before whose tick positions of any layout may be another holder's; None where `start` alone tells.
    pub since: Option<UnixMicros>,
    /// Ids before this instant may be issued; [`Self::NO_END`] where the server chose it.
    pub expiry: UnixMicros,
    /// The registry that leased it; None: this server.
    pub origin: Option<Origin>,
}

/// A registry that many servers share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Tells it from others.
    pub identity: String,
    /// Its foreign server.
    pub server: String,
}

/// Returns the number of worker ids a layout has; of very many, those that fit the registry's column.
pub fn capacity(layout: &Layout) -> u32 {
    const MOST: u32 = i32::MAX.cast_unsigned();
    u32::try_from(layout.max(Field::Worker)).map_or(MOST, |last| last.min(MOST - 1) + 1)
}

/// A server, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The cluster.
    pub system_identifier: i64,
    /// Its timeline.
    pub timeline: u32,
    /// The machine.
    pub host: String,
    /// The port that it listens on.
    pub port: Option<i32>,
    /// The data directory.
    pub directory: String,
    /// The layout of its ids.
    pub layout: String,
}

impl Lease {
    /// The end of the year 9998: the expiry of a worker id that a server without a registry has chosen.
    pub const NO_END: UnixMicros = UnixMicros(253_370_764_799_999_999);

    /// A worker id that a server without a registry has chosen. A registry that it comes to later knows it by the token.
    pub fn chosen(datacenter: u32, worker: u32, token: i64) -> Self {
        let (start, since, expiry, origin) = (Position::ZERO, None, Self::NO_END, None);
        Self { datacenter, worker, token, start, since, expiry, origin }
    }

    /// Returns whether the server chose it, and no registry knows of it.
    pub fn is_chosen(&self) -> bool {
        self.expiry == Self::NO_END
    }

    /// Returns whether a node is this one's worker.
    pub fn is_of(&self, node: Node) -> bool {
        node.is_of(self.datacenter, self.worker)
    }

    /// Positions below this one of another layout than the server's own may be another holder's.
    pub fn start_in(&self, layout: &Layout, own: &Layout) -> Position {
        match self.since {
            Some(since) => layout.position_at(since),
            None if self.start == Position::ZERO => Position::ZERO,
            // The start was cut to the beginning of its tick, which may be much longer than those of the other layout.
            None => layout.position_from(own.instant_of(self.start).plus_micros(own.unit())),
        }
    }
}

/// The shortest time from one renewal to the next, whatever a registry grants.
pub const RENEWAL_PAUSE: Duration = Duration::from_secs(10);

/// The time until a lease has to be renewed, which is good for `left`: until a quarter of the time is gone that was asked for,
/// or `granted`, if that is less. `renewed` is the time since then, if that is known.
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
    /// The one that the server had, else the first that is free.
    #[default]
    Reuse,
    /// One that no server ever had.
    Disposable,
    /// The one that the server had, else one that no server ever had, else the one that was free the longest.
    Queue,
}

/// A row of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRow {
    /// The worker id.
    pub worker: u32,
    /// The holder's token; None when it was given back.
    pub token: Option<i64>,
    /// The instant below which its holder may issue.
    pub expiry: UnixMicros,
    /// The time at which the holder took it: the expiry before had passed then.
    pub leased: UnixMicros,
}

impl LeaseRow {
    /// Returns whether its expiry has passed: a server that takes it starts in the present.
    pub fn is_free(&self, now: UnixMicros) -> bool {
        self.expiry <= now
    }
}

/// The choice of a worker id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Choice {
    /// Renew the row that is ours.
    Own(LeaseRow),
    /// Write a row for an id that has none.
    New {
        /// The worker id.
        worker: u32,
    },
    /// Take over a row that is free, if it is still as it was read.
    Free(LeaseRow),
}

impl Choice {
    /// The worker id.
    pub fn worker(&self) -> u32 {
        match self {
            Self::Own(row) | Self::Free(row) => row.worker,
            Self::New { worker } => *worker,
        }
    }
}

/// The terms of a search.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The policy.
    pub policy: Policy,
    /// The tokens of rows that are ours: that of the lease, and the pending one.
    pub own: [Option<i64>; 2],
    /// Worker ids that can't be used here now, even if they are free.
    pub except: &'a [u32],
    /// The place to begin.
    pub preferred: Preferred,
    /// Number of worker ids there are, from 0 on; not 0.
    pub capacity: u32,
    /// The registry's clock.
    pub now: UnixMicros,
    /// Set where worker ids without rows may be in use: then only one is taken that is ours already, or this one, which we have
    /// from the former registry.
    pub former_leases: Option<Option<u32>>,
}

impl Search<'_> {
    /// Finds a worker id, given all rows of the datacenter in the order of their worker ids. None where none is free.
    /// Takes as long as it takes to look at each row and each exception a few times, however many worker ids there are.
    pub fn choose(&self, rows: &[LeaseRow]) -> Option<Choice> {
        let mut except = self.except.to_vec();
        except.sort_unstable();
        let is_usable = |worker: u32| worker < self.capacity && except.binary_search(&worker).is_err();
        let is_own = |row: &&LeaseRow| row.token.is_some() && self.own.contains(&row.token);
        let own = rows.iter().find(|row| is_own(row) && is_usable(row.worker));
        if let Some(own) = own {
            return Some(Choice::Own(*own));
        }
        if let Some(held) = self.former_leases {
            let held = held.filter(|worker| is_usable(*worker))?;
            return match rows.iter().find(|row| row.worker == held) {
                Some(row) => row.is_free(self.now).then_some(Choice::Free(*row)),
                None => Some(Choice::New { worker: held }),
            };
        }
        let is_free = |row: &&LeaseRow| row.is_free(self.now) && is_usable(row.worker);
        let mut runs = self.runs().map(|run| {
            let from = rows.partition_point(|row| row.worker < run.from);
            let to = rows.partition_point(|row| row.worker < run.end);
            (run, rows.get(from..to.max(from)).unwrap_or_default())
        });
        let new = |(run, rows): (WorkerRun, &[LeaseRow])| {
            let taken = rows.iter().map(|row| row.worker);
            run.first_gap(taken, &except).map(|worker| Choice::New { worker })
        };
        match self.policy {
            Policy::Reuse => runs.find_map(|(run, rows)| {
                let free = rows.iter().filter(|row| run.has(row.worker)).find(is_free).copied();
                // Only those before the one that is free are of interest.
                let end = free.map_or(run.end, |row| row.worker);
                new((WorkerRun { end, ..run }, rows)).or(free.map(Choice::Free))
            }),
            Policy::Disposable => runs.find_map(new),
            Policy::Queue => runs.clone().find_map(new).or_else(|| {
                let free = runs.flat_map(|(run, rows)| rows.iter().filter(move |row| run.has(row.worker)));
                free.filter(is_free).min_by_key(|row| row.expiry).copied().map(Choice::Free)
            }),
        }
    }

    /// All worker ids: the first ones, those of the share from the preferred one on and around, then all from there on and around.
    fn runs(&self) -> impl Iterator<Item = WorkerRun> + Clone {
        let capacity = self.capacity;
        let first = self.preferred.first.map(|(from, end)| (from.min(end).min(capacity), end.min(capacity)));
        let before = first.into_iter().flat_map(|(from, end)| {
            let begin = self.preferred.worker.clamp(from, end);
            [WorkerRun { from: begin, end, step: 1 }, WorkerRun { from, end: begin, step: 1 }]
        });
        before.chain(self.runs_of_share())
    }

    fn runs_of_share(&self) -> impl Iterator<Item = WorkerRun> + Clone {
        let (capacity, shares) = (self.capacity, self.preferred.shares.max(1));
        let share = self.preferred.share();
        // The share stays what it is however few of its worker ids there are; where to begin is among these.
        let count = capacity.saturating_sub(share).div_ceil(shares);
        let turn = (self.preferred.worker / shares).checked_rem(count).unwrap_or(0);
        let begin = share + turn * shares;
        let of_share = [
            WorkerRun { from: begin, end: capacity, step: shares },
            WorkerRun { from: share, end: begin, step: shares },
        ];
        let others = !self.preferred.only && shares > 1;
        let begin = begin.min(capacity);
        let all =
            [WorkerRun { from: begin, end: capacity, step: 1 }, WorkerRun { from: 0, end: begin, step: 1 }];
        of_share.into_iter().chain(all.into_iter().filter(move |_| others))
    }
}

/// Worker ids one after the other, each so far above the one before.
#[derive(Clone, Copy)]
struct WorkerRun {
    from: u32,
    end: u32,
    step: u32,
}

impl WorkerRun {
    fn has(&self, worker: u32) -> bool {
        (self.from..self.end).contains(&worker) && (worker - self.from).is_multiple_of(self.step)
    }

    /// The lowest that is in neither of two lists, both in their order.
    fn first_gap(&self, taken: impl Iterator<Item = u32>, except: &[u32]) -> Option<u32> {
        let from = except.partition_point(|worker| *worker < self.from);
        let (mut taken, mut except) = (taken.peekable(), except.iter().copied().skip(from).peekable());
        let mut next = self.from;
        while next < self.end {
            let mut is_used = false;
            while let Some(worker) = taken.next_if(|worker| *worker <= next) {
                is_used |= worker == next;
            }
            while let Some(worker) = except.next_if(|worker| *worker <= next) {
                is_used |= worker == next;
            }
            if !is_used {
                return Some(next);
            }
            next = next.saturating_add(self.step);
        }
        None
    }
}

/// The worker ids that a server looks at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preferred {
    /// The one to begin with.
    pub worker: u32,
    /// Number of shares of worker ids, 1 or more: those that leave the remainder of `worker` when divided by it come before all
    /// others. So a share is the same however many worker ids there are.
    pub shares: u32,
    /// True if others are not for this server.
    pub only: bool,
    /// Those from one on and before another that come before all others: `worker` is one of them.
    #[serde(default)]
    pub first: Option<(u32, u32)>,
}

impl Preferred {
    /// Number of shares.
    const SHARES: u32 = 8;
    /// Number of worker ids of which a share would hold less than four: there is one share.
    const FEW: u32 = 32;

    /// For a registry that is this server's alone, whose own layout has so many worker ids. Servers that were never introduced
    /// to each other must not all be number 0. After a promotion the registries of both servers go different ways: each of
    /// eight timelines has a share to itself, whatever limit the layouts in use set. Within it, servers that were promoted side
    /// by side begin at different places, by their homes.
    pub fn alone(system_identifier: u64, timeline: u32, home: &str, capacity: u32) -> Self {
        Self::in_share(
            scatter(system_identifier).wrapping_add(timeline.into()),
            system_identifier,
            home,
            capacity,
        )
    }

    /// The same in the share of this number, modulo the number of shares.
    pub fn in_share(share: u64, system_identifier: u64, home: &str, capacity: u32) -> Self {
        let shares = Self::shares(capacity);
        let of_share = u64::from((capacity / shares).max(1));
        let scattered = scatter(system_identifier);
        let share = share % u64::from(shares);
        let within = (scattered >> 32).wrapping_add(crc32fast::hash(home.as_bytes()).into()) % of_share;
        let worker = u32::try_from(share + within * u64::from(shares)).unwrap_or(0);
        Self { worker, shares, only: shares > 1, first: None }
    }

    /// For a registry that many servers share: a `random` one that is free, as a registry that was made anew does not know the
    /// leases of the former one. A promoted standby may not know the last leases of its primary, so on each of eight timelines
    /// in a row another eighth of the ids comes first.
    pub fn shared(timeline: u32, capacity: u32, random: u32) -> Self {
        let (begin, end) = Self::eighth(timeline, capacity);
        Self { first: Some((begin, end)), ..Self::from(begin + random % (end - begin)) }
    }

    /// The worker id that a server has from elsewhere, where many share the registry. None where a registry that was promoted may
    /// not know who leased it.
    pub fn kept(worker: u32, timeline: u32, capacity: u32) -> Option<Self> {
        let (begin, end) = Self::eighth(timeline, capacity);
        (worker < capacity && (timeline <= 1 || (begin..end).contains(&worker))).then(|| Self::from(worker))
    }

    /// All where they are few.
    fn eighth(timeline: u32, capacity: u32) -> (u32, u32) {
        let eighths = Self::shares(capacity);
        let length = (capacity / eighths).max(1);
        let begin = timeline.saturating_sub(1) % eighths * length;
        (begin, begin + length)
    }

    /// Any of a cluster, by the home, which tells a server from copies.
    pub fn of_home(system_identifier: u64, home: &str, capacity: u32) -> Self {
        let scattered = scatter(system_identifier ^ u64::from(crc32fast::hash(home.as_bytes())));
        Self::from(u32::try_from(scattered % u64::from(capacity.max(1))).unwrap_or(0))
    }

    /// From one on, and around.
    pub fn from(worker: u32) -> Self {
        Self { worker, shares: 1, only: false, first: None }
    }

    /// Number of shares of so many worker ids.
    pub fn shares(capacity: u32) -> u32 {
        if capacity < Self::FEW { 1 } else { Self::SHARES }
    }

    /// The remainder of the worker ids that come first when divided by the number of shares.
    pub fn share(&self) -> u32 {
        self.worker % self.shares.max(1)
    }

    /// The worker ids of the share, of so many from 0 on.
    pub fn of_share(&self, capacity: u32) -> impl Iterator<Item = u32> {
        let step = usize::try_from(self.shares).unwrap_or(usize::MAX).max(1);
        (self.share()..capacity).step_by(step)
    }
}

/// A clock that must not be given a worker id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(NotReady, hint = "Set the clocks of all servers by the same time service.")]
pub enum Skew {
    /// It differs from the registry's.
    #[error("the clock of this server differs from the registry's")]
    #[explain(detail = "It is {} {} it; snowflake_ids.max_clock_skew is {}.",
              human(*by), if *is_ahead { "ahead of" } else { "behind" }, human(*max))]
    Registry {
        /// The difference.
        by: Duration,
        /// True if ours is ahead.
        is_ahead: bool,
        /// The limit.
        max: Duration,
    },
    /// It is behind the ids of others.
    #[error("the clock of this server is behind the ids that others have issued")]
    #[explain(detail = "It is {} behind them; snowflake_ids.max_clock_skew is {}.", human(*by), human(*max))]
    Peers {
        /// The difference.
        by: Duration,
        /// The limit.
        max: Duration,
    },
}

/// Compares the local clock with the registry's, and with the latest tick that a holder told of.
///
/// # Errors
/// [`Skew`] beyond `max`.
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
