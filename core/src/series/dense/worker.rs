//! The round of the worker: what sessions ask for, what counters want ahead of demand, and what leaves memory, in one transaction.

use super::counter::{CounterKey, Left, ShortKey};
use super::host::{Definition, Found, Host, Reserve, Reserved, RowKey, Rows, WriteBack};
use super::memory::Partition;
use super::pace;
use super::requests::{Answer, Pending, Requests, Ticket};
use crate::guard::{Guard, holds};
use crate::refill_worker::{TransactionError, Trouble};
use std::collections::BTreeMap;
use std::time::Duration;

/// How soon it tries again where a row is locked,
pub const RETRY: Duration = Duration::from_millis(20);
/// and where a transaction failed.
pub const RETRY_AFTER_FAILURE: Duration = Duration::from_millis(200);
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

/// A key that numbers are to be reserved for.
struct Group {
    /// The table of series that its callers know.
    source: u32,
    row: RowKey,
    day: i32,
    /// The calls that wait, the oldest first.
    callers: Vec<(usize, Ticket)>,
    /// Where in memory those numbers go that no call waits for.
    place: Option<Place>,
    /// What is left over in memory since the last stop, to be written back first.
    unproven: Option<Left>,
    /// Whether it could not be served the last time.
    troubled: bool,
}

/// A place in memory that is held.
#[derive(Clone, Copy)]
struct Place {
    key: CounterKey,
    step: u32,
    ago: Duration,
}

/// What a transaction did for a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// What it reserved, and how many of that ahead.
    Reserved(Reserved, u32),
    /// There is no such series.
    Unknown,
}

const LOCKED: Outcome = Outcome::Reserved(Reserved::Locked, 0);

/// What became of a counter that was to be written back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its row says what is left, or is another's by now.
    Gone,
    /// Another transaction has the row locked.
    Stays,
}

/// Frees what a worker of this database left that died: to be called when a worker begins, and no other is there.
pub fn begin<H: Host>(host: &H) {
    for number in 0..host.partitions() {
        host.with_partition(number, |partition| partition.sweep(host.database()));
    }
}

/// One round.
pub fn serve<H: Host>(host: &H) -> Served {
    let pending = host.with_requests(|requests| requests.pending(host.database()));
    let some_asked = !pending.is_empty();
    let mut groups: Vec<Group> =
        by_key(pending).into_iter().filter_map(|group| from_memory(host, group)).collect();
    let departing = look_round(host, &mut groups);
    if groups.is_empty() && departing.is_empty() {
        return if some_asked { Served::All } else { Served::Nothing };
    }
    // In one order, whichever worker it is; one that cannot be served must not take the others with it: not twice.
    groups.sort_by(|one, other| (one.troubled, &one.row).cmp(&(other.troubled, &other.row)));
    let sound = groups.partition_point(|group| !group.troubled);
    let mut alone = groups.split_off(sound);
    let mut pause = None;
    if !groups.is_empty() || !departing.is_empty() {
        match commit(host, &mut groups, &departing) {
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
    pause.max(serve_alone(host, alone)).map_or(Served::All, Served::Failed)
}

/// A transaction for each of the groups. Gives a pause where something is left to do.
fn serve_alone<H: Host>(host: &H, groups: Vec<Group>) -> Option<Duration> {
    let (mut pause, mut failures) = (None, 0);
    for mut group in groups {
        if failures == FAILURES || host.is_overdue() {
            give_up(host, &group, None);
            pause = pause.max(Some(RETRY));
            continue;
        }
        let done = commit(host, std::slice::from_mut(&mut group), &[]);
        pause = pause.max(match done {
            Ok(done) => publish(host, &[group], &[], done),
            Err(error) => {
                failures += 1;
                let locked = error.is_lock_timeout;
                let trouble = if locked { Trouble::RowLocked } else { Trouble::Failed(error.code) };
                give_up(host, &group, Some(trouble));
                Some(failed(host, &error))
            }
        });
    }
    pause
}

/// The requests of each key together.
fn by_key(pending: Vec<Pending>) -> Vec<Group> {
    let mut groups: BTreeMap<(u32, RowKey), Group> = BTreeMap::new();
    for Pending { cell, ticket, source, series, key, day, troubled } in pending {
        let row = RowKey { series, key };
        let group = groups.entry((source, row.clone())).or_insert_with(|| Group {
            source,
            row,
            day,
            callers: Vec::new(),
            place: None,
            unproven: None,
            troubled: false,
        });
        group.callers.push((cell, ticket));
        // To the minute at which a period ends, clocks of sessions differ.
        group.day = group.day.max(day);
        group.troubled |= troubled;
    }
    groups.into_values().collect()
}

/// Answers what memory has numbers for; else holds a place there. None where all calls are answered.
fn from_memory<H: Host>(host: &H, mut group: Group) -> Option<Group> {
    let Some(short) = ShortKey::of(&group.row.key) else { return Some(group) };
    let key = CounterKey::new(host.secret(), host.database(), group.source, group.row.series, short);
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

/// Holds a place; where none is free, one of a counter that has nothing left.
fn hold(partition: &mut Partition<'_>, key: &CounterKey, now: Duration) -> Option<Place> {
    let held = partition.hold(key, now).or_else(|| {
        partition.evict(1);
        partition.hold(key, now)
    })?;
    Some(Place { key: *key, step: held.step, ago: held.ago })
}

/// Adds the keys whose counters want more numbers ahead of demand; gives the counters that leave.
fn look_round<H: Host>(host: &H, groups: &mut Vec<Group>) -> Vec<Left> {
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

/// What a counter wants ahead of demand.
fn ahead(place: Place, day: i32) -> Group {
    let CounterKey { source, series, key, .. } = place.key;
    let row = RowKey { series, key: key.to_key() };
    Group { source, row, day, callers: Vec::new(), place: Some(place), unproven: None, troubled: false }
}

/// One transaction for all of them: what came of each group, and of each counter that was to be written back, those of the groups
/// last.
fn commit<H: Host>(
    host: &H,
    groups: &mut [Group],
    departing: &[Left],
) -> Result<(Vec<Outcome>, Vec<Fate>), TransactionError> {
    host.transaction(|rows| {
        let leaving: Vec<Left> =
            departing.iter().copied().chain(groups.iter().filter_map(|group| group.unproven)).collect();
        let Some(source) = rows.source() else {
            return Ok((vec![Outcome::Unknown; groups.len()], vec![Fate::Gone; leaving.len()]));
        };
        let definitions = definitions(rows, groups, source)?;
        let fates = write_back(host, rows, &leaving, source)?;
        let outcomes = reserve(host, rows, groups, &definitions, &fates[departing.len()..])?;
        Ok((outcomes, fates))
    })
}

/// What the series of the groups say, in their order.
fn definitions<R: Rows>(rows: &mut R, groups: &[Group], source: u32) -> Result<Vec<Found>, R::Error> {
    let mut ids: Vec<i64> =
        groups.iter().filter(|group| group.source == source).map(|group| group.row.series).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = if ids.is_empty() { Vec::new() } else { rows.series(&ids)? };
    let of = |group: &Group| {
        let at = ids.binary_search(&group.row.series).ok().filter(|_| group.source == source)?;
        found.get(at).copied()
    };
    Ok(groups.iter().map(|group| of(group).unwrap_or(Found::Unknown)).collect())
}

/// Writes back what counters have left.
fn write_back<H: Host>(
    host: &H,
    rows: &mut H::Rows,
    leaving: &[Left],
    source: u32,
) -> Result<Vec<Fate>, <H::Rows as Rows>::Error> {
    if leaving.is_empty() {
        return Ok(Vec::new());
    }
    let row = |left: &Left| RowKey { series: left.key.series, key: left.key.key.to_key() };
    let keys: Vec<RowKey> = leaving.iter().map(row).collect();
    let locked = rows.lock(&keys)?;
    let mut fates = Vec::with_capacity(leaving.len());
    let mut back = Vec::new();
    for ((left, row), is_ours) in leaving.iter().zip(keys).zip(locked) {
        fates.push(if is_ours { Fate::Gone } else { Fate::Stays });
        if !is_ours || left.key.source != source {
            continue;
        }
        // The row is locked: who sets the key has done so before, and has taken the counter away, or does it afterwards.
        let is_there = with_partition_of(host, &left.key, |partition| partition.is_there(&left.key));
        if is_there || !holds(Guard::SeriesConfirmed) {
            back.push(WriteBack { row, day: left.day, given: left.given, limit: left.limit });
        }
    }
    if !back.is_empty() {
        rows.write_back(&back)?;
    }
    Ok(fates)
}

/// Reserves numbers for the groups whose series are there.
fn reserve<H: Host>(
    host: &H,
    rows: &mut H::Rows,
    groups: &mut [Group],
    definitions: &[Found],
    fates: &[Fate],
) -> Result<Vec<Outcome>, <H::Rows as Rows>::Error> {
    let mut fates = fates.iter();
    let mut outcomes = Vec::with_capacity(groups.len());
    let (mut asked, mut reserves) = (Vec::new(), Vec::new());
    for (number, (group, found)) in groups.iter().zip(definitions).enumerate() {
        let stays = group.unproven.is_some() && fates.next() == Some(&Fate::Stays);
        outcomes.push(match found {
            Found::There(definition) if !stays || !holds(Guard::SeriesBackFirst) => {
                asked.push(number);
                reserves.push(group.reserve(definition));
                LOCKED
            }
            Found::There(_) | Found::Locked => LOCKED,
            Found::Unknown => Outcome::Unknown,
        });
    }
    if reserves.is_empty() {
        return Ok(outcomes);
    }
    let results = rows.reserve(&reserves)?;
    let now = host.uptime();
    for ((number, reserve), reserved) in asked.into_iter().zip(&reserves).zip(results) {
        if let Some(outcome) = outcomes.get_mut(number) {
            *outcome = Outcome::Reserved(reserved, reserve.extra);
        }
        if let Some(group) = groups.get_mut(number)
            && !matches!(reserved, Reserved::Locked)
        {
            group.hold_again(host, now);
        }
    }
    Ok(outcomes)
}

impl Group {
    fn reserve(&self, definition: &Definition) -> Reserve {
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
    fn hold_again<H: Host>(&mut self, host: &H, now: Duration) {
        let Some(place) = &mut self.place else { return };
        let is_held = with_partition_of(host, &place.key, |partition| {
            partition.is_there(&place.key) || partition.hold(&place.key, now).is_some()
        });
        if !is_held {
            self.place = None;
        }
    }

    /// Answers the calls that still wait with these numbers; gives the first that is left.
    fn hand_out(&self, requests: &mut Requests<'_>, numbers: (i64, i64), day: i32) -> i64 {
        let (mut next, last) = numbers;
        for (cell, ticket) in &self.callers {
            if next > last {
                requests.answer(*cell, *ticket, Answer::Exhausted);
            } else if requests.answer(*cell, *ticket, Answer::Number { number: next, day }) {
                next += 1;
            }
        }
        next
    }

    fn answer<H: Host>(&self, host: &H, answer: Answer) {
        host.with_requests(|requests| {
            for (cell, ticket) in &self.callers {
                requests.answer(*cell, *ticket, answer);
            }
        });
        self.wake(host);
    }

    fn wake<H: Host>(&self, host: &H) {
        self.callers.iter().for_each(|(cell, _)| host.wake(*cell));
    }
}

/// Hands out what is durable now. Gives a pause where something is left to do.
fn publish<H: Host>(
    host: &H,
    groups: &[Group],
    departing: &[Left],
    (outcomes, fates): (Vec<Outcome>, Vec<Fate>),
) -> Option<Duration> {
    let (of_leaving, of_groups) = fates.split_at(departing.len().min(fates.len()));
    for (departing, fate) in departing.iter().zip(of_leaving) {
        match fate {
            Fate::Gone => with_partition_of(host, &departing.key, |partition| {
                partition.written_back(&departing.key);
            }),
            Fate::Stays => stay(host, departing),
        }
    }
    let (mut of_groups, mut pause) = (of_groups.iter(), None);
    for (group, outcome) in groups.iter().zip(outcomes) {
        let stays = group.unproven.is_some() && of_groups.next() == Some(&Fate::Stays);
        if stays || matches!(outcome, Outcome::Reserved(Reserved::Locked, _)) {
            let written = group.unproven.is_some() && !stays;
            leave_locked(host, group, written);
            pause = pause.max((!group.callers.is_empty()).then_some(RETRY));
            continue;
        }
        match outcome {
            Outcome::Unknown => {
                remove(host, group);
                group.answer(host, Answer::Unknown);
            }
            Outcome::Reserved(Reserved::Numbers { first, last, day }, step) => {
                put_out(host, group, (first, last), day, step);
                group.wake(host);
            }
            Outcome::Reserved(_, _) => {
                if group.unproven.is_some() {
                    remove(host, group);
                } else if let Some(place) = group.place {
                    with_partition_of(host, &place.key, |partition| partition.settle(&place.key));
                }
                group.answer(host, Answer::Exhausted);
            }
        }
    }
    pause
}

/// Answers the calls, and publishes what they leave, in one step: whoever sets the key sees both or neither. Where it was set since the
/// reservation, nothing is published: it went on above what its row said. The calls were there before.
fn put_out<H: Host>(host: &H, group: &Group, (first, last): (i64, i64), day: i32, step: u32) {
    let Some(Place { key, .. }) = group.place else {
        host.with_requests(|requests| {
            group.hand_out(requests, (first, last), day);
        });
        return;
    };
    let now = host.uptime();
    with_partition_of(host, &key, |partition| {
        let next = host.with_requests(|requests| group.hand_out(requests, (first, last), day));
        if next > last {
            partition.written_back(&key);
        } else {
            partition.put(&key, (next, last), day, step, now);
        }
    });
}

/// Nothing was done for a group: what is asked stays asked.
fn leave_locked<H: Host>(host: &H, group: &Group, written: bool) {
    if written {
        remove(host, group);
    }
    give_up(host, group, Some(Trouble::RowLocked));
}

/// Ends the hold of a group for which no transaction was committed.
fn give_up<H: Host>(host: &H, group: &Group, trouble: Option<Trouble>) {
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

fn stay<H: Host>(host: &H, departing: &Left) {
    let key = &departing.key;
    with_partition_of(host, key, |partition| partition.not_written_back(key));
}

fn failed<H: Host>(host: &H, error: &TransactionError) -> Duration {
    if error.is_lock_timeout {
        return RETRY;
    }
    host.say_once(format!("snowflake_ids could not reserve numbers of series: {}", error.message));
    RETRY_AFTER_FAILURE
}

fn with_partition_of<H: Host, T>(
    host: &H,
    key: &CounterKey,
    work: impl FnOnce(&mut Partition<'_>) -> T,
) -> T {
    host.with_partition(key.partition(host.partitions()), work)
}
