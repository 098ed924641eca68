//! Who of those that serve makes room where there is more to be served than can be at once.
//!
//! Whoever has waited longest is served first; whoever has served longest leaves first, when its turn is over.

use std::collections::BTreeMap;
use std::time::Duration;

/// For how long somebody serves before it has to make room for others.
pub const TURN: Duration = Duration::from_millis(100);

/// Who waits and who serves. Times are of any clock that only goes forward.
#[derive(Clone, Debug)]
pub struct Turns<W, S> {
    waiting: BTreeMap<W, Duration>,
    serving: BTreeMap<S, Service>,
}

#[derive(Clone, Copy, Debug)]
struct Service {
    since: Duration,
    /// Whether it was asked to leave.
    asked: bool,
}

impl<W, S> Default for Turns<W, S> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), serving: BTreeMap::new() }
    }
}

impl<W: Ord + Copy, S: Ord + Copy> Turns<W, S> {
    /// Notes who waits and who serves now, all of them. Who was not among them before begins a turn.
    pub fn note(
        &mut self,
        waiting: impl IntoIterator<Item = W>,
        serving: impl IntoIterator<Item = S>,
        now: Duration,
    ) {
        let since = |one: W| (one, self.waiting.get(&one).copied().unwrap_or(now));
        self.waiting = waiting.into_iter().map(since).collect();
        let fresh = Service { since: now, asked: false };
        let service = |one: S| (one, self.serving.get(&one).copied().unwrap_or(fresh));
        self.serving = serving.into_iter().map(service).collect();
    }

    /// Those who wait, the longest first.
    pub fn queue(&self) -> Vec<W> {
        let mut queue: Vec<_> = self.waiting.iter().map(|(one, since)| (*since, *one)).collect();
        queue.sort_unstable();
        queue.into_iter().map(|(_, one)| one).collect()
    }

    /// Who is to leave so that there is room for `short` more; each is asked once. Those that were asked and have not
    /// left yet make room, too.
    pub fn leavers(&mut self, short: usize, now: Duration) -> Vec<S> {
        let leaving = self.serving.values().filter(|service| service.asked).count();
        let over = |service: &Service| !service.asked && now.saturating_sub(service.since) >= TURN;
        let mut served: Vec<_> = self
            .serving
            .iter_mut()
            .filter(|(_, service)| over(service))
            .map(|(one, service)| (service, *one))
            .collect();
        served.sort_unstable_by_key(|(service, one)| (service.since, *one));
        served.truncate(short.saturating_sub(leaving));
        let ask = |(service, one): (&mut Service, S)| {
            service.asked = true;
            one
        };
        served.into_iter().map(ask).collect()
    }
}
