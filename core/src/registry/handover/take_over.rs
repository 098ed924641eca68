//! Taking tags over: what a registry does when they are handed over to it, and a database that is its own again.

use super::row::tag_of;
use crate::guard::{Guard, holds};
use crate::registry::wire::ReceivedTag;
use crate::sequence::reservation::{Share, TagRow, Unfit};
use crate::sequence::tag_rows::StoredRow;
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// A table of tags that can take others over, within a transaction.
pub trait RegistryTags {
    /// Reason why a statement failed.
    type Error;

    /// Reads the rows of these tags, in their order, and locks them to the end of the transaction: of those that there are.
    fn read_all(&mut self, tags: &BTreeSet<String>) -> Result<Vec<(String, StoredRow)>, Self::Error>;
    /// Has tags with these rows, in JSON and one for each tag: makes those that there are not, and raises those that are
    /// behind. Those that it makes are of this share.
    fn put(&mut self, rows: &[&RawValue], share: Share) -> Result<(), Self::Error>;
    /// Returns how its tags stand beside these rows, in their order.
    fn standings(&mut self, rows: &[&RawValue]) -> Result<Vec<Standing>, Self::Error>;
    /// Ends what takes too long.
    fn check_for_interrupts(&mut self);
}

/// A tag that was taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The tag.
    pub tag: String,
    /// From one of its ids to the next.
    pub increment: i64,
    /// What its ids leave when divided by that.
    pub remainder: i64,
    /// True if it starts over each day, month or year,
    pub dated: bool,
    /// and whether the row that was handed over says otherwise.
    pub dated_otherwise: bool,
}

impl Standing {
    /// Why its row must not be used as this share, if it must not.
    fn unfit_for(&self, share: Option<Share>) -> Option<Unfit> {
        let Self { increment, remainder, dated, .. } = *self;
        match share.filter(|share| !share.holds(increment, remainder)) {
            Some(share) => Some(Unfit::Share { share, increment, remainder }),
            None => self.dated_otherwise.then_some(Unfit::Period { dated }),
        }
    }
}

/// Has tags with these rows, in JSON, and sees to it that its own rows are not behind; as one of several registries, if it
/// is. Gives the first tag whose row is not fit for that, and why, if there is one: also where it is behind what was
/// received from it before.
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
        tables.check_for_interrupts();
        tables.put(&rows, share.unwrap_or(Share { index: 0, of: 1 }))?;
        let standings = tables.standings(&rows)?;
        let unfit = |tag: &Standing| Some((tag.tag.clone(), tag.unfit_for(share)?));
        if let Some(unfit) = standings.iter().find_map(unfit) {
            return Ok(Some(unfit));
        }
    }
    Ok(None)
}

/// The first tag whose row is not fit since it was received this far, and why, if there is one: raised, it would not be noticed
/// that it was set back, and others would be given again what they or their like had.
fn compare<T: RegistryTags>(
    tables: &mut T,
    rows: &[&RawValue],
    received: &[ReceivedTag],
) -> Result<Option<(String, Unfit)>, T::Error> {
    if received.is_empty() || !holds(Guard::HandOverCompares) {
        return Ok(None);
    }
    tables.check_for_interrupts();
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
