//! The start and the end of a database's use of registries on other servers. Tags (named id ranges) are handed over from one
//! table of tags to another. The receiving table continues a tag above the highest id that the other table has reserved.
//!
//! A hand-over is one transaction in this database and one transaction at each registry. The transactions at the
//! registries commit first. If the local transaction is then rolled back, the tags at the registries stay raised, which
//! is harmless.

mod host;
mod rows;
mod seeded;
mod take_over;

pub use host::{HandoverTables, NodeServer, Registries, RolledBackTag, TagStanding};
pub use rows::tag_of;
pub use seeded::Seeded;
pub use take_over::take_over;

use crate::guard::{Guard, holds};
use crate::registry::client::Network;
use crate::registry::error::{RegistryError, UnusableRegistry};
use crate::registry::link::Endpoint;
use crate::registry::wire::{ReceivedTag, RegistryName, RequestBody, ResponseBody, Stranger};
use crate::server::form::RELEASE;
use crate::server::lease::check_clock;
use host::unusable;
use rows::{give, pages, row_of, tags_of};
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// Makes this database use the registries of these foreign servers, and hands the database's tags over to these
/// registries.
pub fn join<H: NodeServer, N: Network>(
    here: &mut H,
    there: &mut Registries<N>,
    servers: &[String],
) -> Result<(), H::Error> {
    if holds(Guard::HandOverLocks) {
        here.tables().lock()?;
    }
    let former = here.tables().endpoints()?;
    let mut endpoints: Vec<Endpoint> = Vec::new();
    // By the identities and timelines in `former`, `introduce` recognizes a server that was the primary of a registry in
    // use.
    for (server, position) in servers.iter().zip(0..) {
        let seen = introduce(here, there, &former, server)?;
        endpoints.push(Endpoint { position, server: server.clone(), seen });
    }
    let mut identities = BTreeSet::new();
    if let Some(endpoint) = endpoints.iter().find(|endpoint| !identities.insert(&endpoint.seen.identity)) {
        return Err(UnusableRegistry::Same(endpoint.server.clone()).into());
    }
    // The server leases its worker id from the first registry.
    if let Some(Endpoint { server, seen, .. }) = endpoints.first()
        && let Some(database) = here.leases_for(&seen.identity)?
    {
        return Err(unusable(server, RegistryError::Elsewhere(database)).into());
    }
    here.tables().set_endpoints(&endpoints)?;
    hand_over(here, there, &endpoints)?;
    // The highest id of each tag is recorded. If a registry is later restored to a state before the hand-over, the
    // record reveals the restore.
    if holds(Guard::HandOverRecorded) {
        here.tables().record_all()?;
    }
    let first = endpoints.first().map(|endpoint| &endpoint.seen.identity);
    for endpoint in former.iter().filter(|endpoint| Some(&endpoint.seen.identity) != first) {
        here.give_up_lease(endpoint)?;
    }
    here.switch(true)
}

/// Makes this database its own registry again. Returns false if the database already is its own registry. Calls `unheard`
/// with the error of each registry that does not answer. Tags that exist only at such a registry keep their old local
/// definitions.
pub fn leave<H: NodeServer, N: Network>(
    here: &mut H,
    there: &mut Registries<N>,
    unheard: impl FnMut(UnusableRegistry),
) -> Result<bool, H::Error> {
    here.tables().lock()?;
    let endpoints = here.tables().endpoints()?;
    if endpoints.is_empty() {
        return Ok(false);
    }
    take_back(here, there, &endpoints, unheard)?;
    for endpoint in &endpoints {
        here.give_up_lease(endpoint)?;
    }
    here.tables().set_endpoints(&[])?;
    here.switch(false)?;
    Ok(true)
}

/// Makes every registry in use create or raise a tag, so that new ids are above `highest`, the highest id in a column.
/// Returns false if no registry is in use.
pub fn seed<H: NodeServer, N: Network>(
    here: &mut H,
    there: &mut Registries<N>,
    tag: &str,
    highest: i64,
) -> Result<bool, H::Error> {
    // Without this lock, another session could change the registries in use meanwhile. The tag would then not be raised in
    // the new registry, or in the local table.
    if holds(Guard::AttachKeepsEndpoints) {
        here.tables().keep_endpoints()?;
    }
    let endpoints = here.tables().endpoints()?;
    // `reset` is null, because a tag that restarts each period would issue the column's ids again.
    let row = serde_json::json!({ "tag": tag, "max_id": highest, "reset": null });
    let rows: Vec<Box<RawValue>> = RawValue::from_string(row.to_string()).into_iter().collect();
    let begun = there.begin(&endpoints)?;
    // The ids received from the registries are read after the transactions at the registries have begun. If a registry
    // is restored after this read, the transaction at that registry fails.
    let received = if endpoints.is_empty() { Vec::new() } else { here.tables().received(Some(tag))? };
    give(begun, &rows, &received)?;
    Ok(!endpoints.is_empty())
}

/// Asks a foreign server for the name of its registry, and checks that this server can use the registry.
fn introduce<H: NodeServer, N: Network>(
    here: &mut H,
    there: &mut Registries<N>,
    former: &[Endpoint],
    server: &str,
) -> Result<RegistryName, UnusableRegistry> {
    let mut answer = there.ask(server, None, RequestBody::Introduce)?;
    // The first host may be a former primary of a registry in use. The second request skips such a host.
    let later = |endpoint: &&Endpoint| {
        answer.registry.check(&endpoint.seen).is_err_and(|stranger| stranger != Stranger::Another)
    };
    if let Some(endpoint) = former.iter().find(later) {
        answer = there.ask(server, Some(&endpoint.seen), RequestBody::Introduce)?;
    }
    let is_itself = here.identity().as_ref() == Some(&answer.registry.identity);
    let error = match answer.said {
        ResponseBody::Introduced { version, .. } if version != RELEASE => RegistryError::Release(version),
        ResponseBody::Introduced { .. } if is_itself => RegistryError::Itself,
        ResponseBody::Introduced { layout, .. } => match here.layout().filter(|own| *own != layout) {
            Some(own) => RegistryError::Layout(layout, own),
            None => match check_clock(here.now(), answer.clock, None, here.max_clock_skew()) {
                Ok(()) => {
                    // The registry hears of all forks that this server saw, also of those before this call.
                    let before =
                        former.iter().find(|endpoint| endpoint.seen.identity == answer.registry.identity);
                    let seen = before.map(|endpoint| {
                        endpoint.seen.after(&answer.registry).unwrap_or(endpoint.seen.clone())
                    });
                    return Ok(seen.unwrap_or(answer.registry));
                }
                Err(skew) => RegistryError::Skew(skew),
            },
        },
        _ => RegistryError::other_kind(),
    };
    Err(unusable(server, error))
}

/// Raises each registry's tags to the highest ids of this database and of all other registries. Fails if a registry's
/// row is below ids that were received from that registry, as after a restore from a backup. A raise would hide the
/// restore from other nodes.
fn hand_over<H: NodeServer, N: Network>(
    here: &mut H,
    there: &mut Registries<N>,
    endpoints: &[Endpoint],
) -> Result<(), H::Error> {
    let mut rows = Vec::new();
    if endpoints.len() > 1 && holds(Guard::SharesRaised) {
        for endpoint in endpoints {
            rows.extend(tags_of(there, endpoint, endpoint.share(endpoints.len()))?);
        }
    }
    // Complete rows come first: a tag's first row can create the tag, and later rows only raise the tag.
    rows.extend(all_tags(here)?);
    let received = here.tables().received(None)?;
    rows.extend(received.iter().filter_map(|(_, ReceivedTag { tag, reached })| row_of(tag, *reached)));
    // A high-water mark of rolled-back transactions counts only while the tag has the same generation as the mark.
    let high_water_marks = here.high_water_marks()?;
    let high_water_marks = high_water_marks
        .iter()
        .filter(|recorded| recorded.tag_generation == Some(recorded.high_water_mark.tag_generation));
    rows.extend(
        high_water_marks.filter_map(|recorded| row_of(&recorded.tag, recorded.high_water_mark.reached())),
    );
    // All nodes send tags in the same order, so that two hand-overs never deadlock. The sort is stable: rows of one tag
    // keep their order.
    rows.sort_by_cached_key(|row| tag_of(row));
    if !holds(Guard::HandOverRaises) {
        rows.clear();
    }
    if rows.is_empty() {
        return Ok(());
    }
    Ok(give(there.begin(endpoints)?, &rows, &received)?)
}

/// Returns all rows of this database's own table of tags, ordered by tag.
fn all_tags<H: NodeServer>(here: &mut H) -> Result<Vec<Box<RawValue>>, H::Error> {
    let mut found: Vec<Box<RawValue>> = Vec::new();
    loop {
        let last = found.last().and_then(|row| tag_of(row));
        let page = here.tables().tags(last.as_deref())?;
        if page.is_empty() {
            return Ok(found);
        }
        found.extend(page);
    }
}

/// Creates or raises the local rows of all tags whose ids registries have sent. The rows get the registries' definitions,
/// and continue above all ids that the registries have reserved.
fn take_back<H: NodeServer, N: Network>(
    here: &mut H,
    there: &mut Registries<N>,
    endpoints: &[Endpoint],
    mut unheard: impl FnMut(UnusableRegistry),
) -> Result<(), H::Error> {
    let received = here.tables().received(None)?;
    let names: BTreeSet<&str> = received.iter().map(|(_, ReceivedTag { tag, .. })| tag.as_str()).collect();
    let mut known = BTreeSet::new();
    for endpoint in endpoints {
        match tags_of(there, endpoint, None) {
            Ok(rows) => {
                let rows = rows.iter().map(AsRef::as_ref);
                let is_ours = |row: &&RawValue| tag_of(row).is_some_and(|name| names.contains(name.as_str()));
                let rows: Vec<&RawValue> = rows.filter(is_ours).collect();
                // A tag's definition comes from the first registry that answers. The rows of all registries raise the tag,
                // because each registry has only the ids of its own share.
                let is_first = |row: &&&RawValue| tag_of(row).is_some_and(|name| known.insert(name));
                let first: Vec<&RawValue> = rows.iter().filter(is_first).copied().collect();
                pages(&first).try_for_each(|rows| here.tables().define(rows))?;
                take(here, &rows)?;
            }
            Err(error) => unheard(error),
        }
    }
    if holds(Guard::LeaveRaises) {
        let rows = received.iter().filter_map(|(_, ReceivedTag { tag, reached })| row_of(tag, *reached));
        let rows: Vec<Box<RawValue>> = rows.collect();
        let rows: Vec<&RawValue> = rows.iter().map(AsRef::as_ref).collect();
        take(here, &rows)?;
    }
    Ok(())
}

/// Raises the tags in the local table to the ids in `rows`.
fn take<H: NodeServer>(here: &mut H, rows: &[&RawValue]) -> Result<(), H::Error> {
    Ok(pages(rows).try_for_each(|rows| take_over(here.tables(), rows, &[], None).map(drop))?)
}
