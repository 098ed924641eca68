//! The places of a series' sections.

use crate::shared::slot::Slot;
use snowflake_ids_core::series::monotonic::Claim;
use std::cell::RefCell;

/// Where the sections of a series are, as far as the session found them.
#[derive(Default)]
pub struct Places(RefCell<Vec<Option<(&'static Slot, Claim)>>>);

impl Places {
    /// Returns where a section is.
    pub fn find(&self, number: u16) -> Option<(&'static Slot, Claim)> {
        *self.0.borrow().get(usize::from(number))?
    }

    /// Notes where one is.
    pub fn note(&self, number: u16, slot: &'static Slot, claim: Claim) {
        let (mut all, at) = (self.0.borrow_mut(), usize::from(number));
        if all.len() <= at {
            all.resize(at + 1, None);
        }
        if let Some(place) = all.get_mut(at) {
            *place = Some((slot, claim));
        }
    }
}
