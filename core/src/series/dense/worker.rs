//! The round of the worker: what sessions ask for, what counters want ahead of demand, and what leaves memory, in one transaction.

mod collect;
mod commit;
mod count;
mod group;
mod outcome;
mod publish;
mod remote;

use super::host::Host;
use crate::refill_worker::slot::Trouble;
use crate::refill_worker::tables::TransactionError;
use crate::registry_link::RegistryLink;
use collect::{from_memory, look_round};
use commit::commit;
use group::{Group, by_key};
pub use publish::RETRY_AFTER_FAILURE;
use publish::{RETRY, give_up, publish, stay};
use std::time::Duration;

/// How many transactions of one key each may fail in a round.
const FAILURES: usize = 8;

/// What a round came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// There was nothing to do.
    Nothing,
    /// All that was asked for is done.
    All,
    /// Something is left, and is to be tried again after this pause.
    Failed(Duration),
}

/// Frees what a worker of this database left that died: to be called when a worker begins, and no other is there.
pub fn begin<H: Host>(host: &H) {
    for number in 0..host.partitions() {
        host.with_partition(number, |partition| partition.sweep(host.database()));
    }
}

/// One round. A registry is asked where numbers come from one.
pub fn serve<H: Host, L: RegistryLink>(host: &H, link: &mut L) -> Served {
    let pending = host.with_requests(|requests| requests.take_up(host.database()));
    let some_asked = !pending.is_empty();
    let mut groups: Vec<Group> =
        by_key(pending).into_iter().filter_map(|group| from_memory(host, group)).collect();
    let departing = look_round(host, &mut groups);
    if groups.is_empty() && departing.is_empty() {
        return if some_asked { Served::All } else { Served::Nothing };
    }
    // In one order, whichever worker it is; one that cannot be served must not take the others with it: not twice.
    // Those go in turns: the first that fail must not keep the others from being tried.
    groups.sort_by(|one, other| (one.apart, &one.row).cmp(&(other.apart, &other.row)));
    let sound = groups.partition_point(|group| group.apart == 0);
    let mut alone = groups.split_off(sound);
    let mut pause = None;
    if !groups.is_empty() || !departing.is_empty() {
        match commit(host, link, &mut groups, &departing) {
            Ok(done) => pause = publish(host, &groups, &departing, done),
            Err(error) => {
                pause = Some(failed(host, &error));
                for departing in &departing {
                    stay(host, departing);
                }
                groups.append(&mut alone);
                alone = groups;
            }
        }
    }
    pause.max(serve_alone(host, link, alone)).map_or(Served::All, Served::Failed)
}

/// A transaction for each of the groups. Gives a pause where something is left to do.
fn serve_alone<H: Host, L: RegistryLink>(host: &H, link: &mut L, mut groups: Vec<Group>) -> Option<Duration> {
    let (mut pause, mut failures) = (None, 0);
    // What counters want ahead of demand can wait.
    groups.sort_by_key(|group| group.callers.is_empty());
    for mut group in groups {
        if failures == FAILURES || host.is_overdue() {
            give_up(host, &group, None);
            pause = pause.max(Some(RETRY));
            continue;
        }
        let done = commit(host, link, std::slice::from_mut(&mut group), &[]);
        pause = pause.max(match done {
            Ok(done) => publish(host, &[group], &[], done),
            Err(error) => {
                failures += 1;
                let locked = error.is_lock_timeout;
                let trouble = if locked { Trouble::RowLocked } else { Trouble::Failed(error.code) };
                give_up(host, &group, Some(trouble));
                host.with_requests(|requests| requests.set_apart(&group.callers));
                Some(failed(host, &error))
            }
        });
    }
    pause
}

fn failed<H: Host>(host: &H, error: &TransactionError) -> Duration {
    if error.is_lock_timeout {
        return RETRY;
    }
    host.say_once(format!("snowflake_ids could not reserve numbers of series: {}", error.message));
    RETRY_AFTER_FAILURE
}
