//! Named generators: no id repeats within a layout, whatever happens to the server, its clock and the names.

use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::load::Load;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::snowflakes::BEHIND;
use std::collections::BTreeMap;

/// Databases with their generators: five names and four layouts. Both databases use two of these layouts.
const DATABASES: [(&str, &[(&str, &str)]); 2] = [
    ("postgres", &[("web", "javascript"), ("api", "sonyflake"), ("own", OWN)]),
    ("shop", &[("browser", "javascript"), ("seconds", "cosid_second"), ("api", "sonyflake")]),
];
const UNKNOWN: &str = "generator \"web\" does not exist";
/// The server's layout.
const OWN: &str = "41/5/5/12 epoch=2020-01-01";

fn create(client: &mut Client, name: &str, layout: &str) -> Result<()> {
    Ok(client.execute("select snowflake_ids.generator_create($1, $2)", &[&name, &layout]).map(drop)?)
}

fn server(builder: Builder) -> Result<Server> {
    let server = builder.start()?;
    server.session()?;
    server.create_database("shop")?;
    for (database, generators) in DATABASES {
        let mut client = server.connect(database)?;
        generators.iter().try_for_each(|(name, layout)| create(&mut client, name, layout))?;
    }
    Ok(server)
}

/// Starts sessions for each generator in each database, and for the server's own layout.
fn load(server: &Server) -> Result<Vec<(&'static str, Load)>> {
    let mut loads = Vec::new();
    for (database, generators) in DATABASES {
        for (number, (name, layout)) in generators.iter().enumerate() {
            let call = if number == 1 {
                format!("select snowflake_nextvals(50, '{name}')")
            } else {
                format!("select snowflake_nextval('{name}')")
            };
            loads.push((*layout, server.load_in(database, &call, 2)?));
        }
        loads.push((OWN, server.load_in(database, "select snowflake_nextval()", 2)?));
    }
    Ok(loads)
}

/// Groups ids by layout. `ends`: ends the sessions and returns their ids.
fn by_layout(
    loads: Vec<(&'static str, Load)>,
    ends: impl Fn(Load) -> Taken,
) -> BTreeMap<&'static str, Taken> {
    let mut all: BTreeMap<_, Taken> = BTreeMap::new();
    for (layout, load) in loads {
        all.entry(layout).or_default().add(ends(load));
    }
    all
}

/// Waits until each generator's sessions have received some more ids.
fn goes_on(loads: &[(&'static str, Load)]) -> Result<()> {
    loads.iter().try_for_each(|(layout, load)| load.goes_on().context(*layout))
}

#[test]
fn no_id_comes_twice_to_16_sessions_of_five_generators_in_two_databases() -> Result<()> {
    let server = server(Server::builder())?;
    let loads = load(&server)?;
    let wanted = if full() { 10_000_000 } else { 100_000 };
    let mut client = server.connect("postgres")?;
    wait::until_true("the load to run", || {
        Ok(client.one::<i64>("select ids_issued from snowflake_ids.status")? >= wanted)
    })?;
    goes_on(&loads)?;
    for (layout, taken) in by_layout(loads, Load::end) {
        assert!(taken.refusals.is_empty(), "{layout}: {:?}", taken.refusals);
        taken.growing().and_then(|()| taken.unique()).context(layout)?;
    }
    // All sessions of a layout share the layout's counter, across names and databases.
    let slots: i64 = client.one("select count(distinct slot) from snowflake_ids.generator_status")?;
    assert_eq!(slots, 2, "of javascript and sonyflake");
    Ok(())
}

#[test]
fn steps_of_the_clock_under_load_bring_no_id_back() -> Result<()> {
    let builder = Server::builder().false_clock();
    let server = server(builder.set("snowflake_ids.clock_wait_timeout", "50ms"))?;
    let loads = load(&server)?;
    goes_on(&loads)?;
    for clock in ["-5", "+0", "-30", "+0", "-2h", "+0", "+10y", "+0", "+20m", "+0"] {
        server.set_clock(clock)?;
        loads[0].1.run(Duration::from_millis(if full() { 3000 } else { 300 }));
    }
    for (layout, taken) in by_layout(loads, Load::end) {
        if let Some(other) = taken.other_than(BEHIND) {
            bail!("{layout}: {other:?}");
        }
        taken.unique().context(layout)?;
    }
    Ok(())
}

#[test]
fn a_promoted_standby_shares_no_id_with_its_primary_that_goes_on() -> Result<()> {
    let builder = auto()
        .false_clock()
        .set("snowflake_ids.max_clock_skew", "2h")
        .set("snowflake_ids.clock_wait_timeout", "100ms");
    let primary = server(builder)?;
    let old = load(&primary)?;
    goes_on(&old)?;
    let standby = primary.standby()?;
    let mut replica = standby.connect("shop")?;
    let decoded = "select snowflake_worker_id(1, 'browser')";
    assert_eq!(replica.one::<i32>(decoded)?, 0, "a standby knows the names");
    replica.fails("select snowflake_nextval('browser')", &SqlState::READ_ONLY_SQL_TRANSACTION)?;
    standby.set_clock("-30")?;
    standby.promote()?;
    let new = load(&standby)?;
    goes_on(&new)?;
    goes_on(&old)?;
    let (mut old, new) = (by_layout(old, Load::end), by_layout(new, Load::end));
    for (layout, taken) in new {
        let all = old.entry(layout).or_default();
        all.add(taken);
        all.unique().context(layout)?;
    }
    Ok(())
}

#[test]
fn a_worker_id_that_was_set_goes_on_above_what_the_primary_gave() -> Result<()> {
    let builder = Server::builder().false_clock();
    let mut primary = server(builder.set("snowflake_ids.clock_wait_timeout", "0"))?;
    let standby = primary.standby()?;
    let mut client = primary.connect("shop")?;
    let mut taken: Vec<i64> = client.column("select snowflake_nextvals(100000, 'browser')")?;
    standby.catch_up(&primary)?;
    standby.cut_off()?;
    taken.extend(client.column::<i64>("select snowflake_nextvals(1000, 'browser')")?);
    primary.kill9()?;
    standby.promote()?;
    let mut client = standby.connect("shop")?;
    taken.extend(client.column::<i64>("select snowflake_nextvals(1000, 'browser')")?);
    ids::growing(&taken)
}

/// Ids of one layout, while its name is dropped, created again, renamed, dumped, restored and copied.
fn what_becomes_of_names_brings_no_id_back(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    let take = "select snowflake_nextvals(1000, 'web')";
    create(&mut client, "web", "javascript")?;
    let mut taken: Vec<i64> = client.column(take)?;

    client.run("select snowflake_ids.generator_drop('web')")?;
    client.explained(take, &SqlState::UNDEFINED_OBJECT, UNKNOWN)?;
    create(&mut client, "web", "41/0/3/9 epoch=2019-12-24T16:00:00Z")?;
    taken.extend(client.column::<i64>(take)?);
    client.run(
        "select snowflake_ids.generator_alter('web', new_name => 'other');
         select snowflake_ids.generator_alter('other', sequence_start => 'random', new_name => 'web')",
    )?;
    taken.extend(client.column::<i64>(take)?);

    client.run("create table t (id bigint primary key default snowflake_nextval('web'), a int)")?;
    client.run("create sequence s; select snowflake_ids.bind_sequence('s', generator => 'web')")?;
    client.run("create database restored")?;
    server.restore("restored", &server.dump()?)?;
    let mut restored = server.connect("restored")?;
    let rows = "select string_agg(g::text, ' ') from snowflake_ids.generator g";
    assert_eq!(restored.one::<String>(rows)?, client.one::<String>(rows)?);
    taken.extend(restored.column::<i64>("insert into t (a) values (1), (2) returning id")?);
    taken.push(restored.one("select nextval('s')")?);
    drop(restored);

    // A database can be copied only without sessions.
    let left = "select not exists (select from pg_stat_activity where datname = 'restored')";
    client.becomes_true(left)?;
    client.run("create database copied template restored")?;
    let mut copied = server.connect("copied")?;
    taken.extend(copied.column::<i64>(take)?);
    taken.extend(client.column::<i64>(take)?);
    client.run("drop extension snowflake_ids cascade; create extension snowflake_ids")?;
    create(&mut client, "web", "javascript")?;
    taken.extend(client.column::<i64>(take)?);
    ids::growing(&taken)
}

fn changes_reach_other_sessions_when_they_are_committed(server: &mut Server) -> Result<()> {
    let (mut one, mut other) = (server.session()?, server.session()?);
    let (web, max) = ("select snowflake_nextval('web')", 1_i64 << 53);
    other.explained(web, &SqlState::UNDEFINED_OBJECT, UNKNOWN)?;
    let mut transaction = one.transaction()?;
    transaction.batch_execute("select snowflake_ids.generator_create('web', 'javascript')")?;
    assert!(transaction.query_one(web, &[])?.get::<_, i64>(0) < max);
    other.explained(web, &SqlState::UNDEFINED_OBJECT, UNKNOWN)?;
    transaction.commit()?;
    assert!(other.one::<i64>(web)? < max);

    let mut transaction = one.transaction()?;
    transaction.batch_execute("update snowflake_ids.generator set layout = 'twitter' where name = 'web'")?;
    assert!(transaction.query_one(web, &[])?.get::<_, i64>(0) > max);
    assert!(other.one::<i64>(web)? < max);
    transaction.commit()?;
    assert!(other.one::<i64>(web)? > max);

    let mut transaction = one.transaction()?;
    transaction.batch_execute("select snowflake_ids.generator_drop('web')")?;
    other.one::<i64>(web)?;
    transaction.rollback()?;
    one.one::<i64>(web)?;
    one.run("select snowflake_ids.generator_drop('web')")?;
    other.explained(web, &SqlState::UNDEFINED_OBJECT, UNKNOWN).map(drop)
}

/// The launcher or the first session may have leased a worker id that does not fit this layout.
#[test]
fn sessions_that_come_first_at_once_get_a_worker_id_that_fits() -> Result<()> {
    const SESSIONS: usize = 8;
    let server = auto().start()?;
    create(&mut server.session()?, "web", "javascript")?;
    let taken = at_once(server.sessions("postgres", SESSIONS)?, |_, mut client| {
        client.one::<i64>("select snowflake_nextval('web')")
    })?;
    assert_eq!(taken.len(), SESSIONS);
    ids::unique(taken)
}

#[test]
fn layouts_that_have_no_place_left_are_refused() -> Result<()> {
    let (server, mut client) = Server::builder().set("snowflake_ids.max_generators", "1").with_session()?;
    create(&mut client, "web", "javascript")?;
    client.explained(
        "select snowflake_ids.generator_create('api', 'sonyflake')",
        &SqlState::CONFIGURATION_LIMIT_EXCEEDED,
        "too many generators",
    )?;
    let by_hand = "insert into snowflake_ids.generator (name, layout) values ('api', '41/5/5/12')";
    client.explained(by_hand, &SqlState::CONFIGURATION_LIMIT_EXCEEDED, "too many generators")?;
    let mut shop = server.create_database("shop")?;
    create(&mut shop, "api", "sonyflake")?;
    client.one::<i64>("select snowflake_nextval('web')")?;
    let error = shop.explained(
        "select snowflake_nextval('api')",
        &SqlState::CONFIGURATION_LIMIT_EXCEEDED,
        "no slot is free for another layout",
    )?;
    assert!(error.hint().is_some_and(|hint| hint.contains("max_generators")), "{error:?}");
    client.one::<i64>("select snowflake_nextval('web')").map(drop)
}

/// The limit holds for any number of layouts and any number of attempts.
#[test]
fn a_database_that_asks_for_all_slots_leaves_some_to_others() -> Result<()> {
    let server = Server::builder().set("snowflake_ids.max_generators", "8").start()?;
    let layout = |number: usize| format!("41/0/10/12 epoch=2020-01-{number:02}");
    let mut client = server.session()?;
    let mut refused = Vec::new();
    for number in 1..=8 {
        let name = format!("g{number}");
        create(&mut client, &name, &layout(number))?;
        if client.query_one("select snowflake_nextval($1)", &[&name]).is_err() {
            refused.push(number);
        }
    }
    assert_eq!(refused, [5, 6, 7, 8]);
    let message = "no slot is free for another layout of this database";
    client.explained("select snowflake_nextval('g8')", &SqlState::CONFIGURATION_LIMIT_EXCEEDED, message)?;
    for (database, slot) in [("shop", 4), ("bank", 5), ("post", 6), ("mall", 7)] {
        let mut other = server.create_database(database)?;
        create(&mut other, "web", &layout(20 + slot))?;
        other.one::<i64>("select snowflake_nextval('web')")?;
        let found = other.one::<i32>("select slot from snowflake_ids.generator_status")?;
        assert_eq!(usize::try_from(found)?, slot);
    }
    // No slot is left, so a new database takes a slot from the database with the most slots.
    let mut late = server.create_database("late")?;
    create(&mut late, "web", &layout(30))?;
    late.one::<i64>("select snowflake_nextval('web')")?;
    let issue = |name| client.query_one("select snowflake_nextval($1)", &[&name]).is_ok();
    assert_eq!(["g1", "g2", "g3", "g4"].map(issue).iter().filter(|issues| **issues).count(), 3);
    Ok(())
}

#[test]
fn names_of_generators_change() -> Result<()> {
    Server::builder().cases(cases![
        what_becomes_of_names_brings_no_id_back,
        changes_reach_other_sessions_when_they_are_committed
    ])
}
