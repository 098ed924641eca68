//! The first two seconds of a new tag with a small step under 32 sessions. Systems that fetch the next segment too late refuse
//! callers in this phase ("both segments not ready").

use super::tag::{HOT, SESSIONS, Status, calls, create, let_the_worker_leave, status};
use crate::section::prelude::*;

const STEP: u32 = 100;
const SECONDS: u32 = 2;

/// A new tag, and the adapted tag for comparison.
const TAGS: [&str; 2] = ["a new tag", HOT];
const NEW: usize = 0;
const ADAPTED: usize = 1;

/// The work of two seconds, and the server's report about the tag after them.
struct Start {
    attempt: Attempt,
    status: Status,
}

pub fn measure(server: &Server, session: &mut Session, effort: Effort) -> Result<Outcome> {
    let mut created = 0;
    let starts = interleave(effort.pick(7, 3), &TAGS, |tag| {
        if *tag == HOT {
            return start(server, session, HOT);
        }
        created += 1;
        let name = format!("cold {created}");
        create(session, &name, STEP)?;
        start(server, session, &name)
    })?;
    Ok(outcome(&starts))
}

/// Starts without a refill worker, because calls for a new tag have to start one.
fn start(server: &Server, session: &mut Session, tag: &str) -> Result<Start> {
    let_the_worker_leave(session)?;
    let attempt =
        calls(&format!("select segment_nextval('{tag}')"), Stop::Seconds(SECONDS)).attempt(server)?;
    Ok(Start { attempt, status: status(session, tag)? })
}

fn outcome(starts: &Measured<Start>) -> Outcome {
    let errors: Vec<&String> = starts.of[NEW].iter().flat_map(|start| &start.attempt.errors).collect();
    let example = errors.first().map_or_else(String::new, |error| format!(", as: {error}"));
    let waits = starts.median(NEW, |start| start.status.waits);
    Outcome {
        method: format!(
            "The first {SECONDS} seconds of a new tag with `step => {STEP}` under {SESSIONS} sessions, {} \
             tags in turns with the adapted one. A call waits where both of a tag's segments are used up; \
             here, first of all for the worker to start.",
            starts.rounds()
        ),
        tables: vec![table(starts)],
        goals: vec![Goal::holds(
            "a new tag of step 100 fails nobody in its first 2 seconds under 32 sessions",
            format!("{} errors{example}; {waits:.0} waits", errors.len()),
            errors.is_empty(),
        )],
    }
}

fn table(starts: &Measured<Start>) -> Table {
    let calls = |start: &Start| start.attempt.done.statements;
    let to_adapted = starts.map(|_, round, start| calls(start) / calls(&starts.of[ADAPTED][round])).of;
    let of_status = |figure: fn(&Status) -> f64| starts.figures(NEW, |start| figure(&start.status));
    let figures = [
        ("calls", 0, starts.figures(NEW, calls)),
        ("calls, to those of the adapted tag", 2, to_adapted[NEW].clone()),
        ("waits", 0, of_status(|status| status.waits)),
        ("longest wait, ms", 1, of_status(|status| status.longest_wait * 1e3)),
        ("refills", 0, of_status(|status| status.refills)),
        ("step in the end, ids", 0, of_status(|status| status.step)),
    ];
    let row = |(what, decimals, figures): (&str, usize, Vec<f64>)| {
        let most = figures.iter().copied().fold(0.0, f64::max);
        vec![what.into(), format!("{:.decimals$}", Spread::of(figures)), format!("{most:.decimals$}")]
    };
    let head = ["first 2 seconds of a new tag", "median (quartiles)", "most"];
    Table { head: head.map(str::to_owned).into(), rows: figures.into_iter().map(row).collect() }
}
