//! The hash that spreads numbers over ids and worker ids.

/// Mixes the bits of a number: the finaliser of `SplitMix64` (Steele, Lea, Flood 2014).
pub(crate) const fn scatter(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
