//! What is done when the transaction of a round is durable, or has failed.

use super::count::count;
use super::group::{Group, Place, with_partition_of};
use super::outcome::{Done, Fate, Outcome, Terms};
use crate::refill_worker::slot::Trouble;
use crate::series::dense::counter::Left;
use crate::series::dense::host::{Host, Reserved};
use crate::series::dense::requests::Answer;
use std::time::Duration;

/// How soon it tries again where a row is locked,
pub(super) const RETRY: Duration = Duration::from_millis(20);
/// and where a transaction failed.
pub const RETRY_AFTER_FAILURE: Duration = Duration::from_millis(200);

/// Hands out what is durable now. Gives a pause where something is left to do.
pub(super) fn publish<H: Host>(
    host: &H,
    groups: &[Group],
    departing: &[Left],
    done: Done,
) -> Option<Duration> {
    host.count(&count(departing, &done));
    let (outcomes, fates) = done;
    let (of_leaving, of_groups) = fates.split_at(departing.len().min(fates.len()));
    for (departing, fate) in departing.iter().zip(of_leaving) {
        match fate {
            Fate::Gone => with_partition_of(host, &departing.key, |partition| {
                partition.written_back(&departing.key);
            }),
            Fate::Stays => stay(host, departing),
            Fate::Unsure => {
                with_partition_of(host, &departing.key, |partition| partition.doubt(&departing.key));
            }
        }
    }
    let (mut of_groups, mut pause) = (of_groups.iter(), None);
    for (group, outcome) in groups.iter().zip(outcomes) {
        let stays = group.unproven.is_some() && of_groups.next() != Some(&Fate::Gone);
        let put_off = match outcome {
            Outcome::Away(trouble, pause) => Some((trouble, pause)),
            Outcome::Reserved(Reserved::Locked, _) => Some((Trouble::RowLocked, RETRY)),
            _ if stays => Some((Trouble::RowLocked, RETRY)),
            _ => None,
        };
        if let Some((trouble, retry)) = put_off {
            let written = group.unproven.is_some() && !stays;
            put_aside(host, group, written, trouble);
            pause = pause.max((!group.callers.is_empty()).then_some(retry));
            continue;
        }
        match outcome {
            Outcome::Unknown => {
                remove(host, group);
                group.answer(host, Answer::Unknown);
            }
            Outcome::Reserved(Reserved::Numbers { first, last, day }, terms) => {
                put_out(host, group, (first, last), day, terms);
                group.wake(host);
            }
            Outcome::Away(..) => {}
            Outcome::Reserved(_, _) | Outcome::Refused(_) => {
                if group.unproven.is_some() {
                    remove(host, group);
                } else if let Some(place) = group.place {
                    with_partition_of(host, &place.key, |partition| partition.settle(&place.key));
                }
                group.answer(
                    host,
                    if let Outcome::Refused(why) = outcome {
                        Answer::Refused(why)
                    } else {
                        Answer::Exhausted
                    },
                );
            }
        }
    }
    pause
}

/// Answers the calls, and publishes what they leave, in one step: whoever sets the key sees both or neither. Where it was set since the
/// reservation, nothing is published: it went on above what its row said. The calls were there before.
fn put_out<H: Host>(host: &H, group: &Group, (first, last): (i64, i64), day: i32, terms: Terms) {
    let Some(Place { key, .. }) = group.place else {
        host.with_requests(|requests| {
            group.hand_out(requests, first..=last, day);
        });
        // A key that is new may never be used again; one that is not would have had numbers left.
        if let Some(key) = group.key.filter(|_| first != terms.start) {
            with_partition_of(host, &key, |partition| {
                partition.make_room();
            });
        }
        return;
    };
    let now = host.uptime();
    with_partition_of(host, &key, |partition| {
        let left = host.with_requests(|requests| group.hand_out(requests, first..=last, day));
        if left.is_empty() {
            partition.written_back(&key);
        } else {
            partition.put(&key, (*left.start(), last), day, terms.extra, now);
            partition.make_room();
        }
    });
}

/// Nothing was done for a group: what is asked stays asked.
fn put_aside<H: Host>(host: &H, group: &Group, written: bool, trouble: Trouble) {
    if written {
        remove(host, group);
    }
    give_up(host, group, Some(trouble));
}

/// Ends the hold of a group for which no transaction was committed.
pub(super) fn give_up<H: Host>(host: &H, group: &Group, trouble: Option<Trouble>) {
    if let Some(unproven) = &group.unproven {
        stay(host, unproven);
    }
    if let Some(place) = group.place {
        with_partition_of(host, &place.key, |partition| partition.release(&place.key));
    }
    if let Some(trouble) = trouble {
        host.with_requests(|requests| {
            for (cell, ticket) in &group.callers {
                requests.note_trouble(*cell, *ticket, trouble);
            }
        });
    }
}

/// Takes a group's counter out of memory: its row says all.
fn remove<H: Host>(host: &H, group: &Group) {
    if let Some(place) = group.place {
        with_partition_of(host, &place.key, |partition| partition.written_back(&place.key));
    }
}

/// A counter is not in its row.
pub(super) fn stay<H: Host>(host: &H, departing: &Left) {
    let key = &departing.key;
    with_partition_of(host, key, |partition| partition.not_written_back(key));
}
