//! `attach` and `detach` of tables in a Citus cluster: either all nodes change, or the error says why not. A stand-in takes the
//! place of Citus.

use snowflake_ids_server_tests::citus::{Citus, SetUp};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments;

/// A session, and tables with each kind of column that Citus changes itself, and with kinds that it refuses to change.
fn session(cluster: &Citus) -> Result<Client> {
    let mut client = cluster.session()?;
    client.run(
        "create table serial_key (id bigserial primary key, note text);
         create table identity_key (id bigint generated always as identity primary key, note text);
         create table \"Odd name\" (tenant bigint, \"Id x\" bigserial, note text);
         create table plain (id bigint primary key, note text);
         select create_distributed_table('serial_key', 'id'), create_distributed_table('identity_key', 'id'),
                create_distributed_table('\"Odd name\"', 'tenant'), create_reference_table('plain')",
    )?;
    for server in cluster.servers() {
        wait_for_id(&mut server.connect("postgres")?)?;
    }
    Ok(client)
}

const TABLES: [(&str, &str); 4] =
    [("serial_key", "id"), ("identity_key", "id"), ("\"Odd name\"", "Id x"), ("plain", "id")];

fn call(function: &str, table: &str, column: &str, more: &str) -> String {
    format!("select snowflake_ids.{function}('{}'::regclass, '{column}'{more})", table.replace('\'', "''"))
}

/// Inserts ten rows through each node.
fn insert(cluster: &Citus, table: &str) -> Result<()> {
    for server in cluster.servers() {
        let rows = format!("insert into {table} (note) select 'x' from generate_series(1, 10)");
        server.connect("postgres")?.run(&rows)?;
    }
    Ok(())
}

/// The ids of all rows. Each row is on the node that inserted it.
fn stored(cluster: &Citus, table: &str, column: &str) -> Result<Vec<i64>> {
    let mut all = Vec::new();
    for server in cluster.servers() {
        all.extend(server.connect("postgres")?.column::<i64>(&format!("select \"{column}\" from {table}"))?);
    }
    Ok(all)
}

/// The default of a column on each node.
fn defaults(cluster: &Citus, table: &str, column: &str) -> Result<Vec<Option<String>>> {
    let default = format!(
        "select pg_get_expr(d.adbin, d.adrelid) from pg_attribute as a
         left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
         where a.attrelid = '{}'::regclass and a.attname = '{column}'",
        table.replace('\'', "''")
    );
    cluster.servers().map(|server| server.connect("postgres")?.one(&default)).collect()
}

fn all_nodes_take_ids_of_a_tag_and_go_back(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    for (table, column) in TABLES {
        if table != "plain" {
            insert(cluster, table)?;
        }
        client.run(&call("attach", table, column, ", kind => 'segment'"))?;
        let here = defaults(cluster, table, column)?;
        let expected = here[0].as_ref().is_some_and(|default| default.starts_with("segment_nextval("));
        ensure!(expected && here.iter().all(|default| *default == here[0]), "{table}: {here:?}");
        insert(cluster, table)?;
        // The caller's setting is unchanged.
        let propagates: String = client.one("show citus.enable_ddl_propagation")?;
        ensure!(propagates == "on", "{propagates}");
        // The same call again, and then another kind.
        client.run(&call("attach", table, column, ", kind => 'segment'"))?;
        insert(cluster, table)?;
        client.run(&call("attach", table, column, ""))?;
        let here = defaults(cluster, table, column)?;
        ensure!(here == vec![Some("snowflake_nextval()".to_owned()); 3], "{table}: {here:?}");
        insert(cluster, table)?;
        for kind in
            ["sequence", "identity"].into_iter().filter(|kind| table != "\"Odd name\"" || *kind == "sequence")
        {
            client.run(&call("detach", table, column, &format!(", kind => '{kind}'")))?;
            insert(cluster, table)?;
            client.run(&call("attach", table, column, ", kind => 'segment'"))?;
            insert(cluster, table)?;
        }
        let ids = stored(cluster, table, column)?;
        // Each node uses its own range of numbers again.
        for group in 1..=2_i64 {
            let count = ids.iter().filter(|id| **id >> 48 == group).count();
            ensure!(count >= 10, "{table}: {count} of group {group}");
        }
        ids::unique(ids)?;
    }
    Ok(())
}

/// A tag begins above the rows and the coordinator's sequence. The workers' sequences do not count, because they begin in other
/// ranges.
fn a_tag_begins_where_the_coordinator_was(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    client.run("insert into serial_key (note) values ('one'), ('two')")?;
    client.run(&call("attach", "serial_key", "id", ", kind => 'segment'"))?;
    let mut worker = cluster.workers[0].connect("postgres")?;
    let id: i64 = worker.one("insert into serial_key (note) values ('three') returning id")?;
    ensure!((3..5000).contains(&id), "{id}");
    // On each node, the sequence gives ids of the tag.
    let next: i64 = worker.one("select nextval('serial_key_id_seq')")?;
    ensure!(next == id + 1, "{id}, {next}");
    ensure!(worker.one::<i64>("select currval('serial_key_id_seq')")? == next);
    Ok(())
}

/// The workers' reserved ids may be below ids in the column.
fn what_workers_hold_of_a_tag_is_not_given_out_any_more(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    client.run("select snowflake_ids.segment_create('shared')")?;
    let mut worker = cluster.workers[0].connect("postgres")?;
    let held = segments::next(&mut worker, "shared")?;
    client.run("insert into plain (id) select generate_series(1, 5000)")?;
    client.run(&call("attach", "plain", "id", ", kind => 'segment', tag => 'shared'"))?;
    let id: i64 = worker.one("insert into plain (note) values ('x') returning id")?;
    ensure!(held < 5000 && id > 5000, "{held}, {id}");
    Ok(())
}

fn a_worker_refuses_and_names_the_coordinator(cluster: &mut Citus) -> Result<()> {
    session(cluster)?;
    let mut worker = cluster.workers[0].connect("postgres")?;
    let place = format!("at host 127.0.0.1, port {}", cluster.coordinator.port());
    for query in [call("attach", "serial_key", "id", ""), call("detach", "serial_key", "id", "")] {
        let refused = worker.fails(&query, sql::NOT_IN_STATE)?;
        ensure!(refused.detail().is_some(), "{refused:?}");
        ensure!(refused.hint().is_some_and(|hint| hint.contains(&place)), "{refused:?}");
    }
    // A worker also refuses rows in the table of tags, and calls that create tags.
    for query in
        ["select snowflake_ids.segment_create('t')", "insert into snowflake_ids.segment (tag) values ('t')"]
    {
        let refused = worker.fails(query, sql::NOT_IN_STATE)?;
        ensure!(refused.hint().is_some_and(|hint| hint.contains(&place)), "{refused:?}");
    }
    Ok(())
}

/// A failed call changes nothing: it creates no tag, and changes no node's default.
fn a_node_that_is_not_fit_is_named_and_nothing_is_changed(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    let before = defaults(cluster, "serial_key", "id")?;
    let mut refused = |how: &str| -> Result<String> {
        let error = client.error(&call("attach", "serial_key", "id", how))?;
        ensure!(error.message() == "1 of the cluster's workers did not make the change", "{error:?}");
        let tags: i64 = client.one("select count(*) from snowflake_ids.segment")?;
        ensure!(tags == 0 && defaults(cluster, "serial_key", "id")? == before, "{tags} tags");
        Ok(error.detail().unwrap_or_default().to_owned())
    };
    let mut worker = cluster.workers[1].connect("postgres")?;
    let port = cluster.workers[1].port();
    // The row is changed by hand, so that this node's ids come from another registry.
    worker.run("update snowflake_ids.registry_server set identity = 'another'")?;
    let detail = refused(", kind => 'segment'")?;
    ensure!(detail.contains(&format!("127.0.0.1:{port}")) && detail.contains("another registry"), "{detail}");
    let identity = "select snowflake_ids_internal.registries_in_use()";
    let identity: String = cluster.workers[0].connect("postgres")?.one(identity)?;
    worker.execute("update snowflake_ids.registry_server set identity = $1", &[&identity])?;
    // Now the node fails in the middle of the call, after it has passed the check.
    worker.run(
        "create function refuse() returns event_trigger language plpgsql as
             $$ begin raise exception 'not here'; end $$;
         create event trigger refuse on ddl_command_start when tag in ('ALTER TABLE') execute function refuse()",
    )?;
    let error = client.error(&call("attach", "serial_key", "id", ", kind => 'segment'"))?;
    let detail = error.detail().unwrap_or_default();
    ensure!(detail.contains(&format!("127.0.0.1:{port}")) && detail.contains("not here"), "{error:?}");
    // The same call then succeeds.
    worker.run("drop event trigger refuse")?;
    client.run(&call("attach", "serial_key", "id", ", kind => 'segment'"))?;
    insert(cluster, "serial_key")?;
    ids::unique(stored(cluster, "serial_key", "id")?)
}

/// Changes on workers stay, so the tag and the coordinator's default stay too.
fn no_id_comes_twice_where_a_worker_fails_in_the_middle(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    client.run("select snowflake_ids.segment_create('shared')")?;
    insert(cluster, "serial_key")?;
    client.run("delete from serial_key where id > 5")?;
    cluster.workers[1].connect("postgres")?.run(
        "create function refuse() returns event_trigger language plpgsql as
             $$ begin raise exception 'not here'; end $$;
         create event trigger refuse on ddl_command_start when tag in ('ALTER TABLE') execute function refuse()",
    )?;
    let attach = call("attach", "serial_key", "id", ", kind => 'segment', tag => 'shared'");
    let refused = client.error(&attach)?;
    ensure!(refused.message() == "1 of the cluster's workers did not make the change", "{refused:?}");
    let changed = defaults(cluster, "serial_key", "id")?;
    ensure!(changed[0] == changed[1] && changed[1] != changed[2], "{changed:?}");
    insert(cluster, "serial_key")?;
    let ids = stored(cluster, "serial_key", "id")?;
    ensure!(ids.len() == 55, "{}", ids.len());
    ids::unique(ids)
}

fn a_transaction_block_is_refused(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    let before = defaults(cluster, "serial_key", "id")?;
    for function in ["attach", "detach"] {
        client.run("begin")?;
        let refused = client.error(&call(function, "serial_key", "id", ""))?;
        client.run("rollback")?;
        sql::explains(&refused, &SqlState::ACTIVE_SQL_TRANSACTION, refused.message())?;
    }
    ensure!(defaults(cluster, "serial_key", "id")? == before);
    Ok(())
}

/// Citus stores the rows in shards, so the coordinator's own table has no page.
fn rows_of_a_table_without_pages_are_read(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    client.run("create table t (id bigint, tenant int); select create_distributed_table('t', 'tenant')")?;
    client.run(&call("attach", "t", "id", ", kind => 'segment'"))?;
    let reads = "select pg_stat_get_numscans('t'::regclass) > 0";
    wait::until_true("a read of the table", || client.one(reads))
}

fn a_schema_is_attached_and_detached_on_all_nodes(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    // A key without a default stays as it is.
    let tables = TABLES.iter().filter(|(table, _)| *table != "plain");
    for (call, default) in
        [("attach_all('public', 'segment')", "segment_nextval("), ("detach_all('public')", "nextval(")]
    {
        client.run(&format!("call snowflake_ids.{call}"))?;
        for (table, column) in tables.clone() {
            for found in defaults(cluster, table, column)? {
                ensure!(
                    found.as_deref().is_some_and(|of| of.starts_with(default)),
                    "{call}: {table}: {found:?}"
                );
            }
            insert(cluster, table)?;
            ids::unique(stored(cluster, table, column)?)?;
        }
    }
    Ok(())
}

/// Workers keep no note of the identity.
fn a_column_that_was_an_identity_takes_given_ids_on_all_nodes(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    client.run(&call("attach", "identity_key", "id", ""))?;
    for (server, id) in cluster.servers().zip(1..) {
        server.connect("postgres")?.run(&format!("insert into identity_key values ({id}, 'given')"))?;
    }
    Ok(())
}

/// A client may have received an id of the worker's sequence that no row has yet, and may still store the id.
fn what_workers_gave_and_nobody_stored_yet_is_not_given_by_a_tag(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    let mut worker = cluster.workers[1].connect("postgres")?;
    let last = "select max(nextval('serial_key_id_seq')) from generate_series(1, 5000)";
    let last: i64 = worker.one(last)?;
    client.run(&format!("insert into serial_key (id) values ({})", last - 4000))?;
    client.run(&call("attach", "serial_key", "id", ", kind => 'segment'"))?;
    let id: i64 = client.one("insert into serial_key (note) values ('x') returning id")?;
    ensure!(id > last, "{last}, {id}");
    Ok(())
}

/// Nodes that have not learned of the change would still give ids of the first tag.
fn another_tag_is_refused_until_the_column_is_detached(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    client.run(&call("attach", "serial_key", "id", ", kind => 'segment', tag => 'one'"))?;
    let other = call("attach", "serial_key", "id", ", kind => 'segment', tag => 'other'");
    let refused = client.fails(&other, &SqlState::FEATURE_NOT_SUPPORTED)?;
    ensure!(refused.detail().is_some() && refused.hint().is_some(), "{refused:?}");
    client.run(&call("detach", "serial_key", "id", ""))?;
    client.run(&other)?;
    Ok(())
}

/// Workers have reserved ids of the tag. After a restart of the sequence, the workers would give ids twice.
fn a_sequence_is_not_restarted_on_the_coordinator(cluster: &mut Citus) -> Result<()> {
    let mut client = session(cluster)?;
    client.run(&call("attach", "serial_key", "id", ", kind => 'segment'"))?;
    insert(cluster, "serial_key")?;
    client.run("alter sequence serial_key_id_seq restart")?;
    insert(cluster, "serial_key")?;
    ids::unique(stored(cluster, "serial_key", "id")?)
}

/// On a worker, the sequence of a distributed table starts in the range of the worker's group. Binding the sequence on the worker
/// would raise the tag for all nodes.
fn the_sequence_of_a_distributed_table_is_not_bound(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    client
        .run("create table t (id bigserial, tenant int); select create_distributed_table('t', 'tenant')")?;
    for server in cluster.servers() {
        let mut session = server.connect("postgres")?;
        session.explained(
            "select snowflake_ids.bind_sequence('t_id_seq', 'segment', 'tag')",
            &SqlState::FEATURE_NOT_SUPPORTED,
            "cannot bind sequence \"public.t_id_seq\", which a distributed table uses",
        )?;
    }
    ensure!(client.one::<i64>("select count(*) from snowflake_ids.segment where tag = 'tag'")? == 0);
    Ok(())
}

/// After a table leaves the cluster, Citus still treats its sequence as distributed: it refuses changes instead of propagating
/// them.
fn a_table_that_is_distributed_no_more_is_attached_and_detached(cluster: &mut Citus) -> Result<()> {
    let mut client = cluster.session()?;
    client.run(
        "create table t (id bigserial, tenant int); select snowflake_ids.attach('t', 'id', 'segment');
         create sequence s; select snowflake_ids.bind_sequence('s', 'segment');
         create function refuse() returns event_trigger language plpgsql as $$ begin
             if current_setting('citus.enable_ddl_propagation')::bool then
                 raise 'Altering a distributed sequence is currently not supported.';
             end if;
         end $$;
         create event trigger refuse on ddl_command_start when tag in ('ALTER SEQUENCE') execute function refuse()",
    )?;
    for call in [
        "attach('t', 'id', 'segment')",
        "detach('t', 'id')",
        "attach('t', 'id')",
        "unbind_sequence('s')",
        "bind_sequence('s')",
    ] {
        client.run(&format!("select snowflake_ids.{call}"))?;
    }
    let propagates = "select current_setting('citus.enable_ddl_propagation')";
    ensure!(client.one::<String>(propagates)? == "on");
    Ok(())
}

#[test]
fn attach_and_detach_on_all_nodes() -> Result<()> {
    Citus::cases(
        2,
        SetUp::Joined,
        cases![
            all_nodes_take_ids_of_a_tag_and_go_back,
            a_tag_begins_where_the_coordinator_was,
            what_workers_hold_of_a_tag_is_not_given_out_any_more,
            a_worker_refuses_and_names_the_coordinator,
            a_node_that_is_not_fit_is_named_and_nothing_is_changed,
            no_id_comes_twice_where_a_worker_fails_in_the_middle,
            a_transaction_block_is_refused,
            rows_of_a_table_without_pages_are_read,
            a_schema_is_attached_and_detached_on_all_nodes,
            a_column_that_was_an_identity_takes_given_ids_on_all_nodes,
            what_workers_gave_and_nobody_stored_yet_is_not_given_by_a_tag,
            another_tag_is_refused_until_the_column_is_detached,
            a_sequence_is_not_restarted_on_the_coordinator,
            the_sequence_of_a_distributed_table_is_not_bound,
            a_table_that_is_distributed_no_more_is_attached_and_detached
        ],
    )
}
