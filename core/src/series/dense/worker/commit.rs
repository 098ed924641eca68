//! The transaction of a round.

use super::group::{Group, with_partition_of};
use super::outcome::{Done, Fate, LOCKED, Outcome, Terms};
use super::remote::Plan;
use crate::guard::{Guard, holds};
use crate::refill_worker::tables::TransactionError;
use crate::registry_link::RegistryLink;
use crate::series::dense::counter::Left;
use crate::series::dense::host::{Found, Host, Origin, Reserved, RowKey, Rows, WriteBack};
use crate::series::dense::requests::Refusal;

/// What the transaction came to.
enum Step {
    Done(Done),
    /// Numbers come from a registry, which is to be asked for this.
    There(Plan),
}

/// One transaction for all of them, here or at the registry.
pub(super) fn commit<H: Host, L: RegistryLink>(
    host: &H,
    link: &mut L,
    groups: &mut [Group],
    departing: &[Left],
) -> Result<Done, TransactionError> {
    let leaving: Vec<Left> =
        departing.iter().copied().chain(groups.iter().filter_map(|group| group.unproven)).collect();
    let step = host.transaction(|rows| {
        let Some(source) = rows.source() else {
            return Ok(Step::Done((vec![Outcome::Unknown; groups.len()], vec![Fate::Gone; leaving.len()])));
        };
        let origin = rows.origin()?;
        let definitions = definitions(rows, groups, source)?;
        match origin {
            Origin::Here => {}
            Origin::There(site) => {
                return Plan::new(rows, site, groups, &definitions, &leaving, source).map(Step::There);
            }
            Origin::Nowhere => {
                let refused = Outcome::Refused(Refusal::NoRegistry);
                return Ok(Step::Done((vec![refused; groups.len()], vec![Fate::Stays; leaving.len()])));
            }
        }
        let fates = write_back(host, rows, &leaving, source)?;
        let outcomes = reserve(host, rows, groups, &definitions, &fates[departing.len()..])?;
        Ok(Step::Done((outcomes, fates)))
    })?;
    Ok(match step {
        Step::Done(done) => done,
        Step::There(plan) => plan.carry_out(host, link),
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
        let departs = with_partition_of(host, &left.key, |partition| partition.departs(&left.key));
        if departs || !holds(Guard::SeriesConfirmed) {
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
            *outcome = Outcome::Reserved(reserved, Terms { extra: reserve.extra, start: reserve.start });
        }
        if let Some(group) = groups.get_mut(number)
            && !matches!(reserved, Reserved::Locked)
        {
            group.hold_again(host, now);
        }
    }
    Ok(outcomes)
}
