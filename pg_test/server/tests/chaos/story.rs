//! The record of actions, with their times.

use std::fmt::{Display, Formatter, Result};
use std::time::Instant;

/// Every action, with the time since the beginning.
#[derive(Debug)]
pub struct Story {
    pub start: Instant,
    lines: Vec<String>,
    told: bool,
}

impl Story {
    /// An empty record. `told`: each line is printed as it is recorded.
    pub fn new(told: bool) -> Self {
        Self { start: Instant::now(), lines: Vec::new(), told }
    }

    pub fn tell(&mut self, what: impl Display) {
        let line = format!("{:9.3} {what}", self.start.elapsed().as_secs_f64());
        if self.told {
            println!("{line}");
        }
        self.lines.push(line);
    }
}

impl Display for Story {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
