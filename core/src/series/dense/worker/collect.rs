//! What memory has for the calls that wait, and what it wants itself.

use super::group::{Group, Place, ahead};
use crate::series::dense::counter::{CounterKey, Left, ShortKey};
use crate::series::dense::host::Host;
use crate::series::dense::memory::Partition;
use crate::series::dense::requests::{Answer, Requests, Ticket};
use std::time::Duration;

/// Answers what memory has numbers for; else holds a place there. None where all calls are answered.
pub(super) fn from_memory<H: Host>(host: &H, mut group: Group) -> Option<Group> {
    let Some(short) = ShortKey::of(&group.row.key) else { return Some(group) };
    let key = CounterKey::new(host.secret(), host.database(), group.source, group.row.series, short);
    group.key = Some(key);
    let now = host.uptime();
    let mut woken = Vec::new();
    host.with_partition(key.partition(host.partitions()), |partition| {
        host.with_requests(|requests| {
            group.callers.retain(|caller| !take(partition, requests, &key, group.day, *caller, &mut woken));
        });
        if group.callers.is_empty() {
            return;
        }
        group.unproven = partition.depart_unproven(&key);
        group.place = match group.unproven {
            Some(_) => Some(Place { key, step: 0, ago: Duration::ZERO }),
            None => hold(partition, &key, now),
        };
    });
    for cell in woken {
        host.wake(cell);
    }
    (!group.callers.is_empty()).then_some(group)
}

/// Answers one call from memory; whether it waits no longer.
fn take(
    partition: &mut Partition<'_>,
    requests: &mut Requests<'_>,
    key: &CounterKey,
    day: i32,
    (cell, ticket): (usize, Ticket),
    woken: &mut Vec<usize>,
) -> bool {
    let Some(max_value) = requests.max_value(cell, ticket) else { return true };
    let Ok(taken) = partition.take(key, day, max_value) else { return false };
    requests.answer(cell, ticket, Answer::Number { number: taken.number, day: taken.day });
    woken.push(cell);
    true
}

/// Holds a place, if one is free.
fn hold(partition: &mut Partition<'_>, key: &CounterKey, now: Duration) -> Option<Place> {
    let held = partition.hold(key, now)?;
    Some(Place { key: *key, step: held.step, ago: held.ago })
}

/// Adds the keys whose counters want more numbers ahead of demand; gives the counters that leave.
pub(super) fn look_round<H: Host>(host: &H, groups: &mut Vec<Group>) -> Vec<Left> {
    let (database, now) = (host.database(), host.uptime());
    let (mut departing, mut others) = (Vec::new(), Vec::new());
    for number in 0..host.partitions() {
        host.with_partition(number, |partition| {
            for (key, day) in partition.wanting(database) {
                groups.extend(hold(partition, &key, now).map(|place| ahead(place, day)));
            }
            departing.append(&mut partition.depart(database));
            others.extend(partition.databases().filter(|other| *other != database));
        });
    }
    others.sort_unstable();
    others.dedup();
    for other in others {
        host.call_worker(other);
    }
    departing
}
