//! What every list of ids must be.

use anyhow::{Result, bail};

/// No id is in it twice.
///
/// # Errors
/// The first id that is.
pub fn unique(mut ids: Vec<i64>) -> Result<()> {
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => bail!("id {} was issued twice, among {} ids", pair[0], ids.len()),
        None => Ok(()),
    }
}

/// Each is larger than the one before.
///
/// # Errors
/// The first that is not.
pub fn growing(ids: &[i64]) -> Result<()> {
    match ids.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => bail!("id {} came after {}", pair[1], pair[0]),
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
    }

    #[test]
    fn ids_that_stand_still_do_not_grow() {
        assert!(growing(&[1, 2, 3]).is_ok());
        assert!(growing(&[1, 2, 2]).is_err());
        assert!(growing(&[2, 1]).is_err());
    }
}
