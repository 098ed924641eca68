//! A bitmap of slots with requests, so that a worker need not read all slots.
//!
//! A caller makes a request, and then sets the bit of the request's slot. The worker clears the bit if the slot has no
//! request, and then checks the slot again. A request without a bit therefore means that the caller died before setting
//! the bit.

use crate::sync::{AtomicU64, Ordering};

/// The bits, in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct RequestBitmap<'a> {
    words: &'a [AtomicU64],
}

/// Returns the number of words that are needed for the bits of `slot_count` slots.
pub const fn words(slot_count: usize) -> usize {
    slot_count.div_ceil(BITS)
}

const BITS: usize = u64::BITS as usize;

impl<'a> RequestBitmap<'a> {
    /// Returns a bitmap in `words`, whose length [`words()`] gives.
    pub const fn new(words: &'a [AtomicU64]) -> Self {
        Self { words }
    }

    /// Sets a slot's bit. The caller must have made the request before this call.
    pub fn record(&self, slot_index: usize) {
        if let Some(word) = self.words.get(slot_index / BITS) {
            word.fetch_or(1 << (slot_index % BITS), Ordering::AcqRel);
        }
    }

    /// Returns the slots with a request, in ascending order. `is_asked` checks a slot.
    pub fn slots_with_requests(&self, is_asked: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut found = Vec::new();
        for (number, word) in self.words.iter().enumerate() {
            let mut bits = word.load(Ordering::Acquire);
            while bits != 0 {
                let slot_index = number * BITS + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if is_asked(slot_index) || self.is_asked_again(slot_index, &is_asked) {
                    found.push(slot_index);
                }
            }
        }
        found
    }

    /// Clears a slot's bit, and sets it again if a request came at the same time. Returns true if there is a request.
    fn is_asked_again(&self, slot_index: usize, is_asked: impl Fn(usize) -> bool) -> bool {
        if let Some(word) = self.words.get(slot_index / BITS) {
            word.fetch_and(!(1 << (slot_index % BITS)), Ordering::AcqRel);
        }
        let again = is_asked(slot_index);
        if again {
            self.record(slot_index);
        }
        again
    }
}
