//! Gapless series: each key gets exactly the numbers 1..n, whatever ends the server or a transaction. The tables of counters do not
//! bloat.

use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;

/// Sessions that insert rows.
const SESSIONS: usize = 8;
/// Keys for which sessions insert rows.
const KEYS: u32 = 5;

/// A query that finds gaps in the numbers of the rows. Each test expects none.
const GAPS: &str = "select tenant || ': ' || count(*) || ' of ' || max(number) from invoice
    group by tenant having count(*) <> max(number) or min(number) <> 1 or count(distinct number) <> count(*)";
/// A query that finds counters that differ from the highest number of their rows.
const ASIDE: &str = "select k.key || ': ' || k.last_value from snowflake_ids.series_key as k
    where k.last_value <> (select max(number) from invoice where tenant = k.key_bigint)";

/// Creates a series, and the table whose rows the series numbers.
fn create(server: &Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "select snowflake_ids.series_create('invoices');
         create table invoice (tenant bigint, number bigint);
         select snowflake_ids.series_attach('invoice', 'number', 'invoices', 'tenant')",
    )?;
    Ok(())
}

fn has_no_gaps(client: &mut Client) -> Result<()> {
    let wrong: Vec<String> = client.column(GAPS)?;
    ensure!(wrong.is_empty(), "gaps: {wrong:?}");
    let wrong: Vec<String> = client.column(ASIDE)?;
    ensure!(wrong.is_empty(), "counters aside: {wrong:?}");
    Ok(())
}

/// Inserts until the server is gone: some rows by the trigger, some by a call. Some transactions are rolled back.
fn insert(mut client: Client, seed: u32) -> u64 {
    let mut random = seed.wrapping_mul(2_654_435_761) | 1;
    let mut done = 0;
    loop {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (tenant, choice) = ((random >> 8) % KEYS, random >> 24);
        let rows = match choice % 3 {
            0 => format!("insert into invoice values ({tenant}, series_nextval('invoices', {tenant}))"),
            1 => format!("insert into invoice (tenant) values ({tenant}), ({tenant}), ({tenant})"),
            _ => format!("insert into invoice (tenant) select {tenant} from generate_series(1, 5)"),
        };
        let end = if choice % 4 == 0 { "rollback" } else { "commit" };
        if client.batch_execute(&format!("begin; {rows}; {end}")).is_err() {
            return done;
        }
        done += 1;
    }
}

fn kill_9_leaves_no_gap(server: &mut Server) -> Result<()> {
    create(server)?;
    for round in 0..if full() { 20 } else { 4 } {
        let before: i64 = server.session()?.one("select count(*) from invoice")?;
        let sessions = server.sessions("postgres", SESSIONS)?;
        let inserting: Vec<_> = (1..)
            .zip(sessions)
            .map(|(seed, client)| thread::spawn(move || insert(client, seed + 100 * round)))
            .collect();
        let mut client = server.session()?;
        wait::until_true("rows", || {
            let rows: i64 = client.one("select count(*) from invoice")?;
            Ok(rows > before + 500)
        })?;
        server.kill9()?;
        for session in inserting {
            ensure!(session.join().is_ok(), "a session panicked");
        }
        server.start_again()?;
        has_no_gaps(&mut server.session()?)?;
    }
    Ok(())
}

fn a_dump_has_the_counters(server: &mut Server) -> Result<()> {
    create(server)?;
    let mut client = server.session()?;
    client.run(
        "insert into invoice (tenant) select k % 7 from generate_series(1, 100) as k;
         select snowflake_ids.series_create('dated', key_type => 'text', reset => 'year', format => '{YYYY}/{n:3}');
         select series_nextval('dated', 'a'), series_nextval('dated', 'a')",
    )?;
    server.create_database("copy")?.run("drop extension if exists snowflake_ids")?;
    server.restore("copy", &server.dump()?)?;
    let mut copy = server.connect("copy")?;
    has_no_gaps(&mut copy)?;
    copy.run("insert into invoice (tenant) select k % 9 from generate_series(1, 100) as k")?;
    has_no_gaps(&mut copy)?;
    let text: String = copy.one("select series_nextval_text('dated', 'a')")?;
    ensure!(text.ends_with("/003"), "{text}");
    Ok(())
}

/// A restore loads rows and counters separately, in either order, into existing tables.
fn counters_are_restored_after_rows_or_before(server: &mut Server) -> Result<()> {
    create(server)?;
    // Two keys have a row above their counter, as in 0.2, where no trigger raised counters.
    server.session()?.run(
        "insert into invoice (tenant) select k % 7 from generate_series(1, 100) as k;
         alter table invoice disable trigger user;
         insert into invoice values (1, 50), (9, 4);
         alter table invoice enable trigger user",
    )?;
    let dump = |options: &[&str]| server.dump_as("postgres", "postgres", options);
    let schema = dump(&["--schema-only"])?;
    let rows = dump(&["--data-only", "--table=invoice"])?;
    let counters = dump(&["--data-only", "--exclude-table=invoice"])?;
    let next = "insert into invoice (tenant) values (1), (2) returning number";
    let restored = [([&rows, &counters], [16, 16]), ([&counters, &rows], [51, 16])];
    for (place, (parts, expected)) in restored.into_iter().enumerate() {
        let database = format!("copy_{place}");
        server.create_database(&database)?.run("drop extension if exists snowflake_ids")?;
        server.restore(&database, &schema)?;
        for part in parts {
            server.restore(&database, part)?;
        }
        let numbers: Vec<i64> = server.connect(&database)?.column(next)?;
        ensure!(numbers == expected, "{place}: {numbers:?}");
    }
    Ok(())
}

fn a_prepared_transaction_keeps_its_number(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run("select snowflake_ids.series_create('invoices')")?;
    for (key, name) in [(1, "one"), (2, "two")] {
        client
            .run(&format!("begin; select series_nextval('invoices', {key}); prepare transaction '{name}'"))?;
    }
    // Other sessions wait for the prepared transaction, also after a crash.
    server.crash()?;
    let mut client = server.session()?;
    let refused = client.batch_execute("set lock_timeout = '10ms'; select series_nextval('invoices', 1)");
    ensure!(refused.is_err(), "did not wait");
    for statement in ["reset lock_timeout", "commit prepared 'one'", "rollback prepared 'two'"] {
        client.run(statement)?;
    }
    let next: i64 = client.one("select series_nextval('invoices', 1)")?;
    ensure!(next == 2, "{next}");
    let next: i64 = client.one("select series_nextval('invoices', 2)")?;
    ensure!(next == 1, "{next}");
    Ok(())
}

fn counters_do_not_bloat(server: &mut Server) -> Result<()> {
    create(server)?;
    let mut client = server.session()?;
    let calls = if full() { 1_000_000 } else { 50_000 };
    client.run("select series_nextval('invoices', k) from generate_series(1, 1000) as k")?;
    let size = "select pg_table_size('snowflake_ids.series_bigint')";
    client.run("vacuum snowflake_ids.series_bigint")?;
    let before: i64 = client.one(size)?;
    for call in 0..calls / 100 {
        let first = call * 100 % 1000 + 1;
        let keys = format!("generate_series({first}, {})", first + 99);
        client.run(&format!("select series_nextval('invoices', k) from {keys} as k"))?;
    }
    // Updates do not touch the index, except a few updates in transactions whose row versions do not fit on one page.
    let updates = "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'series_bigint'";
    let mut hot = 0;
    wait::until_true("the counts of updates", || {
        let row = client.query_one(updates, &[])?;
        hot = row.get(1);
        Ok(row.get::<_, i64>(0) == i64::from(calls))
    })?;
    ensure!(100 * hot >= 99 * i64::from(calls), "{hot} of {calls} updates stayed on their page");
    let after: i64 = client.one(size)?;
    ensure!(after <= 2 * before, "{before} bytes became {after}");
    let index: i64 = client.one("select pg_relation_size('snowflake_ids.series_bigint_pkey')")?;
    ensure!(index <= 200_000, "an index of {index} bytes for 1000 keys");
    Ok(())
}

#[test]
fn gapless_series_leave_no_gap() -> Result<()> {
    Server::builder().set("max_prepared_transactions", "5").set("autovacuum", "off").cases(cases![
        kill_9_leaves_no_gap,
        a_dump_has_the_counters,
        counters_are_restored_after_rows_or_before,
        a_prepared_transaction_keeps_its_number,
        counters_do_not_bloat
    ])
}
