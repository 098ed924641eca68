//! Handing tags over from one table of tags to another, so that none goes on below what the other has given.

use super::call::Caller;
use super::session::{Checked, ask_site, begin, garbled, here, refused, unfit_row};
use crate::pg::catalog::Source;
use crate::pg::encoding::to_utf8;
use crate::segment::place;
use crate::store::registry::{self as store, Site};
use crate::store::segment;
use serde::Deserialize;
use serde_json::value::RawValue;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::reservation::{Reached, Share, Unfit};
use snowflake_ids_core::wire::{MAX_BYTES, PAGE_BYTES, RequestBody, ResponseBody};
use std::borrow::Borrow;
use std::collections::BTreeSet;

/// How much is read of a registry's tags at most: some 200,000 of them.
const MOST_BYTES: usize = 4 * MAX_BYTES;
/// How many rows are handed over by one statement: as many as a busy registry writes well within the time limit.
const HANDED_AT_ONCE: usize = 2_000;

/// Sees to it that no registry is behind the tags of this database, nor behind each other.
///
/// # Errors
/// A registry can't be asked, or a tag's row is not fit for it.
pub fn hand_over() -> Checked<()> {
    let (sites, tags, received) =
        here(|| Ok((store::sites()?, store::all_tags()?, store::received_tags()?)))?;
    let mut caller = Caller::default();
    let mut rows = Vec::new();
    if sites.len() > 1 {
        for site in &sites {
            rows.extend(tags_of(&mut caller, site, site.share(sites.len()))?);
        }
    }
    // Rows that say all of a tag come first: others only raise it.
    rows.extend(tags);
    rows.extend(received);
    // What transactions handed out and rolled back.
    let mut floors = Source::find().map(place::floors).unwrap_or_default();
    let lives = here(|| floors.iter().map(|(tag, _)| segment::life(tag)).collect::<Result<Vec<_>, _>>())?;
    let mut lives = lives.into_iter();
    floors.retain(|(_, floor)| lives.next().flatten() == Some(floor.life));
    rows.extend(floors.iter().filter_map(|(tag, floor)| row_of(&to_utf8(tag.as_bytes())?, floor.reached())));
    // In one order, so that two nodes that hand the same tags over never wait for each other. Of one tag the rows stay in
    // theirs.
    rows.sort_by_cached_key(|row| store::tag_of(row));
    give(&mut caller, &sites, &rows)
}

/// A row that raises a tag this far.
fn row_of(tag: &str, (day, max_id): Reached) -> Option<Box<RawValue>> {
    const DAY: i64 = 86_400_000_000;
    let first = UnixMicros(i64::from(day) * DAY);
    let period =
        (day != 0).then(|| first.to_string().chars().take_while(|letter| *letter != 'T').collect::<String>());
    let row = serde_json::json!({ "tag": tag, "period": period, "max_id": max_id });
    RawValue::from_string(row.to_string()).ok()
}

/// All tags of a registry, which are fit for it if it is one of several.
fn tags_of(caller: &mut Caller, site: &Site, share: Option<Share>) -> Checked<Vec<Box<RawValue>>> {
    /// What of a row says which ids it gives.
    #[derive(Deserialize)]
    struct Definition {
        tag: String,
        increment: i64,
        remainder: i64,
    }
    let (mut found, mut seen, mut bytes, mut after) = (Vec::new(), BTreeSet::new(), 0, None);
    loop {
        let ResponseBody::Tags(rows) =
            ask_site(caller, site, RequestBody::Tags { after: after.clone() })?.said
        else {
            return Err(garbled(&site.server));
        };
        if rows.is_empty() {
            return Ok(found);
        }
        for row in rows {
            let definition: Definition =
                serde_json::from_str(row.get()).map_err(|_| garbled(&site.server))?;
            let Definition { tag, increment, remainder } = definition;
            if let Some(share) = share.filter(|share| !share.holds(increment, remainder)) {
                return Err(unfit_row(&site.server, &tag, Unfit::Share { share, increment, remainder }));
            }
            bytes += row.get().len();
            after = Some(tag.clone());
            // Else a registry could go on for ever.
            if bytes > MOST_BYTES || !seen.insert(tag) {
                return Err(garbled(&site.server));
            }
            found.push(row);
        }
    }
}

/// Makes rows here of the tags that were received from registries, on the terms that they have there: above all that those have reserved.
/// One that gives no answer is left out, with a notice.
///
/// # Errors
/// Those of SPI.
pub fn take_back() -> Checked<()> {
    let (sites, received) = here(|| Ok((store::sites()?, store::received_tags()?)))?;
    let names: BTreeSet<String> = received.iter().filter_map(|row| store::tag_of(row)).collect();
    let take =
        |rows: &[&RawValue]| here(|| pages(rows).try_for_each(|rows| store::hand_over(rows, None).map(drop)));
    let mut caller = Caller::default();
    let mut known = BTreeSet::new();
    for site in &sites {
        match tags_of(&mut caller, site, None) {
            Ok(rows) => {
                let rows = rows.iter().map(AsRef::as_ref);
                let is_ours = |row: &&RawValue| store::tag_of(row).is_some_and(|name| names.contains(&name));
                let rows: Vec<&RawValue> = rows.filter(is_ours).collect();
                // Of several registries the first one that tells: its ids are none of the others'.
                let is_first = |row: &&&RawValue| store::tag_of(row).is_some_and(|name| known.insert(name));
                let first: Vec<&RawValue> = rows.iter().filter(is_first).copied().collect();
                here(|| pages(&first).try_for_each(store::take_terms))?;
                take(&rows)?;
            }
            Err(report) => pgrx::notice!(
                "{}; tags that are known only there have the terms here that they had before this database used the \
                 registry, or the defaults of segment_create",
                report.message()
            ),
        }
    }
    take(&received.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

/// Has every registry make a tag, or raise it, so that its ids are above one: for a column that has ids already.
///
/// # Errors
/// A registry can't be asked, or the tag's row is not fit for it.
pub fn seed(tag: &str, highest: i64) -> Checked<()> {
    let sites = here(store::sites)?;
    // One that starts over would give the column's ids again.
    let row = serde_json::json!({ "tag": tag, "max_id": highest, "reset": null });
    let rows: Vec<Box<RawValue>> = RawValue::from_string(row.to_string()).into_iter().collect();
    give(&mut Caller::default(), &sites, &rows)
}

/// Hands rows over to registries, in one transaction at each: where one can't take them, none has. All of a page before the
/// next, so that no registry waits for long.
fn give(caller: &mut Caller, sites: &[Site], rows: &[Box<RawValue>]) -> Checked<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let begun = sites.iter().map(|site| Ok((site, begin(caller, site, sites.len())?)));
    let mut begun = begun.collect::<Checked<Vec<_>>>()?;
    for page in pages(rows) {
        for (site, block) in &mut begun {
            let ask = RequestBody::HandOver { rows: page.to_vec(), share: site.share(sites.len()) };
            match block.ask(ask).map_err(|error| refused(&site.server, &error))?.said {
                ResponseBody::HandedOver(None) => {}
                ResponseBody::HandedOver(Some((tag, unfit))) => {
                    return Err(unfit_row(&site.server, &tag, unfit));
                }
                _ => return Err(garbled(&site.server)),
            }
        }
    }
    begun
        .into_iter()
        .try_for_each(|(site, block)| block.commit().map_err(|error| refused(&site.server, &error)))
}

/// As many rows as a statement takes, whatever letters are in them.
fn pages<T: Borrow<RawValue>>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let mut left = rows;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |row: &&T| {
            bytes += (*row).borrow().get().len();
            bytes <= PAGE_BYTES
        };
        let count = left.iter().take(HANDED_AT_ONCE).take_while(fits).count();
        let (page, rest) = left.split_at(count.max(1).min(left.len()));
        left = rest;
        (!page.is_empty()).then_some(page)
    })
}
