//! Ids of one shard: how many a session gets per second, and how far the ids are ahead of the clock.

use super::prelude::*;
use std::thread;
use std::time::Duration;

/// A generator that gives one of every `modulus` ids.
#[derive(Clone, Copy)]
struct Part {
    modulus: u32,
    /// The number of ids in a slice.
    ids: u32,
}

const PARTS: [Part; 5] = [
    Part { modulus: 1, ids: 500_000 },
    Part { modulus: 2, ids: 500_000 },
    Part { modulus: 16, ids: 200_000 },
    Part { modulus: 128, ids: 50_000 },
    Part { modulus: 1_024, ids: 10_000 },
];
const ALL: usize = 0;
const ONE_IN_16: usize = 2;

/// The result of one slice.
struct Slice {
    per_second: f64,
    /// The drift in seconds.
    drift: f64,
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    for Part { modulus, .. } in &PARTS {
        session.execute(&format!(
            "select snowflake_ids.generator_create('one in {modulus}', modulus => {modulus}, remainder => {})",
            modulus - 1
        ))?;
    }
    let mut in_turns = |rounds| interleave(rounds, &PARTS, |part| slice(&mut session, *part));
    in_turns(1)?;
    Ok(outcome(&in_turns(effort.pick(20, 5))?))
}

/// Takes the slice's ids, and then waits for the clock, so that each slice begins without a lead.
fn slice(session: &mut Session, Part { modulus, ids }: Part) -> Result<Slice> {
    let cost = session.cost(&format!(
        "select count(snowflake_nextval('one in {modulus}'))
         from generate_series(1, 1000) a, generate_series(1, {}) b",
        ids / 1_000
    ))?;
    let drift: f64 =
        session.value("select coalesce(extract(epoch from drift), 0)::float8 from snowflake_ids.status")?;
    thread::sleep(Duration::from_secs_f64(drift.max(0.0)));
    Ok(Slice { per_second: f64::from(ids) / cost.wall, drift })
}

fn outcome(slices: &Measured<Slice>) -> Outcome {
    let rate = |slice: &Slice| slice.per_second;
    let to_all = |whose| slices.ratio(whose, ALL, rate);
    Outcome {
        method: format!(
            "Ids of a named generator of the default layout (4096 in a millisecond) in one statement that counts them, rows \
             included; one session, drift allowed, {} rounds. Drift is what the ids are ahead of the clock at the end.",
            slices.rounds()
        ),
        tables: vec![slices.table(
            "ids",
            slices.all(),
            [
                ("ids of a slice", &|whose| PARTS[whose].ids.to_string()),
                ("thousand ids/s", &|whose| format!("{:.0}", slices.median(whose, rate) / 1e3)),
                ("to every id", &|whose| to_all(whose).to_string()),
                ("drift, ms", &|whose| format!("{:.0}", slices.median(whose, |slice| slice.drift) * 1e3)),
            ],
        )],
        goals: vec![Goal::at_least(
            "one id in 16 comes at a quarter of the rate or more",
            to_all(ONE_IN_16),
            0.25,
            "",
        )],
    }
}

impl Contestant for Part {
    fn label(&self) -> String {
        if self.modulus == 1 { "every id".into() } else { format!("one in {}", self.modulus) }
    }
}
