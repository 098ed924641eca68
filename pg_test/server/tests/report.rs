//! The view `attention`, the report and the status page of a server, in all states of the server.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::snowflakes::{next, take};

const PAGE: &str = "select snowflake_ids.status_page()::pg_catalog.text";
const FAILED: &str = "select (snowflake_ids.report() -> 'identity' ->> 'failed_calls')::bigint";

fn page(client: &mut Client) -> Result<String> {
    let page: String = client.one(PAGE)?;
    ensure!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "half a page: {page}");
    ensure!(page.is_ascii(), "letters of some encoding: {page}");
    Ok(page)
}

/// The rows of `attention`: severity, subject and problem, the worst first.
fn attention(client: &mut Client) -> Result<Vec<(String, String, String)>> {
    let rows = client.query("select severity, subject, problem, action from snowflake_ids.attention", &[])?;
    for row in &rows {
        ensure!(row.get::<_, String>(3).contains("docs/"), "no way out: {row:?}");
    }
    Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
}

/// Fails unless this is the only problem that needs attention.
fn is_told(client: &mut Client, severity: &str, problem: &str) -> Result<()> {
    let told = attention(client)?;
    ensure!(
        told.len() == 1 && told[0].0 == severity && told[0].2.contains(problem),
        "not {problem:?}: {told:?}"
    );
    Ok(())
}

/// Fails unless the page contains all these words.
fn says(page: &str, words: &[&str]) -> Result<()> {
    for words in words {
        ensure!(page.contains(words), "{words:?} is not on the page:\n{page}");
    }
    Ok(())
}

fn a_quiet_server_is_well_and_says_what_it_has(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "select snowflake_ids.segment_create('invoices'); select segment_nextval('invoices');
         select snowflake_ids.generator_create('web', 'javascript');
         select snowflake_ids.series_create('of_customer');
         create sequence numbers; select snowflake_ids.bind_sequence('numbers')",
    )?;
    next(&mut client)?;
    assert_eq!(attention(&mut client)?, []);
    let report = "select concat_ws(' ', r -> 'identity' ->> 'cluster_name', r -> 'identity' ->> 'state', r #>> '{tags,rows,0,tag}',
            r #>> '{generators,0,name}', r #>> '{series,0,name}', r #>> '{sequences,0,sequence}', r #>> '{tags,total}')
        from snowflake_ids.report() as r";
    let told: String = client.one(report)?;
    assert_eq!(told, "shop_1 ready invoices web of_customer public.numbers 1");
    says(&page(&mut client)?, &["shop_1", "invoices", "public.numbers", "\"sees_all\": true"])
}

/// The columns of a view, some of them replaced by other values.
fn altered(client: &mut Client, view: &str, values: &[(&str, &str)], from: &str) -> Result<String> {
    let columns = client.column::<String>(&format!(
        "select attname || ' ' || format_type(atttypid, null)
                 || case when attcollation = '\"C\"'::regcollation then ' collate \"C\"' else '' end
             from pg_attribute where attrelid = '{view}'::regclass and attnum > 0 order by attnum"
    ))?;
    let columns = columns.iter().map(|column| {
        let (name, of) = column.split_once(' ').unwrap_or((column, "text"));
        let value = values.iter().find(|(altered, _)| *altered == name).map(|(_, value)| *value);
        let own = if from.is_empty() { "null" } else { name };
        format!("({})::{of} as {name}", value.unwrap_or(own))
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    Ok(format!("create or replace view {view} as select {columns} {from}"))
}

/// A view, columns of a row in it, and the severity and problem that are reported for them.
type Fault = (&'static str, &'static [(&'static str, &'static str)], &'static str, &'static str);

const STATUS: &str = "snowflake_ids.status";
const REGISTRY: &str = "snowflake_ids.registry_status";
const TAG: &str = "snowflake_ids_internal.tag_attention";
const GENERATOR: &str = "snowflake_ids.generator_status";
const FAULTS: [Fault; 16] = [
    (STATUS, &[("state", "'the lease has ended'")], "alarm", "issues no snowflake ids: the lease has ended"),
    (STATUS, &[("clock_ahead", "'3 hours'")], "alarm", "03:00:00 ahead, and is not followed"),
    (STATUS, &[("drift", "'31 s'")], "note", "ids are 00:00:31 ahead of the clock"),
    (STATUS, &[("drift", "'31 s'"), ("steps_back", "1")], "warning", "ids are 00:00:31 ahead of the clock"),
    (STATUS, &[("drift", "'60 s'")], "alarm", "ids are 00:01:00 ahead of the clock"),
    (STATUS, &[("lease_expires_at", "now() + interval '8 hours'")], "warning", "ends in 08:00:00"),
    (STATUS, &[("lease_expires_at", "now() + interval '1 hour'")], "alarm", "ends in 01:00:00"),
    (STATUS, &[("years_left", "4.9")], "warning", "ends in 4.9 years"),
    (STATUS, &[("years_left", "0.9")], "alarm", "ends in 0.9 years"),
    (STATUS, &[("years_left", "0")], "alarm", "has ended, or ends within 36 days"),
    (REGISTRY, &[("state", "'failing'"), ("error", "'it is gone'")], "alarm", "does not answer: it is gone"),
    (
        TAG,
        &[("trouble", "'locked'"), ("standing", "'without ids'")],
        "alarm",
        "without ids, and refills fail: locked",
    ),
    (TAG, &[("trouble", "'locked'"), ("standing", "'refills fail'")], "warning", "refills fail: locked"),
    (TAG, &[("exhausted_at", "'2099-01-01'"), ("standing", "'ends soon'")], "alarm", "used up at"),
    (TAG, &[("exhausted_at", "'2099-01-01'"), ("standing", "'ends this year'")], "warning", "used up at"),
    (
        GENERATOR,
        &[("fits", "false"), ("state", "'too narrow'")],
        "warning",
        "does not fit this server: too narrow",
    ),
];

fn each_fault_is_told_by_itself(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    next(&mut client)?;
    for (view, values, severity, problem) in FAULTS {
        let own: String = client.one(&format!("select pg_get_viewdef('{view}'::regclass)"))?;
        let from =
            if view == STATUS { format!("from ({}) as v", own.trim_end_matches(';')) } else { String::new() };
        let view_of_fault = altered(&mut client, view, values, &from)?;
        client.run(&view_of_fault)?;
        is_told(&mut client, severity, problem)?;
        client.run(&format!("create or replace view {view} as {own}"))?;
    }
    assert_eq!(attention(&mut client)?, []);
    Ok(())
}

/// A load makes no forecast, and a tag without a number says so, since when, and what to do.
fn a_tag_is_used_up_only_when_it_is(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run("select snowflake_ids.segment_create('small', max_value => 32000)")?;
    client.run("select count(segment_nextval('small')) from generate_series(1, 31999)")?;
    assert_eq!(attention(&mut client)?, []);
    client.run("select segment_nextval('small')")?;
    let failed: i64 = client.one(FAILED)?;
    client.fails("select segment_nextval('small')", &SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED)?;
    assert_eq!(client.one::<i64>(FAILED)?, failed + 1);
    client.becomes_true(
        "select problem = 'no number of the tag is left, and calls fail' and coalesce(since <= now(), false)
             and action like 'Raise max_value with snowflake_ids.segment_alter (docs/%'
         from snowflake_ids.attention where subject = 'tag small'",
    )?;
    client.run(
        "select snowflake_ids.segment_alter('small', max_value => 40000); select segment_nextval('small')",
    )?;
    assert_eq!(attention(&mut client)?, []);
    client.run("select snowflake_ids.segment_drop('small')")
}

fn whoever_may_not_read_a_view_gets_no_page(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run("create role guest")?;
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
        client.run(&format!("revoke select on snowflake_ids.{view} from public; set role guest"))?;
        let error = client.fails(PAGE, &SqlState::INSUFFICIENT_PRIVILEGE)?;
        ensure!(error.message().contains(view), "{view}: {error:?}");
        client.run(&format!("reset role; grant select on snowflake_ids.{view} to public"))?;
    }
    client.run("set role guest")?;
    page(&mut client)?;
    client.run(
        "reset role; revoke execute on function snowflake_ids.status_page() from public; set role guest",
    )?;
    client.fails(PAGE, &SqlState::INSUFFICIENT_PRIVILEGE)?;
    Ok(())
}

fn restricted_tags_show_to_those_who_may_see_them(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
        "create role guest; create role clerk;
         select snowflake_ids.segment_create('open'); select snowflake_ids.segment_create('payments');
         select snowflake_ids.segment_grant('payments', 'clerk', 'USAGE'); set role guest",
    )?;
    let seen = page(&mut client)?;
    ensure!(seen.contains("\"open\"") && !seen.contains("payments"), "{seen}");
    says(&seen, &["\"sees_all\": false"])?;
    client.run("set role clerk")?;
    says(&page(&mut client)?, &["\"open\"", "\"payments\""])
}

#[test]
fn a_standby_says_that_it_is_one() -> Result<()> {
    let primary = Server::builder().start()?;
    let mut client = primary.session()?;
    client.run(
        "select snowflake_ids.segment_create('invoices'); select snowflake_ids.series_create('tickets')",
    )?;
    let standby = primary.standby()?;
    standby.catch_up(&primary)?;
    let mut client = standby.connect("postgres")?;
    is_told(&mut client, "note", "this server is a standby")?;
    says(&page(&mut client)?, &["invoices", "tickets"])
}

#[test]
fn a_server_without_the_library_says_what_it_takes() -> Result<()> {
    let (_server, mut client) =
        Server::builder().without_preload().without("snowflake_ids.worker_id").with_session()?;
    is_told(&mut client, "alarm", "was not loaded when the server started")?;
    let page = page(&mut client)?;
    ensure!(!page.contains("\"tags\":") && page.contains("\"twitter\""), "{page}");
    Ok(())
}

#[test]
fn a_damaged_state_file_comes_first_with_its_way_out() -> Result<()> {
    let mut server = Server::builder().start()?;
    next(&mut server.session()?)?;
    server.stop(Shutdown::Fast)?;
    server.damage_state_file(|bytes| bytes[..bytes.len() / 2].to_vec())?;
    server.start_again()?;
    let mut client = server.session()?;
    page(&mut client)?;
    client.error("select snowflake_nextval()")?;
    assert_eq!(client.one::<i64>(FAILED)?, 1);
    is_told(&mut client, "alarm", "issues no snowflake ids: the state file of snowflake_ids is damaged")?;
    // The action is the HINT of the failing call. What a reset causes needs no action.
    let action = "select action from snowflake_ids.attention";
    ensure!(client.one::<String>(action)?.contains("SELECT snowflake_ids.state_reset() creates a new file"));
    client.run("select snowflake_ids.state_reset()")?;
    next(&mut client)?;
    is_told(&mut client, "note", "ahead of the clock")?;
    ensure!(client.one::<String>(action)?.starts_with("Do nothing: state_reset()"));
    Ok(())
}

#[test]
fn the_launcher_samples_what_goes_on() -> Result<()> {
    let (server, mut client) = Server::builder().set("snowflake_ids.sample_interval", "1s").with_session()?;
    client.becomes_true("select count(*) > 0 from snowflake_ids.status_history")?;
    take(&mut client, 1_000)?;
    // The calls run in a later transaction, because a transaction that has created a tag takes the tag's ids from no buffer.
    client.run("select snowflake_ids.segment_create('invoices')")?;
    client.run("select count(segment_nextval('invoices')) from generate_series(1, 500)")?;
    let sum = |column| {
        format!(
            "select coalesce(sum({column} * extract(epoch from elapsed)), 0)::bigint from snowflake_ids.status_history"
        )
    };
    client.becomes_true(&format!("select ({}) = 1000", sum("ids_per_second")))?;
    client.becomes_true(&format!("select ({}) = 500", sum("segment_ids_per_second")))?;
    let waits = "select sum(h.waits) = (select sum(s.waits) from snowflake_ids.segment_status as s)
                 from snowflake_ids.status_history as h";
    client.becomes_true(waits)?;
    // A tag's counts stay when the tag loses its slot.
    client.run(
        "select snowflake_ids.segment_drop('invoices'); select snowflake_ids.segment_create('orders')",
    )?;
    client.run("select count(segment_nextval('orders')) from generate_series(1, 200)")?;
    client.becomes_true(&format!("select ({}) = 700", sum("segment_ids_per_second")))?;
    client.becomes_true("select jsonb_array_length(snowflake_ids.report() -> 'history') > 1")?;

    // The page says that no samples are taken. Earlier samples stay.
    server.reload("snowflake_ids.sample_interval", "0")?;
    page(&mut client)?;
    Ok(())
}

#[test]
fn nothing_is_sampled_where_it_is_switched_off() -> Result<()> {
    let (_server, mut client) = Server::builder().set("snowflake_ids.sample_interval", "0").with_session()?;
    // The launcher has run by the time it moves the mark ahead.
    next(&mut client)?;
    client.becomes_true(
        "select reservations > reserved_by_callers from snowflake_ids.status where snowflake_nextval() > 0",
    )?;
    ensure!(client.one::<i64>("select count(*) from snowflake_ids.status_history")? == 0);
    let report = "select r -> 'history' = '[]' and (r ->> 'sample_interval')::float = 0 from snowflake_ids.report() as r";
    ensure!(client.one::<bool>(report)?);
    Ok(())
}

fn names_are_text_in_every_encoding(server: &mut Server) -> Result<()> {
    for encoding in ["UTF8", "LATIN1", "EUC_JP", "SQL_ASCII"] {
        let mut client = server.create_encoded_database(encoding)?;
        client.run(
            "set client_encoding = 'UTF8'; create extension if not exists snowflake_ids;
             select snowflake_ids.segment_create('<script>\"&'' 1')",
        )?;
        // A letter outside ASCII, in the database's encoding.
        let letter = if encoding == "EUC_JP" { "u&'\\3042'" } else { "u&'\\00e9'" };
        if encoding != "SQL_ASCII" {
            client.run(&format!("select snowflake_ids.segment_create({letter})"))?;
            says(&page(&mut client)?, &[if encoding == "EUC_JP" { "\\u3042" } else { "\\u00e9" }])?;
        }
        says(&page(&mut client)?, &["\\u003cscript>\\\"&' 1"])?;
    }
    Ok(())
}

fn no_name_is_looked_up_where_the_caller_says(server: &mut Server) -> Result<()> {
    let mut client = server.session()?;
    client.run(
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
    let (_server, mut client) = Server::builder().set("snowflake_ids.max_tags", "1200").with_session()?;
    client
        .run("select count(snowflake_ids.segment_create('tag ' || n)) from generate_series(1, 1100) as n")?;
    client.run("select count(segment_nextval('tag ' || n)) from generate_series(1, 300) as n")?;
    let page = page(&mut client)?;
    says(&page, &["\"total\": 1100", "\"fine\": 300", "\"tag 150\""])?;
    // Idle tags have no place among the 200 that the page shows.
    ensure!(!page.contains("\"tag 1001\"") && page.len() < 250_000, "{} bytes", page.len());
    Ok(())
}

#[test]
fn the_report_and_the_page() -> Result<()> {
    Server::builder().set("cluster_name", "shop_1").cases(cases![
        a_quiet_server_is_well_and_says_what_it_has,
        each_fault_is_told_by_itself,
        a_tag_is_used_up_only_when_it_is,
        whoever_may_not_read_a_view_gets_no_page,
        restricted_tags_show_to_those_who_may_see_them,
        names_are_text_in_every_encoding,
        no_name_is_looked_up_where_the_caller_says
    ])
}
