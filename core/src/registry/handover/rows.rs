//! Rows of tables of tags, in JSON: reading a registry's rows, and handing rows over in pages.

use super::host::{Begun, Registries, unusable};
use crate::clock::UnixMicros;
use crate::registry::client::Network;
use crate::registry::error::{RegistryError, UnusableRegistry};
use crate::registry::link::Endpoint;
use crate::registry::wire::{MAX_BYTES, PAGE_BYTES, ReceivedTag, RequestBody, ResponseBody};
use crate::tag::reservation::{Reached, Share, Unfit};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

/// The largest total size of a registry's tags, in bytes: about 200,000 tags.
const MOST_BYTES: usize = 4 * MAX_BYTES;
/// The largest number of rows in one statement. Even a busy registry writes this many rows well within the time limit.
const HANDED_AT_ONCE: usize = 2_000;

/// Returns the tag of a row.
pub fn tag_of(row: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct TagField {
        tag: String,
    }
    serde_json::from_str(row.get()).ok().map(|TagField { tag }| tag)
}

/// Returns a row that raises a tag to an id.
pub fn row_of(tag: &str, (day, max_id): Reached) -> Option<Box<RawValue>> {
    let first = UnixMicros::of_day(day);
    let period =
        (day != 0).then(|| first.to_string().chars().take_while(|letter| *letter != 'T').collect::<String>());
    let row = serde_json::json!({ "tag": tag, "period": period, "max_id": max_id });
    RawValue::from_string(row.to_string()).ok()
}

/// Returns all tags of a registry. Fails if a `share` is given and a tag does not match this share.
pub fn tags_of<N: Network>(
    there: &mut Registries<N>,
    endpoint: &Endpoint,
    share: Option<Share>,
) -> Result<Vec<Box<RawValue>>, UnusableRegistry> {
    #[derive(Deserialize)]
    struct PageRow {
        tag: String,
        increment: i64,
        remainder: i64,
    }
    let garbled = || unusable(&endpoint.server, RegistryError::other_kind());
    let (mut found, mut seen, mut bytes, mut after) = (Vec::new(), BTreeSet::new(), 0, None);
    loop {
        let ask = RequestBody::Tags { after: after.clone() };
        let ResponseBody::Tags(rows) = there.ask(&endpoint.server, Some(&endpoint.seen), ask)?.said else {
            return Err(garbled());
        };
        if rows.is_empty() {
            return Ok(found);
        }
        for row in rows {
            let read: PageRow = serde_json::from_str(row.get()).map_err(|_| garbled())?;
            let PageRow { tag, increment, remainder } = read;
            if let Some(share) = share.filter(|share| !share.holds(increment, remainder)) {
                let unfit = Unfit::Share { share, increment, remainder };
                return Err(unusable(&endpoint.server, RegistryError::Unfit(tag, unfit)));
            }
            bytes += row.get().len();
            after = Some(tag.clone());
            // Without these limits, a broken registry could send rows forever.
            if bytes > MOST_BYTES || !seen.insert(tag) {
                return Err(garbled());
            }
            found.push(row);
        }
    }
}

/// Splits rows into pages that one statement can send.
pub fn pages<T: Borrow<RawValue>>(rows: &[T]) -> impl Iterator<Item = &[T]> {
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

/// Sends rows to all registries, and commits only if every registry took all rows. All registries get a page before the
/// next page is sent, so that no registry's transaction is idle for long. Each registry first compares its rows with
/// the ids that the node received from this registry. `rows` are ordered by tag.
pub fn give<N: Network>(
    mut begun: Vec<Begun<'_, N>>,
    rows: &[Box<RawValue>],
    received: &[(String, ReceivedTag)],
) -> Result<(), UnusableRegistry> {
    let of = begun.len();
    let mut left: Vec<BTreeMap<&str, Reached>> =
        begun.iter().map(|(endpoint, _)| received_of(received, endpoint)).collect();
    for page in pages(rows) {
        let tags: Vec<String> = page.iter().filter_map(|row| tag_of(row)).collect();
        for ((endpoint, there), left) in begun.iter_mut().zip(&mut left) {
            // A tag's received id is sent only with the tag's first page, because that page raises the registry's row.
            let compared = tags.iter().filter_map(|tag| left.remove_entry(tag.as_str()));
            let received =
                compared.map(|(tag, reached)| ReceivedTag { tag: tag.to_owned(), reached }).collect();
            let ask = RequestBody::HandOver { rows: page.to_vec(), received, share: endpoint.share(of) };
            let error = match there.ask(ask).map(|answer| answer.said) {
                Ok(ResponseBody::HandedOver(None)) => continue,
                Ok(ResponseBody::HandedOver(Some((tag, unfit)))) => RegistryError::Unfit(tag, unfit),
                Ok(_) => RegistryError::other_kind(),
                Err(error) => error,
            };
            return Err(unusable(&endpoint.server, error));
        }
    }
    let commit =
        |(endpoint, there): Begun<'_, N>| there.commit().map_err(|error| unusable(&endpoint.server, error));
    begun.into_iter().try_for_each(commit)
}

/// Returns the highest id of each tag that was received from this registry. Ids of another registry, such as this registry's
/// predecessor before an upgrade, say nothing about this registry's rows.
fn received_of<'r>(received: &'r [(String, ReceivedTag)], endpoint: &Endpoint) -> BTreeMap<&'r str, Reached> {
    let its = received.iter().filter(|(identity, _)| *identity == endpoint.seen.identity);
    its.map(|(_, ReceivedTag { tag, reached })| (tag.as_str(), *reached)).collect()
}
