//! The section of a key, and the key's position in memory.

use crate::series::key::Key;

/// The hash that determines a key's position in memory. The secret is drawn at the server's start, so users cannot choose
/// keys whose hashes collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(pub u64);

impl Hash {
    /// Returns the hash of a key of a series.
    pub fn of(secret: u64, series: i64, key: &Key) -> Self {
        Self(digest(secret ^ series.cast_unsigned().wrapping_mul(ODD), key))
    }
}

/// Returns the section of a key, from 0. The result must be the same forever and on every server, because a key's numbers
/// would repeat in another section. A text key must therefore be in UTF-8, even if the database has another encoding.
pub fn section_of(key: &Key, sections: u16) -> u16 {
    let wide = u128::from(digest(0, key)) * u128::from(sections);
    u16::try_from(wide >> u64::BITS).unwrap_or_default()
}

/// The fractional part of the golden ratio, times 2^64.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
const OTHER: u64 = 0xd6e8_feb8_6659_fd93;

fn digest(seed: u64, key: &Key) -> u64 {
    let begun = fold(seed ^ ODD, OTHER);
    let state = match key {
        Key::Bigint(number) => mixed(begun, number.cast_unsigned()),
        Key::Uuid(uuid) => {
            let [high, low] =
                [uuid >> u64::BITS, *uuid].map(|half| u64::try_from(half & MASK).unwrap_or_default());
            mixed(mixed(begun, high), low)
        }
        Key::Text(bytes) => {
            let (words, rest) = bytes.as_chunks::<8>();
            let state = words.iter().fold(begun, |state, word| mixed(state, u64::from_le_bytes(*word)));
            let mut last = [0; 8];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            let state = mixed(state, u64::from_le_bytes(last));
            mixed(state, u64::try_from(bytes.len()).unwrap_or_default())
        }
    };
    finished(state ^ seed)
}

const MASK: u128 = (1 << u64::BITS) - 1;

/// Mixes a word into a state. Different words give different results for the same state.
fn mixed(state: u64, word: u64) -> u64 {
    finished(state ^ word).wrapping_add(state.rotate_left(23))
}

fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    u64::try_from((product >> u64::BITS) ^ (product & MASK)).unwrap_or_default()
}

/// The last step of `SplitMix64`.
const fn finished(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
