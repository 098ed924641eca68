//! Keys that are used once each: a dense number for each, beside a counter by hand.

use super::by_hand::{BY_HAND, COUNTER, SESSIONS};
use crate::section::prelude::*;

/// What takes the first number of a key.
const WAYS: [(&str, &str); 2] =
    [("counter by hand", BY_HAND), ("dense series", "select series_nextval('once', :k::bigint)")];
const HAND: usize = 0;
const DENSE: usize = 1;

/// Memory for so many keys only that most rounds have others leave.
const MEMORY: &str = "8MB";

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[("snowflake_ids.series_memory", MEMORY)])?;
    let mut session = Session::open(&server)?;
    session.execute(COUNTER)?;
    session.execute("select snowflake_ids.series_create('once', 'dense')")?;
    let in_turns = |rounds, keys: u32| {
        interleave(rounds, &WAYS, |(_, call)| {
            // Of so many numbers none is drawn twice.
            let script = format!("\\set k random(1, 4000000000000000000)\n{call}");
            let done = Load::new(SESSIONS, script, Stop::Statements(usize::try_from(keys)? / SESSIONS))
                .run(&server)?;
            Ok(done.statements / done.per_second)
        })
    };
    in_turns(1, 2_000)?;
    // A million keys for each.
    let (rounds, keys) = effort.pick((50, 20_000), (3, 8_000));
    let slices = in_turns(rounds, keys)?;
    let counters: i64 = session.value("select count(*) from snowflake_ids.series_bigint")?;
    Ok(outcome(&slices, keys.into(), counters))
}

fn outcome(slices: &Measured<f64>, keys: f64, counters: i64) -> Outcome {
    let seconds = |slice: &f64| *slice;
    let to_hand = |whose| slices.ratio(whose, HAND, seconds);
    Outcome {
        method: format!(
            "Keys used once each: pgbench, prepared statements, {SESSIONS} sessions, a transaction for each number, {} \
             slices of {keys} new keys for each, `series_memory` = {MEMORY}. {counters} dense keys in the end.",
            slices.rounds()
        ),
        tables: vec![slices.table(
            "first number of a key",
            slices.all(),
            [
                ("seconds", &|whose| format!("{:.1}", slices.median(whose, seconds))),
                ("keys/s", &|whose| format!("{:.0}", slices.median(whose, |slice| keys / seconds(slice)))),
                ("to the counter by hand", &|whose| to_hand(whose).to_string()),
            ],
        )],
        goals: vec![Goal::at_most(
            "dense: keys used once each take at most 1.2x the time of the counter by hand",
            to_hand(DENSE),
            1.2,
            "",
        )],
        panels: vec![],
    }
}
