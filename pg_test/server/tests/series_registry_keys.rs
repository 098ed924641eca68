//! Keys that are texts and uuids, of dense series that draw from a registry: the same key at each node, whatever its database's encoding.

use anyhow::{Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use snowflake_ids_server_tests::cluster::{Cluster, JOIN, NAME, PASSWORD, ROLE, node, said};
use snowflake_ids_server_tests::registry::auto;
use snowflake_ids_server_tests::series::create_at_all;
use snowflake_ids_server_tests::{Server, Shutdown, ids, sql};

const CREATE: &str = "select snowflake_ids.series_create('texts', 'dense', 'text');
                      select snowflake_ids.series_create('uuids', 'dense', 'uuid')";
/// Short ones, one that is never in memory, and the longest that there may be.
const KEYS: [&str; 6] = [
    "'texts', 'web'",
    "'texts', ''",
    "'texts', 'Zürich, łódź'",
    "'texts', repeat('x', 100)",
    "'texts', repeat('ł', 64)",
    "'uuids', 'ffffffff-0000-7000-8000-00000000ff00'::uuid",
];

fn next(client: &mut Client, of: &str) -> Result<i64> {
    sql::one(client, &format!("select series_nextval({of})"))
}

#[test]
fn each_counts_for_all_nodes_and_over_restarts() -> Result<()> {
    let mut cluster = Cluster::of(auto(), &node(), 2)?;
    create_at_all(&cluster, CREATE)?;
    for of in KEYS {
        let mut clients = [cluster.session()?, cluster.nodes[1].connect("postgres")?];
        for number in [1, 3, 5] {
            assert_eq!(next(&mut clients[0], of)?, number, "{of}");
            assert_eq!(next(&mut clients[1], of)?, number + 1, "{of}");
        }
        // One alone reserves ahead from here on.
        assert_eq!((next(&mut clients[1], of)?, next(&mut clients[1], of)?), (7, 8), "{of}");
    }
    cluster.nodes[1].stop(Shutdown::Fast)?;
    cluster.nodes[1].start_again()?;
    let mut client = cluster.nodes[1].connect("postgres")?;
    for of in KEYS {
        assert_eq!((next(&mut client, of)?, next(&mut client, of)?), (9, 10), "{of}");
    }
    Ok(())
}

/// A database in this encoding, with the extension and both series.
fn database(server: &Server, encoding: &str, create: &str) -> Result<Client> {
    let mut client = server.create_encoded_database(encoding)?;
    client.batch_execute(&format!("create extension if not exists snowflake_ids; {create}"))?;
    Ok(client)
}

/// Has a session's database draw from one of the registry's.
fn join(client: &mut Client, registry: &Server, database: &str) -> Result<()> {
    client.batch_execute(&format!(
        "create extension if not exists postgres_fdw;
         create server {NAME} foreign data wrapper postgres_fdw options (host '127.0.0.1', port '{}', dbname '{database}');
         create user mapping for postgres server {NAME} options (user '{ROLE}', password '{PASSWORD}');
         {JOIN}",
        registry.port()
    ))?;
    Ok(())
}

#[test]
fn a_text_is_the_same_key_in_every_encoding() -> Result<()> {
    let (registry, node) = (auto().start()?, node().start()?);
    // Sessions of the registry itself reserve ahead: as little as can be.
    let create = CREATE.replace("'text')", "'text', step => 1, max_step => 1)");
    registry.serve_nodes()?.batch_execute(&create)?;
    let mut here = registry.connect("postgres")?;
    let mut there = database(&node, "LATIN1", &create)?;
    join(&mut there, &registry, "postgres")?;
    let of = "'texts', 'Zürich'";
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.extend([next(&mut here, of)?, next(&mut there, of)?]);
    }
    // What the registry reserved for its own sessions comes last.
    taken.push(next(&mut here, of)?);
    ids::dense(taken)?;
    let keys =
        "select string_agg(key, ', ' order by key) from snowflake_ids.series_key where series = 'texts'";
    for client in [&mut here, &mut there] {
        assert_eq!(sql::one::<String>(client, keys)?, "Zürich");
    }
    Ok(())
}

/// A key that the registry's encoding has no letters for is refused, and takes none of the others with it.
#[test]
fn a_key_that_the_registry_cannot_have_is_refused() -> Result<()> {
    let (registry, node) = (auto().start()?, node().start()?);
    registry.serve_nodes()?;
    let mut there = database(&registry, "LATIN1", CREATE)?;
    let database: String = sql::one(&mut there, "select current_database()::text")?;
    there
        .batch_execute(&format!("grant execute on function snowflake_ids.registry_serve(text) to {ROLE}"))?;
    let mut here = node.session()?;
    here.batch_execute(CREATE)?;
    join(&mut here, &registry, &database)?;
    let error = sql::error(&mut here, "select series_nextval('texts', 'łódź')")?;
    ensure!(error.code() == &SqlState::INVALID_PARAMETER_VALUE, "{error:?}");
    ensure!(said(&error).contains("cannot have this key"), "{error:?}");
    assert_eq!(next(&mut here, "'texts', 'Zürich'")?, 1);
    assert_eq!(next(&mut there, "'texts', 'Zürich'")?, 2);
    Ok(())
}
