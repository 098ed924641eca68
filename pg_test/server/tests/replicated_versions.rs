//! A major upgrade by logical replication. Servers of two Postgres versions publish to each other and share a registry. One
//! server is made by `pg_createsubscriber` and then `pg_upgrade`. `make test-pg-upgrade` runs these tests and names the two
//! versions.

use snowflake_ids_server_tests::cluster::{self, NAME, becomes};
use snowflake_ids_server_tests::installation::of_pg_upgrade;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{self, create};
use snowflake_ids_server_tests::snowflakes::{self, next, status, take, worker};
use snowflake_ids_server_tests::upgrades::{self, Drawn};

/// The error of a server whose cluster has become another cluster.
const FOREIGN: &str = "the state file of snowflake_ids belongs to another cluster";

/// A server of one of the two versions.
fn of(which: &str, builder: Builder) -> Result<Server> {
    builder.set("wal_level", "logical").checksums().installation(&of_pg_upgrade(which)?).start()
}

fn number(worker: i32) -> Builder {
    Server::builder().set("snowflake_ids.worker_id", &worker.to_string())
}

fn version(client: &mut Client) -> Result<i32> {
    client.one("select current_setting('server_version_num')::int")
}

fn publish(publisher: &mut Client) -> Result<()> {
    let sequences = if version(publisher)? < 190_000 { "" } else { ", all sequences" };
    publisher.run(&format!("create publication everything for all tables{sequences}"))
}

fn subscribe(subscriber: &mut Client, publisher: &Server, options: &str) -> Result<()> {
    let (host, port) = (publisher.socket_folder().display(), publisher.port());
    subscriber.run(&format!(
        "create subscription everything connection 'host={host} port={port} user=postgres dbname=postgres'
             publication everything{options}"
    ))?;
    wait::until_true("the initial copies", || {
        subscriber.one("select not exists (select from pg_subscription_rel where srsubstate <> 'r')")
    })
}

/// Waits until a subscriber has the publisher's rows: users' tables and the counters of series.
fn caught_up(subscriber: &Server, publisher: &mut Client) -> Result<()> {
    let rows = |client: &mut Client| -> Result<Vec<String>> {
        let tables = [
            "customer",
            "parcel",
            "event",
            "identified",
            "invoice",
            "plain",
            "snowflake_ids.series_bigint",
            "snowflake_ids.series_text",
            "snowflake_ids.series_uuid",
        ];
        let row =
            |table| client.column::<String>(&format!("select '{table} ' || t from {table} as t order by 1"));
        Ok(tables.map(row).into_iter().collect::<Result<Vec<_>>>()?.concat())
    };
    let (sent, mut client) = (rows(publisher)?, subscriber.connect("postgres")?);
    wait::until_true("the subscriber to have all rows", || {
        let log = subscriber.log();
        let error = log.lines().find(|line| line.contains("ERROR") && !line.contains(FOREIGN));
        ensure!(error.is_none(), "{error:?}");
        Ok(rows(&mut client)? == sent)
    })
}

/// Raises the tags of the server that takes over above the tags of the server that stops issuing ids. Sections of monotonic
/// series are tags, too.
fn raise_tags(from: &mut Client, to: &mut Client) -> Result<()> {
    for row in from.query("select tag, max_id from snowflake_ids.segment order by tag", &[])? {
        let (tag, reserved): (String, i64) = (row.get(0), row.get(1));
        to.query_one("select snowflake_ids.segment_raise($1, $2)", &[&tag, &reserved])?;
    }
    Ok(())
}

/// Checks the numbers of gapless series that servers gave in turn.
fn gapless(client: &mut Client) -> Result<()> {
    let counted: Vec<i64> = client.column("select number from invoice where tenant = 7")?;
    ensure!(!counted.is_empty(), "no invoices");
    ids::dense(counted)
}

/// The subscriber takes over from the publisher. Later the publisher takes over again.
#[test]
#[ignore = "make test-pg-upgrade says from where to where"]
fn a_subscriber_takes_over_and_hands_back() -> Result<()> {
    let (old, new) = (of("FROM", number(1))?, of("TO", number(2))?);
    let mut from = old.session()?;
    let mut drawn = Drawn::default();
    upgrades::create(&mut from)?;
    from.run("create sequence own; select setval('own', 70)")?;
    drawn.go_on(&mut from, true)?;

    // Rows and the counters of series arrive by the subscription, not by the dump.
    let excluded = ["public.*", "snowflake_ids.series_(bigint|text|uuid)"];
    old.strip_version_of_columns()?;
    let excluded = excluded.map(|tables| format!("--exclude-table-data={tables}"));
    let dump = new.dump_of(&old, &[&excluded[0], &excluded[1], "--no-publications", "--no-subscriptions"])?;
    let mut to = new.connect("postgres")?;
    to.run("create role clerk")?;
    new.restore("postgres", &dump)?;
    // The dump has no data of sequences. A bound sequence counts as bound while it is at its last value.
    to.run("select setval(sequence, 9223372036854775807) from snowflake_ids.sequence_binding")?;
    publish(&mut from)?;
    subscribe(&mut to, &old, "")?;
    drawn.go_on(&mut from, true)?;

    caught_up(&new, &mut from)?;
    to.run("drop subscription everything")?;
    raise_tags(&mut from, &mut to)?;
    publish(&mut to)?;
    subscribe(&mut from, &new, " with (copy_data = false)")?;
    drawn.go_on(&mut to, false)?;
    gapless(&mut to)?;
    ensure!(status::<i32>(&mut to, "worker_id")? == 2, "the publisher's worker id");

    caught_up(&old, &mut to)?;
    from.run("drop subscription everything")?;
    raise_tags(&mut to, &mut from)?;
    drawn.go_on(&mut from, false)?;
    gapless(&mut from)?;
    ensure!(from.one::<i64>("select nextval('own')")? == 71, "a sequence that is not bound moved");
    Ok(())
}

/// A standby becomes a subscriber with its own worker id, and is upgraded while the publisher takes writes.
#[test]
#[ignore = "make test-pg-upgrade says from where to where"]
fn a_standby_becomes_a_subscriber_and_is_upgraded() -> Result<()> {
    let old = of("FROM", auto())?;
    let mut from = old.session()?;
    if version(&mut from)? < 170_000 {
        println!("pg_createsubscriber is there from 17 on");
        return Ok(());
    }
    let mut drawn = Drawn::default();
    upgrades::create(&mut from)?;
    drawn.go_on(&mut from, true)?;
    let mut standby = old.standby()?;
    standby.stop(Shutdown::Fast)?;
    standby.create_subscriber(&old, "postgres")?;
    standby.start_again()?;
    let mut subscriber = standby.connect("postgres")?;
    // From now on the server is another cluster, and the state file belongs to the former cluster.
    let refused = snowflakes::refused(&mut subscriber)?;
    ensure!(refused.message() == FOREIGN, "{refused:?}");
    subscriber.run("select snowflake_ids.state_reset()")?;
    let id = wait_for_id(&mut subscriber)?;
    let own: i64 = next(&mut from)?;
    let (theirs, ours) = (worker(&mut from, own)?, worker(&mut subscriber, id)?);
    ensure!(theirs != ours, "the subscriber has the publisher's worker id {theirs}");
    drawn.go_on(&mut from, true)?;
    caught_up(&standby, &mut from)?;
    drop(subscriber);

    standby.stop(Shutdown::Fast)?;
    let builder = number(if theirs == 3 { 4 } else { 3 }).set("wal_level", "logical").checksums();
    let mut new = builder.installation(&of_pg_upgrade("TO")?).create()?;
    new.pg_upgrade(&standby, &[])?;
    drawn.go_on(&mut from, true)?;
    new.start_again()?;
    caught_up(&new, &mut from)?;
    let mut to = new.connect("postgres")?;
    to.run("drop subscription everything")?;
    raise_tags(&mut from, &mut to)?;
    drawn.go_on(&mut to, false)?;
    gapless(&mut to)
}

/// A registry of one version serves nodes of both versions.
#[test]
#[ignore = "make test-pg-upgrade says from where to where"]
fn nodes_of_both_versions_share_a_registry_of_either() -> Result<()> {
    for serving in ["FROM", "TO"] {
        let registry = of(serving, auto())?;
        create(&mut registry.serve_nodes()?, "shared", "step => 20")?;
        let nodes = [of("FROM", cluster::node())?, of("TO", cluster::node())?];
        let (mut snowflakes, mut shared) = (Vec::new(), Vec::new());
        for node in &nodes {
            let mut client = node.join(&registry)?;
            wait_for_id(&mut client)?;
            becomes(&mut client, NAME, "up")?;
        }
        for _ in 0..3 {
            for node in &nodes {
                let mut client = node.connect("postgres")?;
                snowflakes.extend(take(&mut client, 100)?);
                shared.extend(segments::take(&mut client, "shared", 100)?);
            }
        }
        ids::unique(snowflakes)?;
        ids::unique(shared)?;
    }
    Ok(())
}
