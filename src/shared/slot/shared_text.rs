//! A short text in shared memory.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// A text of so many words of eight bytes that one process at a time writes and any number read. What is longer is cut.
pub struct SharedText<const WORDS: usize> {
    /// Odd while it is being written.
    version: AtomicU64,
    length: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Default for SharedText<WORDS> {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self { version: zero(), length: zero(), words: std::array::from_fn(|_| zero()) }
    }
}

impl<const WORDS: usize> SharedText<WORDS> {
    /// Changes with the text.
    pub fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    /// Writes the text, if it is another one. One process at a time, which the callers see to.
    pub fn write(&self, text: &str) {
        if self.read().1 == text {
            return;
        }
        self.version.fetch_add(1, AcqRel);
        for (word, bytes) in self.words.iter().zip(text.as_bytes().chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Release);
        }
        self.length.store(text.len().min(8 * WORDS) as u64, Release);
        self.version.fetch_add(1, Release);
    }

    /// The version and the text.
    pub fn read(&self) -> (u64, String) {
        loop {
            let version = self.version();
            let bytes: Vec<u8> =
                self.words.iter().flat_map(|word| word.load(Acquire).to_ne_bytes()).collect();
            let length = usize::try_from(self.length.load(Acquire)).unwrap_or(0).min(bytes.len());
            if version.is_multiple_of(2) && self.version() == version {
                return (version, String::from_utf8_lossy(&bytes[..length]).into_owned());
            }
            std::hint::spin_loop();
        }
    }
}
