//! Metrics. The exporters' files match the views and follow Prometheus's rules for names. Alerts and the dashboard use only
//! existing metrics. For roles that may read them, the metric views agree with the other views. `make monitoring` writes the
//! exporters' files.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, take};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The exit status and the output of `check_attention.sh` for a role of a server.
fn check(server: &Server, role: &str, database: &str) -> Result<(i32, String)> {
    let mut check = Command::new("../../monitoring/check_attention.sh");
    check.args(["--host=127.0.0.1", &format!("--username={role}"), &format!("--port={}", server.port())]);
    let done = check.arg(format!("--dbname={database}")).output()?;
    Ok((done.status.code().context("a status")?, String::from_utf8(done.stdout)?))
}

#[test]
fn the_check_ends_with_what_needs_attention() -> Result<()> {
    let (server, mut client) = Server::builder().with_session()?;
    client.one::<i64>("select snowflake_nextval()")?;
    ensure!(check(&server, "postgres", "postgres")? == (0, "OK - nothing needs attention\n".to_owned()));
    client.run("select snowflake_ids.generator_create('short', '30/0/5/1 unit=1s epoch=1996-06-01')")?;
    let (status, said) = check(&server, "postgres", "postgres")?;
    ensure!((1..=2).contains(&status) && said.contains("generator short"), "{status}: {said}");
    let (status, said) = check(&server, "postgres", "nowhere")?;
    ensure!(status == 3 && said.starts_with("UNKNOWN"), "{status}: {said}");
    // A role that does not see all problems learns nothing from an empty view.
    client.run("create role guest login; create role monitor login in role pg_monitor")?;
    let (status, said) = check(&server, "guest", "postgres")?;
    ensure!(status == 3 && said.starts_with("UNKNOWN - role guest"), "{status}: {said}");
    let (status, said) = check(&server, "monitor", "postgres")?;
    ensure!((1..=2).contains(&status) && said.contains("generator short"), "{status}: {said}");
    Ok(())
}

/// A view, and how exporters query it.
struct Query {
    view: &'static str,
    /// The part of the query after its columns.
    rest: &'static str,
    /// Whether the result is the same in every database.
    is_of_server: bool,
}

const QUERIES: [Query; 7] = [
    Query { view: "metric", rest: "", is_of_server: true },
    Query { view: "metric_node", rest: "", is_of_server: true },
    Query { view: "metric_server", rest: "", is_of_server: true },
    Query {
        view: "metric_tag",
        // Each tag is a label. Tags that need attention come first, and at most 100 tags are queried.
        rest: " ORDER BY trouble DESC, remaining_seconds NULLS LAST, issued_total DESC LIMIT 100",
        is_of_server: false,
    },
    Query { view: "metric_generator", rest: " ORDER BY generator LIMIT 100", is_of_server: false },
    Query { view: "metric_series", rest: "", is_of_server: false },
    Query { view: "metric_registry", rest: "", is_of_server: false },
];

/// A column of such a view.
struct Column {
    name: String,
    is_label: bool,
    help: String,
}

impl Column {
    fn is_counter(&self) -> bool {
        self.name.ends_with("_total")
    }
}

impl Query {
    /// The prefix of the view's metrics.
    fn prefix(&self) -> String {
        self.view.replacen("metric", "snowflake_ids", 1)
    }

    fn columns(&self, client: &mut Client) -> Result<Vec<Column>> {
        let rows = client.query(
            "select a.attname::text, a.atttypid = 'text'::regtype, col_description(a.attrelid, a.attnum), format_type(a.atttypid, null)
             from pg_attribute as a where a.attrelid = $1::text::regclass and a.attnum > 0 order by a.attnum",
            &[&format!("snowflake_ids.{}", self.view)],
        )?;
        let column = |row: &postgres::Row| {
            let (name, is_label): (String, bool) = (row.get(0), row.get(1));
            let of: String = row.get(3);
            ensure!(is_label || of == "double precision", "{}.{name} is of type {of}", self.view);
            let help: Option<String> = row.get(2);
            // Labels named like a setting or another view's column need no help text.
            let help = if is_label {
                help.unwrap_or_else(|| name.replace('_', " "))
            } else {
                let help = help.with_context(|| format!("{}.{name} has no comment", self.view))?;
                ensure!(help.ends_with('.'), "help of {}.{name} is no sentence: {help}", self.view);
                help
            };
            Ok(Column { name, is_label, help })
        };
        rows.iter().map(column).collect()
    }

    fn sql(&self, columns: &[Column]) -> String {
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        format!("SELECT {} FROM snowflake_ids.{}{}", names.join(", "), self.view, self.rest)
    }
}

const HEADING: &str = "# Written by `make monitoring` from the views snowflake_ids.metric*, whose columns the metrics are. How to use it:\n\
                       # docs/monitoring.md.\n";

/// The file of queries for `postgres_exporter`.
fn postgres_exporter(client: &mut Client) -> Result<String> {
    let mut file = HEADING.to_owned();
    for query in &QUERIES {
        let columns = query.columns(client)?;
        writeln!(file, "\n{}:\n  query: \"{}\"", query.prefix(), query.sql(&columns))?;
        if query.is_of_server {
            writeln!(file, "  master: true")?;
        }
        writeln!(file, "  metrics:")?;
        for column in &columns {
            let usage = match column {
                Column { is_label: true, .. } => "LABEL",
                column if column.is_counter() => "COUNTER",
                _ => "GAUGE",
            };
            writeln!(file, "  - {}: {{usage: {usage}, description: \"{}\"}}", column.name, column.help)?;
        }
    }
    Ok(file)
}

/// The collector for `sql_exporter`.
fn sql_exporter(client: &mut Client) -> Result<String> {
    let mut file = format!("{HEADING}\ncollector_name: snowflake_ids\n\nmetrics:\n");
    let mut queries = String::new();
    for query in &QUERIES {
        let columns = query.columns(client)?;
        let labels: Vec<_> = columns.iter().filter(|c| c.is_label).map(|c| c.name.as_str()).collect();
        for column in columns.iter().filter(|column| !column.is_label) {
            let (prefix, name, help) = (query.prefix(), &column.name, &column.help);
            let kind = if column.is_counter() { "counter" } else { "gauge" };
            write!(file, "- {{metric_name: {prefix}_{name}, type: {kind}, help: \"{help}\"")?;
            if !labels.is_empty() {
                write!(file, ", key_labels: [{}]", labels.join(", "))?;
            }
            writeln!(file, ", values: [{name}], query_ref: {}}}", query.view)?;
        }
        writeln!(queries, "- query_name: {}\n  query: \"{}\"", query.view, query.sql(&columns))?;
    }
    Ok(format!("{file}\nqueries:\n{queries}"))
}

/// All metric names.
fn metrics(client: &mut Client) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for query in &QUERIES {
        let columns = query.columns(client)?;
        names
            .extend(columns.iter().filter(|c| !c.is_label).map(|c| format!("{}_{}", query.prefix(), c.name)));
    }
    Ok(names)
}

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../monitoring").join(file)
}

fn read(file: &str) -> Result<String> {
    fs::read_to_string(path(file)).with_context(|| format!("cannot read monitoring/{file}"))
}

/// The words of a text that have the form of metric names.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn the_files_for_exporters_say_what_the_views_have(server: &mut Server) -> Result<()> {
    let client = &mut server.session()?;
    for (file, wanted) in
        [("postgres_exporter.yaml", postgres_exporter(client)?), ("sql_exporter.yaml", sql_exporter(client)?)]
    {
        if std::env::var("SNOWFLAKE_IDS_WRITE").is_ok_and(|write| write == "1") {
            fs::write(path(file), &wanted)?;
        }
        ensure!(
            read(file)? == wanted,
            "monitoring/{file} is not what the views have. Where that is meant: make monitoring"
        );
    }
    // Exporters send these queries.
    for query in &QUERIES {
        let columns = query.columns(client)?;
        client.query(&query.sql(&columns), &[]).with_context(|| query.sql(&columns))?;
    }
    Ok(())
}

fn names_are_as_prometheus_has_them(server: &mut Server) -> Result<()> {
    for name in metrics(&mut server.session()?)? {
        ensure!(name.starts_with("snowflake_ids_"), "{name}");
        ensure!(name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_'), "{name}");
        for unit in ["millis", "micro", "_ms", "minutes", "hours", "days", "years", "percent", "_kb"] {
            ensure!(!name.contains(unit), "{name} is not in a base unit");
        }
    }
    Ok(())
}

fn alerts_and_dashboard_speak_of_metrics_that_are_there(server: &mut Server) -> Result<()> {
    let known = metrics(&mut server.session()?)?;
    for file in ["alerts.yaml", "alerts_test.yaml", "grafana.json"] {
        let text = read(file)?;
        let spoken_of: BTreeSet<_> = words(&text).filter(|word| word.starts_with("snowflake_ids_")).collect();
        ensure!(!spoken_of.is_empty(), "monitoring/{file} speaks of none");
        let unknown: Vec<_> = spoken_of.into_iter().filter(|name| !known.contains(*name)).collect();
        ensure!(unknown.is_empty(), "monitoring/{file} speaks of {unknown:?}");
    }
    Ok(())
}

#[test]
fn each_alert_has_a_runbook_and_a_test() -> Result<()> {
    let (alerts, tests) = (read("alerts.yaml")?, read("alerts_test.yaml")?);
    let runbooks = fs::read_to_string(path("../docs/alerts.md"))?;
    let names: Vec<_> = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    ensure!(!names.is_empty(), "no alerts");
    for name in &names {
        ensure!(runbooks.contains(&format!("\n## {name}\n")), "docs/alerts.md has no section {name}");
        let link = format!("runbook_url: docs/alerts.md#{}\n", name.to_lowercase());
        ensure!(alerts.contains(&link), "alerts.yaml has no {link}");
        ensure!(tests.contains(&format!("alertname: {name}\n")), "alerts_test.yaml does not test {name}");
    }
    let sections = runbooks.lines().filter_map(|line| line.strip_prefix("## SnowflakeIds")).count();
    assert_eq!(sections, names.len(), "docs/alerts.md has sections of no alert");
    Ok(())
}

/// An integer from a view.
fn count(client: &mut Client, query: &str) -> Result<i64> {
    client.one(&format!("select ({query})::bigint"))
}

/// A number from a view.
fn value(client: &mut Client, query: &str) -> Result<f64> {
    client.one(query)
}

#[test]
fn ids_refills_and_waits_are_counted() -> Result<()> {
    let server = Server::builder().start()?;
    let client = &mut server.session()?;
    create(client, "t", "step => 10, max_step => 10, max_value => 1000")?;
    take(client, "t", 25)?;
    client.query("select snowflake_nextval() from generate_series(1, 7)", &[])?;
    for (query, wanted) in [
        ("select issued_total from snowflake_ids.metric where kind = 'snowflake'", 7),
        ("select issued_total from snowflake_ids.metric where kind = 'segment'", 25),
        ("select issued_total from snowflake_ids.metric_tag where tag = 't'", 25),
        ("select issued_total + remaining_ids from snowflake_ids.metric_tag", 1000),
        ("select ready from snowflake_ids.metric_server", 1),
        ("select in_recovery from snowflake_ids.metric_server", 0),
        ("select max_drift_seconds from snowflake_ids.metric_server", 60),
        ("select tag_slots_in_use from snowflake_ids.metric_server", 1),
        ("select trouble from snowflake_ids.metric_tag where tag = 't'", 0),
    ] {
        assert_eq!(count(client, query)?, wanted, "{query}");
    }
    for query in [
        "select refills_total from snowflake_ids.metric_tag",
        "select refill_seconds_total from snowflake_ids.metric_tag",
        "select waits_total from snowflake_ids.metric_tag",
        "select wait_seconds_total from snowflake_ids.metric_tag",
        "select tag_refills_total from snowflake_ids.metric_server",
        "select tag_refill_seconds_total from snowflake_ids.metric_server",
        "select tag_waits_total from snowflake_ids.metric_server",
        "select tag_wait_seconds_total from snowflake_ids.metric_server",
        "select layout_remaining_seconds - 86400 * 365 from snowflake_ids.metric_server",
    ] {
        ensure!(value(client, query)? > 0.0, "{query}");
    }
    Ok(())
}

#[test]
fn what_a_tag_has_counted_stays_in_the_sum_when_it_is_dropped() -> Result<()> {
    let server = Server::builder().start()?;
    let client = &mut server.session()?;
    create(client, "t", "")?;
    take(client, "t", 25)?;
    client.run("select snowflake_ids.segment_drop('t')")?;
    assert_eq!(count(client, "select count(*) from snowflake_ids.metric_tag")?, 0);
    let sum = "select issued_total from snowflake_ids.metric where kind = 'segment'";
    assert_eq!(count(client, sum)?, 25);
    ensure!(value(client, "select tag_waits_total from snowflake_ids.metric_server")? > 0.0, "no waits");
    Ok(())
}

#[test]
fn counts_are_set_back_of_one_tag_or_of_all_of_this_database() -> Result<()> {
    let server = Server::builder().start()?;
    server.create_database("other")?;
    let (client, other) = (&mut server.session()?, &mut server.connect("other")?);
    create(client, "a", "")?;
    create(client, "b", "")?;
    create(other, "a", "")?;
    for client in [&mut *client, &mut *other] {
        take(client, "a", 5)?;
    }
    take(client, "b", 6)?;
    let counts = "select array_agg(ids_issued || '/' || refills || '/' || waits || '/' || (wait_time > '0')
                         || '/' || (longest_wait is not null) order by database, tag)::text
                  from snowflake_ids.segment_status";
    let before: String = client.one(counts)?;
    assert_eq!(before, "{5/1/1/true/true,5/1/1/true/true,6/1/1/true/true}");
    let since: f64 = value(
        client,
        "select extract(epoch from stats_reset)::float8 from snowflake_ids.segment_status where tag = 'b' and database = current_database()",
    )?;
    client.run("select snowflake_ids.stats_reset('a')")?;
    assert_eq!(client.one::<String>(counts)?, "{5/1/1/true/true,0/0/0/false/false,6/1/1/true/true}");
    take(client, "a", 3)?;
    client.run("select snowflake_ids.stats_reset()")?;
    take(client, "b", 2)?;
    assert_eq!(client.one::<String>(counts)?, "{5/1/1/true/true,0/0/0/false/false,2/0/0/false/false}");
    let reset = value(
        client,
        "select extract(epoch from stats_reset)::float8 from snowflake_ids.segment_status where tag = 'b' and database = current_database()",
    )?;
    ensure!(reset > since, "stats_reset stays {since}");
    assert_eq!(
        count(client, "select issued_total from snowflake_ids.metric where kind = 'segment'")?,
        21,
        "all that were issued"
    );
    Ok(())
}

#[test]
fn counts_are_set_back_by_those_who_may_and_restricted_tags_seen_by_those_who_may() -> Result<()> {
    let server = Server::builder().start()?;
    let client = &mut server.session()?;
    client.run(
        "create role nobody; create role clerk; create role exporter in role pg_monitor;
         select snowflake_ids.segment_create('secret', owner => 'clerk')",
    )?;
    take(client, "secret", 3)?;
    let refused = "set role nobody; select snowflake_ids.stats_reset('secret')";
    let error = client.error(refused)?;
    assert_eq!(error.code(), &SqlState::INSUFFICIENT_PRIVILEGE, "{error:?}");
    let seen = "select coalesce(sum(issued_total), -1) from snowflake_ids.metric_tag";
    for (role, wanted) in [("nobody", -1), ("clerk", 3), ("exporter", 3)] {
        client.run(&format!("set role {role}"))?;
        assert_eq!(count(client, seen)?, wanted, "{role}");
    }
    client.run("reset role; select snowflake_ids.administration_grant('tags', 'nobody'); set role nobody")?;
    client.run("select snowflake_ids.stats_reset('secret')")?;
    client.run("reset role")?;
    assert_eq!(count(client, seen)?, 0);
    Ok(())
}

#[test]
fn exporters_alerts_and_dashboard_fit() -> Result<()> {
    Server::builder().cases(cases![
        the_files_for_exporters_say_what_the_views_have,
        names_are_as_prometheus_has_them,
        alerts_and_dashboard_speak_of_metrics_that_are_there
    ])
}
