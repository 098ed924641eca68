//! Taking the next number of a key.

use super::bucket::{Bucket, BucketEntry, ENTRIES, Label};
use super::hash::Hash;
use super::section::{Section, SectionBounds};
use crate::guard::{Guard, holds};

/// Number of slots of sections that can be told apart.
pub const MAX_SLOTS: usize = 1 << SLOT_BITS;

const SLOT_BITS: u32 = 20;
/// The rest of a label tells the keys of a bucket apart that are of one section. Two that have the same share a
/// counter: it grows, and gives no number twice.
const FINGERPRINT_BITS: u32 = 31 - SLOT_BITS;

/// The keys of all sections, in this memory.
#[derive(Debug)]
pub struct Keys<'m> {
    buckets: &'m [Bucket],
    secret: u64,
}

/// A section as a session knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionRef {
    /// Its slot, below [`MAX_SLOTS`].
    pub slot_index: u32,
    /// Whose it was when the session found it.
    pub owner: u64,
}

/// Reason why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMiss {
    /// The section is another's by now.
    Gone,
    /// Its range, which was this one, ends before the key's next number.
    Empty(SectionBounds),
}

impl<'m> Keys<'m> {
    /// The keys in this memory. The secret says where a key is.
    pub const fn new(buckets: &'m [Bucket], secret: u64) -> Self {
        Self { buckets, secret }
    }

    /// Returns how many there is room for.
    pub const fn room(&self) -> usize {
        self.buckets.len() * ENTRIES
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.buckets.iter().map(Bucket::len).sum()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns what keys are found by.
    pub const fn secret(&self) -> u64 {
        self.secret
    }

    /// Takes the next number of a key of a section. `sections` are those at all slots.
    ///
    /// # Errors
    /// [`KeyMiss`], and nothing is taken.
    #[inline]
    pub fn take<'s>(
        &self,
        section: &Section,
        section_ref: SectionRef,
        hash: Hash,
        sections: &impl Fn(u32) -> Option<&'s Section>,
    ) -> Result<i64, KeyMiss> {
        let Some((bucket, label)) = self.locate(hash, section_ref.slot_index) else {
            return Err(KeyMiss::Empty(section.bounds()));
        };
        loop {
            // First the entry: who sees one of another owner sees that owner's bounds.
            let found = bucket.find(label);
            let bounds = section.bounds();
            let Some((at, entry)) = found else {
                match come(bucket, section, section_ref, label, sections)? {
                    Some(number) => return Ok(number),
                    None => continue,
                }
            };
            let next = entry.offset().checked_add(1).map(|next| next.max(bounds.low()));
            let Some(next) = next.filter(|next| *next <= bounds.high()) else {
                // The bounds that were seen may be a neighbouring moment's.
                if section.bounds() != bounds {
                    continue;
                }
                return Err(if section.owner() == section_ref.owner {
                    KeyMiss::Empty(bounds)
                } else {
                    KeyMiss::Gone
                });
            };
            let number = section.number(next);
            let moved = BucketEntry::new(next, label).used();
            if entry.swap(at, moved) {
                section.touch();
                // The number is none of the section's if that changed hands.
                let still = section.owner() == section_ref.owner || !holds(Guard::SectionHeld);
                return if still { Ok(number) } else { Err(KeyMiss::Gone) };
            }
        }
    }

    /// Takes all entries of the sections away that were left; gives how many sections that were. For one process at a time.
    pub fn sweep(&self, sections: &[&Section]) -> usize {
        let left: Vec<bool> = sections.iter().map(|section| section.is_left()).collect();
        let goes = |label: Label| left.get(slot_index_of(label) as usize) == Some(&true);
        for bucket in self.buckets {
            // Also where there is none to be seen: who comes later must see that the section was left.
            bucket.lock().sweep(&goes);
        }
        let swept = sections.iter().zip(&left).filter(|(_, left)| **left);
        swept.map(|(section, _)| section.swept()).count()
    }

    fn locate(&self, hash: Hash, slot_index: u32) -> Option<(&'m Bucket, Label)> {
        // The upper half says which bucket, the lower one which of its keys.
        let count = u64::try_from(self.buckets.len()).ok()?;
        let at = ((hash.0 >> u32::BITS) * count) >> u32::BITS;
        let bucket = self.buckets.get(usize::try_from(at).ok()?)?;
        let fingerprints = (1 << FINGERPRINT_BITS) - 1;
        let fingerprint = u32::try_from((hash.0 & u64::from(u32::MAX)) % fingerprints).ok()? + 1;
        Some((bucket, Label(fingerprint << SLOT_BITS | slot_index)))
    }
}

const fn slot_index_of(label: Label) -> u32 {
    label.0 & ((1 << SLOT_BITS) - 1)
}

/// The first number of a key that is not in memory; None where it is by now.
#[cold]
#[inline(never)]
fn come<'s>(
    bucket: &Bucket,
    section: &Section,
    section_ref: SectionRef,
    label: Label,
    sections: &impl Fn(u32) -> Option<&'s Section>,
) -> Result<Option<i64>, KeyMiss> {
    let mut locked = bucket.lock();
    // With the lock held: a sweep either takes away what is put in now, or is seen here to have begun.
    if section.owner() != section_ref.owner && holds(Guard::SectionSeen) {
        return Err(KeyMiss::Gone);
    }
    if bucket.find(label).is_some() && holds(Guard::KeyOnce) {
        return Ok(None);
    }
    let bounds = section.bounds();
    let next = (section.base() + 1).max(bounds.low().into());
    let Some(next) = u32::try_from(next).ok().filter(|next| *next <= bounds.high()) else {
        return Err(KeyMiss::Empty(bounds));
    };
    let leave = |entry: BucketEntry| {
        if let Some(section) = sections(slot_index_of(entry.label())).filter(|_| holds(Guard::BaseFirst)) {
            section.raise_base(entry.offset());
        }
    };
    locked.put(BucketEntry::new(next, label), leave);
    section.touch();
    Ok(Some(section.number(next)))
}
