//! The load that a registry can bear: requests for ids of tags. Each session acts as one node.

use super::prelude::*;
use std::fs;
use std::thread;
use std::time::Duration;

/// One kind of load: the number of tags in a request, and the number of nodes that ask.
#[derive(Clone, Copy)]
struct Asking {
    tags: usize,
    nodes: usize,
}

const ASKING: [Asking; 8] = [
    Asking { tags: 1, nodes: 1 },
    Asking { tags: 1, nodes: 4 },
    Asking { tags: 1, nodes: 16 },
    Asking { tags: 10, nodes: 1 },
    Asking { tags: 10, nodes: 4 },
    Asking { tags: 10, nodes: 16 },
    Asking { tags: 50, nodes: 16 },
    Asking { tags: 10, nodes: 1_024 },
];
const ONE: usize = 0;
const ONE_OF_16: usize = 2;
const TEN_OF_16: usize = 5;
/// The number of tags. Each request takes its tags from all of these tags.
const TAGS: usize = 5_000;

impl Contestant for Asking {
    fn label(&self) -> String {
        format!("{} tags, {} nodes", self.tags, self.nodes)
    }
}

/// The work of one slice.
struct Slice {
    per_second: f64,
    /// Processor time of the registry's sessions for each tag in a request, in milliseconds, including the start and end of sessions.
    per_tag: f64,
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let server = server::start(&[
        ("max_connections", "1100"),
        ("snowflake_ids.layout", "41/0/10/12 epoch=2020-01-01"),
    ])?;
    let mut session = Session::open(&server)?;
    session.execute(&format!(
        "insert into snowflake_ids.segment (tag, max_id, step, max_step, start) select 'tag' || n, 0, 1, 1, 1 from generate_series(1, {TAGS}) as n"
    ))?;
    for tags in [1, 10, 50] {
        session.execute(&requests(tags))?;
    }
    let postmaster: i32 =
        session.value("select split_part(pg_read_file('postmaster.pid'), e'\\n', 1)::integer")?;
    let in_turns = |rounds, seconds| {
        interleave(rounds, &ASKING, |asking| slice(&server, postmaster, *asking, Stop::Seconds(seconds)))
    };
    // A thousand sessions take a second or two to start.
    let (rounds, seconds) = effort.pick((5, 6), (1, 5));
    in_turns(1, 4)?;
    Ok(outcome(&in_turns(rounds, seconds)?))
}

/// Makes a table of two thousand requests, as nodes send them. Each request names this number of tags.
fn requests(tags: usize) -> String {
    let share = TAGS / tags;
    format!(
        r#"create table asked_{tags} (n integer primary key, request text);
        insert into asked_{tags}
        select n, '{{"version":1,"registry":null,"timeout":{{"secs":5,"nanos":0}},"ask":{{"Reserve":['
            || (select string_agg(format('{{"tag":"tag%s","create":false,"demand":{{"saved_range":null,"pace":{{"step":1,"multiplier":1}},'
                '"lasted":{{"secs":1,"nanos":0}},"target":{{"secs":10,"nanos":0}},"waited_lately":false,"prefetch":50,"high_water_mark":null,'
                '"received":null,"share":null}}}}', k * {share} + 1 + floor(random() * {share})::integer), ',')
                from generate_series(0, {tags} - 1) as k where n > 0) || ']}}}}'
        from generate_series(1, 2000) as n;
        analyze asked_{tags}"#
    )
}

fn slice(server: &Server, postmaster: i32, asking: Asking, stop: Stop) -> Result<Slice> {
    let Asking { tags, nodes } = asking;
    let ask = format!(
        "select snowflake_ids.registry_serve(a.request) from asked_{tags} as a where a.n = (select 1 + floor(random() * 2000)::integer)"
    );
    let load = Load::new(nodes, ask, stop);
    let before = effort_of(postmaster)?;
    let done = load.run(server)?;
    // The postmaster knows the processor time of sessions once they have ended.
    thread::sleep(Duration::from_secs(1));
    let effort = effort_of(postmaster)? - before;
    let asked = done.statements * f64::from(u32::try_from(tags)?);
    Ok(Slice { per_second: done.per_second, per_tag: effort / asked })
}

/// Processor time, in milliseconds, of the server's processes that have ended.
fn effort_of(postmaster: i32) -> Result<f64> {
    /// The length of the kernel's clock tick.
    const TICK_MILLIS: f64 = 10.0;
    let stat = fs::read_to_string(format!("/proc/{postmaster}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    ensure!(fields.len() > 14, "{stat}");
    Ok((fields[13].parse::<f64>()? + fields[14].parse::<f64>()?) * TICK_MILLIS)
}

fn outcome(slices: &Measured<Slice>) -> Outcome {
    let rate = |slice: &Slice| slice.per_second;
    let tags = |whose: usize| f64::from(u32::try_from(ASKING[whose].tags).unwrap_or(u32::MAX));
    let per_tag = slices.median(TEN_OF_16, |slice| slice.per_tag);
    Outcome {
        method: format!(
            "pgbench, prepared, {} slices of each: requests for ids of tags as nodes send them, each tag one of {TAGS} with a step of one id, \
             so that each is a changed row. Processor time is that of the sessions, in which they began and ended included.",
            slices.rounds()
        ),
        tables: vec![slices.table(
            "load",
            slices.all(),
            [
                ("requests/s", &|whose| format!("{:.0}", slices.median(whose, rate))),
                ("tags/s", &|whose| format!("{:.0}", slices.median(whose, rate) * tags(whose))),
                ("ms of a core / tag", &|whose| {
                    format!("{:.3}", slices.median(whose, |slice| slice.per_tag))
                }),
            ],
        )],
        goals: vec![
            Goal::holds(
                "a tag in a request of ten takes 0.14 ms of a core or less",
                format!("{per_tag:.3} ms"),
                per_tag <= 0.14,
            ),
            Goal::at_least(
                "more nodes get more requests served",
                slices.ratio(ONE_OF_16, ONE, rate),
                1.2,
                "",
            ),
        ],
    }
}
