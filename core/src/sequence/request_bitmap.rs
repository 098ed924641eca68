//! The slots that have requests, so that a worker need not look at all slots each time.
//!
//! A bit for each. A caller sets it after the request stands; the worker takes it away where nothing is asked, and looks
//! once more then. So a request that stands without its bit is one whose caller died in between.

use crate::sync::{AtomicU64, Ordering};

/// The bits, in memory that processes share.
#[derive(Clone, Copy, Debug)]
pub struct RequestBitmap<'a> {
    words: &'a [AtomicU64],
}

/// Returns the number of words that hold the bits of so many slots.
pub const fn words(slot_count: usize) -> usize {
    slot_count.div_ceil(BITS)
}

const BITS: usize = u64::BITS as usize;

impl<'a> RequestBitmap<'a> {
    /// These bits, as many as [`words`] says.
    pub const fn new(words: &'a [AtomicU64]) -> Self {
        Self { words }
    }

    /// Notes that something is asked there, once it is.
    pub fn record(&self, slot_index: usize) {
        if let Some(word) = self.words.get(slot_index / BITS) {
            word.fetch_or(1 << (slot_index % BITS), Ordering::AcqRel);
        }
    }

    /// The places where something is asked, as `is_asked` tells, in their order.
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

    /// Takes the bit away, unless something was asked at the same time.
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
