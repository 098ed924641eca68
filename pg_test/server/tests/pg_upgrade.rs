//! `pg_upgrade` from one major version of Postgres to another, run by `make test-pg-upgrade`, which sets both versions.

use snowflake_ids_server_tests::catalog::{self, Told};
use snowflake_ids_server_tests::cluster::{self, JOIN, NAME, becomes};
use snowflake_ids_server_tests::installation::of_pg_upgrade;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::create;
use snowflake_ids_server_tests::snowflakes::{status, take};
use snowflake_ids_server_tests::upgrades::{self, Drawn};

/// A server of the old Postgres. Both clusters have checksums, because `pg_upgrade` needs equal settings.
fn old(builder: Builder) -> Result<Server> {
    builder.checksums().installation(&of_pg_upgrade("FROM")?).start()
}

/// A stopped server of the new Postgres, filled from the old one.
fn upgraded(old: &mut Server, builder: Builder, options: &[&str]) -> Result<Server> {
    old.strip_version_of_columns()?;
    filled(old, builder.checksums().installation(&of_pg_upgrade("TO")?), options)
}

fn filled(old: &mut Server, builder: Builder, options: &[&str]) -> Result<Server> {
    old.stop(Shutdown::Fast)?;
    let new = builder.create()?;
    new.pg_upgrade(old, options)?;
    // Only pg_upgrade has started the new server so far. The extension must not have issued ids there, so there is no state file.
    ensure!(!new.state_file().exists(), "ids were issued during the upgrade");
    Ok(new)
}

fn number() -> Builder {
    Server::builder()
}

/// Properties that a dump keeps literally. Expressions are written differently, and default privileges are omitted.
fn lasting(told: BTreeSet<Told>) -> BTreeSet<Told> {
    let is_rewritten = |what: &str| {
        ["view", "rule", "trigger", "constraint"].contains(&what) || what.starts_with("initial privileges")
    };
    told.into_iter().filter(|(_, what, _)| !is_rewritten(what)).collect()
}

/// Checks that everything exists and continues on a server with this setting of `worker_id`.
fn check(builder: &Builder, options: &[&str]) -> Result<()> {
    goes_on(old(builder.clone())?, |old| upgraded(old, builder.clone(), options))
}

fn goes_on(mut old: Server, upgrade: impl FnOnce(&mut Server) -> Result<Server>) -> Result<()> {
    let mut client = old.session()?;
    let mut drawn = Drawn::default();
    upgrades::create(&mut client)?;
    drawn.go_on(&mut client, true)?;
    let rows = upgrades::rows(&mut client)?;
    let leased: i32 = status(&mut client, "worker_id")?;
    drop(client);
    let mut new = upgrade(&mut old)?;
    new.start_again()?;
    let mut client = new.connect("postgres")?;
    new.create_database("fresh")?;
    let fresh = lasting(catalog::objects(&mut new.connect("fresh")?)?);
    let found = catalog::differences(("upgraded", &lasting(catalog::objects(&mut client)?)), ("new", &fresh));
    ensure!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(upgrades::rows(&mut client)?, rows);
    wait_for_id(&mut client)?;
    drawn.go_on(&mut client, false)?;
    if status::<Option<String>>(&mut client, "leased_from")?.is_some() {
        ensure!(status::<i32>(&mut client, "worker_id")? != leased, "the former server's worker id");
    }
    new.restart()?;
    drawn.go_on(&mut new.connect("postgres")?, true)
}

/// `pg_upgrade` also upgrades a cluster to the same version, so this test runs with the installed Postgres.
#[test]
fn all_goes_on_in_a_new_cluster_of_the_same_version() -> Result<()> {
    goes_on(number().start()?, |old| filled(old, number(), &[]))
}

#[test]
#[ignore = "make test-pg-upgrade says from where to where"]
fn all_goes_on_under_a_worker_id_on_lease() -> Result<()> {
    check(&auto(), &[])
}

#[test]
#[ignore = "make test-pg-upgrade says from where to where"]
fn all_goes_on_under_a_number() -> Result<()> {
    check(&number(), &["--link"])
}

/// The new cluster cannot know how far ids ran ahead of the clock. The rows show how far, so the state is reset to a time above
/// their ids.
#[test]
#[ignore = "make test-pg-upgrade says from where to where"]
fn ids_that_ran_ahead_of_the_clock_are_followed_after_a_reset_above_them() -> Result<()> {
    let mut old = old(number().false_clock())?;
    let mut client = old.session()?;
    client.run("create table orders (id bigint default snowflake_nextval())")?;
    old.set_clock("+40min")?;
    let insert = "insert into orders select from generate_series(1, 100) returning id";
    let mut drawn: Vec<i64> = client.column(insert)?;
    drop(client);
    let mut new = upgraded(&mut old, number().set("snowflake_ids.max_drift", "2h"), &[])?;
    new.start_again()?;
    let mut client = new.connect("postgres")?;
    client.run(
        "select snowflake_ids.state_reset((select snowflake_timestamp(max(id)) + interval '1 s' from orders))",
    )?;
    drawn.extend(client.column::<i64>(insert)?);
    ids::growing(&drawn)
}

/// An upgraded registry counts as a new registry, so its nodes call `use_registry` again. An upgraded node is a new server for
/// its registry. The node gets another worker id once an administrator has declared that the registry knows all nodes.
#[test]
#[ignore = "make test-pg-upgrade says from where to where"]
fn a_registry_and_a_node_are_upgraded_with_one_call_on_each() -> Result<()> {
    let mut registry = old(auto())?;
    create(&mut registry.serve_nodes()?, "shared", "step => 20")?;
    let mut node = old(cluster::node())?;
    let mut client = node.join(&registry)?;
    wait_for_id(&mut client)?;
    let (mut snowflakes, mut shared) = (Vec::new(), Vec::new());
    draw(&mut client, &mut snowflakes, &mut shared)?;
    drop(client);

    let mut upgraded_registry = upgraded(&mut registry, auto(), &[])?;
    upgraded_registry.start_again()?;
    upgraded_registry.rule(&format!("host all {} 127.0.0.1/32 scram-sha-256", cluster::ROLE))?;
    let mut client = node.connect("postgres")?;
    client.run(&format!("alter server {NAME} options (set port '{}')", upgraded_registry.port()))?;
    becomes(&mut client, NAME, "failing")?;
    client.run(JOIN)?;
    becomes(&mut client, NAME, "up")?;
    draw(&mut client, &mut snowflakes, &mut shared)?;
    drop(client);
    upgraded_registry.connect("postgres")?.run("select snowflake_ids.worker_release_former()")?;

    let mut upgraded_node = upgraded(&mut node, cluster::node(), &[])?;
    upgraded_node.start_again()?;
    let mut client = upgraded_node.connect("postgres")?;
    wait_for_id(&mut client)?;
    becomes(&mut client, NAME, "up")?;
    draw(&mut client, &mut snowflakes, &mut shared)?;
    let mut registry = upgraded_registry.connect("postgres")?;
    let leases: i64 = registry.one("select count(distinct worker_id) from snowflake_ids.worker_lease")?;
    ensure!(leases >= 2, "the upgraded node has the worker id of the former one");
    ids::unique(snowflakes)?;
    ids::growing(&shared)
}

fn draw(client: &mut Client, snowflakes: &mut Vec<i64>, shared: &mut Vec<i64>) -> Result<()> {
    snowflakes.extend(take(client, 100)?);
    shared.extend(snowflake_ids_server_tests::segments::take(client, "shared", 100)?);
    Ok(())
}
