//! Numbers that the session's transaction took out of rows itself, and lost as it went back to a savepoint. Its caller has them, and
//! may use them still: until the transaction ends they do not come again.

use crate::pg::process::PerProcess;
use crate::pg::transaction::Subtransaction;
use crate::store::series::Number;
use rustc_hash::FxHashMap;
use snowflake_ids_core::series::Key;
use std::cell::RefCell;

/// Of more keys than this the highest is kept for all keys of their series.
const MOST: usize = 10_000;

/// A key of a series; None: all of its keys.
pub type Name = (i64, Option<Key>);

/// The highest number of each key, with its day first.
type Map = FxHashMap<Name, (i32, i64)>;

struct Lost {
    /// What the subtransactions took that are open, the innermost last. What the transaction itself took is not lost before its end.
    open: Vec<(Subtransaction, Map)>,
    lost: Option<Map>,
}

static LOST: PerProcess<RefCell<Lost>> = PerProcess::new(RefCell::new(Lost { open: Vec::new(), lost: None }));

/// The transaction took a number.
pub fn note(series: i64, key: &Key, Number { number, day }: Number) {
    note_within(Subtransaction::current(), series, key, (day, number));
}

fn note_within(current: Subtransaction, series: i64, key: &Key, number: (i32, i64)) {
    if current.is_transaction() {
        return;
    }
    let open = &mut LOST.borrow_mut().open;
    if open.last().is_none_or(|(last, _)| *last != current) {
        open.push((current, Map::default()));
    }
    if let Some((_, map)) = open.last_mut() {
        raise(map, (series, Some(key.clone())), number);
    }
}

/// The highest number of a key that was lost, of this day.
pub fn last(series: i64, key: &Key, day: i32) -> Option<i64> {
    let all = LOST.borrow();
    let lost = all.lost.as_ref()?;
    let of = |name: Name| lost.get(&name).filter(|(of, _)| *of == day).map(|(_, number)| *number);
    of((series, Some(key.clone()))).max(of((series, None)))
}

/// The numbers of a key shall come again, unless that is undone.
pub fn forgive(series: i64, key: &Key) {
    let lost = LOST.borrow_mut().lost.as_mut().and_then(|lost| lost.remove(&(series, Some(key.clone()))));
    if let Some(number) = lost {
        note_within(Subtransaction::current(), series, key, number);
    }
}

fn raise(map: &mut Map, name: Name, number: (i32, i64)) {
    let name = if map.len() < MOST || map.contains_key(&name) { name } else { (name.0, None) };
    let highest = map.entry(name).or_insert(number);
    *highest = number.max(*highest);
}

fn raise_all(map: &mut Map, more: Map) {
    for (name, number) in more {
        raise(map, name, number);
    }
}

/// The transaction has ended.
pub fn forget() {
    if let Ok(mut all) = LOST.try_borrow_mut() {
        all.open.clear();
        all.lost = None;
    }
}

/// A subtransaction was rolled back.
pub fn undo(aborted: Subtransaction) {
    if let Ok(mut all) = LOST.try_borrow_mut()
        && let Some((_, map)) = all.open.pop_if(|(of, _)| *of == aborted)
    {
        raise_all(all.lost.get_or_insert_default(), map);
    }
}

/// A subtransaction is now part of the one that it began in.
pub fn hand_up(committed: Subtransaction, parent: Subtransaction) {
    let Ok(mut all) = LOST.try_borrow_mut() else { return };
    let Some((_, mut map)) = all.open.pop_if(|(of, _)| *of == committed) else { return };
    if parent.is_transaction() {
        return;
    }
    match all.open.last_mut().filter(|(of, _)| *of == parent) {
        Some((_, parents)) => {
            if parents.len() < map.len() {
                std::mem::swap(parents, &mut map);
            }
            raise_all(parents, map);
        }
        None => all.open.push((parent, map)),
    }
}
