//! `snowflake_safe_id`: a reader that continues after the last id that it has read misses no row, whatever writers do.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::sessions;
use snowflake_ids_server_tests::sql::NOT_IN_STATE;

const ROWS: &str = "select id from events where id < snowflake_safe_id() order by id";

fn builder() -> Builder {
    Server::builder().set("snowflake_ids.worker_id", "9").set("max_prepared_transactions", "10")
}

/// Opens a session in a database with an empty table, and reads the table once.
fn session(server: &Server) -> Result<Client> {
    let mut client = server.session()?;
    client.run("create table events (id bigint primary key default snowflake_nextval(), v text)")?;
    assert_eq!(client.column::<i64>(ROWS)?, [0; 0]);
    Ok(client)
}

fn insert(client: &mut Client) -> Result<i64> {
    client.one("insert into events default values returning id")
}

fn an_open_transaction_holds_readers_back_until_it_ends(server: &mut Server) -> Result<()> {
    let mut reader = session(server)?;
    let (mut early, mut late) = (server.connect("postgres")?, server.connect("postgres")?);
    for end in ["commit", "rollback"] {
        let before: Vec<i64> = reader.column(ROWS)?;
        early.run("begin; savepoint s")?;
        insert(&mut early)?;
        early.run("rollback to s")?;
        let held = insert(&mut early)?;
        let passed = insert(&mut late)?;
        assert!(held < passed);
        assert_eq!(reader.column::<i64>("select id from events order by id")?.last(), Some(&passed));
        assert_eq!(reader.column::<i64>(ROWS)?, before);
        let process = early.process()?;
        let holders: Vec<i32> = reader.column("select snowflake_ids_internal.safe_id_holders()")?;
        assert_eq!(holders, [0, process], "0 for prepared ones");
        early.run(end)?;
        let expected = if end == "commit" { vec![held, passed] } else { vec![passed] };
        assert_eq!(reader.column::<i64>(ROWS)?[before.len()..], expected, "{end}");
    }
    Ok(())
}

fn an_id_that_is_drawn_first_and_inserted_later_counts(server: &mut Server) -> Result<()> {
    let mut reader = session(server)?;
    let (mut early, mut late) = (server.connect("postgres")?, server.connect("postgres")?);
    // The session keeps ids of an earlier transaction.
    early.run("set snowflake_ids.cache = 100")?;
    insert(&mut early)?;
    insert(&mut late)?;
    let before: Vec<i64> = reader.column(ROWS)?;
    assert_eq!(before.len(), 2);
    early.run("begin")?;
    let id: i64 = early.one("select snowflake_nextval()")?;
    assert!(id > before[1], "what it held is below an id that was read: {id} of {before:?}");
    insert(&mut late)?;
    early.run(&format!("insert into events values ({id})"))?;
    assert_eq!(reader.column::<i64>(ROWS)?, before);
    early.run("commit")?;
    assert_eq!(reader.column::<i64>(ROWS)?.len(), 4);
    Ok(())
}

fn other_databases_and_transactions_without_ids_hold_nobody_back(server: &mut Server) -> Result<()> {
    let mut reader = session(server)?;
    server.create_database("other")?;
    let (mut other, mut report) = (server.connect("other")?, server.connect("postgres")?);
    other.run(
        "create extension if not exists snowflake_ids; begin; select snowflake_nextval(); create table t ()",
    )?;
    report.run("begin isolation level repeatable read; create table busy (); select count(*) from events")?;
    let id = insert(&mut reader)?;
    assert_eq!(reader.column::<i64>(ROWS)?, [id]);
    Ok(())
}

fn an_old_snapshot_has_no_row_that_came_after_it(server: &mut Server) -> Result<()> {
    let (mut reader, mut writer) = (session(server)?, server.connect("postgres")?);
    let first = insert(&mut writer)?;
    reader.run("begin isolation level repeatable read; select count(*) from events")?;
    let later = insert(&mut writer)?;
    let safe: i64 = reader.one("select snowflake_safe_id()")?;
    assert!(safe <= later, "{safe} is above {later}, which the snapshot does not see");
    reader.run("commit")?;
    assert_eq!(reader.column::<i64>(ROWS)?, [first, later]);
    Ok(())
}

/// The plan calls the function for each row, both before and after other transactions commit.
fn a_cursor_keeps_its_bound(server: &mut Server) -> Result<()> {
    let (mut reader, mut writer) = (session(server)?, server.connect("postgres")?);
    let mut early = server.connect("postgres")?;
    let first = insert(&mut writer)?;
    assert_eq!(reader.column::<i64>(ROWS)?, [first]);
    early.run("begin")?;
    let held = insert(&mut early)?;
    let passed = insert(&mut writer)?;
    reader.run(
        "begin; set local enable_indexscan = off; set local enable_bitmapscan = off; set local enable_sort = off;
         declare c cursor for select id from events where id < snowflake_safe_id() or id < snowflake_safe_id()",
    )?;
    assert_eq!(reader.column::<i64>("fetch 1 from c")?, [first]);
    early.run("commit")?;
    assert_eq!(reader.column::<i64>(ROWS)?, [first, held, passed], "a later statement of the transaction");
    assert_eq!(reader.column::<i64>("fetch all from c")?, [0; 0]);
    reader.run("rollback")?;
    // The cursor gives the rows of its snapshot, although a later statement sees more.
    reader.run(&format!("begin; declare c cursor for {ROWS}"))?;
    let later = insert(&mut writer)?;
    assert_eq!(reader.column::<i64>(ROWS)?.last(), Some(&later));
    assert_eq!(reader.column::<i64>("fetch all from c")?, [first, held, passed]);
    Ok(())
}

fn a_prepared_transaction_counts_also_after_a_crash(server: &mut Server) -> Result<()> {
    let mut reader = session(server)?;
    let mut writer = server.connect("postgres")?;
    writer.run("begin")?;
    let held = insert(&mut writer)?;
    writer.run("prepare transaction 'held'")?;
    let passed = insert(&mut writer)?;
    assert_eq!(reader.column::<i64>(ROWS)?, [0; 0]);
    server.crash()?;
    let (mut reader, mut writer) = (server.connect("postgres")?, server.connect("postgres")?);
    assert_eq!(reader.column::<i64>(ROWS)?, [0; 0]);
    assert_eq!(reader.one::<Option<i64>>("select snowflake_safe_id()")?, None);
    writer.run("commit prepared 'held'")?;
    assert_eq!(reader.column::<i64>(ROWS)?, [held, passed]);
    Ok(())
}

fn a_prepared_transaction_of_another_database_holds_nobody_back(server: &mut Server) -> Result<()> {
    session(server)?;
    let mut other = server.create_database("other")?;
    other.run("create extension if not exists snowflake_ids")?;
    other.run("begin; create table t as select snowflake_nextval(); prepare transaction 'left'")?;
    // After the start, all earlier transactions are unknown.
    server.restart()?;
    let mut reader = server.connect("postgres")?;
    let id = insert(&mut reader)?;
    assert_eq!(reader.column::<i64>(ROWS)?, [id]);
    server.connect("other")?.run("rollback prepared 'left'")
}

/// The other side's transaction stores the rows, and commits before this side's transaction, which took the ids.
fn rows_that_are_stored_through_a_foreign_table_count(server: &mut Server) -> Result<()> {
    let mut reader = session(server)?;
    let (mut early, mut late) = (server.connect("postgres")?, server.connect("postgres")?);
    server.connect_from(&mut reader, "here", "postgres")?;
    reader.run(
        "create foreign table far (id bigint default snowflake_nextval(), v text) server here options (table_name 'events');
         create table parted (id bigint default snowflake_nextval(), v text) partition by list (v);
         create foreign table far_part partition of parted default server here options (table_name 'events')",
    )?;
    for store in [
        "insert into far default values",
        "insert into parted default values",
        "copy parted (v) from program 'echo a'",
        "update far set id = snowflake_nextval() where v = 'a'",
        "update parted set id = snowflake_nextval() where v = 'a'",
        "with stored as (insert into parted default values) select",
    ] {
        let before: Vec<i64> = reader.column(ROWS)?;
        early.run(&format!("begin; {store}"))?;
        insert(&mut late)?;
        reader.run("begin isolation level repeatable read; select count(*) from events")?;
        early.run("commit")?;
        assert_eq!(reader.column::<i64>(ROWS)?, before, "{store}");
        reader.run("commit")?;
        let all: Vec<i64> = reader.column("select id from events order by id")?;
        assert_eq!(reader.column::<i64>(ROWS)?, all, "{store}");
    }
    Ok(())
}

fn parallel_workers_draw_for_their_leader(server: &mut Server) -> Result<()> {
    let mut writer = sessions::parallel(server, 50_000)?;
    let mut reader = session(server)?;
    let mut other = server.connect("postgres")?;
    writer.run("begin; create table drawn as select a, snowflake_nextval() as id from t")?;
    let least: i64 = writer.one("select min(id) from drawn")?;
    // The parallel workers of another plan begin and end transactions of their own.
    writer.run("select count(*) from t where a % 3 = 0")?;
    insert(&mut other)?;
    let safe: i64 = reader.one("select snowflake_safe_id()")?;
    assert!(safe <= least, "{safe} is above {least}, which may still be inserted");
    writer.run("commit")?;
    assert!(reader.one::<bool>("select snowflake_safe_id() > max(id) from events")?);
    Ok(())
}

fn an_idle_server_hides_no_row(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let id = insert(&mut client)?;
    assert_eq!(client.column::<i64>(ROWS)?, [id]);
    client.run("create table u (id uuid default snowflake_uuid()); insert into u default values")?;
    let below = "select count(*) = 1 from u where id < snowflake_min_uuid(snowflake_safe_time())";
    client.becomes_true(below)?;
    drop(client);
    server.restart()?;
    let mut client = server.connect("postgres")?;
    assert_eq!(client.column::<i64>(ROWS)?, [id], "after a restart");
    Ok(())
}

fn every_kind_of_id_of_the_servers_layout_counts(server: &mut Server) -> Result<()> {
    let mut reader = session(server)?;
    let mut writer = server.connect("postgres")?;
    writer.run(
        "select snowflake_ids.generator_create('own', current_setting('snowflake_ids.layout'));
         create sequence s; select snowflake_ids.bind_sequence('s', 'snowflake')",
    )?;
    for draw in [
        "snowflake_nextval('own')",
        "nextval('s')",
        "(select max(n) from snowflake_nextvals(3) n)",
        "snowflake_id()",
    ] {
        writer.run(&format!("begin; insert into events values ({draw})"))?;
        insert(&mut reader)?;
        let held: bool = reader.one("select snowflake_safe_id() <= (select max(id) from events)")?;
        assert!(held, "{draw}");
        writer.run("commit")?;
        assert!(reader.one::<bool>("select snowflake_safe_id() > max(id) from events")?, "{draw}");
    }
    Ok(())
}

#[test]
fn no_row_is_missed() -> Result<()> {
    builder().cases(cases![
        an_open_transaction_holds_readers_back_until_it_ends,
        an_id_that_is_drawn_first_and_inserted_later_counts,
        other_databases_and_transactions_without_ids_hold_nobody_back,
        an_old_snapshot_has_no_row_that_came_after_it,
        a_cursor_keeps_its_bound,
        a_prepared_transaction_counts_also_after_a_crash,
        a_prepared_transaction_of_another_database_holds_nobody_back,
        rows_that_are_stored_through_a_foreign_table_count,
        parallel_workers_draw_for_their_leader,
        an_idle_server_hides_no_row,
        every_kind_of_id_of_the_servers_layout_counts
    ])
}

#[test]
fn where_it_cannot_be_known_it_is_refused() -> Result<()> {
    let (primary, mut client) = builder().with_session()?;
    client.one::<i64>("select snowflake_safe_id()")?;
    let switches = "set snowflake_ids.clock_rollback = switch; select snowflake_safe_id()";
    client.explained(
        switches,
        NOT_IN_STATE,
        "cannot execute snowflake_safe_id() while snowflake_ids.clock_rollback is \"switch\"",
    )?;
    let standby = primary.standby()?;
    let error = standby
        .connect("postgres")?
        .fails("select snowflake_safe_id()", &SqlState::READ_ONLY_SQL_TRANSACTION)?;
    assert!(error.message().contains("snowflake_safe_id() during recovery"), "{error:?}");
    Ok(())
}

/// Each reservation records a bound of the safe ids, which is ahead of the clock.
#[test]
fn a_worker_id_is_released_while_there_are_readers() -> Result<()> {
    let server = Server::builder().set("snowflake_ids.worker_id", "auto").start()?;
    let mut reader = session(&server)?;
    let mut last = insert(&mut reader)?;
    for _ in 0..3 {
        let safe: i64 = reader.one("select snowflake_safe_id()")?;
        reader.run(&format!("select snowflake_ids.worker_release(snowflake_worker_id({last}))"))?;
        let next = insert(&mut reader)?;
        let pair = |id| format!("(snowflake_datacenter_id({id}), snowflake_worker_id({id}))");
        let is_other = format!("select {} <> {}", pair(next), pair(last));
        assert!(reader.one::<bool>(&is_other)?, "the worker id stayed");
        assert!(next > last && next >= safe, "{next} after {last}, {safe}");
        last = next;
    }
    Ok(())
}

#[test]
fn attention_names_transactions_that_hold_readers_back_for_more_than_a_minute() -> Result<()> {
    const HOLDERS: &str = "select split_part(problem, ' hold', 1) from snowflake_ids.attention where subject = 'readers' order by 1";
    let server = builder().false_clock().start()?;
    let mut reader = session(&server)?;
    let (mut open, mut prepared) = (server.connect("postgres")?, server.connect("postgres")?);
    open.run("begin")?;
    insert(&mut open)?;
    prepared.run("begin")?;
    insert(&mut prepared)?;
    prepared.run("prepare transaction 'left'")?;
    assert!(reader.column::<String>(HOLDERS)?.is_empty());
    server.set_clock("+90")?;
    let process = open.process()?;
    let expected = ["prepared transaction \"left\" may".to_owned(), format!("process {process}")];
    assert_eq!(reader.column::<String>(HOLDERS)?, expected);
    open.run("commit")?;
    prepared.run("rollback prepared 'left'")?;
    assert!(reader.column::<String>(HOLDERS)?.is_empty());
    Ok(())
}
