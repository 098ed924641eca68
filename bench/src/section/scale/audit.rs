//! Audits of ten million ids, in several orders.

use crate::section::prelude::*;
use crate::session::DATABASE;

/// Tables of ids: the name, the query that fills the table, and further arguments of the audit.
const TABLES: [(&str, &str, &str); 5] = [
    ("in order", "select id from snowflake_nextvals($rows) id", ""),
    ("nearly in order", "select id from \"in order\" order by (id >> 22) / 1000, random()", ""),
    ("shuffled", "select id from \"in order\" order by random()", ""),
    ("a tenth updated", "select id from \"in order\"", ""),
    (
        "in order, with a connection",
        "select id from snowflake_nextvals($rows / 10) id",
        ", connections => '{other}'",
    ),
];
const IN_ORDER: usize = 0;
const DISTINCT: usize = TABLES.len();

pub fn measure(effort: Effort) -> Result<Outcome> {
    let rows = effort.pick("10000000", "1000000");
    let server = server::start(&[])?;
    let mut session = Session::open(&server)?;
    for (table, query, _) in TABLES {
        session.execute(&format!("create table \"{table}\" as {}", query.replace("$rows", rows)))?;
    }
    session.execute("update \"a tenth updated\" set id = id where id % 10 = 0")?;
    session.execute("vacuum (freeze, analyze)")?;
    server.create_database("other")?;
    let (folder, port) = (server.socket_folder().display(), server.port());
    session.execute(&format!(
        "create extension postgres_fdw;
         create server other foreign data wrapper postgres_fdw options (host '{folder}', port '{port}', dbname '{DATABASE}');
         create user mapping for postgres server other options (user 'postgres', password_required 'false')"
    ))?;
    let audits = TABLES.map(|(table, _, rest)| {
        (table, format!("select count(*) from snowflake_ids.audit('\"{table}\"', 'id'{rest})"))
    });
    let distinct = ("count(distinct id), in order", "select count(distinct id) from \"in order\"".to_owned());
    let queries: Vec<_> = audits.into_iter().chain([distinct]).collect();
    let costs = interleave(effort.pick(5, 3), &queries, |(_, query)| session.cost(query))?;
    let seconds = |cost: &Cost| cost.wall;
    let to_distinct = |whose| costs.ratio(whose, DISTINCT, seconds);
    Ok(Outcome {
        method: format!(
            "{rows} rows of snowflake ids in each table; a tenth as many in the table that is audited with a connection, which \
             reads the same table again. work_mem = 64MB."
        ),
        tables: vec![costs.table(
            "audit",
            costs.all(),
            [
                ("s", &|whose| format!("{:.1}", costs.median(whose, seconds))),
                ("to count(distinct id)", &|whose| to_distinct(whose).to_string()),
            ],
        )],
        goals: vec![Goal::at_most(
            "an audit of ids in order takes at most 4x the time of count(distinct id)",
            to_distinct(IN_ORDER),
            4.0,
            "",
        )],
    })
}
