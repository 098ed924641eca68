//! As much of what is found as is shown.

use super::finding::{Finding, Sort};

/// The findings, no more of each sort than may be.
#[derive(Clone, Debug)]
pub struct Listing {
    most: usize,
    listed: Vec<Finding>,
    counts: [u64; Sort::ALL.len()],
}

impl Listing {
    /// None yet; of each sort there will be no more than this.
    pub fn new(most: usize) -> Self {
        Self { most, listed: Vec::new(), counts: [0; Sort::ALL.len()] }
    }

    /// Adds one, or only counts it.
    pub fn add(&mut self, finding: Finding) {
        let count = &mut self.counts[finding.sort() as usize];
        if usize::try_from(*count).is_ok_and(|count| count < self.most) {
            self.listed.push(finding);
        }
        *count += 1;
    }

    /// Counts one that is listed no more, without making it; false where it is to be added.
    pub fn is_full_of(&mut self, sort: Sort) -> bool {
        let count = &mut self.counts[sort as usize];
        let is_full = usize::try_from(*count).map_or(true, |count| count >= self.most);
        *count += u64::from(is_full);
        is_full
    }

    /// All of them, and how many are not listed.
    pub fn end(mut self) -> Vec<Finding> {
        let most = u64::try_from(self.most).unwrap_or(u64::MAX);
        for sort in Sort::ALL {
            let unlisted = self.counts[sort as usize].saturating_sub(most);
            if unlisted > 0 {
                self.listed.push(Finding::Unlisted { of: sort, findings: unlisted });
            }
        }
        self.listed
    }
}
