//! The results of a run, and their form as markdown.

use crate::effort::Effort;
use crate::stats::Spread;
use std::fmt;
use std::iter::{once, zip};

/// All results of a run.
pub struct Report {
    /// The conditions of the run in one sentence.
    pub conditions: String,
    pub effort: Effort,
    /// The outcome of each section, by its title.
    pub sections: Vec<(&'static str, Outcome)>,
}

/// The outcome of one section.
#[derive(Default)]
pub struct Outcome {
    /// The method, in a few sentences.
    pub method: String,
    pub tables: Vec<Table>,
    pub goals: Vec<Goal>,
}

/// Figures in rows. Each row has one cell per column head, and the row's first cell names the row.
#[derive(Default)]
pub struct Table {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// A claim about the figures, what was found, and whether the claim holds.
pub struct Goal {
    claim: &'static str,
    found: String,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// The median contradicts the claim, but fewer than three quarters of the rounds do.
    Noise,
    Miss,
}

impl Verdict {
    const fn of(median: bool, better_quartile: bool) -> Self {
        match (median, better_quartile) {
            (true, _) => Self::Pass,
            (false, true) => Self::Noise,
            (false, false) => Self::Miss,
        }
    }
}

impl Goal {
    /// A goal for a figure that was not measured in rounds.
    pub fn holds(claim: &'static str, found: String, holds: bool) -> Self {
        Self { claim, found, verdict: Verdict::of(holds, false) }
    }

    /// The goal that a ratio is at most `bound`. `of` names the ratio, after the figure that was found.
    pub fn at_most(claim: &'static str, ratio: Spread, bound: f64, of: &str) -> Self {
        let verdict = Verdict::of(ratio.median <= bound, ratio.low <= bound);
        Self { claim, found: format!("{ratio}{of}"), verdict }
    }

    /// The goal that a ratio is at least `bound`.
    pub fn at_least(claim: &'static str, ratio: Spread, bound: f64, of: &str) -> Self {
        let verdict = Verdict::of(ratio.median >= bound, ratio.high >= bound);
        Self { claim, found: format!("{ratio}{of}"), verdict }
    }
}

impl Report {
    /// The whole report as markdown.
    pub fn markdown(&self) -> String {
        let quick = self.effort.pick("", "A quick run: few rounds, wide spreads.\n");
        let goals = self.sections.iter().flat_map(|(_, outcome)| &outcome.goals).map(Goal::row);
        let goals = Table { head: ["goal", "found", ""].map(str::to_owned).into(), rows: goals.collect() };
        let sections = self.sections.iter().map(|(title, outcome)| outcome.markdown(title));
        format!(
            "# Benchmark\n\n{}.\n{quick}Ratios are medians over rounds, with their quartiles; see [how each is \
             measured](../README.md).\n\n## Goals\n\n{goals}{}",
            self.conditions,
            sections.collect::<String>()
        )
    }
}

impl Table {
    /// The rows of this table, followed by the rows of another table with the same heads.
    pub fn followed_by(mut self, other: Self) -> Self {
        self.rows.extend(other.rows);
        self
    }
}

impl Goal {
    fn row(&self) -> Vec<String> {
        let verdict = match self.verdict {
            Verdict::Pass => "pass",
            Verdict::Noise => "within noise",
            Verdict::Miss => "**miss**",
        };
        vec![self.claim.to_owned(), self.found.clone(), verdict.to_owned()]
    }
}

impl Outcome {
    /// Joins two outcomes, one after the other.
    pub fn and(mut self, other: Self) -> Self {
        self.method = format!("{}\n\n{}", self.method, other.method);
        self.tables.extend(other.tables);
        self.goals.extend(other.goals);
        self
    }

    fn markdown(&self, title: &str) -> String {
        let tables = self.tables.iter().map(|table| format!("\n{table}"));
        format!("\n## {title}\n\n{}\n{}", self.method, tables.collect::<String>())
    }
}

/// Writes the table as markdown, with its columns aligned.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || once(&self.head).chain(&self.rows);
        let width = |column: usize| lines().map(|row| row[column].chars().count()).fold(3, usize::max);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
        for row in [&self.head, &rule].into_iter().chain(&self.rows) {
            for (cell, width) in zip(row, &widths) {
                write!(f, "| {cell:width$} ")?;
            }
            f.write_str("|\n")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_is_one_in_most_rounds() {
        let spread = |low, median, high| Spread { low, median, high };
        let at_most = |ratio| Goal::at_most("", ratio, 1.0, "").verdict;
        assert_eq!(at_most(spread(0.9, 1.0, 1.1)), Verdict::Pass);
        assert_eq!(at_most(spread(0.9, 1.1, 1.2)), Verdict::Noise);
        assert_eq!(at_most(spread(1.1, 1.2, 1.3)), Verdict::Miss);
        assert_eq!(Goal::at_least("", spread(4.0, 4.5, 5.5), 5.0, "").verdict, Verdict::Noise);
        assert_eq!(Goal::at_least("", spread(3.0, 3.5, 4.5), 5.0, "").verdict, Verdict::Miss);
    }

    #[test]
    fn goals_come_first_and_tables_are_aligned() {
        let goals = vec![Goal::holds("fast", "very".into(), true)];
        let rows = vec![vec!["snowflake".into(), "1".into()]];
        let tables = vec![Table { head: vec!["key".into(), "x".into()], rows }];
        let speed = Outcome { method: "Measured.".into(), goals, tables };
        let text =
            Report { conditions: "today".into(), effort: Effort::Quick, sections: vec![("Speed", speed)] }
                .markdown();
        let table = "| key       | x   |\n| --------- | --- |\n| snowflake | 1   |\n";
        let (goals, section) = (text.find("| fast | very  | pass"), text.find("## Speed\n\nMeasured.\n"));
        assert!(goals.is_some() && goals < section && text.ends_with(table), "{text}");
    }
}
