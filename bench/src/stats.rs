//! Middle and spread of repeated measurements.

use std::fmt;

/// The quartiles of a set of measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// A quarter of the measurements lies below.
    pub low: f64,
    /// Half of them.
    pub median: f64,
    /// A quarter lies above.
    pub high: f64,
}

impl Spread {
    /// The quartiles of `values`; not a number where there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Self { low: quantile(&sorted, 0.25), median: quantile(&sorted, 0.5), high: quantile(&sorted, 0.75) }
    }

    /// The quartiles of the ratios of measurements taken in the same rounds.
    pub fn of_ratios(upper: &[f64], lower: &[f64]) -> Self {
        Self::of(upper.iter().zip(lower).map(|(upper, lower)| upper / lower))
    }
}

/// The median with its quartiles: `1.02 (0.98..1.05)`, with two decimals unless told otherwise.
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

/// A count to reckon with.
#[allow(clippy::cast_precision_loss, reason = "counts here are far below 2^53")]
pub fn float(count: i64) -> f64 {
    count as f64
}

/// The value below which a share of the sorted values lies, between two neighbours in proportion.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places in a short list"
)]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = last as f64 * share;
    let (below, part) = (place as usize, place.fract());
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_do_not_depend_on_order() {
        let spread = Spread::of([5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(spread, Spread { low: 2.0, median: 3.0, high: 4.0 });
    }

    #[test]
    fn quartiles_of_an_even_count_lie_between_neighbours() {
        let spread = Spread::of([1.0, 2.0, 3.0, 4.0]);
        assert_eq!(spread, Spread { low: 1.75, median: 2.5, high: 3.25 });
    }

    #[test]
    fn one_value_is_its_own_spread() {
        assert_eq!(Spread::of([7.0]), Spread { low: 7.0, median: 7.0, high: 7.0 });
    }

    #[test]
    fn no_value_has_no_median() {
        assert!(median([]).is_nan());
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // The second round was slow for both: its ratio is as good as any.
        let spread = Spread::of_ratios(&[2.0, 20.0, 2.0], &[4.0, 40.0, 4.0]);
        assert_eq!(spread, Spread { low: 0.5, median: 0.5, high: 0.5 });
    }

    #[test]
    fn an_outlier_does_not_move_the_median() {
        assert!((median([1.0, 1.0, 1.0, 1.0, 1_000.0]) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_spread_is_shown_with_its_quartiles() {
        let spread = Spread::of([1.0, 2.0, 3.0]);
        assert_eq!(spread.to_string(), "2.00 (1.50..2.50)");
        assert_eq!(format!("{spread:.1}"), "2.0 (1.5..2.5)");
    }
}
