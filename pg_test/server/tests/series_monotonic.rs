//! Monotonic series: the numbers of a key grow and never repeat, whatever ends the server. The keys of a section share one
//! maximum.

use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The number of sessions that call at once.
const SESSIONS: usize = 8;

/// The calls of one session in order, each with its key and number.
type Calls = Vec<(i64, i64)>;

fn create(client: &mut Client, definition: &str) -> Result<()> {
    client.run(&format!("select snowflake_ids.series_create('chat', kind => 'monotonic'{definition})"))
}

fn server(builder: Builder, definition: &str) -> Result<Server> {
    let server = builder.start()?;
    create(&mut server.session()?, definition)?;
    Ok(server)
}

fn next(client: &mut Client, key: i64) -> Result<i64> {
    client.one(&format!("select series_nextval('chat', {key})"))
}

/// Calls for these keys. Returns their numbers in the order of the calls.
fn call(client: &mut Client, keys: &str) -> Result<Calls> {
    let rows = client
        .query(&format!("select k::bigint, series_nextval('chat', k::bigint) from {keys} as k"), &[])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

fn sessions(server: &Server) -> Result<Vec<Client>> {
    server.sessions("postgres", SESSIONS)
}

/// Calls for random keys until `ends` is set or the server is gone.
fn run(client: &mut Client, keys: i64, calls: &AtomicU64, ends: &AtomicBool) -> Calls {
    let mut all = Calls::new();
    while !ends.load(Relaxed) {
        let some = format!("(select (random() * {keys})::bigint as k from generate_series(1, 100))");
        let Ok(got) = call(client, &some) else { break };
        calls.fetch_add(1, Relaxed);
        all.extend(got);
    }
    all
}

/// Lets sessions call until `done` returns. Returns the calls of each session.
fn load(
    mut clients: Vec<Client>,
    keys: i64,
    done: impl FnOnce(&AtomicU64) -> Result<()>,
) -> Result<Vec<Calls>> {
    let (calls, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (calls, ends) = (&calls, &ends);
        let running: Vec<_> =
            clients.iter_mut().map(|client| scope.spawn(move || run(client, keys, calls, ends))).collect();
        let outcome = done(calls);
        ends.store(true, Relaxed);
        let all = running.into_iter().map(Ends::ended).collect();
        outcome.map(|()| all)
    })
}

fn called(calls: &AtomicU64, count: u64) -> Result<()> {
    wait::until_true("calls", || Ok(calls.load(Relaxed) >= count))
}

/// The numbers of each key so far.
#[derive(Default)]
struct Seen(BTreeMap<i64, Vec<i64>>);

impl Seen {
    /// Adds numbers that several sessions got concurrently. Each number must be above all numbers of the same key that were added
    /// earlier. No number of a key may repeat, and each session's numbers for a key must grow.
    fn add(&mut self, sessions: Vec<Calls>) -> Result<()> {
        let highest: BTreeMap<i64, i64> =
            self.0.iter().filter_map(|(key, numbers)| Some((*key, *numbers.iter().max()?))).collect();
        for calls in sessions {
            let mut last = highest.clone();
            for (key, number) in calls {
                let before = last.insert(key, number);
                ensure!(
                    before.is_none_or(|before| before < number),
                    "key {key} got {number} after {before:?}"
                );
                self.0.entry(key).or_default().push(number);
            }
        }
        for (key, numbers) in &mut self.0 {
            numbers.sort_unstable();
            let twice = numbers.windows(2).find(|pair| pair[0] == pair[1]);
            ensure!(twice.is_none(), "key {key} got {twice:?} twice");
        }
        Ok(())
    }
}

/// Memory has room for a tenth of the keys.
#[test]
fn numbers_grow_where_most_keys_have_left_memory() -> Result<()> {
    let server = server(Server::builder().set("snowflake_ids.series_memory", "128kB"), ", sections => 4")?;
    let mut seen = Seen::default();
    seen.add(load(sessions(&server)?, 70_000, |calls| called(calls, if full() { 20_000 } else { 1_000 }))?)?;
    // With memory this small, all keys share one bucket.
    seen.add(load(sessions(&server)?, 3, |calls| called(calls, 500))?)
}

fn kill_9_and_restarts_give_no_number_twice(server: &mut Server) -> Result<()> {
    create(&mut server.session()?, ", sections => 3, step => 50, max_step => 500")?;
    let mut seen = Seen::default();
    for round in 0..if full() { 20 } else { 4 } {
        let calls = load(sessions(server)?, 40, |calls| {
            called(calls, 150)?;
            if round % 2 == 0 { server.kill9() } else { server.stop(Shutdown::Fast) }
        });
        seen.add(calls?)?;
        server.start_again()?;
    }
    seen.add(vec![call(&mut server.session()?, "generate_series(0, 40)")?])
}

/// A section writes once for each step that its highest key advances, however many keys share the section.
fn a_section_takes_one_write_for_each_step(server: &mut Server) -> Result<()> {
    create(&mut server.session()?, ", sections => 1, step => 100, max_step => 100")?;
    let mut client = server.session()?;
    let refills = "select refills from snowflake_ids.segment_status where tag = 'chat section 1 of 1'";
    for round in 1..=50 {
        // All keys advance by 20.
        for _ in 0..20 {
            call(&mut client, "generate_series(1, 1000)")?;
        }
        // One more step is reserved ahead.
        let (most, refills): (i64, i64) = (20 * round / 100 + 2, client.one(refills)?);
        ensure!(refills <= most, "{refills} writes after {round} rounds, for a section of 1000 keys");
    }
    let reserved: i64 = client.one("select max_id from snowflake_ids.segment")?;
    ensure!(reserved <= 1_200, "{reserved} are reserved");
    Ok(())
}

#[test]
fn a_thousand_sections_go_on_after_a_restart() -> Result<()> {
    let builder = Server::builder().set("snowflake_ids.max_tags", "1100");
    let mut server = server(builder, ", sections => 1000")?;
    let (mut seen, keys) = (Seen::default(), "generate_series(1, 10000)");
    for how in [Shutdown::Fast, Shutdown::Immediate] {
        seen.add(vec![call(&mut server.session()?, keys)?])?;
        server.restart_by(how)?;
    }
    seen.add(vec![call(&mut server.session()?, keys)?])
}

#[test]
fn servers_that_draw_from_a_registry_share_no_number() -> Result<()> {
    let cluster = Cluster::start(2)?;
    create(&mut cluster.registry.connect("postgres")?, ", sections => 3, step => 10, max_step => 100")?;
    let mut clients = Vec::new();
    for node in &cluster.nodes {
        let mut client = node.connect("postgres")?;
        create(&mut client, ", sections => 3")?;
        clients.push(client);
    }
    let mut of_key: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    let mut each = [Seen::default(), Seen::default()];
    for _ in 0..50 {
        for (client, seen) in clients.iter_mut().zip(&mut each) {
            let calls = call(client, "generate_series(1, 30)")?;
            for (key, number) in &calls {
                of_key.entry(*key).or_default().push(*number);
            }
            seen.add(vec![calls])?;
        }
    }
    for (key, mut numbers) in of_key {
        numbers.sort_unstable();
        ensure!(numbers.is_sorted_by(|a, b| a < b), "key {key} got one twice: {numbers:?}");
    }

    // The registry decides how far its sections reserve.
    clients[0].fails("select snowflake_ids.series_alter('chat', max_value => 1000000)", sql::NOT_IN_STATE)?;

    // With another number of sections, keys belong to other sections, for which the registry has no tags.
    let mut client = cluster.nodes[0].connect("postgres")?;
    client.run("select snowflake_ids.series_create('other', kind => 'monotonic', sections => 2)")?;
    let error = client.fails("select series_nextval('other', 1)", &SqlState::UNDEFINED_OBJECT)?;
    ensure!(error.detail().is_some_and(|detail| detail.contains("central")), "{error:?}");
    Ok(())
}

fn a_series_serves_the_transaction_that_makes_it_and_is_new_after_it_was_dropped(
    server: &mut Server,
) -> Result<()> {
    let mut client = server.session()?;
    let mut seen = Seen::default();
    client.run("begin")?;
    create(&mut client, ", sections => 2")?;
    seen.add(vec![call(&mut client, "generate_series(1, 9)")?])?;
    client.run("commit")?;
    let mut other = server.session()?;
    for _ in 0..3 {
        seen.add(vec![call(&mut client, "generate_series(1, 9)")?])?;
        seen.add(vec![call(&mut other, "generate_series(1, 9)")?])?;
    }

    client.run("select snowflake_ids.series_set('chat', 11, 1000000)")?;
    for end in ["rollback", "commit"] {
        client.run("begin; select snowflake_ids.series_drop('chat'); savepoint dropped")?;
        ensure!(
            client.error("select series_nextval('chat', 1)")?.code() == &SqlState::UNDEFINED_OBJECT,
            "dropped"
        );
        client.run("rollback to dropped")?;
        if end == "rollback" {
            client.run("rollback")?;
            seen.add(vec![call(&mut client, "generate_series(1, 9)")?])?;
        } else {
            create(&mut client, ", sections => 2")?;
            client.run("commit")?;
        }
    }
    client.run("select snowflake_ids.series_drop('chat')")?;
    create(&mut client, ", sections => 2")?;
    for client in [&mut client, &mut other] {
        let calls = call(client, "generate_series(11, 11)")?;
        ensure!(calls.iter().all(|(_, number)| *number < 1_000_000), "begins anew: {calls:?}");
    }
    client.run("select snowflake_ids.series_drop('chat')")?;
    let left: i64 = client.one("select count(*) from snowflake_ids.segment")?;
    ensure!(left == 0, "{left} tags are left");
    ensure!(
        other.error("select series_nextval('chat', 11)")?.code() == &SqlState::UNDEFINED_OBJECT,
        "dropped"
    );
    Ok(())
}

fn a_key_that_is_set_goes_on_above_for_all_sessions(server: &mut Server) -> Result<()> {
    create(&mut server.session()?, ", sections => 1, step => 100, max_step => 100")?;
    let (mut client, mut other) = (server.session()?, server.session()?);
    let mut seen = Seen::default();
    seen.add(vec![call(&mut other, "generate_series(1, 5)")?])?;
    for value in [50, 1_000_000, 70, 1_000_050] {
        client.run(&format!("select snowflake_ids.series_set('chat', 1, {value})"))?;
        let (mine, others) = (next(&mut client, 1)?, next(&mut other, 1)?);
        ensure!(mine > value && others > mine, "{mine} and {others} after {value}");
        seen.add(vec![vec![(1, mine), (1, others)]])?;
        seen.add(vec![call(&mut other, "generate_series(1, 5)")?])?;
    }

    // Within the transaction, its own numbers are above the set value at once. After the rollback no session gets these numbers
    // again.
    client.run("begin; select snowflake_ids.series_set('chat', 1, 2000000)")?;
    let mine = call(&mut client, "generate_series(1, 3)")?;
    ensure!(mine.iter().all(|(_, number)| *number > 2_000_000), "{mine:?}");
    client.run("rollback")?;
    seen.add(vec![mine])?;
    seen.add(vec![call(&mut other, "generate_series(1, 5)")?, call(&mut client, "generate_series(6, 9)")?])?;

    // A changed step counts at once. The transaction's own numbers are above other sessions' numbers.
    client.run("begin; select snowflake_ids.series_alter('chat', step => 7)")?;
    for _ in 0..150 {
        seen.add(vec![call(&mut client, "generate_series(1, 2)")?])?;
    }
    client.run("commit")?;
    seen.add(vec![call(&mut other, "generate_series(1, 2)")?])?;

    client.fails("select snowflake_ids.series_set('chat', 1, 5, true)", &SqlState::FEATURE_NOT_SUPPORTED)?;
    Ok(())
}

#[test]
fn a_call_waits_for_its_section_and_can_be_cancelled() -> Result<()> {
    let builder = Server::builder().set("snowflake_ids.segment_wait_timeout", "1h");
    let server = server(builder, ", sections => 1")?;
    let mut locker = server.locker("postgres", "chat section 1 of 1")?;
    let (mut other, mut client) = (server.connect("postgres")?, server.connect("postgres")?);
    let cancel = client.cancel_token();
    let waiting = thread::spawn(move || (client.error("select series_nextval('chat', 1)"), client));
    let later = thread::spawn(move || next(&mut other, 1));
    let waiting_calls = "select count(*) = 2 from pg_stat_activity
        where query like '%series_nextval%' and pid <> pg_backend_pid() and state = 'active' and wait_event is not null";
    server.session()?.becomes_true(waiting_calls)?;
    cancel.cancel_query(NoTls)?;
    let (error, mut client) = waiting.ended();
    ensure!(error?.code() == &SqlState::QUERY_CANCELED, "cancelled");
    ensure!(!later.is_finished(), "the other one waits");
    locker.run("rollback")?;
    ensure!(later.ended()? == 1, "the first number");
    ensure!(next(&mut client, 1)? == 2, "the second number");
    Ok(())
}

fn rows_are_filled_as_texts_and_by_copy(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "select snowflake_ids.series_create('messages', kind => 'monotonic', key_type => 'uuid', format => 'M-{n:5}');
         create table message (conversation uuid, number bigint, place serial);
         create table ticket (project text, number bigint);
         insert into ticket select 'p' || n % 10, n from generate_series(1, 5000) n;
         select snowflake_ids.series_create('tickets', kind => 'monotonic', key_type => 'text');
         select snowflake_ids.series_attach('message', 'number', 'messages', 'conversation');
         select snowflake_ids.series_attach('ticket', 'number', 'tickets', 'project')",
    )?;
    let mut copy = client.copy_in("copy message (conversation) from stdin")?;
    for row in 0..3_000 {
        std::io::Write::write_all(
            &mut copy,
            format!("00000000-0000-0000-0000-00000000000{}\n", row % 7).as_bytes(),
        )?;
    }
    copy.finish()?;
    client.run("insert into ticket select 'p' || n % 12 from generate_series(1, 1000) n")?;
    for (wrong, what) in [
        (
            "select count(*) from (select number, lag(number) over (partition by conversation order by place) as before from message) m where number <= before",
            "out of order",
        ),
        ("select count(*) - count(distinct (conversation, number)) from message", "twice"),
        ("select count(*) - count(distinct (project, number)) from ticket", "of before"),
    ] {
        let rows: i64 = client.one(wrong)?;
        ensure!(rows == 0, "{rows} rows are {what}");
    }
    let key = "'00000000-0000-0000-0000-000000000009'::uuid";
    let text: String = client.one(&format!("select series_nextval_text('messages', {key})"))?;
    let last: i64 = client.one(&format!("select series_currval('messages', {key})"))?;
    ensure!(text == format!("M-{last:05}"), "{text} and {last}");
    Ok(())
}

#[test]
fn without_memory_there_are_no_numbers() -> Result<()> {
    let server = server(Server::builder().set("snowflake_ids.series_memory", "0"), "")?;
    let error = server.session()?.fails("select series_nextval('chat', 1)", sql::NOT_IN_STATE)?;
    ensure!(error.hint().is_some_and(|hint| hint.contains("snowflake_ids.series_memory")), "{error:?}");
    Ok(())
}

/// Some sections lose their slots to other sections. The numbers of all sections still grow.
#[test]
fn places_of_sections_change_hands() -> Result<()> {
    let builder = Server::builder().set("snowflake_ids.max_tags", "12");
    let server = server(builder, ", sections => 4, step => 20, max_step => 20")?;
    let mut client = server.session()?;
    let mut seen = Seen::default();
    seen.add(vec![call(&mut client, "generate_series(1, 50)")?])?;
    client.run("select snowflake_ids.segment_discard(tag) from snowflake_ids.segment")?;
    seen.add(vec![call(&mut client, "generate_series(1, 60)")?])?;
    for round in 0..5 {
        client.run(&format!(
            "select snowflake_ids.series_create('other{round}', kind => 'monotonic', sections => 2);
             select series_nextval('other{round}', k) from generate_series(1, 50) as k;
             select snowflake_ids.series_drop('other{round}')"
        ))?;
        seen.add(vec![call(&mut client, "generate_series(1, 60)")?])?;
    }
    Ok(())
}

#[test]
fn numbers_of_a_key_grow() -> Result<()> {
    Server::builder().cases(cases![
        kill_9_and_restarts_give_no_number_twice,
        a_section_takes_one_write_for_each_step,
        a_series_serves_the_transaction_that_makes_it_and_is_new_after_it_was_dropped,
        a_key_that_is_set_goes_on_above_for_all_sessions,
        rows_are_filled_as_texts_and_by_copy
    ])
}
