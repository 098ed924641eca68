//! Rows of a table of tags, in JSON, a page at a time.

use super::error::HandoverError;
use super::host::{Handed, NodeTables, Registries};
use crate::registry::link::Site;
use crate::registry::wire::{MAX_BYTES, PAGE_BYTES, RequestBody, ResponseBody};
use crate::sequence::reservation::{Share, Unfit};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Borrow;
use std::collections::BTreeSet;

/// How much is read of a registry's tags at most: some 200,000 of them.
const MOST_BYTES: usize = 4 * MAX_BYTES;
/// Number of rows that are handed over by one statement: as many as a busy registry writes well within the time limit.
const HANDED_AT_ONCE: usize = 2_000;

/// All tags of a registry, which are fit for it if it is one of several.
pub fn tags_of<H: NodeTables, R: Registries>(
    there: &mut R,
    site: &Site,
    share: Option<Share>,
) -> Handed<Vec<Box<RawValue>>, H, R> {
    /// What of a row says which ids it gives.
    #[derive(Deserialize)]
    struct PageRow {
        tag: String,
        increment: i64,
        remainder: i64,
    }
    let garbled = || HandoverError::Garbled { server: site.server.clone() };
    let failed = |error| HandoverError::There { server: site.server.clone(), error };
    let (mut found, mut seen, mut bytes, mut after) = (Vec::new(), BTreeSet::new(), 0, None);
    loop {
        let ask = RequestBody::Tags { after: after.clone() };
        let ResponseBody::Tags(rows) = there.ask(&site.server, Some(&site.seen), ask).map_err(failed)?.said
        else {
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
                return Err(HandoverError::Unfit { server: site.server.clone(), tag, unfit });
            }
            bytes += row.get().len();
            after = Some(tag.clone());
            // Else a registry could go on for ever.
            if bytes > MOST_BYTES || !seen.insert(tag) {
                return Err(garbled());
            }
            found.push(row);
        }
    }
}

/// As many rows as a statement takes, whatever letters are in them.
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
