//! How many numbers of a key are reserved ahead of demand.

use super::host::Definition;
use std::time::Duration;

/// What lasted less was too few,
const SHORT: Duration = Duration::from_secs(1);
/// and what lasted longer too many.
const LONG: Duration = Duration::from_mins(1);

/// How many are reserved ahead, after so many so long ago; 0: none yet.
pub(super) fn next(definition: &Definition, step: u32, ago: Duration) -> u32 {
    let max = definition.max_step.max(1);
    let min = definition.step.clamp(1, max);
    let step = match step {
        0 => min,
        _ if ago < SHORT => step.saturating_mul(2),
        _ if ago > LONG => step / 2,
        _ => step,
    };
    step.clamp(min, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_demand_within_its_bounds() {
        let definition = Definition { start: 1, max_value: 9, step: 10, max_step: 35 };
        let after = |step, seconds| next(&definition, step, Duration::from_secs(seconds));
        assert_eq!((after(0, 0), after(10, 0), after(20, 0)), (10, 20, 35));
        assert_eq!((after(20, 1), after(20, 60), after(20, 61), after(10, 61)), (20, 20, 10, 10));
        let narrow = Definition { step: 0, max_step: 0, ..definition };
        assert_eq!(next(&narrow, 0, SHORT), 1);
    }
}
