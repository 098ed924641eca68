//! In which section a key is, and where it is in memory.

use crate::series::key::Key;

/// The place of a key in memory. A secret of the server's start keeps anybody from choosing keys that collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(pub u64);

impl Hash {
    /// The hash of a key of a series.
    pub fn of(secret: u64, series: i64, key: &Key) -> Self {
        Self(digest(secret ^ series.cast_unsigned().wrapping_mul(ODD), key))
    }
}

/// In which of so many sections a key is, from 0. It is so for ever, and on every server: were it another one, the key's numbers
/// would come again. So a text is to be in UTF-8, whatever its database has.
pub fn section_of(key: &Key, sections: u16) -> u16 {
    let wide = u128::from(digest(0, key)) * u128::from(sections);
    u16::try_from(wide >> u64::BITS).unwrap_or_default()
}

/// The fraction of the golden ratio.
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

/// No two words give the same, whatever the state.
fn mixed(state: u64, word: u64) -> u64 {
    finished(state ^ word).wrapping_add(state.rotate_left(23))
}

fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    u64::try_from((product >> u64::BITS) ^ (product & MASK)).unwrap_or_default()
}

/// The last step of splitmix64.
const fn finished(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
