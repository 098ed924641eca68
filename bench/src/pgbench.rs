//! Many sessions at once, run by Postgres's own pgbench.

use crate::server::cores;
use crate::session::DATABASE;
use anyhow::{Context, Result, bail};
use snowflake_ids_server_tests::Server;
use std::io::Write;
use std::process::{Output, Stdio};

/// One pgbench run: sessions that each run a prepared statement over and over.
#[derive(Clone, Debug)]
pub struct Load {
    pub sessions: usize,
    pub statement: String,
    /// Settings of all sessions.
    pub settings: Vec<(&'static str, String)>,
    pub stop: Stop,
    /// Statements a second in all sessions; None for as fast as possible.
    pub per_second: Option<u32>,
    /// Milliseconds after which a statement is late; None if no statement counts as late.
    pub late_after: Option<u32>,
}

/// The end of a pgbench run.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// After this number of seconds.
    Seconds(u32),
    /// After this number of statements in each session.
    Statements(usize),
}

/// The figures that pgbench reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// The number of all statements.
    pub statements: f64,
    /// Statements a second, without the time to connect.
    pub per_second: f64,
    /// The number of late statements, if `late_after` is set.
    pub late: f64,
}

/// The result of a run in which statements may fail.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The figures of the statements that succeeded.
    pub done: Throughput,
    /// The first error of each session that an error ended.
    pub errors: Vec<String>,
}

impl Load {
    /// A run without settings, as fast as possible.
    pub fn new(sessions: usize, statement: impl Into<String>, stop: Stop) -> Self {
        Self {
            sessions,
            statement: statement.into(),
            settings: Vec::new(),
            stop,
            per_second: None,
            late_after: None,
        }
    }

    /// Runs pgbench to its end. No statement may fail.
    pub fn run(&self, server: &Server) -> Result<Throughput> {
        let attempt = self.attempt(server)?;
        match attempt.errors.first() {
            None => Ok(attempt.done),
            Some(error) => bail!("pgbench failed: {error}"),
        }
    }

    /// Runs pgbench to its end. A session whose statement fails runs no more statements.
    pub fn attempt(&self, server: &Server) -> Result<Attempt> {
        let output = self.output(server)?;
        let complaints = String::from_utf8_lossy(&output.stderr);
        let errors = errors(&complaints);
        if !output.status.success() && errors.is_empty() {
            bail!("pgbench failed: {complaints}");
        }
        Ok(Attempt { done: parse(&String::from_utf8_lossy(&output.stdout))?, errors })
    }

    fn output(&self, server: &Server) -> Result<Output> {
        let (flag, amount) = match self.stop {
            Stop::Seconds(seconds) => ("-T", seconds.to_string()),
            Stop::Statements(statements) => ("-t", statements.to_string()),
        };
        let threads = self.sessions.min(cores());
        let mut pgbench = server
            .command("pgbench")
            .args(["--no-vacuum", "--protocol", "prepared", "--file", "-", flag, &amount])
            .args(["-c", &self.sessions.to_string(), "-j", &threads.to_string()])
            .args(self.per_second.map(|rate| format!("--rate={rate}")))
            .args(self.late_after.map(|millis| format!("--latency-limit={millis}")))
            .arg(DATABASE)
            .env("PGOPTIONS", self.options())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run pgbench; it comes with the server (on Debian: postgresql-contrib)")?;
        let mut script = pgbench.stdin.take().context("pgbench has no standard input")?;
        writeln!(script, "{};", self.statement)?;
        drop(script);
        Ok(pgbench.wait_with_output()?)
    }

    fn options(&self) -> String {
        let options = self.settings.iter().map(|(name, value)| format!("-c {name}={value}"));
        options.collect::<Vec<_>>().join(" ")
    }
}

/// The server's message for each session that an error ended.
fn errors(complaints: &str) -> Vec<String> {
    let ended = complaints.lines().filter(|line| line.contains(" aborted in command "));
    ended.map(|line| line.split_once("ERROR:").map_or(line, |(_, words)| words).trim().to_owned()).collect()
}

fn parse(output: &str) -> Result<Throughput> {
    let number = |label: &str| {
        let line = output.lines().filter_map(|line| line.strip_prefix(label)).next_back()?;
        line.rsplit(": ").next()?.trim().split([' ', '/']).next()?.parse().ok()
    };
    let after =
        |label: &str| number(label).with_context(|| format!("pgbench said no \"{label}\":\n{output}"));
    Ok(Throughput {
        statements: after("number of transactions actually processed:")?,
        per_second: after("tps =")?,
        late: number("number of transactions above the").unwrap_or(0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn understands_the_words_of_pgbench() -> Result<()> {
        let done = Throughput { statements: 1200.0, per_second: 1201.5, late: 0.0 };
        let count = "number of transactions actually processed: 1200";
        let of_15 =
            "number of failed transactions: 0 (0.000%)\ntps = 1201.5 (without initial connection time)";
        assert_eq!(parse(&format!("{count}/1200\n{of_15}\n"))?, done);
        let late = "number of transactions above the 50.0 ms latency limit: 3/1200 (0.250%)";
        assert_eq!(parse(&format!("{count}/1200\n{late}\n{of_15}\n"))?, Throughput { late: 3.0, ..done });
        let error = parse("tps = 5 (x)").expect_err("no count was given").to_string();
        assert!(error.contains("number of transactions"), "{error}");
        Ok(())
    }

    #[test]
    fn counts_the_sessions_that_an_error_ended() {
        let complaints = "pgbench: error: client 3 script 0 aborted in command 0 query 0: ERROR:  out of ids\n\
                          pgbench: error: client 0 aborted in command 0 (SQL) of script 0; perhaps the backend died\n\
                          pgbench: error: Run was aborted; the above results are incomplete.\n";
        let errors = errors(complaints);
        assert!(
            errors.len() == 2 && errors[0] == "out of ids" && errors[1].contains("client 0"),
            "{errors:?}"
        );
    }
}
