//! The cost of one call, beyond the cost of the row for which it is made.

use super::marginal::{self, Call, ROW, ROWS, TAGGED_ROW};
use super::prelude::*;

const SNOWFLAKE: usize = 2;
const SNOWFLAKE_64: usize = 3;
const SEGMENT: usize = 5;
const SEGMENT_OF_100: usize = 6;
const CLOCK: usize = 7;
const NEXTVAL: usize = 8;
const NEXTVAL_1000: usize = 10;
const SEGMENT_GRANTED: usize = 12;

const CALLS: [Call; 13] = [
    Call::of("a row", "1::bigint"),
    Call::by_tag("a row with a tag", "tag"),
    Call::of("snowflake_nextval()", "snowflake_nextval()").cached(1),
    Call::of("snowflake_nextval(), cache = 64", "snowflake_nextval()").cached(64),
    Call::of("snowflake_nextval(), cache = 1000", "snowflake_nextval()").cached(1000),
    Call::of("segment_nextval('tag')", "segment_nextval('tag 0')"),
    Call::by_tag("segment_nextval(tag), 100 tags", "segment_nextval(tag)"),
    Call::of("clock_timestamp()", "clock_timestamp()"),
    Call::of("nextval, CACHE 1", "nextval('one_by_one')"),
    Call::of("nextval, CACHE 32", "nextval('cache_32')"),
    Call::of("nextval, CACHE 1000", "nextval('cache_1000')"),
    Call::of("gen_random_uuid()", "gen_random_uuid()"),
    Call::of("segment_nextval('tag'), with privileges on it", "segment_nextval('granted')"),
];

/// The tags, and the table in which they take turns. The tags first give many ids, until the steps of their segments have grown
/// and no slice waits for a segment. Without the vacuum, the first session to read the table would set the rows' hint bits.
const PREPARE: [&str; 7] = [
    "select snowflake_ids.segment_create('tag ' || i) from generate_series(0, 99) i",
    "select count(id) from generate_series(0, 99) i, segment_nextvals('tag ' || i, 100000) id",
    "select snowflake_ids.segment_create('granted')",
    "select snowflake_ids.segment_grant('granted', 'public', 'USAGE')",
    "select count(segment_nextval('granted')) from generate_series(1, 100000)",
    "create table tagged as select 'tag ' || i % 100 as tag from generate_series(1, 100000) i",
    "vacuum (freeze, analyze) tagged",
];

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    PREPARE.iter().try_for_each(|statement| session.execute(statement))?;
    Ok(outcome(&marginal::measure(&mut session, &CALLS, effort.pick(60, 12))?))
}

fn outcome(costs: &Measured<Cost>) -> Outcome {
    let above = marginal::above_row(&CALLS, costs);
    let row = |whose| marginal::row_alone(costs, whose);
    let ratio = |whose, other| above.ratio(whose, other, |cost| cost.cpu);
    let to = |other| move |whose| ratio(whose, other).to_string();
    let at_most = |claim, whose, other, bound| Goal::at_most(claim, ratio(whose, other), bound, "");
    let calls = || above.all().filter(|whose| ![ROW, TAGGED_ROW].contains(whose));
    Outcome {
        method: format!(
            "`select count(f())` over {ROWS:.0} rows less the same with a constant in place of `f()` (a row \
             alone: {:.0} ns), or with the tag alone where the rows hold 100 tags in turns (a row alone: {:.0} \
             ns); one session, the same plan, {} rounds. Each tag has given 100,000 ids before. Ratios are of \
             processor time.",
            row(ROW),
            row(TAGGED_ROW),
            costs.rounds()
        ),
        tables: vec![above.table(
            "call",
            calls(),
            [
                ("ns of processor", &|whose| format!("{:.1}", above.median(whose, |cost| cost.cpu))),
                ("ns of wall time", &|whose| format!("{:.1}", above.median(whose, |cost| cost.wall))),
                ("to clock_timestamp()", &to(CLOCK)),
                ("to nextval CACHE 1", &to(NEXTVAL)),
                ("to nextval CACHE 1000", &to(NEXTVAL_1000)),
            ],
        )],
        goals: vec![
            at_most("a call costs at most 1.6x clock_timestamp()", SNOWFLAKE, CLOCK, 1.6),
            at_most("a call costs at most 0.25x nextval CACHE 1", SNOWFLAKE, NEXTVAL, 0.25),
            at_most("with cache = 64 it costs less than clock_timestamp()", SNOWFLAKE_64, CLOCK, 1.0),
            at_most("segment_nextval('tag') costs at most 0.15x nextval CACHE 1", SEGMENT, NEXTVAL, 0.15),
            at_most(
                "segment_nextval('tag') costs at most 1.1x nextval CACHE 1000",
                SEGMENT,
                NEXTVAL_1000,
                1.1,
            ),
            at_most(
                "with one of 100 tags it costs at most 0.3x nextval CACHE 1",
                SEGMENT_OF_100,
                NEXTVAL,
                0.3,
            ),
            at_most(
                "a call of a tag with privileges costs at most 2.2x a call without",
                SEGMENT_GRANTED,
                SEGMENT,
                2.2,
            ),
        ],
    }
}
