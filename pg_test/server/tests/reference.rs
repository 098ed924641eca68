//! `docs/reference` lists the functions, settings and views of the extension as the catalog has them, each with its comment.
//! `SNOWFLAKE_IDS_WRITE=1` writes these lists anew.

use postgres::Row;
use snowflake_ids_server_tests::prelude::*;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The parts of the administration. Each is also the name of a role here, which has only this part.
const PARTS: [&str; 5] = ["tags", "generators", "series", "registry", "state"];

/// Opens a session, with the extension and the roles of [`PARTS`].
fn session(server: &Server) -> Result<Client> {
    let mut client = server.connect("postgres")?;
    client.run("create extension if not exists snowflake_ids")?;
    for part in PARTS {
        client.run(&format!(
            "create role {part}; select snowflake_ids.administration_grant('{part}', '{part}')"
        ))?;
    }
    Ok(client)
}

/// A table cell: one line, with the table's own marks escaped.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', "<br>")
}

/// A row of a table.
fn line(row: &Row, columns: usize) -> Result<String> {
    let mut cells = Vec::new();
    for column in 0..columns {
        cells.push(cell(&row.try_get::<_, Option<String>>(column)?.unwrap_or_default()));
    }
    Ok(format!("| {} |\n", cells.join(" | ")))
}

/// A table with the result of a query.
fn table(client: &mut Client, head: &[&str], query: &str) -> Result<String> {
    let rule = ["---"].repeat(head.len()).join(" | ");
    let mut table = format!("| {} |\n| {rule} |\n", head.join(" | "));
    let rows = client.query(query, &[]).with_context(|| query.to_owned())?;
    ensure!(!rows.is_empty(), "there is nothing in: {query}");
    for row in &rows {
        table.push_str(&line(row, head.len())?);
    }
    Ok(table)
}

/// Fails unless the page equals the committed page. Writes the page first if the environment says so.
fn compare(name: &str, page: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("SNOWFLAKE_IDS_WRITE").is_some() {
        fs::write(&path, page)?;
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    let other = page.lines().find(|line| !stored.lines().any(|stored| stored == *line));
    ensure!(
        stored == page,
        "docs/reference/{name} is not what the extension has, such as {other:?}; `make reference` writes it anew"
    );
    Ok(())
}

/// The FROM clause of queries for members of the extension.
const MEMBERS: &str =
    "pg_depend as d join pg_extension as e on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid
    and d.deptype = 'e' and e.extname = 'snowflake_ids'";

/// A query for the functions of a schema, a row for each. Functions with an argument of type `internal` are left out, because SQL
/// cannot call them. Everyone has EXECUTE on some functions, which themselves check who may call them.
fn functions(schema: &str) -> String {
    format!(
        "select '`' || p.proname || '(' || regexp_replace(pg_get_function_arguments(p.oid), '^IN |::[a-z ]+(\\[\\])?(?=,|$)', '', 'g') || ')`',
                case when p.prokind = 'p' then 'procedure' else '`' || pg_get_function_result(p.oid) || '`' end,
                obj_description(p.oid, 'pg_proc'),
                case p.provolatile when 'v' then 'volatile' when 's' then 'stable' else 'immutable' end,
                case p.proparallel when 's' then 'safe' when 'r' then 'restricted' else 'unsafe' end,
                case when p.prosrc ~ '(check_manages_tags|change_all)\\(|^(detach|(un)?bind_sequence)_wrapper' then 'administrators of tags'
                     when has_function_privilege('public', p.oid, 'execute') then 'everyone'
                     else coalesce((select 'administrators of ' || string_agg(part, ', ' order by n)
                                    from unnest(array['{}']) with ordinality as a (part, n)
                                    where has_function_privilege(part, p.oid, 'execute')),
                                   (select string_agg('`' || grantee::regrole || '`', ', ' order by grantee::regrole::text)
                                    from aclexplode(p.proacl) where grantee <> p.proowner),
                                   'superusers') end
         from {MEMBERS} join pg_proc as p on d.classid = 'pg_proc'::regclass and d.objid = p.oid
         where p.pronamespace = '{schema}'::regnamespace and 'internal'::regtype <> all (p.proargtypes)
         order by p.proname collate \"C\", p.pronargs, pg_get_function_arguments(p.oid) collate \"C\"",
        PARTS.join("', '")
    )
}

fn functions_are_listed(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let head = ["function", "gives", "what it does", "volatility", "parallel", "EXECUTE is granted to"];
    let mut page = String::from(
        "# Functions

All functions that users call, as the catalog has them. [SQL](../sql.md) and [series](../series.md) say how they are used;
who is meant by administrators is in [rights](../privileges.md#administration-in-parts). EXECUTE is not all that it may take:
`segment_drop` is for [the tag's owner](../privileges.md#rights-on-a-tag). What is in the schema `snowflake_ids_internal` is not
to be called.

## Ids and numbers

They are in the schema `pg_catalog`, and found without a schema.

",
    );
    page.push_str(&table(&mut client, &head, &functions("pg_catalog"))?);
    page.push_str("\n## Administration\n\nThey are in the schema `snowflake_ids`.\n\n");
    page.push_str(&table(&mut client, &head, &functions("snowflake_ids"))?);
    compare("functions.md", &page)
}

fn settings_are_listed(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let mut page = String::from(
        "# Settings

All settings, as `pg_settings` has them. [Settings](../settings.md) says what each is for, and what wrong values come to.

",
    );
    let head = ["setting", "type", "unit", "default", "range", "context", "what it does"];
    page.push_str(&table(
        &mut client,
        &head,
        "select '`' || name || '`', vartype, unit, case when boot_val = '' then 'empty' else '`' || boot_val || '`' end,
                coalesce(min_val || ' to ' || max_val, '`' || array_to_string(enumvals, '`, `') || '`'), context,
                short_desc || coalesce(' ' || extra_desc, '')
         from pg_settings where name like 'snowflake\\_ids.%' order by name collate \"C\"",
    )?);
    page.push_str(
        "
| context | when it can be set |
| --- | --- |
| `postmaster` | at server start |
| `sighup` | in the configuration; a reload reads it again |
| `superuser` | by superusers, and roles with `GRANT SET`; for a session, a role or a database |
| `user` | by everyone, for a session, a role or a database |
",
    );
    compare("settings.md", &page)
}

fn views_are_listed(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let mut page = String::from(
        "# Views and tables

All views and tables in the schema `snowflake_ids`, as the catalog has them. [Views](../views.md) says what to look for in
them. Tables are written to by functions; which you may write to as well is in [SQL](../sql.md).
",
    );
    let relations = client.query(
        &format!(
            "select c.relname::text, c.relkind = 'v', obj_description(c.oid, 'pg_class')
             from {MEMBERS} join pg_class as c on d.classid = 'pg_class'::regclass and d.objid = c.oid
             where c.relnamespace = 'snowflake_ids'::regnamespace and c.relkind in ('v', 'r')
             order by c.relkind = 'r', c.relname collate \"C\""
        ),
        &[],
    )?;
    for relation in &relations {
        let (name, is_view, comment): (String, bool, Option<String>) =
            (relation.get(0), relation.get(1), relation.get(2));
        let kind = if is_view { "view" } else { "table" };
        let comment = comment.with_context(|| format!("{kind} snowflake_ids.{name} has no comment"))?;
        writeln!(page, "\n## The {kind} {name}\n\n`snowflake_ids.{name}`: {comment}.\n")?;
        page.push_str(&table(
            &mut client,
            &["column", "type", "what it tells"],
            &format!(
                "select '`' || attname || '`', format_type(atttypid, atttypmod), col_description(attrelid, attnum)
                 from pg_attribute where attrelid = 'snowflake_ids.{name}'::regclass and attnum > 0 and not attisdropped
                 order by attnum"
            ),
        )?);
    }
    compare("views.md", &page)
}

fn what_users_meet_has_a_comment(server: &mut Server) -> Result<()> {
    let mut client = session(server)?;
    let without: Vec<String> = client
        .query(
            &format!(
                "select p.oid::regprocedure::text from {MEMBERS} join pg_proc as p on d.classid = 'pg_proc'::regclass and d.objid = p.oid
                 where p.pronamespace <> 'snowflake_ids_internal'::regnamespace and obj_description(p.oid, 'pg_proc') is null
                 union all
                 select c.relname || '.' || a.attname
                 from {MEMBERS} join pg_class as c on d.classid = 'pg_class'::regclass and d.objid = c.oid and c.relkind = 'v'
                      join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                 where c.relnamespace <> 'snowflake_ids_internal'::regnamespace and col_description(c.oid, a.attnum) is null"
            ),
            &[],
        )?
        .iter()
        .map(|row| row.get(0))
        .collect();
    ensure!(
        without.is_empty(),
        "these have no comment: src/sql/last.sql is the place for it\n{}",
        without.join("\n")
    );
    Ok(())
}

#[test]
fn the_reference_lists_what_is_there() -> Result<()> {
    Server::builder().set("timezone", "UTC").cases(cases![
        functions_are_listed,
        settings_are_listed,
        views_are_listed,
        what_users_meet_has_a_comment
    ])
}
