//! Ids of one shard, compared with tables that the server partitions by hash; and the shard setting for all generators.

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_ids_server_tests::{Server, sessions, sql::Session};
use std::collections::HashSet;

const SHARDS: i64 = 16;

/// Creates `parted`, in which each partition takes the rows of one shard, and `hashed`, whose partitions show whether an id
/// belongs to a shard.
fn create_tables(client: &mut Client) -> Result<()> {
    client.run(
        "create extension if not exists snowflake_ids;
         create table parted (id bigint primary key, note text) partition by hash (id);
         create table hashed (id bigint) partition by hash (id);
         do $$ begin
           for shard in 0..15 loop
             execute format('create table parted_%s partition of parted for values with (modulus 16, remainder %s)',
                            shard, shard);
           end loop;
         end $$",
    )?;
    Ok(())
}

/// Each generator's rows go into the generator's own partition, while sessions fill all partitions at once.
#[test]
fn each_shards_ids_go_into_its_partition() -> Result<()> {
    let (server, mut client) = Server::builder().set("max_connections", "40").with_session()?;
    create_tables(&mut client)?;
    for shard in 0..SHARDS {
        client.run(&format!(
            "select snowflake_ids.generator_create('shard {shard}', modulus => 16, remainder => {shard})"
        ))?;
    }
    sessions::at_once(server.sessions("postgres", 16)?, |shard, mut session| {
        let cache = [1, 10, 100][shard % 3];
        session.run(&format!(
            "set snowflake_ids.cache = {cache};
             insert into parted_{shard} select snowflake_nextval('shard {shard}'), 'one' from generate_series(1, 2000);
             insert into parted_{shard} select snowflake_nextvals(2000, 'shard {shard}'), 'many'"
        ))?;
        Ok(())
    })?;
    let rows: Vec<i64> = client.column("select count(*) from parted group by tableoid")?;
    assert_eq!(rows, [4_000; 16]);
    Ok(())
}

/// When the setting changes, a session hands out its cached ids only if they belong to the new shard.
#[test]
fn a_change_of_the_setting_counts_at_once() -> Result<()> {
    let (server, mut client) = Server::builder().set("snowflake_ids.shard", "3/16").with_session()?;
    create_tables(&mut client)?;
    client.run(
        "select snowflake_ids.generator_create('follows');
         select snowflake_ids.generator_create('own', modulus => 4, remainder => 1);
         select snowflake_ids.generator_create('all', modulus => 1, remainder => 0);
         set snowflake_ids.cache = 1000",
    )?;
    let mut all = HashSet::new();
    for (setting, modulus, remainder) in
        [("3/16", 16, 3), ("5/7", 7, 5), ("", 1, 0), ("0/1", 1, 0), ("63/64", 64, 63)]
    {
        server.reload("snowflake_ids.shard", setting)?;
        for (generator, modulus, remainder) in [("follows", modulus, remainder), ("own", 4, 1)] {
            let ids: Vec<i64> = client
                .column(&format!("select snowflake_nextval('{generator}') from generate_series(1, 500)"))?;
            let of_shard: i64 = client.one(&format!(
                "select count(*) from unnest(array{ids:?}::bigint[]) id
                     where satisfies_hash_partition('hashed'::regclass, {modulus}, {remainder}, id)"
            ))?;
            assert_eq!(of_shard, 500, "{generator} of {setting}");
            ensure!(ids.iter().all(|id| all.insert(*id)), "an id came twice");
        }
        for call in ["snowflake_nextval()", "snowflake_nextval('all')"] {
            let kinds: i64 = client.one(&format!(
                "select count(distinct satisfies_hash_partition('hashed'::regclass, 4, 1, {call}))
                     from generate_series(1, 500)"
            ))?;
            assert_eq!(kinds, 2, "{call} of {setting}");
        }
    }
    Ok(())
}

/// A tick of the layout has fewer ids than there are shards, so generators with this layout cannot obey the setting.
#[test]
fn a_setting_that_a_layout_has_no_room_for_is_refused_by_its_generators() -> Result<()> {
    let (_server, mut client) = Server::builder().set("snowflake_ids.shard", "1/1024").with_session()?;
    client.run(
        "create extension if not exists snowflake_ids;
         select snowflake_ids.generator_create('web', 'javascript');
         select snowflake_ids.generator_create('wide');
         select snowflake_ids.generator_create('own', 'javascript', modulus => 2, remainder => 1)",
    )?;
    let error = client.error("select snowflake_nextval('web')")?;
    assert_eq!(error.code().code(), "22023", "{error:?}");
    assert!(error.message().contains("modulus 1024"), "{error:?}");
    for other in ["'wide'", "'own'", ""] {
        client.one::<i64>(&format!("select snowflake_nextval({other})"))?;
    }
    Ok(())
}
