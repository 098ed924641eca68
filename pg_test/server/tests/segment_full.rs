//! More tags than shared memory has slots.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take, wait_for_waiting};
use std::collections::BTreeMap;
use std::sync::mpsc;

const TAGS: usize = 4;

/// Starts a server with this number of slots, and opens a session.
fn with_slots(slots: usize) -> Result<(Server, Client)> {
    let server = Server::builder().set("snowflake_ids.max_tags", &slots.to_string()).start()?;
    let client = server.session()?;
    Ok((server, client))
}

/// Opens a session on a server with [`TAGS`] slots. All slots are used by tags, and one further tag exists.
fn full(server: &Server) -> Result<Client> {
    let mut client = server.session()?;
    for number in 0..=TAGS {
        create(&mut client, &format!("t{number}"), "step => 10")?;
    }
    for number in 0..TAGS {
        assert_eq!(next(&mut client, &format!("t{number}"))?, 1);
    }
    Ok(client)
}

fn create_many(client: &mut Client, tags: usize) -> Result<()> {
    let create = "select count(snowflake_ids.segment_create('t' || n)) from generate_series(0";
    client.run(&format!("{create}, {}) as n", tags - 1))
}

fn slots(client: &mut Client, column: &str) -> Result<i64> {
    client.one(&format!("select tag_{column}::bigint from snowflake_ids.metric_server"))
}

/// A tag that loses its slot loses about as many ids as it used. If each of 1,000 tags lost a whole step, a million ids would be
/// lost.
#[test]
fn a_thousand_tags_share_sixteen_slots_without_an_error_and_lose_few_ids() -> Result<()> {
    const SLOTS: i64 = 16;
    const STEP: i64 = 1_000;
    let (server, mut client) = with_slots(16)?;
    create_many(&mut client, 1_000)?;
    let taken = at_once(server.sessions("postgres", 32)?, |session, mut client| {
        let call = client.prepare("select segment_nextval($1)")?;
        // Each session calls the tags in a random order.
        let mut random = 1 + session as u64;
        let mut taken = Vec::new();
        for _ in 0..250 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let tag = format!("t{}", (random >> 33) % 1_000);
            taken.push((tag.clone(), client.query_one(&call, &[&tag])?.try_get::<_, i64>(0)?));
        }
        Ok(taken)
    })?;
    let mut of_tag: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (tag, id) in taken.into_iter().flatten() {
        of_tag.entry(tag).or_default().push(id);
    }
    let given = i64::try_from(of_tag.values().map(Vec::len).sum::<usize>())?;
    of_tag.into_values().try_for_each(ids::unique)?;
    let reserved: i64 = client.one("select sum(max_id)::bigint from snowflake_ids.segment")?;
    // The first tags found free slots. Each of these tags lost at most two whole segments with its slot.
    let most = 3 * given + SLOTS * 2 * STEP;
    assert!(reserved <= most, "{reserved} ids are reserved for {given}");

    assert_eq!(slots(&mut client, "slots")?, SLOTS);
    assert!(slots(&mut client, "slots_in_use")? <= SLOTS);
    let [hits, misses, evictions] =
        ["hits", "misses", "evictions"].map(|column| slots(&mut client, &format!("slot_{column}_total")));
    let (hits, misses, evictions) = (hits?, misses?, evictions?);
    assert!(misses >= 1_000 - SLOTS && evictions > 0 && evictions <= misses, "{misses}, {evictions}");
    assert_eq!(hits + misses, given, "{hits} hits");
    Ok(())
}

#[test]
fn a_login_that_calls_thousands_of_tags_in_turns_disturbs_no_other() -> Result<()> {
    let (server, mut client) = with_slots(16)?;
    create_many(&mut client, 2_000)?;
    create(&mut client, "own", "")?;
    client.run(
        "create role tenant login; create table item (id bigint default segment_nextval('own') primary key)",
    )?;
    let (tell, told) = mpsc::channel();
    let calls = thread::spawn({
        let mut config = server.config("postgres");
        move || -> Result<()> {
            let mut client = config.user("tenant").connect(NoTls)?;
            while told.try_recv().is_err() {
                client.run("select segment_nextval('t' || n) from generate_series(0, 1999) as n")?;
            }
            Ok(())
        }
    });
    for _ in 0..200 {
        client.run("insert into item select from generate_series(1, 10)")?;
    }
    tell.send(())?;
    calls.ended()?;
    assert_eq!(client.one::<i64>("select count(*) from item")?, 2_000);
    Ok(())
}

#[test]
fn calls_that_wait_hold_no_slots_that_others_want() -> Result<()> {
    const HELD: usize = 2 * TAGS;
    let server = &mut Server::builder().set("snowflake_ids.max_tags", &TAGS.to_string()).start()?;
    let mut client = server.session()?;
    create_many(&mut client, HELD + 2 * TAGS)?;
    let mut locker = server.connect("postgres")?;
    locker.run("begin")?;
    let tags = (0..HELD).map(|number| format!("'t{number}'")).collect::<Vec<_>>().join(", ");
    locker.run(&format!("select from snowflake_ids.segment where tag in ({tags}) for update"))?;
    let mut calls = Vec::new();
    for number in 0..HELD {
        let mut client = server.connect("postgres")?;
        client.run("set snowflake_ids.segment_wait_timeout = '10min'")?;
        calls.push(thread::spawn(move || next(&mut client, &format!("t{number}"))));
    }
    wait_for_waiting(server, i64::try_from(HELD)?)?;
    for round in 1..=2 {
        for number in HELD..HELD + 2 * TAGS {
            let tag = format!("t{number}");
            assert!(next(&mut client, &tag)? >= round, "{tag}");
        }
    }
    // Each waiting call keeps its slot until the call ends.
    assert!(slots(&mut client, "slots_in_use")? >= i64::try_from(HELD)?);
    locker.run("rollback")?;
    for call in calls {
        assert_eq!(call.ended()?, 1);
    }
    assert!(slots(&mut client, "slots_in_use")? <= i64::try_from(TAGS)?);
    Ok(())
}

/// A bound sequence takes as many consecutive ids as its increment, although a tag that has just received a slot reserves few
/// ids.
#[test]
fn a_bound_sequence_with_an_increment_gets_its_run_without_a_free_place() -> Result<()> {
    let server = &mut Server::builder().set("snowflake_ids.max_tags", &TAGS.to_string()).start()?;
    let mut client = full(server)?;
    client.run(
        "create sequence s increment 50; select snowflake_ids.bind_sequence('s'); create sequence other;
         select snowflake_ids.bind_sequence('other')",
    )?;
    let clients = server.sessions("postgres", 4)?;
    let numbers = at_once(clients, |session, mut client| {
        (0..20)
            .map(|_| {
                next(&mut client, &format!("t{session}"))?;
                client.one::<i64>("select nextval('s')")
            })
            .collect::<Result<Vec<_>>>()
    })?;
    let mut numbers: Vec<i64> = numbers.into_iter().flatten().collect();
    numbers.sort_unstable();
    assert!(numbers.is_sorted_by(|a, b| b - a >= 50), "{numbers:?}");
    Ok(())
}

#[test]
fn a_dropped_tag_and_a_dropped_database_leave_their_slots_at_once() -> Result<()> {
    let server = Server::builder().set("snowflake_ids.max_tags", &TAGS.to_string()).start()?;
    let mut client = full(&server)?;
    client.run("select snowflake_ids.segment_drop('t2')")?;
    assert_eq!(next(&mut client, "t4")?, 1);
    for name in ["t0", "t1", "t3", "t4"] {
        client.run(&format!("select snowflake_ids.segment_drop('{name}')"))?;
    }
    assert_eq!(slots(&mut client, "slots_in_use")?, 0);
    server.create_database("a")?;
    {
        let mut in_a = server.connect("a")?;
        for number in 0..TAGS {
            create(&mut in_a, &format!("t{number}"), "")?;
            next(&mut in_a, &format!("t{number}"))?;
        }
    }
    client.run("drop database a")?;
    create(&mut client, "last", "")?;
    assert_eq!(next(&mut client, "last")?, 1);
    Ok(())
}

#[test]
fn tags_that_take_turns_on_one_place_go_on_where_they_were() -> Result<()> {
    let (server, mut client) = with_slots(1)?;
    for tag in ["a", "b"] {
        create(&mut client, tag, "step => 10")?;
    }
    let (mut of_a, mut of_b) = (take(&mut client, "a", 15)?, Vec::new());
    // These sessions have used the same slot for the other tag before.
    let mut clients = server.sessions("postgres", 4)?;
    for _ in 0..3 {
        for (tag, taken) in [("b", &mut of_b), ("a", &mut of_a)] {
            for client in &mut clients {
                taken.extend(take(client, tag, 15)?);
            }
        }
    }
    ids::growing(&of_a)?;
    ids::growing(&of_b)
}

/// The server records the ids of rolled-back transactions for at least 1,024 tags. These records take no slot.
#[test]
fn notes_of_rollbacks_take_no_slots_and_one_too_many_is_told_of() -> Result<()> {
    const NOTES: usize = 1_024;
    let server = &mut Server::builder().set("snowflake_ids.max_tags", &TAGS.to_string()).start()?;
    let mut client = server.session()?;
    create_many(&mut client, NOTES + 3)?;
    let (tell, told) = mpsc::channel();
    let mut config = server.config("postgres");
    config.notice_callback(move |notice| drop(tell.send(notice)));
    let mut rolled_back = config.connect(NoTls)?;
    rolled_back.run("begin; update snowflake_ids.segment set max_id = 100")?;
    let mut call = |tags: std::ops::Range<usize>| -> Result<Vec<DbError>> {
        let (first, last) = (tags.start, tags.end - 1);
        let calls = format!("select segment_nextval('t' || n) from generate_series({first}, {last}) as n");
        assert_eq!(rolled_back.column::<i64>(&calls)?, vec![101; tags.len()]);
        Ok(told.try_iter().collect())
    };
    assert_eq!(call(0..NOTES)?.len(), 0);
    let warnings = call(NOTES..NOTES + 2)?;
    assert_eq!(warnings.len(), 1, "once a transaction: {warnings:?}");
    assert_eq!(warnings[0].severity(), "WARNING");
    sql::explains(
        &warnings[0],
        &SqlState::CONFIGURATION_LIMIT_EXCEEDED,
        "could not save the high-water mark of segment tag \"t1024\"",
    )?;
    rolled_back.run("rollback")?;
    assert_eq!(slots(&mut client, "slots_in_use")?, 0);
    assert_eq!(next(&mut client, &format!("t{}", NOTES + 2))?, 1);
    for number in [0, 1, 500, NOTES - 1] {
        assert_eq!(next(&mut client, &format!("t{number}"))?, 102);
    }
    Ok(())
}
