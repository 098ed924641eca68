//! Forks: the histories of a registry that begin with promotions.
//!
//! A timeline's number is no name, because two standbys of one primary are on the same timeline after both were promoted. So
//! each promoted registry draws a random number, its fork, and records it in a table that its standbys receive. Nodes
//! remember the forks that they saw, and name them in each request. A registry that does not know such a fork lacks what was
//! reserved there. It records the fork, and counts the fork as one more promotion, after which each tag skips ids.

use crate::guard::{Guard, holds};
use crate::registry::wire::{MAX_FORKS, RegistryName, Stranger};
use crate::server::lease::Preferred;
use std::collections::BTreeSet;

/// A fork in the table of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The random number.
    pub number: i64,
    /// The timeline that began with the fork. None if this registry's history lacks the fork, which a node named.
    pub timeline: Option<u32>,
}

/// All forks in the table of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forks(pub Vec<Fork>);

impl Forks {
    /// Returns the fork of a timeline in this registry's history. The first timeline has none.
    pub fn of(&self, timeline: u32) -> Option<i64> {
        self.0.iter().find(|fork| fork.timeline == Some(timeline)).map(|fork| fork.number)
    }

    /// Returns the number that is recorded in each changed row of a tag: the timeline, plus the number of forks that nodes
    /// named. The difference of two such numbers is the number of promotions between them.
    pub fn promotions(&self, timeline: u32) -> u32 {
        let named = self.0.iter().filter(|fork| fork.timeline.is_none()).count();
        timeline.saturating_add(if holds(Guard::ForkCounts) { u32::try_from(named).unwrap_or(0) } else { 0 })
    }

    /// Returns the fork of a newly promoted server, made from a `random` number. `named` are forks that the first node that
    /// asks has seen. The fork's remainder modulo 8 determines the worker ids that the registry leases first. This remainder
    /// differs from those of all these forks, or at least of the last seven timelines.
    pub fn draw(&self, timeline: u32, named: impl IntoIterator<Item = i64>, random: i64) -> i64 {
        let shares = i64::from(Preferred::SHARES);
        let share = |number: i64| number.rem_euclid(shares);
        let is_late = |of: u32| of.saturating_add(Preferred::SHARES) > timeline;
        let first = is_late(1).then_some(0);
        let late = self.0.iter().filter(|fork| fork.timeline.is_some_and(is_late)).map(|fork| fork.number);
        let late: BTreeSet<i64> = late.chain(first).map(share).collect();
        let known = self.0.iter().map(|fork| fork.number).chain(named);
        let all: BTreeSet<i64> = known.map(share).chain(late.iter().copied()).collect();
        let besides =
            |used: BTreeSet<i64>| (0..shares).filter(|share| !used.contains(share)).collect::<Vec<_>>();
        let left = Some(besides(all)).filter(|left| !left.is_empty()).unwrap_or_else(|| besides(late));
        let turn =
            usize::try_from(random.div_euclid(shares).unsigned_abs()).unwrap_or(0).checked_rem(left.len());
        random - random.rem_euclid(shares) + turn.map_or(0, |turn| left[turn])
    }

    /// Returns the forks to record before a request is served: those that the node saw, and this registry does not know.
    ///
    /// # Errors
    /// [`Stranger::Forks`] if the registry has recorded too many forks.
    pub fn unknown(&self, seen: &RegistryName) -> Result<Vec<i64>, Stranger> {
        let is_unknown = |number: &i64| !self.0.iter().any(|fork| fork.number == *number);
        let unknown: BTreeSet<i64> = seen.forks().filter(is_unknown).collect();
        let known = self.0.iter().filter(|fork| fork.timeline.is_none()).count();
        if known + unknown.len() > MAX_FORKS {
            Err(Stranger::Forks)
        } else {
            Ok(unknown.into_iter().collect())
        }
    }
}
