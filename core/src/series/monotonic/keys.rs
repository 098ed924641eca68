//! The next number of a key.

use super::bucket::{Bucket, BucketEntry, ENTRIES, Label};
use super::hash::Hash;
use super::section::{Section, SectionBounds};
use crate::guard::{Guard, holds};

/// The largest number of slots for sections: the number of slots that a label can distinguish.
pub const MAX_SLOTS: usize = 1 << SLOT_BITS;

const SLOT_BITS: u32 = 20;
/// The other bits of a label distinguish the keys of one section in a bucket. Two keys with the same label share a
/// counter. A shared counter is harmless, because it only grows and gives no number twice.
const FINGERPRINT_BITS: u32 = 31 - SLOT_BITS;

/// The keys of all sections (the parts into which a hash divides a series' keys), in shared memory.
#[derive(Debug)]
pub struct Keys<'m> {
    buckets: &'m [Bucket],
    secret: u64,
}

/// A session's reference to a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionRef {
    /// The section's slot, below [`MAX_SLOTS`].
    pub slot_index: u32,
    /// The section's owner when the session found the section.
    pub owner: u64,
}

/// The next step of a sweep, which removes the entries of all sections that had no owner when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepStep {
    /// Marks the section in a slot, if the section has no owner.
    Begin(u32),
    /// Removes the entries of marked sections from a bucket.
    Bucket(usize),
    /// Ends the sweep for the section in a slot, if the section is marked.
    End(u32),
}

/// Reason why a key got no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMiss {
    /// The slot belongs to another section now.
    Gone,
    /// The section's range ends before the key's next number. The value is that range.
    Empty(SectionBounds),
}

impl<'m> Keys<'m> {
    /// Returns the keys in this memory. The secret determines the bucket of a key.
    pub const fn new(buckets: &'m [Bucket], secret: u64) -> Self {
        Self { buckets, secret }
    }

    /// Returns the number of keys for which there is room.
    pub const fn room(&self) -> usize {
        self.buckets.len() * ENTRIES
    }

    /// Returns the number of keys in memory.
    pub fn len(&self) -> usize {
        self.buckets.iter().map(Bucket::len).sum()
    }

    /// Returns true if no key is in memory.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the secret for the hashes of keys.
    pub const fn secret(&self) -> u64 {
        self.secret
    }

    /// Takes the next number of a key of a section. `sections` returns the section at a slot.
    ///
    /// # Errors
    /// [`KeyMiss`]: no number is taken.
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
            // The entry is read before the range: a taker that sees another owner's entry also sees that owner's range.
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
                // The range may have changed after the entry was read.
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
                // The number belongs to another section if the slot's owner has changed.
                let still = section.owner() == section_ref.owner || !holds(Guard::SectionHeld);
                return if still { Ok(number) } else { Err(KeyMiss::Gone) };
            }
        }
    }

    /// Goes on with the sweep for this many steps. After its last step, the next sweep begins. Only one process may call this
    /// function at a time.
    pub fn sweep<'s>(
        &self,
        next: &mut SweepStep,
        steps: usize,
        slots: u32,
        sections: &impl Fn(u32) -> Option<&'s Section>,
    ) {
        let goes = |label| sections(slot_index_of(label)).is_some_and(Section::is_in_sweep);
        for _ in 0..steps {
            *next = match *next {
                SweepStep::Begin(slot_index) if slot_index < slots => {
                    sections(slot_index).inspect(|section| section.begin_sweep());
                    SweepStep::Begin(slot_index + 1)
                }
                SweepStep::Begin(_) => SweepStep::Bucket(0),
                SweepStep::Bucket(number) => match self.buckets.get(number) {
                    Some(bucket) => {
                        // Each bucket is locked, even an empty bucket. A taker that adds a key later then sees that the
                        // section has no owner.
                        bucket.lock().sweep(&goes);
                        SweepStep::Bucket(number + 1)
                    }
                    None => SweepStep::End(0),
                },
                SweepStep::End(slot_index) if slot_index < slots => {
                    sections(slot_index).inspect(|section| section.end_sweep());
                    SweepStep::End(slot_index + 1)
                }
                SweepStep::End(_) => SweepStep::Begin(0),
            };
        }
    }

    fn locate(&self, hash: Hash, slot_index: u32) -> Option<(&'m Bucket, Label)> {
        // The upper half of the hash selects the bucket, and the lower half the key's label.
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

/// Adds a key that is not in memory, and returns its next number. Returns None if another process has added the key.
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
    // The owner is checked under the lock. A concurrent sweep then removes the new entry, or this check finds that the
    // owner is gone.
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
