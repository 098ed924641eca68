//! The take-over of tags by a registry that receives a hand-over, or by a database that becomes its own registry again.

use super::host::{HandoverTables, TagStanding};
use super::rows::tag_of;
use crate::guard::{Guard, holds};
use crate::registry::wire::ReceivedTag;
use crate::tag::reservation::{Share, TagRow, Unfit};
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

/// Creates or raises tags, so that no tag is lower than its row in `rows`. `rows` are in JSON. `received` are the
/// highest ids that the sender received from this table. `share` is None if the registry is the only registry in use.
/// Returns the first tag whose row in this table cannot be used, for example because the row is below `received`.
pub fn take_over<T: HandoverTables>(
    tables: &mut T,
    rows: &[&RawValue],
    received: &[ReceivedTag],
    share: Option<Share>,
) -> Result<Option<(String, Unfit)>, T::Error> {
    if let Some(unfit) = compare(tables, rows, received)? {
        return Ok(Some(unfit));
    }
    for rows in by_turns(rows) {
        tables.put(&rows, share.unwrap_or(Share { index: 0, of: 1 }))?;
        let standings = tables.standings(&rows)?;
        let unfit = |tag: &TagStanding| Some((tag.tag.clone(), tag.unfit_for(share)?));
        if let Some(unfit) = standings.iter().find_map(unfit) {
            return Ok(Some(unfit));
        }
    }
    Ok(None)
}

/// Returns the first tag whose row is missing, or lower than ids that were received from this table. A raise of that row
/// would hide that the registry was restored from a backup, and ids would be issued twice.
fn compare<T: HandoverTables>(
    tables: &mut T,
    rows: &[&RawValue],
    received: &[ReceivedTag],
) -> Result<Option<(String, Unfit)>, T::Error> {
    if received.is_empty() || !holds(Guard::HandOverCompares) {
        return Ok(None);
    }
    // The rows of all tags are locked here, in the order of the tags, so that two hand-overs never deadlock.
    let tags = rows.iter().filter_map(|row| tag_of(row));
    let tags = tags.chain(received.iter().map(|received| received.tag.clone())).collect();
    let found: FxHashMap<String, TagRow> = tables.read_all(&tags)?.into_iter().collect();
    let unfit = |ReceivedTag { tag, reached }: &ReceivedTag| {
        Some((tag.clone(), TagRow::unfit_since(found.get(tag), *reached)?))
    };
    Ok(received.iter().find_map(unfit))
}

/// Splits rows into rounds with at most one row for each tag, because one statement cannot change a row twice. The
/// first row of a tag creates the tag, and later rows raise the tag.
fn by_turns<'a>(rows: &[&'a RawValue]) -> Vec<Vec<&'a RawValue>> {
    let mut seen: FxHashMap<Option<String>, usize> = FxHashMap::default();
    let mut turns: Vec<Vec<&RawValue>> = Vec::new();
    for row in rows {
        let turn = seen.entry(tag_of(row)).or_default();
        match turns.get_mut(*turn) {
            Some(rows) => rows.push(row),
            None => turns.push(vec![row]),
        }
        *turn += 1;
    }
    turns
}
