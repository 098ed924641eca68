//! A short text in shared memory.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// A text of at most `WORDS` words of eight bytes; a longer text is cut off. Only one process may write at a time.
pub struct SharedText<const WORDS: usize> {
    /// The version of the text; odd while the text is being written.
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
    /// Returns the version, a number that changes with the text.
    pub fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    /// Writes the text if it differs. The caller ensures that only one process writes at a time.
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

    /// Returns the version and the text.
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
