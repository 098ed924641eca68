//! Contestants that take turns. Figures of one run are therefore comparable on a machine that is never quiet.

use crate::report::Table;
use crate::stats::{Spread, median};
use anyhow::Result;

/// Measurements: one figure, or a set of figures, for each contestant and round.
pub struct Measured<T> {
    labels: Vec<String>,
    pub of: Vec<Vec<T>>,
}

/// A contestant, with its display name.
pub trait Contestant {
    fn label(&self) -> String;
}

impl Contestant for &str {
    fn label(&self) -> String {
        (*self).to_owned()
    }
}

impl<A> Contestant for (&str, A) {
    fn label(&self) -> String {
        self.0.to_owned()
    }
}

impl<A, B> Contestant for (&str, A, B) {
    fn label(&self) -> String {
        self.0.to_owned()
    }
}

/// Measures every contestant once per round. Each round starts with another contestant, in turn. A slow minute or a place in the
/// order therefore favours no contestant.
pub fn interleave<C: Contestant, T>(
    rounds: usize,
    contestants: &[C],
    mut measure: impl FnMut(&C) -> Result<T>,
) -> Result<Measured<T>> {
    let mut of: Vec<Vec<T>> = contestants.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for round in 0..rounds {
        for turn in 0..contestants.len() {
            let whose = (round + turn) % contestants.len();
            of[whose].push(measure(&contestants[whose])?);
        }
    }
    Ok(Measured { labels: contestants.iter().map(Contestant::label).collect(), of })
}

impl<T> Measured<T> {
    /// The number of rounds.
    pub fn rounds(&self) -> usize {
        self.of.first().map_or(0, Vec::len)
    }

    /// A figure of one contestant in all rounds.
    pub fn figures(&self, whose: usize, figure: impl Fn(&T) -> f64) -> Vec<f64> {
        self.of[whose].iter().map(figure).collect()
    }

    /// The median of the figure.
    pub fn median(&self, whose: usize, figure: impl Fn(&T) -> f64) -> f64 {
        median(self.figures(whose, figure))
    }

    /// The sum of the figure.
    pub fn sum(&self, whose: usize, figure: impl Fn(&T) -> f64) -> f64 {
        self.figures(whose, figure).into_iter().sum()
    }

    /// The figure of one contestant, divided by the figure of another contestant in the same round.
    pub fn ratio(&self, whose: usize, other: usize, figure: impl Fn(&T) -> f64) -> Spread {
        Spread::of_ratios(&self.figures(whose, &figure), &self.figures(other, &figure))
    }

    /// The same measurements, with other figures made from them.
    pub fn map<U>(&self, make: impl Fn(usize, usize, &T) -> U) -> Measured<U> {
        let of = self.of.iter().enumerate().map(|(whose, rounds)| {
            rounds.iter().enumerate().map(|(round, measured)| make(whose, round, measured)).collect()
        });
        Measured { labels: self.labels.clone(), of: of.collect() }
    }

    /// A table with one row for each of these contestants, named under `head`. Each further column has a head and a cell per row.
    pub fn table<const N: usize>(
        &self,
        head: &str,
        whose: impl IntoIterator<Item = usize>,
        columns: [(&str, &dyn Fn(usize) -> String); N],
    ) -> Table {
        let heads = [head].into_iter().chain(columns.map(|(head, _)| head));
        let row = |whose: usize| {
            let cells = columns.iter().map(|(_, cell)| cell(whose));
            [self.labels[whose].clone()].into_iter().chain(cells).collect()
        };
        Table { head: heads.map(str::to_owned).collect(), rows: whose.into_iter().map(row).collect() }
    }

    /// The indexes of all contestants.
    pub fn all(&self) -> std::ops::Range<usize> {
        0..self.of.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_starts_with_the_next_contestant() -> Result<()> {
        let mut order = Vec::new();
        let measured = interleave(3, &["a", "b", "c"], |name| {
            order.push(*name);
            Ok(order.len())
        })?;
        assert_eq!(order, ["a", "b", "c", "b", "c", "a", "c", "a", "b"]);
        assert_eq!(measured.of, [[1, 6, 8], [2, 4, 9], [3, 5, 7]], "measurements stay with their contestant");
        Ok(())
    }

    #[test]
    fn a_table_has_a_row_for_each_contestant() -> Result<()> {
        let measured = interleave(3, &[("10", 10.0), ("20", 20.0)], |(_, figure)| Ok(*figure))?;
        let cell = |whose| measured.ratio(whose, 1, |figure| *figure).to_string();
        let table = measured.table("key", measured.all(), [("to 20", &cell)]);
        assert_eq!(table.rows, [["10", "0.50 (0.50..0.50)"], ["20", "1.00 (1.00..1.00)"]]);
        Ok(())
    }
}
