//! Keys that numbers are to be reserved for, each with the calls that wait.

use crate::guard::{Guard, holds};
use crate::series::dense::counter::{CounterKey, Left};
use crate::series::dense::host::{Definition, Host, Reserve, RowKey};
use crate::series::dense::memory::Partition;
use crate::series::dense::pace;
use crate::series::dense::requests::{Answer, Pending, Requests, Ticket};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A key that numbers are to be reserved for.
pub(super) struct Group {
    /// The table of series that its callers know.
    pub(super) source: u32,
    pub(super) row: RowKey,
    pub(super) day: i32,
    /// The calls that wait, the oldest first.
    pub(super) callers: Vec<(usize, Ticket)>,
    /// Whose numbers they are in memory; None: they are never there.
    pub(super) key: Option<CounterKey>,
    /// Where in memory those numbers go that no call waits for.
    pub(super) place: Option<Place>,
    /// What is left over in memory since the last stop, to be written back first.
    pub(super) unproven: Option<Left>,
    /// When a transaction for it failed last; 0: none did.
    pub(super) apart: u64,
}

/// A place in memory that is held.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) key: CounterKey,
    pub(super) step: u32,
    pub(super) ago: Duration,
}

/// The requests of each key together.
pub(super) fn by_key(pending: Vec<Pending>) -> Vec<Group> {
    let mut groups: BTreeMap<(u32, RowKey), Group> = BTreeMap::new();
    for Pending { cell, ticket, source, series, key, day, apart } in pending {
        let row = RowKey { series, key };
        let group = groups.entry((source, row.clone())).or_insert_with(|| Group {
            source,
            row,
            day,
            callers: Vec::new(),
            key: None,
            place: None,
            unproven: None,
            apart: 0,
        });
        group.callers.push((cell, ticket));
        // To the minute at which a period ends, clocks of sessions differ.
        group.day = group.day.max(day);
        group.apart = group.apart.max(apart);
    }
    groups.into_values().collect()
}

/// What a counter wants ahead of demand.
pub(super) fn ahead(place: Place, day: i32) -> Group {
    let CounterKey { source, series, key, .. } = place.key;
    let row = RowKey { series, key: key.to_key() };
    Group {
        source,
        row,
        day,
        callers: Vec::new(),
        key: Some(place.key),
        place: Some(place),
        unproven: None,
        apart: 0,
    }
}

impl Group {
    pub(super) fn reserve(&self, definition: &Definition) -> Reserve {
        let unplaced = if holds(Guard::SeriesPlaced) { 0 } else { definition.step };
        let extra = self.place.map_or(unplaced, |place| pace::next(definition, place.step, place.ago));
        Reserve {
            row: self.row.clone(),
            day: self.day,
            waiting: u32::try_from(self.callers.len()).unwrap_or(u32::MAX),
            extra,
            start: definition.start,
            max_value: definition.max_value,
        }
    }

    /// With the row locked: where the key was set since the place was held, it is held anew. From here on that it is set means that
    /// it was set after this reservation.
    pub(super) fn hold_again<H: Host>(&mut self, host: &H, now: Duration) {
        let Some(place) = &mut self.place else { return };
        let is_held = with_partition_of(host, &place.key, |partition| {
            partition.is_there(&place.key) || partition.hold(&place.key, now).is_some()
        });
        if !is_held {
            self.place = None;
        }
    }

    /// Answers the calls that still wait with these numbers; gives those that are left.
    pub(super) fn hand_out(
        &self,
        requests: &mut Requests<'_>,
        numbers: RangeInclusive<i64>,
        day: i32,
    ) -> RangeInclusive<i64> {
        // It ends also where there is no number above its last one.
        let mut left = numbers;
        for (cell, ticket) in &self.callers {
            let Some(max_value) = requests.max_value(*cell, *ticket) else { continue };
            let answer = match left.clone().next().filter(|number| *number <= max_value) {
                Some(number) => Answer::Number { number, day },
                None => Answer::Exhausted,
            };
            if requests.answer(*cell, *ticket, answer) && matches!(answer, Answer::Number { .. }) {
                left.next();
            }
        }
        left
    }

    pub(super) fn answer<H: Host>(&self, host: &H, answer: Answer) {
        host.with_requests(|requests| {
            for (cell, ticket) in &self.callers {
                requests.answer(*cell, *ticket, answer);
            }
        });
        self.wake(host);
    }

    pub(super) fn wake<H: Host>(&self, host: &H) {
        self.callers.iter().for_each(|(cell, _)| host.wake(*cell));
    }
}

/// Does something with the partition of a key locked.
pub(super) fn with_partition_of<H: Host, T>(
    host: &H,
    key: &CounterKey,
    work: impl FnOnce(&mut Partition<'_>) -> T,
) -> T {
    host.with_partition(key.partition(host.partitions()), work)
}
