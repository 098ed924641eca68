//! The median and spread of repeated measurements.

use std::fmt;
use std::iter::zip;

/// The quartiles of a set of measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// A quarter of the measurements is below this value.
    pub low: f64,
    pub median: f64,
    /// A quarter of the measurements is above this value.
    pub high: f64,
}

impl Spread {
    /// The quartiles of `values`; not a number if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Self { low: quartile(&sorted, 1), median: quartile(&sorted, 2), high: quartile(&sorted, 3) }
    }

    /// The quartiles of the ratios of measurements taken in the same rounds.
    pub fn of_ratios(upper: &[f64], lower: &[f64]) -> Self {
        Self::of(zip(upper, lower).map(|(upper, lower)| upper / lower))
    }
}

/// The median with its quartiles: `1.02 (0.98..1.05)`, with two decimals unless the format says otherwise.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(2);
        write!(f, "{:.decimals$} ({:.decimals$}..{:.decimals$})", self.median, self.low, self.high)
    }
}

/// The median of `values`.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(values).median
}

/// The value below which this number of quarters of the sorted values lies, interpolated between two neighbours.
fn quartile(sorted: &[f64], quarters: usize) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let (below, part) = (last * quarters / 4, [0.0, 0.25, 0.5, 0.75][last * quarters % 4]);
    sorted[below] + (sorted[(below + 1).min(last)] - sorted[below]) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_neighbours_in_whatever_order() {
        assert_eq!(Spread::of([5.0, 1.0, 4.0, 2.0, 3.0]), Spread { low: 2.0, median: 3.0, high: 4.0 });
        assert_eq!(Spread::of([1.0, 2.0, 3.0, 4.0]), Spread { low: 1.75, median: 2.5, high: 3.25 });
        assert_eq!(Spread::of([7.0]), Spread { low: 7.0, median: 7.0, high: 7.0 });
        assert!(median([]).is_nan());
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // The second round is slow for both contestants, so its ratio is as good as any other.
        let spread = Spread::of_ratios(&[2.0, 20.0, 2.0], &[4.0, 40.0, 4.0]);
        assert_eq!(spread, Spread { low: 0.5, median: 0.5, high: 0.5 });
    }

    #[test]
    fn a_spread_is_shown_with_its_quartiles() {
        let spread = Spread::of([1.0, 2.0, 3.0]);
        assert_eq!(
            (spread.to_string(), format!("{spread:.1}")),
            ("2.00 (1.50..2.50)".into(), "2.0 (1.5..2.5)".into())
        );
    }
}
