//! The first two seconds of a new tag with a small step under 32 sessions. Systems that fetch the next
//! segment too late turn callers away then ("both segments not ready").

use super::hot::HOT;
use super::tag::{self, Status};
use super::{SESSIONS, calls};
use crate::pgbench::{Attempt, Stop};
use crate::report::{Goal, Outcome, Table, Verdict};
use crate::rounds::{Effort, interleave};
use crate::session::Session;
use crate::stats::{Spread, median};
use anyhow::Result;
use snowflake_ids_server_tests::Server;

const STEP: u32 = 100;
const SECONDS: u32 = 2;

/// A tag that is used for two seconds.
#[derive(Clone, Copy)]
enum Tag {
    /// Created just before.
    New,
    /// One that has adapted, for comparison.
    Adapted,
}

const TAGS: [Tag; 2] = [Tag::New, Tag::Adapted];
const NEW: usize = 0;
const ADAPTED: usize = 1;

/// What two seconds did, and what the server says of the tag then.
struct Start {
    attempt: Attempt,
    status: Status,
}

pub fn measure(server: &Server, session: &mut Session, effort: Effort) -> Result<Outcome> {
    let mut created = 0;
    let starts = interleave(effort.pick(7, 3), &TAGS, |tag| match tag {
        Tag::New => {
            created += 1;
            let name = format!("cold {created}");
            tag::create(session, &name, STEP)?;
            start(server, session, &name)
        }
        Tag::Adapted => start(server, session, HOT),
    })?;
    Ok(outcome(&starts[NEW], &starts[ADAPTED]))
}

/// Without a worker at first: a new tag has to start its own.
fn start(server: &Server, session: &mut Session, tag: &str) -> Result<Start> {
    tag::let_the_worker_leave(session)?;
    let attempt = calls(&format!("segment_nextval('{tag}')"), Stop::Seconds(SECONDS)).attempt(server)?;
    Ok(Start { attempt, status: tag::status(session, tag)? })
}

fn outcome(new: &[Start], adapted: &[Start]) -> Outcome {
    Outcome {
        method: format!(
            "The first {SECONDS} seconds of a new tag with `step => {STEP}` under {SESSIONS} sessions, {} \
             tags in turns with the adapted one. A call waits where both of a tag's segments are used up; \
             here, first of all for the worker to start.",
            new.len()
        ),
        tables: vec![table(new, adapted)],
        goals: vec![no_errors(new)],
        panels: Vec::new(),
    }
}

fn table(new: &[Start], adapted: &[Start]) -> Table {
    let mut table = Table::new(&["first 2 seconds of a new tag", "median (quartiles)", "most"]);
    let mut row = |what: &str, decimals: usize, figures: Vec<f64>| {
        let most = figures.iter().copied().fold(0.0, f64::max);
        let spread = Spread::of(figures);
        table.rows.push(vec![what.into(), format!("{spread:.decimals$}"), format!("{most:.decimals$}")]);
    };
    let of_status = |pick: fn(&Status) -> f64| new.iter().map(|start| pick(&start.status)).collect();
    row("calls", 0, calls_of(new).collect());
    row("calls, to those of the adapted tag", 2, ratios(new, adapted));
    row("waits", 0, of_status(|status| status.waits));
    row("longest wait, ms", 1, of_status(|status| status.longest_wait * 1e3));
    row("refills", 0, of_status(|status| status.refills));
    row("step in the end, ids", 0, of_status(|status| status.step));
    table
}

fn ratios(new: &[Start], adapted: &[Start]) -> Vec<f64> {
    calls_of(new).zip(calls_of(adapted)).map(|(new, adapted)| new / adapted).collect()
}

fn calls_of(starts: &[Start]) -> impl Iterator<Item = f64> {
    starts.iter().map(|start| start.attempt.done.statements)
}

fn no_errors(new: &[Start]) -> Goal {
    let errors: Vec<&String> = new.iter().flat_map(|start| &start.attempt.errors).collect();
    let example = errors.first().map_or_else(String::new, |error| format!(", as: {error}"));
    let waits = median(new.iter().map(|start| start.status.waits));
    Goal {
        claim: "a new tag of step 100 fails nobody in its first 2 seconds under 32 sessions",
        found: format!("{} errors{example}; {waits:.0} waits", errors.len()),
        verdict: Verdict::of(errors.is_empty()),
    }
}
