//! Bound sequences: the cost of a number, of planning an INSERT beside them, and of a session's first statement.

use super::prelude::*;
use crate::session::DATABASE;
use std::time::Instant;

const SERVERS: [&str; 3] = ["without the library", "nothing bound", "1,000 sequences bound"];
const WITHOUT: usize = 0;
const UNBOUND: usize = 1;
const BOUND: usize = 2;

/// Expressions, and the server on which each is evaluated for each row.
const NUMBERS: [(&str, (&str, usize)); 5] = [
    ("a row", ("1::bigint", UNBOUND)),
    ("nextval, CACHE 1", ("nextval('one_by_one')", UNBOUND)),
    ("nextval, CACHE 1, beside bound sequences", ("nextval('one_by_one')", BOUND)),
    ("nextval, bound to snowflake ids", ("nextval('bound_1')", BOUND)),
    ("nextval, bound to a tag", ("nextval('of_tag')", BOUND)),
];
const ROW: usize = 0;
const NEXTVAL: usize = 1;
const SNOWFLAKE: usize = 3;
const SEGMENT: usize = 4;
const ROWS: f64 = 100_000.0;

const PREPARE: &str = "create table rows (id bigint default snowflake_nextval(), note text)";
const BIND: &str =
    "do $$ begin for i in 1..1000 loop execute format('create sequence bound_%s', i); end loop; end $$;
    select snowflake_ids.bind_sequence(format('bound_%s', i)) from generate_series(1, 1000) i;
    create sequence of_tag; select snowflake_ids.bind_sequence('of_tag', 'segment', 'by_segment')";

const INSERTS: f64 = 5_000.0;
const INSERT: &str = "do $$ begin for i in 1..5000 loop execute 'insert into rows (note) values (''a note'')'; end loop; end $$";

pub fn measure(effort: Effort) -> Result<Outcome> {
    let servers = [server::builder(&[]).without_preload().start()?, server::start(&[])?, server::start(&[])?];
    servers[WITHOUT].create_database(DATABASE)?;
    let mut sessions = [Session::open(&servers[UNBOUND])?, Session::open(&servers[BOUND])?];
    sessions.iter_mut().try_for_each(|session| session.execute(PREPARE))?;
    sessions[1].execute(BIND)?;
    sessions[1].execute("vacuum analyze")?;
    let mut costs = |rounds| {
        interleave(rounds, &NUMBERS, |(_, (expression, server))| {
            let rows = "generate_series(1, 1000) a, generate_series(1, 100) b";
            sessions[server - UNBOUND].cost(&format!("select count({expression}) from {rows}"))
        })
    };
    costs(2)?;
    let numbers = costs(effort.pick(60, 8))?;
    let inserts = interleave(
        effort.pick(30, 5),
        &[UNBOUND, BOUND].map(|server| (SERVERS[server], server)),
        |(_, server)| {
            let session = &mut sessions[server - UNBOUND];
            session.execute("truncate rows")?;
            session.cost(INSERT)
        },
    )?;
    let firsts = interleave(
        effort.pick(300, 30),
        &[WITHOUT, UNBOUND, BOUND].map(|server| (SERVERS[server], server)),
        |(_, server)| {
            let mut client = servers[*server].connect(DATABASE)?;
            let begin = Instant::now();
            client.simple_query("select 1")?;
            Ok(begin.elapsed().as_secs_f64())
        },
    )?;
    Ok(outcome(&numbers, &inserts, &firsts))
}

fn outcome(numbers: &Measured<Cost>, inserts: &Measured<Cost>, firsts: &Measured<f64>) -> Outcome {
    let numbers = numbers.map(|_, round, cost| (cost.cpu - numbers.of[ROW][round].cpu) / ROWS * 1e9);
    let (number, first) = (|ns: &f64| *ns, |seconds: &f64| *seconds);
    let insert = |cost: &Cost| cost.cpu;
    let to_nextval = |whose| numbers.ratio(whose, NEXTVAL, number);
    let to_unbound = |whose| inserts.ratio(whose, 0, insert);
    let to_without = |whose| firsts.ratio(whose, WITHOUT, first);
    Outcome {
        method: "Numbers: `select count(f())` over 100,000 rows less the same with a constant. INSERT: 5,000 statements that are \
                 each planned, of a row whose default is `snowflake_nextval()`. First statement: `select 1` of a new session, as \
                 the client sees it. Servers take turns; times of numbers and INSERT are processor times."
            .to_owned(),
        tables: vec![
            numbers.table(
                "number",
                NEXTVAL..NUMBERS.len(),
                [
                    ("ns of processor", &|whose| format!("{:.0}", numbers.median(whose, number))),
                    ("to nextval CACHE 1", &|whose| to_nextval(whose).to_string()),
                ],
            ),
            inserts.table(
                "INSERT",
                inserts.all(),
                [
                    ("µs of processor", &|whose| format!("{:.1}", inserts.median(whose, |cost| cost.cpu / INSERTS * 1e6))),
                    ("to nothing bound", &|whose| to_unbound(whose).to_string()),
                ],
            ),
            firsts.table(
                "first statement",
                firsts.all(),
                [
                    ("µs", &|whose| format!("{:.0}", firsts.median(whose, |seconds| seconds * 1e6))),
                    ("to a server without the library", &|whose| to_without(whose).to_string()),
                ],
            ),
        ],
        goals: vec![
            Goal::at_most("nextval of a sequence bound to snowflake ids costs at most nextval CACHE 1", to_nextval(SNOWFLAKE), 1.0, ""),
            Goal::at_most("nextval of a sequence bound to a tag costs at most nextval CACHE 1", to_nextval(SEGMENT), 1.0, ""),
            Goal::at_most("bound sequences add at most 3 % to an INSERT that is planned", to_unbound(1), 1.03, ""),
            Goal::at_most("a session's first statement takes at most 1.25x with 1,000 sequences bound", to_without(BOUND), 1.25, ""),
        ],
    }
}
