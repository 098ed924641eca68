//! Gapless series beside a counter written by hand: transactions per second of 16 sessions, first over 10,000 keys, then over one key.

use super::by_hand::{BY_HAND, COUNTER, SESSIONS};
use crate::section::prelude::*;

const MANY_KEYS: u32 = 10_000;

/// A way to take a number of a random key, and the number of keys.
#[derive(Clone, Copy)]
struct Way {
    label: &'static str,
    call: &'static str,
    keys: u32,
}

const BY_SERIES: &str = "select series_nextval('bench', :k::bigint)";
const HAND: usize = 0;
const SERIES: usize = 1;
const HOT_HAND: usize = 2;
const HOT_SERIES: usize = 3;
const WAYS: [Way; 4] = [
    Way { label: "counter by hand", call: BY_HAND, keys: MANY_KEYS },
    Way { label: "gapless series", call: BY_SERIES, keys: MANY_KEYS },
    Way { label: "counter by hand", call: BY_HAND, keys: 1 },
    Way { label: "gapless series", call: BY_SERIES, keys: 1 },
];

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    session.execute(COUNTER)?;
    session.execute("select snowflake_ids.series_create('bench')")?;
    let in_turns = |rounds, stop| {
        interleave(rounds, &WAYS, |Way { call, keys, .. }| {
            let script = format!("\\set k random(1, {keys})\n{call}");
            Ok(Load::new(SESSIONS, script, stop).run(&server)?.per_second)
        })
    };
    in_turns(1, Stop::Seconds(effort.pick(3, 1)))?;
    let (rounds, seconds) = effort.pick((10, 3), (3, 1));
    Ok(outcome(&in_turns(rounds, Stop::Seconds(seconds))?))
}

fn outcome(slices: &Measured<f64>) -> Outcome {
    let rate = |slice: &f64| *slice;
    let to_hand = |whose: usize| slices.ratio(whose, if whose < HOT_HAND { HAND } else { HOT_HAND }, rate);
    Outcome {
        method: format!(
            "Gapless: pgbench, prepared statements, {SESSIONS} sessions, a transaction for each number, {} slices of \
             each.",
            slices.rounds()
        ),
        tables: vec![slices.table(
            "number",
            slices.all(),
            [
                ("keys", &|whose| WAYS[whose].keys.to_string()),
                ("transactions/s", &|whose| format!("{:.0}", slices.median(whose, rate))),
                ("to the counter by hand", &|whose| to_hand(whose).to_string()),
            ],
        )],
        goals: vec![
            Goal::at_least(
                "gapless: 16 sessions over 10,000 keys make at least 0.8x of the counter by hand",
                to_hand(SERIES),
                0.8,
                "",
            ),
            Goal::at_least(
                "gapless: 16 sessions over one key make at least 0.8x of the counter by hand",
                to_hand(HOT_SERIES),
                0.8,
                "",
            ),
        ],
    }
}

impl Contestant for Way {
    fn label(&self) -> String {
        format!("{}, {} keys", self.label, self.keys)
    }
}
