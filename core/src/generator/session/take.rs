//! Taking positions where a layout has its ids from.

use crate::clock::Clock;
use crate::generator::drift::GeneratorError;
use crate::generator::rules::Rules;
use crate::generator::snowflake::{Generator, Taken};
use crate::guard::{Guard, holds};
use crate::ids::shard::Shard;
use crate::server::issuer::Source;
use std::num::NonZeroU32;

/// Takes positions of a layout. One whose place has become another's in between gives nothing.
///
/// # Errors
/// [`GeneratorError`]; [`GeneratorError::Unreserved`] where the layout has to be given a place again.
#[inline(always)]
#[allow(clippy::inline_always, reason = "of the server's own layout it is but the generator's own take")]
pub fn take(
    source: &impl Source,
    rules: &Rules,
    clock: &impl Clock,
    want: NonZeroU32,
) -> Result<Taken, GeneratorError> {
    take_by(source, |generator| generator.take(source.layout(), rules, clock, want))
}

/// The same of ids of one shard: the first is its.
pub fn take_fitting(
    source: &impl Source,
    rules: &Rules,
    clock: &impl Clock,
    want: NonZeroU32,
    only: &Shard,
) -> Result<Taken, GeneratorError> {
    take_by(source, |generator| generator.take_fitting(source.layout(), rules, clock, want, only))
}

/// The same, however it is taken from the generator.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as above")]
fn take_by<S: Source>(
    source: &S,
    take: impl FnOnce(&Generator) -> Result<Taken, GeneratorError>,
) -> Result<Taken, GeneratorError> {
    if !source.is_held() {
        return Err(GeneratorError::Unreserved);
    }
    let taken = take(source.generator())?;
    // The generator may have become another layout's before it was taken from.
    if source.is_held() || !holds(Guard::PlaceHeld) { Ok(taken) } else { Err(GeneratorError::Unreserved) }
}
