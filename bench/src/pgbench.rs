//! Many sessions at once, by Postgres's own pgbench.

use crate::server::cores;
use crate::session::DATABASE;
use anyhow::{Context, Result, bail};
use snowflake_ids_server_tests::Server;
use std::io::Write;
use std::process::Stdio;

/// One pgbench run.
#[derive(Clone, Debug)]
pub struct Load {
    /// Sessions, each of which runs the statement over and over, prepared.
    pub sessions: usize,
    /// The statement.
    pub statement: String,
    /// Settings of all sessions.
    pub settings: Vec<(&'static str, String)>,
    /// When to stop.
    pub stop: Stop,
}

/// When a pgbench run is over.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// After so many seconds.
    Seconds(u32),
    /// After so many statements of each session.
    Statements(usize),
}

/// What pgbench counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Statements in all.
    pub statements: f64,
    /// Statements a second, connecting left out.
    pub per_second: f64,
}

impl Load {
    /// Runs it to its end.
    pub fn run(&self, server: &Server) -> Result<Throughput> {
        let (flag, amount) = match self.stop {
            Stop::Seconds(seconds) => ("-T", seconds.to_string()),
            Stop::Statements(statements) => ("-t", statements.to_string()),
        };
        let threads = self.sessions.min(cores());
        let mut pgbench = server
            .command("pgbench")
            .args(["--no-vacuum", "--protocol", "prepared", "--file", "-", flag, &amount])
            .args(["-c", &self.sessions.to_string(), "-j", &threads.to_string(), DATABASE])
            .env("PGOPTIONS", self.options())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("can't run pgbench; it comes with the server (on Debian: postgresql-contrib)")?;
        let mut script = pgbench.stdin.take().context("pgbench has no standard input")?;
        writeln!(script, "{};", self.statement)?;
        drop(script);
        let output = pgbench.wait_with_output()?;
        if !output.status.success() {
            bail!("pgbench failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        parse(&String::from_utf8_lossy(&output.stdout))
    }

    fn options(&self) -> String {
        let options = self.settings.iter().map(|(name, value)| format!("-c {name}={value}"));
        options.collect::<Vec<_>>().join(" ")
    }
}

fn parse(output: &str) -> Result<Throughput> {
    let after = |label: &str| {
        let line = output.lines().filter_map(|line| line.strip_prefix(label)).next_back();
        let number = line.and_then(|rest| rest.trim().split([' ', '/']).next());
        number
            .and_then(|number| number.parse().ok())
            .with_context(|| format!("pgbench said no \"{label}\":\n{output}"))
    };
    // Up to version 13 there are two lines of tps; the last leaves connecting out, as later versions do.
    Ok(Throughput {
        statements: after("number of transactions actually processed:")?,
        per_second: after("tps =")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn understands_the_words_of_version_15() -> Result<()> {
        let output = "number of transactions actually processed: 1200/1200\n\
                      number of failed transactions: 0 (0.000%)\n\
                      latency average = 0.833 ms\n\
                      tps = 1201.5 (without initial connection time)\n";
        assert_eq!(parse(output)?, Throughput { statements: 1200.0, per_second: 1201.5 });
        Ok(())
    }

    #[test]
    fn understands_the_words_of_version_13() -> Result<()> {
        let output = "number of transactions actually processed: 1200\n\
                      tps = 1150.0 (including connections establishing)\n\
                      tps = 1201.5 (excluding connections establishing)\n";
        assert_eq!(parse(output)?, Throughput { statements: 1200.0, per_second: 1201.5 });
        Ok(())
    }

    #[test]
    fn says_what_is_missing() {
        let error = parse("tps = 5 (x)").expect_err("no count was given").to_string();
        assert!(error.contains("number of transactions"), "{error}");
    }
}
