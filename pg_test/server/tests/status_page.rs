//! The page about a server, in all states that one can be in, and what it samples.

use anyhow::{Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use snowflake_ids_server_tests::snowflakes::{next, take};
use snowflake_ids_server_tests::{Server, Shutdown, sql};

const PAGE: &str = "select snowflake_ids.status_page()::pg_catalog.text";

fn page(client: &mut Client) -> Result<String> {
    let page: String = sql::one(client, PAGE)?;
    ensure!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "half a page: {page}");
    ensure!(page.is_ascii(), "letters of some encoding: {page}");
    Ok(page)
}

/// Fails unless the page has all of these.
fn says(page: &str, words: &[&str]) -> Result<()> {
    for words in words {
        ensure!(page.contains(words), "{words:?} is not on the page:\n{page}");
    }
    Ok(())
}

#[test]
fn a_quiet_server_is_well_and_says_what_it_has() -> Result<()> {
    let server = Server::builder().small().set("cluster_name", "shop_1").start()?;
    let mut client = server.session()?;
    client.batch_execute(
        "select snowflake_ids.segment_create('invoices'); select segment_nextval('invoices');
         select snowflake_ids.generator_create('web', 'javascript');
         select snowflake_ids.series_create('of_customer');
         create sequence numbers; select snowflake_ids.bind_sequence('numbers')",
    )?;
    next(&mut client)?;
    let page = page(&mut client)?;
    says(&page, &["All is well", "shop_1", "primary", "<bdi>invoices</bdi>", "<bdi>numbers</bdi>"])
}

#[test]
fn whoever_may_not_read_a_view_gets_no_page() -> Result<()> {
    let server = Server::builder().small().start()?;
    let mut client = server.session()?;
    client.batch_execute("create role guest")?;
    let views = [
        "status",
        "status_history",
        "segment_status",
        "generator_status",
        "series_status",
        "registry_status",
        "sequence_status",
    ];
    for view in views {
        client
            .batch_execute(&format!("revoke select on snowflake_ids.{view} from public; set role guest"))?;
        let error = sql::error(&mut client, PAGE)?;
        sql::explains(&error, &SqlState::INSUFFICIENT_PRIVILEGE, "permission denied for the status page")?;
        ensure!(error.detail().is_some_and(|detail| detail.contains(view)), "{view}: {error:?}");
        client.batch_execute(&format!("reset role; grant select on snowflake_ids.{view} to public"))?;
    }
    client.batch_execute("set role guest")?;
    page(&mut client)?;
    client.batch_execute(
        "reset role; revoke execute on function snowflake_ids.status_page() from public; set role guest",
    )?;
    let error = sql::error(&mut client, PAGE)?;
    ensure!(error.code() == &SqlState::INSUFFICIENT_PRIVILEGE, "{error:?}");
    Ok(())
}

#[test]
fn restricted_tags_show_to_those_who_may_see_them() -> Result<()> {
    let server = Server::builder().small().start()?;
    let mut client = server.session()?;
    client.batch_execute(
        "create role guest; create role clerk;
         select snowflake_ids.segment_create('open'); select snowflake_ids.segment_create('payments');
         select snowflake_ids.segment_grant('payments', 'clerk', 'USAGE'); set role guest",
    )?;
    let seen = page(&mut client)?;
    ensure!(seen.contains("<bdi>open</bdi>") && !seen.contains("payments"), "{seen}");
    client.batch_execute("set role clerk")?;
    says(&page(&mut client)?, &["<bdi>open</bdi>", "<bdi>payments</bdi>"])
}

#[test]
fn a_standby_says_that_it_is_one() -> Result<()> {
    let primary = Server::builder().small().start()?;
    let mut client = primary.session()?;
    client.batch_execute(
        "select snowflake_ids.segment_create('invoices'); select snowflake_ids.series_create('tickets')",
    )?;
    let standby = primary.standby()?;
    standby.catch_up(&primary)?;
    let page = page(&mut standby.connect("postgres")?)?;
    says(
        &page,
        &[
            "This server is a standby",
            "Standbys and promotion",
            "<bdi>invoices</bdi>",
            "<bdi>tickets</bdi>",
            "one is taken each 10 s",
        ],
    )
}

#[test]
fn a_server_without_the_library_says_what_it_takes() -> Result<()> {
    let server = Server::builder().small().without_preload().without("snowflake_ids.worker_id").start()?;
    let page = page(&mut server.session()?)?;
    says(&page, &["was not loaded when the server started", "shared_preload_libraries", "Decode an id"])?;
    ensure!(!page.contains("id=\"tags\""), "{page}");
    Ok(())
}

#[test]
fn a_damaged_state_file_comes_first_with_its_way_out() -> Result<()> {
    let mut server = Server::builder().small().start()?;
    next(&mut server.session()?)?;
    server.stop(Shutdown::Fast)?;
    server.damage_state_file(|bytes| bytes[..bytes.len() / 2].to_vec())?;
    server.start_again()?;
    let page = page(&mut server.session()?)?;
    let what = "issues no snowflake ids: the state file of snowflake_ids is damaged";
    says(&page, &[what, "1 alarm", "docs/errors.md, &#8220;The state file&#8221;"])
}

#[test]
fn the_launcher_samples_what_goes_on() -> Result<()> {
    let server = Server::builder().small().set("snowflake_ids.sample_interval", "1s").start()?;
    let mut client = server.session()?;
    sql::becomes_true(&mut client, "select count(*) > 0 from snowflake_ids.status_history")?;
    take(&mut client, 1_000)?;
    // In transactions of their own: what one takes of a tag that it has made itself comes out of no buffer.
    client.batch_execute("select snowflake_ids.segment_create('invoices')")?;
    client.batch_execute("select count(segment_nextval('invoices')) from generate_series(1, 500)")?;
    let sum = |column| {
        format!(
            "select coalesce(sum({column} * extract(epoch from elapsed)), 0)::bigint from snowflake_ids.status_history"
        )
    };
    sql::becomes_true(&mut client, &format!("select ({}) = 1000", sum("ids_per_second")))?;
    sql::becomes_true(&mut client, &format!("select ({}) = 500", sum("segment_ids_per_second")))?;
    let waits = "select sum(h.waits) = (select sum(s.waits) from snowflake_ids.segment_status as s)
                 from snowflake_ids.status_history as h";
    sql::becomes_true(&mut client, waits)?;
    // What a tag has counted stays when it has no place any more.
    client.batch_execute(
        "select snowflake_ids.segment_drop('invoices'); select snowflake_ids.segment_create('orders')",
    )?;
    client.batch_execute("select count(segment_nextval('orders')) from generate_series(1, 200)")?;
    sql::becomes_true(&mut client, &format!("select ({}) = 700", sum("segment_ids_per_second")))?;
    says(&page(&mut client)?, &["class=\"line\" d=\"M"])?;

    // Without samples it says so; those that were taken stay.
    server.reload("snowflake_ids.sample_interval", "0")?;
    page(&mut client)?;
    Ok(())
}

#[test]
fn nothing_is_sampled_where_it_is_switched_off() -> Result<()> {
    let server = Server::builder().small().set("snowflake_ids.sample_interval", "0").start()?;
    let mut client = server.session()?;
    // The launcher has looked around: it keeps the mark ahead.
    next(&mut client)?;
    sql::becomes_true(
        &mut client,
        "select reservations > reserved_by_callers from snowflake_ids.status where snowflake_nextval() > 0",
    )?;
    ensure!(sql::one::<i64>(&mut client, "select count(*) from snowflake_ids.status_history")? == 0);
    says(&page(&mut client)?, &["Nothing is sampled"])
}

#[test]
fn names_are_text_in_every_encoding() -> Result<()> {
    let server = Server::builder().small().start()?;
    for encoding in ["UTF8", "LATIN1", "EUC_JP", "SQL_ASCII"] {
        let mut client = server.create_encoded_database(encoding)?;
        client.batch_execute(
            "set client_encoding = 'UTF8'; create extension if not exists snowflake_ids;
             select snowflake_ids.segment_create('<script>\"&'' 1')",
        )?;
        // A letter of the database's own.
        let letter = if encoding == "EUC_JP" { "u&'\\3042'" } else { "u&'\\00e9'" };
        if encoding != "SQL_ASCII" {
            client.batch_execute(&format!("select snowflake_ids.segment_create({letter})"))?;
            says(&page(&mut client)?, &[if encoding == "EUC_JP" { "&#12354;" } else { "&#233;" }])?;
        }
        says(&page(&mut client)?, &["<bdi>&lt;script&gt;&quot;&amp;&#39; 1</bdi>"])?;
    }
    Ok(())
}

#[test]
fn no_name_is_looked_up_where_the_caller_says() -> Result<()> {
    let server = Server::builder().small().start()?;
    let mut client = server.session()?;
    client.batch_execute(
        "create schema evil;
         create function evil.refuse(text, text) returns boolean language plpgsql as $$ begin raise 'found'; end $$;
         create operator evil.= (function = evil.refuse, leftarg = text, rightarg = text);
         create function evil.has_table_privilege(text, text) returns boolean language plpgsql as $$ begin raise 'found'; end $$;
         create function evil.current_setting(text) returns text language plpgsql as $$ begin raise 'found'; end $$;
         create function evil.count(out bigint) language plpgsql as $$ begin raise 'found'; end $$;
         create table evil.pg_extension (extname name, extversion text);
         create domain evil.text as integer;
         set search_path = evil, pg_temp, pg_catalog",
    )?;
    page(&mut client)?;
    Ok(())
}

#[test]
fn a_thousand_tags_fit() -> Result<()> {
    let server = Server::builder().small().set("snowflake_ids.max_tags", "1200").start()?;
    let mut client = server.session()?;
    client.batch_execute(
        "select count(snowflake_ids.segment_create('tag ' || n)) from generate_series(1, 1100) as n;
         select count(segment_nextval('tag ' || n)) from generate_series(1, 300) as n",
    )?;
    let page = page(&mut client)?;
    says(&page, &["1,100 tags", "100 more are left out", "tag 300"])?;
    ensure!(page.len() < 500_000, "{} bytes", page.len());
    Ok(())
}
