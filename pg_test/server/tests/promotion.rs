//! Failover under load: a standby is promoted while its clock is behind, and the old primary keeps writing.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments;
use snowflake_ids_server_tests::segments::create;
use snowflake_ids_server_tests::snowflakes::{next, refused, status, take};

const SESSIONS: usize = 8;
/// A promoted server, or a server whose clock is behind, may issue no ids for a while. Its calls then fail with these errors.
const EXPECTED: [&str; 3] = ["this server has no worker id yet", "the clock is behind", "during recovery"];

fn auto_with_clock() -> Builder {
    auto()
        .false_clock()
        .set("snowflake_ids.max_clock_skew", "2h")
        .set("snowflake_ids.clock_wait_timeout", "100ms")
}

fn expected(taken: &Taken) -> Result<()> {
    let other = taken
        .refusals
        .iter()
        .find(|refusal| !EXPECTED.iter().any(|expected| refusal.message().contains(expected)));
    match other {
        Some(other) => bail!("{other:?}"),
        None => Ok(()),
    }
}

/// Promotes a standby with this clock, while it and its primary are under load.
fn promoted_under_load(clock: &str) -> Result<()> {
    let primary = auto_with_clock().start()?;
    primary.session()?;
    let old = primary.load(SESSIONS)?;
    old.goes_on()?;
    let standby = primary.standby()?;
    standby.set_clock(clock)?;
    let new = standby.load(SESSIONS)?;
    old.run(Duration::from_millis(300));
    standby.promote()?;
    new.goes_on()?;
    new.run(Duration::from_millis(500));
    old.goes_on()?;
    let (mut taken, new) = (old.end(), new.end());
    expected(&taken)?;
    expected(&new)?;
    let of = |server: &Server| status::<i32>(&mut server.connect("postgres")?, "worker_id");
    assert_ne!(of(&primary)?, of(&standby)?);
    taken.add(new);
    taken.unique()
}

#[test]
fn a_promoted_standby_whose_clock_is_30_s_behind_shares_no_id() -> Result<()> {
    promoted_under_load("-30")
}

#[test]
fn a_promoted_standby_whose_clock_is_an_hour_behind_shares_no_id() -> Result<()> {
    promoted_under_load("-1h")
}

/// The worker id was set by hand, so the promoted server keeps it; the old primary is gone. With 16 ids per tick, the primary's
/// ids ran ahead of its clock, and some were never replayed.
fn fixed_goes_on_above(clock: &str, served: bool) -> Result<()> {
    let builder = Server::builder().false_clock().set("snowflake_ids.layout", "41/5/5/4");
    let mut primary = builder.set("snowflake_ids.clock_wait_timeout", "0").start()?;
    primary.session()?.run("create table t (id bigint primary key default snowflake_nextval())")?;
    let standby = primary.standby()?;
    standby.set_clock(clock)?;
    let load = primary.load(SESSIONS)?;
    load.goes_on()?;
    let rows = "insert into t select from generate_series(1, 16 * 5000) returning id";
    let mut taken: Vec<i64> = primary.connect("postgres")?.column(rows)?;
    standby.catch_up(&primary)?;
    standby.cut_off()?;
    load.run(Duration::from_millis(300));
    primary.kill9()?;
    taken.extend(load.end().ids);
    standby.promote()?;
    let mut client = standby.connect("postgres")?;
    if !served {
        let error = refused(&mut client)?;
        assert_eq!(error.code(), sql::NOT_IN_STATE, "{error:?}");
        standby.set_clock("+0")?;
    }
    let newest = taken.iter().max().copied().unwrap_or(0);
    let after = take(&mut client, 1000)?;
    ids::growing(&[newest, after[0]])?;
    taken.extend(after);
    ids::unique(taken)
}

#[test]
fn a_set_worker_id_goes_on_above_its_primary() -> Result<()> {
    fixed_goes_on_above("+0", true)
}

#[test]
fn a_set_worker_id_goes_on_above_its_primary_once_the_clock_is_right() -> Result<()> {
    fixed_goes_on_above("-1h", false)
}

/// No commit was replayed since the standby's start, so the standby knows the time of the primary's ids only from its own clock.
#[test]
fn a_standby_restarted_before_its_promotion_begins_above_what_it_replayed() -> Result<()> {
    let builder = Server::builder().false_clock().set("snowflake_ids.layout", "41/5/5/4");
    let primary = builder.set("snowflake_ids.clock_wait_timeout", "0").start()?;
    let mut of_primary = primary.session()?;
    next(&mut of_primary)?;
    let mut standby = primary.standby()?;
    // The statement takes ten seconds' worth of ids.
    let rows = "create table t as select snowflake_nextvals(160000) as id";
    of_primary.run(rows)?;
    let newest: i64 = of_primary.one("select max(id) from t")?;
    of_primary.run("checkpoint")?;
    standby.catch_up(&primary)?;
    standby.connect("postgres")?.run("checkpoint")?;
    drop((of_primary, primary));
    standby.set_clock("-1h")?;
    standby.restart()?;
    standby.promote()?;
    let mut client = standby.connect("postgres")?;
    if let Ok(id) = next(&mut client) {
        ids::growing(&[newest, id])?;
    }
    standby.set_clock("+0")?;
    ids::growing(&[newest, next(&mut client)?])
}

#[test]
fn a_rewound_primary_is_a_standby_and_is_promoted_as_one() -> Result<()> {
    let mut first = auto().rewindable().start()?;
    let mut taken = Taken::own(take(&mut first.session()?, 1000)?);
    let mut second = first.standby()?;
    let (of_first, of_second) = (first.load(4)?, {
        second.promote()?;
        wait_for_id(&mut second.connect("postgres")?)?;
        second.load(4)?
    });
    // The former primary writes WAL that the successor never receives.
    first.connect("postgres")?.run("create table lost as select snowflake_nextval()")?;
    of_first.goes_on()?;
    of_second.goes_on()?;
    taken.add(of_first.end());
    taken.add(of_second.end());

    first.rewind(&second)?;
    let error = refused(&mut first.connect("postgres")?)?;
    assert_eq!(error.code(), &SqlState::READ_ONLY_SQL_TRANSACTION, "{error:?}");
    let load = second.load(4)?;
    load.goes_on()?;
    first.catch_up(&second)?;
    second.stop(Shutdown::Immediate)?;
    taken.add(load.end());
    first.promote()?;
    taken.ids.push(wait_for_id(&mut first.connect("postgres")?)?);
    taken.ids.extend(take(&mut first.connect("postgres")?, 10_000)?);
    taken.unique()
}

/// A server with a worker id set by hand, a clock and prepared transactions. Calls do not wait for the clock.
fn fixed_with_clock() -> Builder {
    let builder = Server::builder().false_clock().set("snowflake_ids.clock_wait_timeout", "0");
    builder.set("max_prepared_transactions", "100")
}

/// A promoted server with a clock behind its primary's, which was ahead by ten minutes, issues no id below `newest`, also when
/// the clock is right.
fn goes_on_above(newest: i64, promoted: &Server, right: &str) -> Result<()> {
    let mut client = promoted.connect("postgres")?;
    for ahead in std::iter::once(300).chain(580..=600) {
        promoted.set_clock(&format!("+{ahead}"))?;
        if let Ok(id) = next(&mut client) {
            ids::growing(&[newest, id])?;
        }
    }
    promoted.set_clock(right)?;
    ids::growing(&[newest, next(&mut client)?])
}

/// PREPARE TRANSACTION is replayed without a commit. The primary's clock is ahead. Triggers that wait for the end of the
/// transaction store ids longer after its statements than ids may drift ahead of the clock.
#[test]
fn ids_of_a_replayed_prepared_transaction_do_not_come_again() -> Result<()> {
    let builder = fixed_with_clock().set("snowflake_ids.reserve", "1s").set("snowflake_ids.max_drift", "2s");
    let primary = builder.start()?;
    let mut client = primary.session()?;
    client.run(
        "create table t (id bigint primary key default snowflake_nextval()); create table late (like t including all);
         create function store() returns trigger language plpgsql
         as 'begin perform pg_sleep(4); insert into t select from generate_series(1, 2000); return null; end';
         create constraint trigger store after insert on late deferrable initially deferred for each row execute function store()",
    )?;
    let standby = primary.standby()?;
    primary.set_clock("+600")?;
    client.run(
        "begin; insert into t default values; insert into late default values; prepare transaction 'p'",
    )?;
    standby.catch_up(&primary)?;
    drop((client, primary));
    standby.set_clock("+300")?;
    standby.promote()?;
    let mut client = standby.connect("postgres")?;
    client.run("commit prepared 'p'")?;
    goes_on_above(client.one("select max(id) from t")?, &standby, "+700")
}

/// The primary's clock is ahead by ten minutes. The first promoted server issues no ids, but commits a row with an earlier time.
#[test]
fn the_second_promoted_server_goes_on_above_a_primary_whose_clock_was_ahead() -> Result<()> {
    let mut primary = fixed_with_clock().start()?;
    let mut client = primary.session()?;
    let (second, third) = (primary.standby()?, primary.standby()?);
    primary.set_clock("+600")?;
    client.run("create table t as select snowflake_nextvals(2000) as id")?;
    let newest: i64 = client.one("select max(id) from t")?;
    second.catch_up(&primary)?;
    third.catch_up(&primary)?;
    primary.kill9()?;
    second.promote()?;
    let mut client = second.connect("postgres")?;
    refused(&mut client)?;
    client.run("create database other")?;
    second
        .connect("other")?
        .run("create table ordinary as select 1; begin; create table undone (); rollback")?;
    third.follow(&second)?;
    drop((client, second));
    third.promote()?;
    goes_on_above(newest, &third, "+601")
}

/// Each standby has a clock two seconds behind its primary's. Half of the transactions are prepared when the primary is killed.
#[test]
fn three_promotions_with_prepared_transactions_under_load_repeat_no_id() -> Result<()> {
    let builder = Server::builder().false_clock().set("max_prepared_transactions", "100");
    let mut primary = builder.start()?;
    primary.session()?.run("create table t (id bigint primary key default snowflake_nextval())")?;
    for round in 1..=3 {
        let standby = primary.standby()?;
        standby.set_clock(&format!("-{}", 2 * round))?;
        let prepared = at_once(primary.sessions("postgres", SESSIONS)?, |session, mut client| {
            for number in 0..20 {
                let name = format!("'{round} {session} {number}'");
                let insert = "begin; insert into t select from generate_series(1, 100); prepare transaction";
                client.run(&format!("{insert} {name}"))?;
                if number < 10 {
                    client.run(&format!("commit prepared {name}"))?;
                }
            }
            Ok(10)
        })?;
        standby.catch_up(&primary)?;
        primary.kill9()?;
        standby.promote()?;
        let mut client = standby.connect("postgres")?;
        let insert = "insert into t select from generate_series(1, 1000)";
        wait::until_true("the clock to reach the primary's", || Ok(client.batch_execute(insert).is_ok()))?;
        let names: Vec<String> = client.column("select quote_literal(gid) from pg_prepared_xacts")?;
        assert_eq!(names.len(), prepared.into_iter().sum::<usize>());
        for name in names {
            client.run(&format!("commit prepared {name}"))?;
        }
        drop(client);
        primary = standby;
    }
    let rows: i64 = primary.connect("postgres")?.one("select count(*) from t")?;
    assert_eq!(rows, 3 * (8 * 20 * 100 + 1000));
    Ok(())
}

/// The promoted standby skips ids that the primary reserved while the standby was cut off.
#[test]
fn segments_skip_what_a_cut_off_standby_has_not_seen() -> Result<()> {
    let primary = auto().start()?;
    let mut of_primary = primary.session()?;
    create(&mut of_primary, "t", "step => 10, max_step => 100")?;
    let mut taken = segments::take(&mut of_primary, "t", 50)?;
    let standby = primary.standby()?;
    standby.catch_up(&primary)?;
    standby.cut_off()?;
    taken.extend(segments::take(&mut of_primary, "t", 150)?);
    drop((of_primary, primary));
    standby.promote()?;
    let mut client = standby.connect("postgres")?;
    let after = segments::take(&mut client, "t", 300)?;
    assert!(after[0] - taken[taken.len() - 1] <= 300, "{} after {}", after[0], taken[taken.len() - 1]);
    taken.extend(&after);
    ids::growing(&taken)?;
    // The skip happens once per promotion, not at each start.
    let mut standby = standby;
    drop(client);
    standby.restart()?;
    assert_eq!(segments::next(&mut standby.connect("postgres")?, "t")?, after[299] + 1);
    Ok(())
}

/// The second standby follows the first, and misses the tag's first use there.
#[test]
fn segments_skip_once_for_each_promotion_since_their_last_use() -> Result<()> {
    let mut primary = auto().start()?;
    create(&mut primary.session()?, "t", "step => 10, max_step => 100")?;
    let mut taken = segments::take(&mut primary.connect("postgres")?, "t", 50)?;
    for _ in 0..2 {
        let standby = primary.standby()?;
        standby.catch_up(&primary)?;
        standby.cut_off()?;
        taken.extend(segments::take(&mut primary.connect("postgres")?, "t", 150)?);
        drop(primary);
        standby.promote()?;
        primary = standby;
    }
    taken.extend(segments::take(&mut primary.connect("postgres")?, "t", 300)?);
    ids::growing(&taken)
}

/// A change of a tag between the promotion and the tag's first use does not lower the number of ids that the tag skips.
#[test]
fn segments_skip_as_many_ids_if_they_are_changed_first() -> Result<()> {
    const CHANGES: [(&str, &str); 5] = [
        ("altered", "select snowflake_ids.segment_alter('altered', max_step => 10)"),
        ("narrowed", "select snowflake_ids.segment_alter('narrowed', increment => 1)"),
        ("raised", "select snowflake_ids.segment_raise('raised', 1)"),
        ("updated", "update snowflake_ids.segment set step = 1, max_step = 1 where tag = 'updated'"),
        (
            "set",
            "select snowflake_ids.segment_set('set', (select max_id from snowflake_ids.segment where tag = 'set'))",
        ),
    ];
    let primary = auto().start()?;
    let mut client = primary.session()?;
    for (tag, _) in CHANGES {
        let increment = if tag == "narrowed" { 10 } else { 1 };
        create(&mut client, tag, &format!("step => 10, max_step => 100, increment => {increment}"))?;
        segments::next(&mut client, tag)?;
    }
    let standby = primary.standby()?;
    standby.catch_up(&primary)?;
    standby.cut_off()?;
    let lost = CHANGES.map(|(tag, _)| segments::take(&mut client, tag, 150));
    drop((client, primary));
    standby.promote()?;
    let mut client = standby.connect("postgres")?;
    for ((tag, change), lost) in CHANGES.into_iter().zip(lost) {
        // Only `segment_set` names a number, which is below the skipped ids.
        assert_eq!(client.batch_execute(change).is_err(), tag == "set", "{tag}");
        let next = segments::next(&mut client, tag)?;
        assert!(Some(&next) > lost?.last(), "{tag} goes on with {next}");
    }
    Ok(())
}
