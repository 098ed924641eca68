//! The first number of a monotonic series with 1,000 sections after a restart.

use crate::section::prelude::*;
use snowflake_ids_server_tests::Shutdown;
use std::time::Instant;

const SECTIONS: u32 = 1_000;

/// The way in which the server was stopped.
#[derive(Clone, Copy)]
enum Stopped {
    Cleanly,
    Killed,
}

const STOPS: [Stopped; 2] = [Stopped::Cleanly, Stopped::Killed];
const CLEANLY: usize = 0;
const KILLED: usize = 1;

/// Times after the start, in seconds since the server accepts sessions.
#[derive(Clone, Copy)]
struct Start {
    first: f64,
    all: f64,
}

/// Takes numbers for keys of all sections.
const ALL: &str = "select count(series_nextval('restarted', k)) from generate_series(1, 20000) k";

pub fn measure(effort: Effort) -> Result<Outcome> {
    let mut server = server::start(&[("snowflake_ids.max_tags", "2000")])?;
    let mut session = Session::open(&server)?;
    session.execute(&format!(
        "select snowflake_ids.series_create('restarted', 'monotonic', sections => {SECTIONS})"
    ))?;
    session.execute(ALL)?;
    drop(session);
    let starts = interleave(effort.pick(9, 3), &STOPS, |stopped| {
        match stopped {
            Stopped::Cleanly => server.stop(Shutdown::Fast)?,
            Stopped::Killed => server.kill9()?,
        }
        server.start_again()?;
        let started = Instant::now();
        let mut session = Session::open(&server)?;
        session.execute("select series_nextval('restarted', 7)")?;
        let first = started.elapsed().as_secs_f64();
        session.execute(ALL)?;
        Ok(Start { first, all: started.elapsed().as_secs_f64() })
    })?;
    Ok(outcome(&starts))
}

fn outcome(starts: &Measured<Start>) -> Outcome {
    let milliseconds = |whose, of: fn(&Start) -> f64| {
        format!("{:.0}", Spread::of(starts.figures(whose, |start| of(start) * 1e3)))
    };
    let first = |whose| Spread::of(starts.figures(whose, |start| start.first));
    Outcome {
        method: format!(
            "A monotonic series with {SECTIONS} sections after a restart: from when the server takes sessions to the first \
             number, connecting included, and to one of each of 20,000 keys, which are of all sections; {} starts of each.",
            starts.rounds()
        ),
        tables: vec![starts.table(
            "the server was stopped",
            starts.all(),
            [
                ("ms to the first number", &|whose| milliseconds(whose, |start| start.first)),
                ("ms to numbers of all sections", &|whose| milliseconds(whose, |start| start.all)),
            ],
        )],
        goals: vec![
            Goal::at_most(
                "monotonic: a restart with 1,000 sections serves its first number within 1 s",
                first(CLEANLY),
                1.0,
                " s",
            ),
            Goal::at_most("and so does one after kill -9", first(KILLED), 1.0, " s"),
        ],
    }
}

impl Contestant for Stopped {
    fn label(&self) -> String {
        match self {
            Self::Cleanly => "cleanly".to_owned(),
            Self::Killed => "by kill -9".to_owned(),
        }
    }
}
