//! A series with many more keys than the memory has room for.

use super::by_hand::{BY_HAND, COUNTER, SESSIONS};
use crate::section::prelude::*;

/// A way to take a number of a random key, and a way to choose the key.
#[derive(Clone, Copy)]
struct Way {
    label: &'static str,
    call: &'static str,
    draw: Draw,
}

#[derive(Clone, Copy)]
enum Draw {
    /// All keys equally often.
    Even,
    /// Some keys much more often, as with conversations.
    Skewed,
}

const GAPLESS: &str = "select series_nextval('gapless', :k::bigint)";
const MONOTONIC: &str = "select series_nextval('monotonic', :k::bigint)";
const EVEN: usize = 0;
const SKEWED: usize = 3;
const WAYS: [Way; 6] = [
    Way { label: "counter by hand", call: BY_HAND, draw: Draw::Even },
    Way { label: "gapless series", call: GAPLESS, draw: Draw::Even },
    Way { label: "monotonic series", call: MONOTONIC, draw: Draw::Even },
    Way { label: "counter by hand", call: BY_HAND, draw: Draw::Skewed },
    Way { label: "gapless series", call: GAPLESS, draw: Draw::Skewed },
    Way { label: "monotonic series", call: MONOTONIC, draw: Draw::Skewed },
];

const KEYS: u32 = 1_000_000;
const MEMORY: &str = "800kB";

impl Draw {
    fn script(self) -> String {
        match self {
            Self::Even => format!("\\set k random(1, {KEYS})"),
            // Nine of ten calls go to a tenth of the keys.
            Self::Skewed => format!("\\set k random_exponential(1, {KEYS}, 23)"),
        }
    }
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[("snowflake_ids.series_memory", MEMORY)])?;
    let mut session = Session::open(&server)?;
    session.execute(COUNTER)?;
    session.execute(
        "select snowflake_ids.series_create(kind, kind) from unnest(array['gapless', 'monotonic']) as kind",
    )?;
    // Most keys have a counter afterwards.
    session.execute("insert into counter select k, 1 from generate_series(1, 1000000) k")?;
    session.execute(
        "insert into snowflake_ids.series_bigint (series, key, last_value)
         select s.id, k, 1 from snowflake_ids.series s, generate_series(1, 1000000) k where s.name = 'gapless'",
    )?;
    session.execute("vacuum (analyze) counter, snowflake_ids.series_bigint")?;
    let in_turns = |rounds, stop| {
        interleave(rounds, &WAYS, |Way { call, draw, .. }| {
            let script = format!("{}\n{call}", draw.script());
            Ok(Load::new(SESSIONS, script, stop).run(&server)?.per_second)
        })
    };
    in_turns(1, Stop::Seconds(effort.pick(5, 2)))?;
    let (rounds, seconds) = effort.pick((8, 3), (3, 1));
    Ok(outcome(&in_turns(rounds, Stop::Seconds(seconds))?))
}

fn outcome(slices: &Measured<f64>) -> Outcome {
    let rate = |slice: &f64| *slice;
    let to_hand = |whose: usize| slices.ratio(whose, if whose < SKEWED { EVEN } else { SKEWED }, rate);
    Outcome {
        method: format!(
            "A million keys, and memory for some 50,000 (`series_memory` = {MEMORY}): pgbench, prepared statements, \
             {SESSIONS} sessions, a transaction for each number, {} slices of each. Keys are drawn evenly, or so that nine \
             of ten calls are of a tenth of the keys.",
            slices.rounds()
        ),
        tables: vec![slices.table(
            "number",
            slices.all(),
            [
                ("transactions/s", &|whose| format!("{:.0}", slices.median(whose, rate))),
                ("to the counter by hand", &|whose| to_hand(whose).to_string()),
            ],
        )],
        goals: vec![],
    }
}

impl Contestant for Way {
    fn label(&self) -> String {
        let draw = match self.draw {
            Draw::Even => "evenly",
            Draw::Skewed => "mostly a tenth",
        };
        format!("{}, {draw}", self.label)
    }
}
