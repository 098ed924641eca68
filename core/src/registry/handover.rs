//! Beginning to use registries on other servers, and ending it: the checks, the tags that are handed over from one table of tags
//! to another, and the order of it all. No tag goes on below what the other table has given.
//!
//! It is one transaction here, and one at each registry, which is committed first. If the one here is then rolled back,
//! tags stay raised there, which does no harm.

mod host;
mod rows;
mod seeded;
mod take_over;

pub use host::{NodeTables, Registries, RegistryTags, RolledBackTag, Standing};
pub use rows::tag_of;
pub use seeded::Seeded;
pub use take_over::take_over;

use crate::guard::{Guard, holds};
use crate::registry::client::Network;
use crate::registry::error::{RegistryError, UnusableRegistry};
use crate::registry::lease::check_clock;
use crate::registry::link::Endpoint;
use crate::registry::wire::{ReceivedTag, RegistryName, RequestBody, ResponseBody, Stranger};
use crate::server::form::RELEASE;
use host::unusable;
use rows::{give, pages, row_of, tags_of};
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// Has this database use the registries of these foreign servers, which then know of its tags.
pub fn join<H: NodeTables, N: Network>(
    here: &mut H,
    there: &mut Registries<N>,
    servers: &[String],
) -> Result<(), H::Error> {
    if holds(Guard::HandOverLocks) {
        here.lock()?;
    }
    let former = here.endpoints()?;
    let mut endpoints: Vec<Endpoint> = Vec::new();
    // While it is known what was seen of those in use: a former primary of one of them is none.
    for (server, position) in servers.iter().zip(0..) {
        let seen = introduce(here, there, &former, server)?;
        endpoints.push(Endpoint { position, server: server.clone(), seen });
    }
    let mut identities = BTreeSet::new();
    if let Some(endpoint) = endpoints.iter().find(|endpoint| !identities.insert(&endpoint.seen.identity)) {
        return Err(UnusableRegistry::Same(endpoint.server.clone()).into());
    }
    // Worker ids come from the first one.
    if let Some(Endpoint { server, seen, .. }) = endpoints.first()
        && let Some(database) = here.leases_for(&seen.identity)?
    {
        return Err(unusable(server, RegistryError::Elsewhere(database)).into());
    }
    here.set_endpoints(&endpoints)?;
    hand_over(here, there, &endpoints)?;
    // A registry that is set back to before must be noticed, too.
    if holds(Guard::HandOverRecorded) {
        here.record_all()?;
    }
    let first = endpoints.first().map(|endpoint| &endpoint.seen.identity);
    for endpoint in former.iter().filter(|endpoint| Some(&endpoint.seen.identity) != first) {
        here.give_up_lease(endpoint)?;
    }
    here.switch(true)
}

/// Has this database be its own registry again; false where it is that already. `unheard` is told of registries that give no
/// answer: tags that are known only there keep the definitions that they had here before.
pub fn leave<H: NodeTables, N: Network>(
    here: &mut H,
    there: &mut Registries<N>,
    unheard: impl FnMut(UnusableRegistry),
) -> Result<bool, H::Error> {
    here.lock()?;
    let endpoints = here.endpoints()?;
    if endpoints.is_empty() {
        return Ok(false);
    }
    take_back(here, there, &endpoints, unheard)?;
    for endpoint in &endpoints {
        here.give_up_lease(endpoint)?;
    }
    here.set_endpoints(&[])?;
    here.switch(false)?;
    Ok(true)
}

/// Has every registry in use make a tag, or raise it, so that its ids are above one: for a column that has ids already.
/// False where there is none in use.
pub fn seed<H: NodeTables, N: Network>(
    here: &mut H,
    there: &mut Registries<N>,
    tag: &str,
    highest: i64,
) -> Result<bool, H::Error> {
    // Others that come into use meanwhile would not be raised; nor would the row here.
    if holds(Guard::AttachKeepsEndpoints) {
        here.keep_endpoints()?;
    }
    let endpoints = here.endpoints()?;
    // One that starts over would give the column's ids again.
    let row = serde_json::json!({ "tag": tag, "max_id": highest, "reset": null });
    let rows: Vec<Box<RawValue>> = RawValue::from_string(row.to_string()).into_iter().collect();
    let begun = there.begin(&endpoints)?;
    // A registry that is set back later than this ends what was begun there.
    let received = if endpoints.is_empty() { Vec::new() } else { here.received(Some(tag))? };
    give(begun, &rows, &received)?;
    Ok(!endpoints.is_empty())
}

/// Asks a foreign server which registry it is, and checks that this server can use it.
fn introduce<H: NodeTables, N: Network>(
    here: &mut H,
    there: &mut Registries<N>,
    former: &[Endpoint],
    server: &str,
) -> Result<RegistryName, UnusableRegistry> {
    let mut answer = there.ask(server, None, RequestBody::Introduce)?;
    // One that was promoted since leaves a former primary, which may be asked first.
    let later = |endpoint: &&Endpoint| {
        answer.registry.check(&endpoint.seen).is_err_and(|stranger| stranger != Stranger::Another)
    };
    if let Some(endpoint) = former.iter().find(later) {
        answer = there.ask(server, Some(&endpoint.seen), RequestBody::Introduce)?;
    }
    let is_itself = here.identity().as_ref() == Some(&answer.registry.identity);
    let error = match answer.said {
        ResponseBody::Introduced { version } if version != RELEASE => RegistryError::Release(version),
        ResponseBody::Introduced { .. } if is_itself => RegistryError::Itself,
        ResponseBody::Introduced { .. } => {
            match check_clock(here.now(), answer.clock, None, here.max_clock_skew()) {
                Ok(()) => return Ok(answer.registry),
                Err(skew) => RegistryError::Skew(skew),
            }
        }
        _ => RegistryError::other_kind(),
    };
    Err(unusable(server, error))
}

/// Raises all registries to the tags of this database, and to each other. One that is behind what was received from it was
/// set back, which others must notice, too: it is not raised.
fn hand_over<H: NodeTables, N: Network>(
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
    // Whole rows of a tag come first: others only raise it.
    rows.extend(all_tags(here)?);
    let received = here.received(None)?;
    rows.extend(received.iter().filter_map(|(_, ReceivedTag { tag, reached })| row_of(tag, *reached)));
    // Ids of transactions that were rolled back, of the generations that tags are in.
    let high_water_marks = here.high_water_marks()?;
    let high_water_marks = high_water_marks
        .iter()
        .filter(|recorded| recorded.tag_generation == Some(recorded.high_water_mark.tag_generation));
    rows.extend(
        high_water_marks.filter_map(|recorded| row_of(&recorded.tag, recorded.high_water_mark.reached())),
    );
    // In one order, so that two nodes that hand the same tags over never wait for each other. Of one tag the rows stay in
    // theirs.
    rows.sort_by_cached_key(|row| tag_of(row));
    if !holds(Guard::HandOverRaises) {
        rows.clear();
    }
    if rows.is_empty() {
        return Ok(());
    }
    Ok(give(there.begin(endpoints)?, &rows, &received)?)
}

/// All rows of this database's own table of tags, in their order.
fn all_tags<H: NodeTables>(here: &mut H) -> Result<Vec<Box<RawValue>>, H::Error> {
    let mut found: Vec<Box<RawValue>> = Vec::new();
    loop {
        let last = found.last().and_then(|row| tag_of(row));
        let page = here.tags(last.as_deref())?;
        if page.is_empty() {
            return Ok(found);
        }
        found.extend(page);
    }
}

/// Makes rows here of the tags that were received from registries, on the terms that they have there: above all that those
/// have reserved.
fn take_back<H: NodeTables, N: Network>(
    here: &mut H,
    there: &mut Registries<N>,
    endpoints: &[Endpoint],
    mut unheard: impl FnMut(UnusableRegistry),
) -> Result<(), H::Error> {
    let received = here.received(None)?;
    let names: BTreeSet<&str> = received.iter().map(|(_, ReceivedTag { tag, .. })| tag.as_str()).collect();
    let mut known = BTreeSet::new();
    for endpoint in endpoints {
        match tags_of(there, endpoint, None) {
            Ok(rows) => {
                let rows = rows.iter().map(AsRef::as_ref);
                let is_ours = |row: &&RawValue| tag_of(row).is_some_and(|name| names.contains(name.as_str()));
                let rows: Vec<&RawValue> = rows.filter(is_ours).collect();
                // Of several registries the first one that answers: its ids are none of the others'.
                let is_first = |row: &&&RawValue| tag_of(row).is_some_and(|name| known.insert(name));
                let first: Vec<&RawValue> = rows.iter().filter(is_first).copied().collect();
                pages(&first).try_for_each(|rows| here.define(rows))?;
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

/// Raises the table of tags here to these rows.
fn take<H: NodeTables>(here: &mut H, rows: &[&RawValue]) -> Result<(), H::Error> {
    pages(rows).try_for_each(|rows| take_over(here, rows, &[], None).map(drop))
}
