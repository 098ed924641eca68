//! Checks for lists of ids.

use anyhow::{Result, bail};
use std::panic::Location;

/// The two indexes of the smallest repeated id.
pub fn twice(ids: &[i64]) -> Option<[usize; 2]> {
    let mut places: Vec<_> = (0..ids.len()).collect();
    places.sort_unstable_by_key(|place| (ids[*place], *place));
    places.windows(2).find(|pair| ids[pair[0]] == ids[pair[1]]).map(|pair| [pair[0], pair[1]])
}

/// Checks that no id is repeated.
///
/// # Errors
/// An id is repeated; the error has its indexes.
#[track_caller]
#[allow(clippy::needless_pass_by_value, reason = "so that a caller's list can be made on the spot")]
pub fn unique(ids: Vec<i64>) -> Result<()> {
    let place = Location::caller();
    match twice(&ids) {
        Some([one, other]) => {
            bail!("{place}: id {} was issued twice: as id {one} and as id {other} of {}", ids[one], ids.len())
        }
        None => Ok(()),
    }
}

/// Checks that each id is larger than the one before.
#[track_caller]
pub fn growing(ids: &[i64]) -> Result<()> {
    let place = Location::caller();
    match ids.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => bail!("{place}: id {} came after {}", pair[1], pair[0]),
        None => Ok(()),
    }
}

/// Checks that the ids are the numbers from 1 without gaps, in any order.
#[track_caller]
pub fn dense(mut ids: Vec<i64>) -> Result<()> {
    let place = Location::caller();
    ids.sort_unstable();
    match (1..).zip(&ids).find(|(expected, id)| expected != *id) {
        Some((expected, id)) => bail!("{place}: id {id} where {expected} should be, among {} ids", ids.len()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_id_is_found_wherever_it_stands() {
        assert!(unique(vec![3, 1, 2]).is_ok());
        assert!(unique(vec![3, 1, 2, 3]).is_err());
        assert_eq!(twice(&[3, 1, 2, 1, 3]), Some([1, 3]));
    }

    #[test]
    fn ids_that_stand_still_do_not_grow() {
        assert!(growing(&[1, 2, 3]).is_ok());
        assert!(growing(&[1, 2, 2]).is_err());
        assert!(growing(&[2, 1]).is_err());
    }

    #[test]
    fn dense_ids_begin_at_1_and_leave_nothing_out() {
        assert!(dense(vec![2, 1, 3]).is_ok());
        assert!(dense(vec![2, 3, 4]).is_err());
        assert!(dense(vec![1, 2, 4]).is_err());
        assert!(dense(vec![1, 2, 2]).is_err());
    }
}
