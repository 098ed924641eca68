//! Ten million monotonic keys: the memory that they take, and how often their sections are written.

use crate::section::prelude::*;

/// Fifteen bytes for each of ten million keys.
const MEMORY_KB: f64 = 146_500.0;
const STEP: u32 = 1_000;

/// Takes a first number for every key, and stores the numbers of every thousandth key. The stored numbers later show which keys
/// were forgotten: the next number of a forgotten key is above the numbers of other keys.
const FIRST: &str = "insert into kept select key, number from (
         select b, a * 1000::bigint + b as key, series_nextval('many', a * 1000::bigint + b) as number
         from generate_series(1, $keys) a, generate_series(1, 1000) b offset 0
     ) as s where b = 1";
const STILL_KNOWN: &str = "select avg((series_nextval('many', key) = number + 1)::int)::float8 from kept";
const SECTIONS: &str = "segment_status where tag like 'many section %'";

/// The measured figures.
struct Found {
    keys: f64,
    /// The share of keys whose numbers are still in memory after every key has got a number.
    known: f64,
    /// The cost of a call, in nanoseconds of processor time.
    first: f64,
    /// The numbers that all sections together have reserved, in steps, and the number of writes for them.
    steps: f64,
    writes: f64,
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let memory = format!("{MEMORY_KB}kB");
    let server = server::start(&[("snowflake_ids.series_memory", memory.as_str())])?;
    let mut session = Session::open(&server)?;
    session.execute("create table kept (key bigint, number bigint)")?;
    session.execute(&format!(
        "select snowflake_ids.series_create('many', 'monotonic', step => {STEP}, max_step => {STEP})"
    ))?;
    let thousands = effort.pick(10_000, 1_000);
    let keys = f64::from(thousands) * 1e3;
    let cost = session.cost(&FIRST.replace("$keys", &thousands.to_string()))?;
    let known = session.value(STILL_KNOWN)?;
    // One key takes many numbers, so that its section takes many steps.
    session.execute("select count(series_nextval('many', 1)) from generate_series(1, 100000)")?;
    let [writes, numbers] = session.values(&format!(
        "select sum(refills)::float8, sum(coalesce(next_last, current_last, 0))::float8 from snowflake_ids.{SECTIONS}"
    ))?;
    let steps = (numbers / f64::from(STEP)).ceil();
    Ok(outcome(&Found { keys, known, first: cost.cpu / keys * 1e9, steps, writes }))
}

fn outcome(found: &Found) -> Outcome {
    let bytes = MEMORY_KB * 1_024.0 / (found.keys * found.known);
    let millions = found.keys / 1e6;
    Outcome {
        method: format!(
            "{millions:.0} million monotonic keys, one call each in one statement ({:.0} ns of processor time a call, rows \
             included), then 100,000 of one key; `series_memory` = {MEMORY_KB}kB. {:.2} % \
             of the keys are still in memory after the last.",
            found.first,
            found.known * 100.0
        ),
        tables: vec![],
        goals: vec![
            Goal::holds(
                "monotonic: 10 million keys take at most 16 bytes each",
                format!("{bytes:.1} bytes for each of {millions:.0} million"),
                bytes <= 16.0,
            ),
            Goal::holds(
                "monotonic: at most one durable write for a section and step",
                format!("{:.0} writes, {:.0} steps", found.writes, found.steps),
                found.writes <= found.steps,
            ),
        ],
    }
}
