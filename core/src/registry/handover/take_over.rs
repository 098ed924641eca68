//! Taking tags over, by a registry to which they are handed over, or a database that is its own again.

use super::host::{RegistryTags, Standing};
use super::rows::tag_of;
use crate::guard::{Guard, holds};
use crate::registry::wire::ReceivedTag;
use crate::sequence::reservation::{Share, TagRow, Unfit};
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;

/// Makes or raises tags by these rows, in JSON, so that no own row is behind; as one of several registries, if it is. Returns
/// the first tag whose row is not fit for that, also because it is behind what was received from it before.
pub fn take_over<T: RegistryTags>(
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
        let unfit = |tag: &Standing| Some((tag.tag.clone(), tag.unfit_for(share)?));
        if let Some(unfit) = standings.iter().find_map(unfit) {
            return Ok(Some(unfit));
        }
    }
    Ok(None)
}

/// The first tag whose row is behind what was received of it, or gone: raised, it would not be noticed that it was set back,
/// and ids would be given again.
fn compare<T: RegistryTags>(
    tables: &mut T,
    rows: &[&RawValue],
    received: &[ReceivedTag],
) -> Result<Option<(String, Unfit)>, T::Error> {
    if received.is_empty() || !holds(Guard::HandOverCompares) {
        return Ok(None);
    }
    // All that are handed over, so that two nodes lock them in one order.
    let tags = rows.iter().filter_map(|row| tag_of(row));
    let tags = tags.chain(received.iter().map(|received| received.tag.clone())).collect();
    let found: FxHashMap<String, TagRow> =
        tables.read_all(&tags)?.into_iter().map(|(tag, row)| (tag, row.now())).collect();
    let unfit = |ReceivedTag { tag, reached }: &ReceivedTag| {
        Some((tag.clone(), TagRow::unfit_since(found.get(tag), *reached)?))
    };
    Ok(received.iter().find_map(unfit))
}

/// The first rows of all tags, then the second ones, and so on: the first makes the tag, the others raise it. No row can be
/// changed twice by one statement.
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
