//! The cost of planning with the library, which looks for bound sequences in each statement.

use super::prelude::*;
use crate::session::DATABASE;
use snowflake_ids_server_tests::Builder;

/// Statements that are planned, and the claims about them.
const STATEMENTS: [(&str, &str, &str); 2] = [
    (
        "a point query",
        "planning a point query takes at most 1 % more where nothing is bound",
        "select relname from pg_catalog.pg_class where oid = 1259",
    ),
    (
        "a join of four tables",
        "planning a join takes at most 1 % more where nothing is bound",
        "select * from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
         join pg_catalog.pg_attribute a on a.attrelid = c.oid join pg_catalog.pg_type t on t.oid = a.atttypid \
         where n.nspname = ''public'' and a.attnum > 0 order by c.relname, a.attnum",
    ),
];

const SERVERS: [&str; 3] = ["without the library", "nothing bound", "a sequence bound"];
const WITHOUT: usize = 0;
const UNBOUND: usize = 1;
/// The number of plans in one slice.
const PLANS: [f64; 2] = [20_000.0, 2_000.0];

/// A server whose allocator returns no memory to the kernel. Otherwise the use of other memory would decide whether the allocator
/// returns memory after each plan, which costs more than the planning.
fn builder() -> Builder {
    let keep = |builder: Builder, (name, value)| builder.environment(name, value);
    let memory = [("MALLOC_TRIM_THRESHOLD_", "1000000000"), ("MALLOC_TOP_PAD_", "16777216")];
    memory.into_iter().fold(Server::full_size().quiet().set("autovacuum", "off").set("jit", "off"), keep)
}

fn start(builder: Builder) -> Result<Server> {
    let server = builder.start()?;
    server.create_database(DATABASE)?;
    Ok(server)
}

pub fn measure(effort: Effort) -> Result<Outcome> {
    let servers = [start(builder().without_preload())?, start(builder())?, start(builder())?];
    let [_, _, bound] = &servers;
    Session::open(bound)?
        .execute("create sequence numbers; select snowflake_ids.bind_sequence('numbers')")?;
    let mut sessions =
        [Session::open(&servers[0])?, Session::open(&servers[1])?, Session::open(&servers[2])?];
    let mut outcome = Outcome {
        method: "`EXPLAIN` in a loop on the server, on three servers that take turns; processor time of the session.".to_owned(),
        ..Outcome::default()
    };
    for ((what, claim, statement), plans) in STATEMENTS.into_iter().zip(PLANS) {
        let repeat =
            format!("do $$ begin for i in 1..{plans} loop execute 'explain {statement}'; end loop; end $$");
        let contestants = [0, 1, 2].map(|whose| (SERVERS[whose], whose));
        let mut in_turns = |rounds| {
            interleave(rounds, &contestants, |(_, whose)| {
                Ok(sessions[*whose].cost(&repeat)?.cpu / plans * 1e6)
            })
        };
        in_turns(1)?;
        let plan = in_turns(effort.pick(31, 5))?;
        let median = |whose| format!("{:.2}", plan.median(whose, |time| *time));
        let ratio = |whose| plan.ratio(whose, WITHOUT, |time| *time).to_string();
        let columns: [(&str, &dyn Fn(usize) -> String); 2] =
            [("processor µs", &median), ("to a server without the library", &ratio)];
        outcome.tables.push(plan.table(what, plan.all(), columns));
        outcome.goals.push(Goal::at_most(
            claim,
            plan.ratio(UNBOUND, WITHOUT, |time| *time),
            1.01,
            " of its time",
        ));
    }
    Ok(outcome)
}
