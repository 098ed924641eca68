//! A tag that wants ids of a registry.

use super::job::Job;
use super::slot::TagSlot;
use super::tables::TransactionError;
use crate::registry::error::RegistryError;
use crate::sequence::reservation::Outcome;

/// A tag that wants ids, while the registries are asked one after the other.
pub struct Errand<'j, 's, S> {
    pub job: &'j Job<'s, S>,
    /// The tag, in letters that all servers know.
    pub tag: String,
    /// Number of registries that have said that they don't know the tag, or have no more ids of it; and the last such answer.
    pub denials: usize,
    pub denial: Option<Outcome>,
}

/// Reason why nothing was reserved.
pub enum ErrandError {
    /// The registry gave no response.
    Away(RegistryError),
    /// What it gave could not be noted here.
    Here(TransactionError),
}

impl ErrandError {
    /// Returns whether something is locked here.
    pub fn is_locked_here(&self) -> bool {
        matches!(self, Self::Here(failed) if failed.is_lock_timeout)
    }

    /// Returns whether rows are locked there.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Away(error) if error.is_conflict())
    }

    /// Returns whether it concerns one tag, and not the registry.
    pub fn is_of_tag(&self) -> bool {
        matches!(self, Self::Away(error) if error.is_of_tag())
    }
}

impl<S: TagSlot> Errand<'_, '_, S> {
    /// Takes an answer that there are no ids.
    pub fn deny(&mut self, denial: Outcome) {
        self.denials += 1;
        self.denial = Some(denial);
    }

    /// Returns what all registries say, if each has said that there are no ids.
    pub fn denied_by(&self, registries: usize) -> Option<&Outcome> {
        self.denial.as_ref().filter(|_| self.denials == registries)
    }
}
