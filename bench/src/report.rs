//! What a run found, and its form as markdown.

use crate::rounds::Effort;
use crate::stats::Spread;
use std::fmt::{self, Write};

const RATIOS: &str =
    "Ratios are medians over rounds, with their quartiles; see [how each is measured](../README.md).";

/// Everything a run found.
pub struct Report {
    conditions: String,
    effort: Effort,
    sections: Vec<(&'static str, Outcome)>,
}

/// What one section found.
#[derive(Default)]
pub struct Outcome {
    /// What was done, in a few sentences.
    pub method: String,
    /// The figures.
    pub tables: Vec<Table>,
    /// What they were hoped to be.
    pub goals: Vec<Goal>,
    /// The figures worth a picture.
    pub panels: Vec<Panel>,
}

/// Figures in rows; the first column names the row.
pub struct Table {
    /// The column heads.
    pub head: Vec<String>,
    /// The cells, as many a row as there are heads.
    pub rows: Vec<Vec<String>>,
}

/// A claim about the figures.
pub struct Goal {
    /// The claim.
    pub claim: &'static str,
    /// What was found.
    pub found: String,
    /// Whether it holds.
    pub verdict: Verdict,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Pass,
    /// The median says no, but not even three quarters of the rounds agree.
    Noise,
    /// It doesn't.
    Miss,
}

/// A picture: one bar for each contestant.
pub struct Panel {
    /// What is shown, with its unit.
    pub title: String,
    /// The bars, top to bottom.
    pub bars: Vec<Bar>,
}

/// One bar of a picture.
pub struct Bar {
    /// The contestant.
    pub label: String,
    /// Its length.
    pub value: f64,
    /// Whether the contestant is this extension's.
    pub ours: bool,
}

impl Verdict {
    /// Of a figure without rounds.
    pub const fn of(holds: bool) -> Self {
        if holds { Self::Pass } else { Self::Miss }
    }

    /// Whether a ratio is at most `bound`.
    pub fn at_most(ratio: Spread, bound: f64) -> Self {
        if ratio.median <= bound {
            Self::Pass
        } else if ratio.low <= bound {
            Self::Noise
        } else {
            Self::Miss
        }
    }

    /// Whether a ratio is at least `bound`.
    pub fn at_least(ratio: Spread, bound: f64) -> Self {
        if ratio.median >= bound {
            Self::Pass
        } else if ratio.high >= bound {
            Self::Noise
        } else {
            Self::Miss
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::Noise => "within noise",
            Self::Miss => "**miss**",
        })
    }
}

impl Report {
    /// A report without sections.
    pub const fn new(conditions: String, effort: Effort) -> Self {
        Self { conditions, effort, sections: Vec::new() }
    }

    /// Adds what a section found.
    pub fn add(&mut self, title: &'static str, outcome: Outcome) {
        self.sections.push((title, outcome));
    }

    /// The conditions of the run in one sentence.
    pub fn conditions(&self) -> &str {
        &self.conditions
    }

    /// All pictures.
    pub fn panels(&self) -> Vec<&Panel> {
        self.sections.iter().flat_map(|(_, outcome)| &outcome.panels).collect()
    }

    /// The whole report.
    pub fn markdown(&self) -> String {
        let head = format!("# Benchmark\n\n{}.\n{}{RATIOS}\n", self.conditions, self.effort_note());
        let goals = format!("\n## Goals\n\n{}", self.goals().markdown());
        let sections = self.sections.iter().map(|(title, outcome)| outcome.markdown(title));
        [head, goals].into_iter().chain(sections).collect()
    }

    const fn effort_note(&self) -> &'static str {
        match self.effort {
            Effort::Full => "",
            Effort::Quick => "A quick run: few rounds, wide spreads.\n",
        }
    }

    fn goals(&self) -> Table {
        let goals = self.sections.iter().flat_map(|(_, outcome)| &outcome.goals);
        Table {
            head: ["goal", "found", ""].map(str::to_owned).into(),
            rows: goals.map(|g| vec![g.claim.to_owned(), g.found.clone(), g.verdict.to_string()]).collect(),
        }
    }
}

impl Outcome {
    /// Both, one after the other.
    pub fn and(mut self, other: Self) -> Self {
        self.method = format!("{}\n\n{}", self.method, other.method);
        self.tables.extend(other.tables);
        self.goals.extend(other.goals);
        self.panels.extend(other.panels);
        self
    }

    fn markdown(&self, title: &str) -> String {
        let tables = self.tables.iter().map(|table| format!("\n{}", table.markdown()));
        format!("\n## {title}\n\n{}\n{}", self.method, tables.collect::<String>())
    }
}

impl Table {
    /// A table that begins with its heads.
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|&head| head.to_owned()).collect(), rows: Vec::new() }
    }

    fn markdown(&self) -> String {
        let columns = 0..self.head.len();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.head[column].chars().count(), 3]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = columns.map(width).collect();
        let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
        let mut text = String::new();
        for row in [&self.head, &rule].into_iter().chain(&self.rows) {
            for (cell, width) in row.iter().zip(&widths) {
                // Writing to a string cannot fail.
                let _ = write!(text, "| {cell:width$} ");
            }
            text += "|\n";
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn spread(low: f64, median: f64, high: f64) -> Spread {
        Spread { low, median, high }
    }

    #[test]
    fn a_miss_is_one_in_most_rounds() {
        assert_eq!(Verdict::at_most(spread(0.9, 1.0, 1.1), 1.0), Verdict::Pass);
        assert_eq!(Verdict::at_most(spread(0.9, 1.1, 1.2), 1.0), Verdict::Noise);
        assert_eq!(Verdict::at_most(spread(1.1, 1.2, 1.3), 1.0), Verdict::Miss);
        assert_eq!(Verdict::at_least(spread(4.0, 4.5, 5.5), 5.0), Verdict::Noise);
        assert_eq!(Verdict::at_least(spread(3.0, 3.5, 4.5), 5.0), Verdict::Miss);
    }

    #[test]
    fn tables_are_aligned() {
        let mut table = Table::new(&["key", "x"]);
        table.rows.push(vec!["snowflake".into(), "1".into()]);
        assert_eq!(table.markdown(), "| key       | x   |\n| --------- | --- |\n| snowflake | 1   |\n");
    }

    #[test]
    fn goals_come_first() {
        let mut report = Report::new("today".into(), Effort::Quick);
        let goal = Goal { claim: "fast", found: "very".into(), verdict: Verdict::Pass };
        report.add("Speed", Outcome { method: "Measured.".into(), goals: vec![goal], ..Outcome::default() });
        let text = report.markdown();
        let (goals, section) = (text.find("| fast | very  | pass"), text.find("## Speed\n\nMeasured.\n"));
        assert!(goals.is_some() && goals < section, "{text}");
    }
}
