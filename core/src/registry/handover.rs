//! Beginning to use registries on other servers, and ending it: what is checked first, which tags are handed over from one
//! table of tags to another, and in which order. No tag goes on below what the other table has given.
//!
//! It is one transaction here, and one at each registry, which is committed first. If the one here is then rolled back,
//! tags stay raised there, which does no harm.

mod error;
mod give;
mod host;
mod page;
mod row;
mod seeded;
mod take_over;

pub use error::HandoverError;
pub use host::{Handed, NodeTables, NotedFloor, Registries};
pub use row::tag_of;
pub use seeded::Seeded;
pub use take_over::{RegistryTags, Standing, take_over};

use crate::guard::{Guard, holds};
use crate::registry::lease::check_clock;
use crate::registry::link::Site;
use crate::registry::wire::{ReceivedTag, Registry, RequestBody, ResponseBody, Stranger};
use crate::server::form::RELEASE;
use give::{begin, give};
use page::{pages, tags_of};
use row::row_of;
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// Has this database use the registries of these foreign servers, which then know of its tags.
pub fn join<H: NodeTables, R: Registries>(
    here: &mut H,
    there: &mut R,
    servers: &[String],
) -> Handed<(), H, R> {
    if holds(Guard::HandOverLocks) {
        here.lock().map_err(HandoverError::Here)?;
    }
    let former = here.sites().map_err(HandoverError::Here)?;
    let mut sites: Vec<Site> = Vec::new();
    // While it is known what was seen of those in use: a former primary of one of them is none.
    for (server, position) in servers.iter().zip(0..) {
        let seen = introduce(here, there, &former, server)?;
        sites.push(Site { position, server: server.clone(), seen });
    }
    let mut identities = BTreeSet::new();
    if let Some(site) = sites.iter().find(|site| !identities.insert(&site.seen.identity)) {
        return Err(HandoverError::Same { server: site.server.clone() });
    }
    // Worker ids come from the first one.
    if let Some(Site { server, seen, .. }) = sites.first()
        && let Some(database) = here.leases_for(&seen.identity).map_err(HandoverError::Here)?
    {
        return Err(HandoverError::Elsewhere { server: server.clone(), database });
    }
    here.set_sites(&sites).map_err(HandoverError::Here)?;
    hand_over(here, there, &sites)?;
    // A registry that is set back to before must be noticed, too.
    if holds(Guard::HandOverNoted) {
        here.note_all().map_err(HandoverError::Here)?;
    }
    let first = sites.first().map(|site| &site.seen.identity);
    for site in former.iter().filter(|site| Some(&site.seen.identity) != first) {
        here.give_up_lease(site).map_err(HandoverError::Here)?;
    }
    here.switch(true).map_err(HandoverError::Here)
}

/// Has this database be its own registry again; false where it is that already. `unheard` is told of registries that give no
/// answer: tags that are known only there have the definitions here that they had before.
pub fn leave<H: NodeTables, R: Registries>(
    here: &mut H,
    there: &mut R,
    unheard: impl FnMut(HandoverError<H::Error, R::Error>),
) -> Handed<bool, H, R> {
    here.lock().map_err(HandoverError::Here)?;
    let sites = here.sites().map_err(HandoverError::Here)?;
    if sites.is_empty() {
        return Ok(false);
    }
    take_back(here, there, &sites, unheard)?;
    for site in &sites {
        here.give_up_lease(site).map_err(HandoverError::Here)?;
    }
    here.set_sites(&[]).map_err(HandoverError::Here)?;
    here.switch(false).map_err(HandoverError::Here)?;
    Ok(true)
}

/// Has every registry in use make a tag, or raise it, so that its ids are above one: for a column that has ids already.
/// False where there is none in use.
pub fn seed<H: NodeTables, R: Registries>(
    here: &mut H,
    there: &mut R,
    tag: &str,
    highest: i64,
) -> Handed<bool, H, R> {
    // Others that come into use meanwhile would not be raised; nor would the row here.
    if holds(Guard::AttachKeepsSites) {
        here.keep_sites().map_err(HandoverError::Here)?;
    }
    let sites = here.sites().map_err(HandoverError::Here)?;
    // One that starts over would give the column's ids again.
    let row = serde_json::json!({ "tag": tag, "max_id": highest, "reset": null });
    let rows: Vec<Box<RawValue>> = RawValue::from_string(row.to_string()).into_iter().collect();
    let begun = begin::<H, R>(there, &sites)?;
    // A registry that is set back later than this ends what was begun there.
    let mut received = Vec::with_capacity(sites.len());
    for Site { seen: Registry { identity, .. }, .. } in &sites {
        if let Some(reached) = here.received_of(identity, tag).map_err(HandoverError::Here)? {
            received.push((identity.clone(), ReceivedTag { tag: tag.to_owned(), reached }));
        }
    }
    give::<H, R>(there, begun, &rows, &received)?;
    Ok(!sites.is_empty())
}

/// Asks a foreign server which registry it is, and whether this server can use it.
fn introduce<H: NodeTables, R: Registries>(
    here: &mut H,
    there: &mut R,
    former: &[Site],
    server: &str,
) -> Handed<Registry, H, R> {
    let failed = |error| HandoverError::There { server: server.to_owned(), error };
    let mut answer = there.ask(server, None, RequestBody::Introduce).map_err(failed)?;
    // One that was promoted since leaves a former primary, which may be asked first.
    let later =
        |site: &&Site| answer.registry.check(&site.seen).is_err_and(|stranger| stranger != Stranger::Another);
    if let Some(site) = former.iter().find(later) {
        answer = there.ask(server, Some(&site.seen), RequestBody::Introduce).map_err(failed)?;
    }
    let server = server.to_owned();
    let ResponseBody::Introduced { version } = answer.said else {
        return Err(HandoverError::Garbled { server });
    };
    if version != RELEASE {
        return Err(HandoverError::Version { server, version });
    }
    if here.identity().is_some_and(|identity| identity == answer.registry.identity) {
        return Err(HandoverError::Itself { server });
    }
    match check_clock(here.now(), answer.clock, None, here.max_clock_skew()) {
        Ok(()) => Ok(answer.registry),
        Err(skew) => Err(HandoverError::Clock { server, skew }),
    }
}

/// Sees to it that no registry is behind the tags of this database, nor behind each other. One that is behind what was
/// received from it was set back, which others must notice, too: it is not raised.
fn hand_over<H: NodeTables, R: Registries>(here: &mut H, there: &mut R, sites: &[Site]) -> Handed<(), H, R> {
    let mut rows = Vec::new();
    if sites.len() > 1 && holds(Guard::SharesRaised) {
        for site in sites {
            rows.extend(tags_of::<H, R>(there, site, site.share(sites.len()))?);
        }
    }
    // Rows that say all of a tag come first: others only raise it.
    rows.extend(all_tags(here).map_err(HandoverError::Here)?);
    let received = here.received().map_err(HandoverError::Here)?;
    rows.extend(received.iter().filter_map(|(_, ReceivedTag { tag, reached })| row_of(tag, *reached)));
    // What transactions handed out and rolled back, of the lives that tags are in.
    let floors = here.floors().map_err(HandoverError::Here)?;
    let floors = floors.iter().filter(|noted| noted.life == Some(noted.floor.life));
    rows.extend(floors.filter_map(|noted| row_of(&noted.tag, noted.floor.reached())));
    // In one order, so that two nodes that hand the same tags over never wait for each other. Of one tag the rows stay in
    // theirs.
    rows.sort_by_cached_key(|row| tag_of(row));
    if !holds(Guard::HandOverRaises) {
        rows.clear();
    }
    if rows.is_empty() {
        return Ok(());
    }
    let begun = begin::<H, R>(there, sites)?;
    give::<H, R>(there, begun, &rows, &received)
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
fn take_back<H: NodeTables, R: Registries>(
    here: &mut H,
    there: &mut R,
    sites: &[Site],
    mut unheard: impl FnMut(HandoverError<H::Error, R::Error>),
) -> Handed<(), H, R> {
    let received = here.received().map_err(HandoverError::Here)?;
    let names: BTreeSet<&str> = received.iter().map(|(_, ReceivedTag { tag, .. })| tag.as_str()).collect();
    let mut known = BTreeSet::new();
    for site in sites {
        match tags_of::<H, R>(there, site, None) {
            Ok(rows) => {
                let rows = rows.iter().map(AsRef::as_ref);
                let is_ours = |row: &&RawValue| tag_of(row).is_some_and(|name| names.contains(name.as_str()));
                let rows: Vec<&RawValue> = rows.filter(is_ours).collect();
                // Of several registries the first one that tells: its ids are none of the others'.
                let is_first = |row: &&&RawValue| tag_of(row).is_some_and(|name| known.insert(name));
                let first: Vec<&RawValue> = rows.iter().filter(is_first).copied().collect();
                pages(&first).try_for_each(|rows| here.define(rows)).map_err(HandoverError::Here)?;
                take(here, &rows).map_err(HandoverError::Here)?;
            }
            Err(error) => unheard(error),
        }
    }
    if holds(Guard::LeaveRaises) {
        let rows = received.iter().filter_map(|(_, ReceivedTag { tag, reached })| row_of(tag, *reached));
        let rows: Vec<Box<RawValue>> = rows.collect();
        let rows: Vec<&RawValue> = rows.iter().map(AsRef::as_ref).collect();
        take(here, &rows).map_err(HandoverError::Here)?;
    }
    Ok(())
}

/// Has rows in the table of tags here that are not behind these.
fn take<H: NodeTables>(here: &mut H, rows: &[&RawValue]) -> Result<(), H::Error> {
    pages(rows).try_for_each(|rows| take_over(here, rows, &[], None).map(drop))
}
