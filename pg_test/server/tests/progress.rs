//! Progress of a long call, as other sessions see it while the call is blocked. The progress disappears however the call ends.

use snowflake_ids_server_tests::prelude::*;
use std::thread::{self, JoinHandle};

/// The rows of the table that is read slowly.
const ROWS: i64 = 3_000;

/// A session, and a table of ids that is read through a view. Reading the view blocks at one id while the session holds a lock.
fn session(server: &Server) -> Result<Client> {
    let mut client = server.session()?;
    server.connect_from(&mut client, "here", "postgres")?;
    client.run(&format!(
        "alter server here options (add fetch_size '1000');
         create table slow_rows (id bigint primary key);
         insert into slow_rows select generate_series(1, {all});
         create view slow as select id from slow_rows where id <> {stop} or pg_advisory_xact_lock_shared(1) is not null;
         create foreign table held (id bigint) server here options (table_name 'slow');
         create table orders (id bigserial primary key);
         create table parted (id bigint not null) partition by range (id);
         create table parted_1 partition of parted for values from (0) to (10);
         create table parted_2 partition of parted for values from (10) to (20);
         create role clerk login; create role reader login in role pg_read_all_stats",
        all = ROWS,
        stop = ROWS - 500,
    ))?;
    client.run("select pg_advisory_lock(1)")?;
    Ok(client)
}

const AUDIT: &str = "select count(*) from snowflake_ids.audit('held', 'id', max_findings => 1)";

/// Starts a statement in its own session. Returns the process and the statement's result.
fn begin(server: &Server, statement: &str) -> Result<(i32, JoinHandle<Result<(), postgres::Error>>)> {
    let mut client = server.connect("postgres")?;
    let pid = client.process()?;
    let statement = statement.to_owned();
    Ok((pid, thread::spawn(move || client.batch_execute(&statement))))
}

fn seen(client: &mut Client, pid: i32, what: &str) -> Result<bool> {
    client.one(&format!("select exists (select from snowflake_ids.progress where pid = {pid} and {what})"))
}

fn wait_for(client: &mut Client, pid: i32, what: &str) -> Result<()> {
    wait::until_true(what, || seen(client, pid, what))
}

fn ensure_gone(client: &mut Client) -> Result<()> {
    let calls: i64 = client.one("select count(*) from snowflake_ids.progress")?;
    ensure!(calls == 0, "{calls} calls are still shown");
    Ok(())
}

fn code(ended: JoinHandle<Result<(), postgres::Error>>) -> Result<SqlState> {
    let error = ended.ended().err().context("no error")?;
    Ok(error.code().cloned().unwrap_or(SqlState::ADMIN_SHUTDOWN))
}

/// Matches an audit that is blocked at its row.
const HELD: &str =
    "command = 'audit' and phase = 'reading ids' and relid = 'held'::regclass and datname = 'postgres'
    and tables_total is null and started_at <= clock_timestamp()
    and exists (select from pg_stat_activity where application_name = 'postgres_fdw' and wait_event = 'advisory')";

fn an_audit_is_seen_until_its_end(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let (pid, audit) = begin(server, AUDIT)?;
    wait_for(&mut client, pid, HELD)?;
    client.run("select pg_advisory_unlock(1)")?;
    audit.ended()?;
    ensure_gone(&mut client)
}

fn an_audit_is_seen_no_more_after_a_cancel_or_an_error(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let (pid, audit) = begin(server, AUDIT)?;
    wait_for(&mut client, pid, HELD)?;
    client.run(&format!("select pg_cancel_backend({pid})"))?;
    assert_eq!(code(audit)?, SqlState::QUERY_CANCELED);
    ensure_gone(&mut client)?;

    // The error is caught in a block, and the transaction continues.
    let caught = format!(
        "do $$ begin perform * from ({AUDIT}) as a; exception when query_canceled then null; end $$; select pg_advisory_lock(2)"
    );
    client.run("select pg_advisory_lock(2)")?;
    let (pid, audit) = begin(server, &caught)?;
    wait_for(&mut client, pid, HELD)?;
    client.run(&format!("select pg_cancel_backend({pid})"))?;
    wait::until_true("the audit to be seen no more", || Ok(!seen(&mut client, pid, "true")?))?;
    ensure!(!audit.is_finished(), "its transaction goes on");
    client.run("select pg_advisory_unlock(2)")?;
    audit.ended()?;

    // Reading the table fails.
    let failing = begin(server, &format!("set statement_timeout = 0; {AUDIT}"))?;
    wait_for(&mut client, failing.0, HELD)?;
    client.run(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'postgres_fdw'",
    )?;
    let error = code(failing.1)?;
    ensure!(error != SqlState::QUERY_CANCELED, "{error:?}");
    ensure_gone(&mut client)
}

fn an_audit_is_seen_no_more_when_its_process_has_ended(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let (pid, audit) = begin(server, AUDIT)?;
    wait_for(&mut client, pid, HELD)?;
    client.run(&format!("select pg_terminate_backend({pid})"))?;
    assert_eq!(code(audit)?, SqlState::ADMIN_SHUTDOWN);
    wait::until_true("the audit to be seen no more", || Ok(!seen(&mut client, pid, "true")?))
}

fn attach_is_seen_while_it_waits_and_no_more_after_an_error(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let waiting = "command = 'attach' and phase = 'waiting for the table' and relid = 'orders'::regclass";
    let attach = "select snowflake_ids.attach('orders', 'id')";
    let mut holder = server.connect("postgres")?;

    holder.run("begin; lock table orders in access share mode")?;
    let (pid, attaching) = begin(server, attach)?;
    wait_for(&mut client, pid, waiting)?;
    client.run(&format!("select pg_cancel_backend({pid})"))?;
    assert_eq!(code(attaching)?, SqlState::QUERY_CANCELED);
    // The error is sent before the transaction ends.
    wait::until_true("attach to be seen no more", || Ok(!seen(&mut client, pid, "true")?))?;

    // A subtransaction fails, and its transaction continues.
    client.run("select pg_advisory_lock(2)")?;
    let caught = format!(
        "do $$ begin perform * from ({attach}) as a; exception when query_canceled then null; end $$; select pg_advisory_lock(2)"
    );
    let (pid, attaching) = begin(server, &caught)?;
    wait_for(&mut client, pid, waiting)?;
    client.run(&format!("select pg_cancel_backend({pid})"))?;
    wait::until_true("attach to be seen no more", || Ok(!seen(&mut client, pid, "true")?))?;
    ensure!(!attaching.is_finished(), "its transaction goes on");
    client.run("select pg_advisory_unlock(2)")?;
    attaching.ended()?;

    // After the call has ended, its transaction may continue.
    holder.run("commit")?;
    holder.run(&format!("begin; {attach}"))?;
    ensure_gone(&mut client)?;
    holder.run("rollback; begin")?;
    holder.run(&format!("{attach}; select snowflake_ids.detach('orders', 'id')"))?;
    ensure_gone(&mut client)?;
    holder.run("commit")
}

fn attach_tells_how_many_partitions_it_has_searched(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    // The last of three tables is read separately, from its highest id on, and blocks there.
    client.run(&format!(
        "create view slow_end as
             select id from slow_rows where id <> {ROWS} or pg_advisory_xact_lock_shared(1) is not null;
         create foreign table parted_3 partition of parted for values from (20) to (1000000)
             server here options (table_name 'slow_end')"
    ))?;
    let (pid, attaching) = begin(server, "select snowflake_ids.attach('parted', 'id', 'segment', 'p')")?;
    wait_for(
        &mut client,
        pid,
        "command = 'attach' and phase = 'searching for the highest id' and relid = 'parted'::regclass
             and tables_done = 3 and tables_total = 4",
    )?;
    client.run("select pg_advisory_unlock(1)")?;
    attaching.ended()?;
    ensure_gone(&mut client)
}

fn of_a_call_of_another_role_it_is_told_only_that_there_is_one(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let (pid, audit) = begin(server, AUDIT)?;
    wait_for(&mut client, pid, HELD)?;
    let as_role = |role: &str| -> Result<Client> {
        let mut config = server.config("postgres");
        Ok(config.user(role).connect(NoTls)?)
    };
    let hidden = "relid is null and command is null and phase is null
        and tables_done is null and tables_total is null and started_at is null and datname = 'postgres'";
    ensure!(seen(&mut as_role("clerk")?, pid, hidden)?, "what another role does is shown");
    ensure!(seen(&mut as_role("reader")?, pid, HELD)?, "a member of pg_read_all_stats sees nothing");
    client.run("select pg_advisory_unlock(1)")?;
    audit.ended()?;
    Ok(())
}

#[test]
fn calls_are_seen_until_they_end() -> Result<()> {
    Server::builder().cases(cases![
        an_audit_is_seen_until_its_end,
        an_audit_is_seen_no_more_after_a_cancel_or_an_error,
        an_audit_is_seen_no_more_when_its_process_has_ended,
        attach_is_seen_while_it_waits_and_no_more_after_an_error,
        attach_tells_how_many_partitions_it_has_searched,
        of_a_call_of_another_role_it_is_told_only_that_there_is_one
    ])
}
