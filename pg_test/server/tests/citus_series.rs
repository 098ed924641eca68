//! Series in a Citus cluster. Series used by all nodes exist on all nodes. A gapless series is distributed beside the table with
//! its keys. The stand-in for Citus distributes no rows, so each node counts the keys of its own calls.

use snowflake_ids_server_tests::citus::{Citus, SetUp, USE_CITUS, problems, well};
use snowflake_ids_server_tests::prelude::*;

/// A session, two roles on both nodes, and one role's distributed table with a series of that role.
fn session(cluster: &Citus) -> Result<Client> {
    for server in cluster.servers() {
        let mut client = server.connect("postgres")?;
        client
            .run("set citus.enable_ddl_propagation = off; create role app login; create role other login")?;
    }
    let mut client = cluster.session()?;
    client.run(
        "create table invoice (tenant integer not null, number bigint not null, primary key (tenant, number));
         alter table invoice owner to app;
         select create_distributed_table('invoice', 'tenant');
         select snowflake_ids.series_create('invoices', owner => 'app')",
    )?;
    Ok(client)
}

fn next(client: &mut Client, key: i32) -> Result<i64> {
    client.one(&format!("select series_nextval('invoices', {key})"))
}

const DISTRIBUTE: &str = "select snowflake_ids.series_distribute('invoices', 'invoice')";
const KEYS: &str = "(select 'snowflake_ids.series_keys_' || lpad(to_hex(id), 16, '0') from snowflake_ids.series where name = 'invoices')";

fn a_distributed_series_goes_on_where_it_was_on_all_nodes_until_it_is_dropped(
    cluster: &mut Citus,
) -> Result<()> {
    let mut client = session(cluster)?;
    client.run("set role app")?;
    ensure!((next(&mut client, 7)?, next(&mut client, 7)?) == (1, 2));
    client.run(DISTRIBUTE)?;
    ensure!((next(&mut client, 7)?, next(&mut client, 8)?) == (3, 1));
    let low = client.error("select snowflake_ids.series_set('invoices', 7, 1)")?;
    ensure!(low.message().contains("is below issued numbers of key 7"), "{low:?}");
    client.run("select snowflake_ids.series_set('invoices', 7, 10)")?;
    client.run("begin; select series_nextval('invoices', 7); rollback")?;
    ensure!(next(&mut client, 7)? == 11, "a rollback gives the number back");
    client.run("select snowflake_ids.series_alter('invoices', max_value => 12)")?;
    let mut worker = cluster.workers[0].connect("postgres")?;
    ensure!(next(&mut worker, 9)? == 1);
    let defined = "select max_value || scope from snowflake_ids.series where name = 'invoices'";
    ensure!(worker.one::<String>(defined)? == "12shard");
    let used_up = "select series_nextval('invoices', 7), series_nextval('invoices', 7)";
    client.fails(used_up, &SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED)?;
    for change in ["series_drop('invoices')", "series_grant('invoices', 'other', 'USAGE')"] {
        worker.explained(
            &format!("select snowflake_ids.{change}"),
            sql::NOT_IN_STATE,
            "this node is a worker of a Citus cluster",
        )?;
    }
    client.run("select snowflake_ids.series_drop('invoices')")?;
    worker.fails("select series_nextval('invoices', 9)", &SqlState::UNDEFINED_OBJECT)?;
    client.run("reset role")?;
    ensure!(client.one::<i64>("select count(*) from pg_class where relname like 'series_keys_%'")? == 0);
    well(&mut client, 2)
}

fn a_distributed_series_begins_anew_with_each_period(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    client.run(
        "select snowflake_ids.series_create('receipts', owner => 'app', reset => 'year', format => '{YYYY}-{n}')",
    )?;
    client.run("select snowflake_ids.series_distribute('receipts', 'invoice')")?;
    let next =
        "select series_nextval_text('receipts', 7) = to_char(now() at time zone 'UTC', 'YYYY') || '-' || ";
    ensure!(client.one::<bool>(&format!("{next}'1'"))?);
    ensure!(client.one::<bool>(&format!("{next}'2'"))?);
    let keys: String = client.one(&format!("select {}", KEYS.replace("invoices", "receipts")))?;
    client.run(&format!("update {keys} set period = period - interval '1 year', last_value = 9"))?;
    ensure!(client.one::<bool>(&format!("{next}'1'"))?);
    client.run("select snowflake_ids.series_set('receipts', 7, 5)")?;
    ensure!(client.one::<bool>(&format!("{next}'6'"))?);
    Ok(())
}

/// The key table is written with the caller's rights, which follow the rights on the series.
fn rights_on_a_distributed_series_are_rights_on_its_key_table(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    client.run(DISTRIBUTE)?;
    client.run("set role other")?;
    client.explained(
        "select series_nextval('invoices', 1)",
        &SqlState::INSUFFICIENT_PRIVILEGE,
        "permission denied for series \"invoices\"",
    )?;
    for (granted, may) in [("SELECT", false), ("USAGE", true)] {
        client.run(&format!(
            "reset role; select snowflake_ids.series_grant('invoices', 'other', '{granted}'); set role other"
        ))?;
        ensure!(client.simple_query("select series_nextval('invoices', 1)").is_ok() == may, "{granted}");
        let has = "select snowflake_ids.has_series_privilege('invoices', 'USAGE')";
        ensure!(client.one::<bool>(has)? == may, "{granted}");
    }
    client
        .run("reset role; select snowflake_ids.series_revoke('invoices', 'other', 'ALL'); set role other")?;
    client.error("select series_nextval('invoices', 1)")?;
    // Triggers on another role's table would run with the caller's rights.
    client.run("reset role")?;
    let keys: String = client.one(&format!("select {KEYS}"))?;
    client.run(&format!("alter table {keys} owner to other"))?;
    let missing = "the key table of series \"invoices\" does not exist";
    client.explained("select series_nextval('invoices', 1)", sql::NOT_IN_STATE, missing).map(drop)
}

/// Runs a statement in its own session, and returns once the statement waits for a lock.
fn waits(server: &Server, mut client: Client, statement: &'static str) -> Result<thread::JoinHandle<Client>> {
    let session = client.process()?;
    let running = thread::spawn(move || {
        // The statement may fail if its number came from the table before the distribution.
        drop(client.simple_query(statement));
        client
    });
    server.wait_for_lock(session)?;
    Ok(running)
}

/// A session that waits for a counter while the series is distributed gets no other session's number.
fn nobody_begins_anew_while_a_series_is_distributed(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    let mut waiting = cluster.coordinator.connect("postgres")?;
    ensure!((next(&mut client, 7)?, next(&mut waiting, 7)?) == (1, 2));
    let mut blocker = cluster.session()?;
    blocker.run("begin; lock table invoice")?;
    let distributes = waits(&cluster.coordinator, client, DISTRIBUTE)?;
    let waits = waits(&cluster.coordinator, waiting, "select series_nextval('invoices', 7)")?;
    blocker.run("commit")?;
    let (mut client, mut waiting) = (distributes.ended(), waits.ended());
    let scope = "select scope from snowflake_ids.series where name = 'invoices'";
    ensure!(client.one::<String>(scope)? == "shard");
    let (first, second) = (next(&mut client, 7)?, next(&mut waiting, 7)?);
    ensure!((3..=4).contains(&first) && second == first + 1, "{first}, {second}");
    Ok(())
}

fn what_cannot_be_distributed_is_refused(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    client.run(
        "create table plain (tenant bigint, number bigint); create table named (tenant text, number bigint);
         select create_distributed_table('named', 'tenant');
         select snowflake_ids.series_create('open'); select snowflake_ids.series_create('many', 'monotonic', owner => 'app')",
    )?;
    let not_ready = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
    let refused = [
        ("'open', 'invoice'", &not_ready, "cannot distribute series \"open\", which is open to every role"),
        (
            "'many', 'invoice'",
            &SqlState::FEATURE_NOT_SUPPORTED,
            "cannot distribute series \"many\", which is monotonic",
        ),
        (
            "'invoices', 'named'",
            &SqlState::DATATYPE_MISMATCH,
            "table public.named is distributed by a column of type text",
        ),
    ];
    for (arguments, code, message) in refused {
        client.explained(&format!("select snowflake_ids.series_distribute({arguments})"), code, message)?;
    }
    client
        .fails("select snowflake_ids.series_distribute('invoices', 'plain')", &SqlState::WRONG_OBJECT_TYPE)?;
    client.fails(
        "select snowflake_ids.series_create('s', scope => 'shard')",
        &SqlState::FEATURE_NOT_SUPPORTED,
    )?;
    let old = client.error(&format!("begin isolation level repeatable read; {DISTRIBUTE}"))?;
    client.run("rollback")?;
    ensure!(old.code() == &SqlState::FEATURE_NOT_SUPPORTED, "{old:?}");
    let block = client.error(&format!("begin; {DISTRIBUTE}"))?;
    client.run("rollback")?;
    sql::explains(
        &block,
        &SqlState::ACTIVE_SQL_TRANSACTION,
        "cannot distribute a series in a transaction block",
    )?;
    // The trigger would write with its caller's rights.
    let attach = |table: &str| {
        format!("select snowflake_ids.series_attach('{table}', 'number', 'invoices', 'tenant')")
    };
    client.explained(
        &attach("invoice"),
        &SqlState::FEATURE_NOT_SUPPORTED,
        "cannot attach distributed table public.invoice to a series",
    )?;
    client.run(DISTRIBUTE)?;
    client.explained(DISTRIBUTE, &not_ready, "series \"invoices\" has scope \"shard\"")?;
    client.explained(
        &attach("plain"),
        &SqlState::FEATURE_NOT_SUPPORTED,
        "cannot fill a column from series \"invoices\", which is distributed",
    )?;
    client.run("select snowflake_ids.series_create('theirs', owner => 'other'); set role other")?;
    let theirs = client.error("select snowflake_ids.series_distribute('theirs', 'invoice')")?;
    ensure!(theirs.message() == "must be owner of the table", "{theirs:?}");
    client.fails(DISTRIBUTE, &SqlState::INSUFFICIENT_PRIVILEGE)?;
    let mut worker = cluster.workers[0].connect("postgres")?;
    worker.explained(DISTRIBUTE, &not_ready, "this node is a worker of a Citus cluster").map(drop)
}

/// A worker that is added later has the coordinator's generators, series and rights. Later differences are reported.
#[test]
fn a_worker_that_is_added_has_what_the_coordinator_defines() -> Result<()> {
    let mut cluster = Citus::joined(1)?;
    let mut client = session(&cluster)?;
    client.run(
        "select snowflake_ids.generator_create('web', 'javascript');
         select snowflake_ids.series_create('events', 'monotonic', sections => 2); select snowflake_ids.segment_create('secret');
         select snowflake_ids.segment_revoke('secret', 'public', 'ALL')",
    )?;
    client.run(DISTRIBUTE)?;
    cluster.add()?;
    let mut worker = cluster.workers[1].connect("postgres")?;
    ensure!(worker.one::<i64>("select snowflake_nextval('web')")? > 0);
    ensure!(worker.one::<i64>("select series_nextval('events', 1)")? > 0);
    ensure!(next(&mut worker, 1)? == 1);
    client.run(USE_CITUS)?;
    well(&mut client, 3)?;
    worker.run("update snowflake_ids.series set format = 'X-{n}' where name = 'invoices'")?;
    let said = problems(&mut client)?;
    ensure!(
        said[&3]
            .as_deref()
            .unwrap_or_default()
            .contains("its series, or the rights on them, are not those of node 1"),
        "{said:?}"
    );
    client.run(USE_CITUS)?;
    well(&mut client, 3)
}

#[test]
fn series_of_a_cluster() -> Result<()> {
    Citus::cases(
        1,
        SetUp::Joined,
        cases![
            a_distributed_series_goes_on_where_it_was_on_all_nodes_until_it_is_dropped,
            a_distributed_series_begins_anew_with_each_period,
            rights_on_a_distributed_series_are_rights_on_its_key_table,
            nobody_begins_anew_while_a_series_is_distributed,
            what_cannot_be_distributed_is_refused
        ],
    )
}
