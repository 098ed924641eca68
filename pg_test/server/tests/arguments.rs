//! Calls of every function of the extension: with nulls, with extreme values of each argument type, and in unusual places. Each
//! call returns a result or a helpful error, and the server keeps running. The functions come from the catalog, so functions that
//! are added later are tested too.

use snowflake_ids_server_tests::prelude::*;

/// A function of the extension.
struct Function {
    /// The name with its schema.
    name: String,
    /// Names and types of the arguments.
    arguments: Vec<(String, String)>,
    is_strict: bool,
    is_trigger: bool,
}

/// The extension's functions, except those of its data type, which run the server's own code. Functions with effects beyond a
/// transaction come last.
fn functions(client: &mut Client) -> Result<Vec<Function>> {
    let rows = client.query(
        "select p.oid::regproc::text, p.proisstrict, p.prorettype = 'trigger'::regtype,
                coalesce((select array_agg(coalesce(p.proargnames[n], '') order by n)
                          from generate_series(1, p.pronargs) as n), '{}'),
                coalesce((select array_agg(format_type(t, null) order by n)
                          from unnest(p.proargtypes::oid[]) with ordinality as a (t, n)), '{}')
         from pg_extension as e
              join pg_depend as d on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid
              join pg_proc as p on d.classid = 'pg_proc'::regclass and d.objid = p.oid
              join pg_language as l on l.oid = p.prolang
         where e.extname = 'snowflake_ids' and d.deptype = 'e' and l.lanname <> 'internal'
         order by p.proname like 'state_%', p.oid::regprocedure::text collate \"C\"",
        &[],
    )?;
    let function = |row: &postgres::Row| {
        let (names, types): (Vec<String>, Vec<String>) = (row.get(3), row.get(4));
        Function {
            name: row.get(0),
            arguments: names.into_iter().zip(types).collect(),
            is_strict: row.get(1),
            is_trigger: row.get(2),
        }
    };
    Ok(rows.iter().map(function).collect())
}

/// A valid argument, so that the function also checks its other arguments.
fn plain(name: &str, of: &str) -> Result<&'static str> {
    Ok(match (name, of) {
        ("layout", _) => "'41/5/5/12'",
        ("format", _) => "'hex'",
        ("kind", _) => "'segment'",
        ("time_zone", _) => "'UTC'",
        ("reset", _) => "null",
        ("statement", _) => "'select 1::bigint'",
        ("sequence", _) => "'arguments.t_id_seq'::regclass",
        ("column" | "attribute", _) => "'id'",
        (_, "text" | "name" | "unknown") => "'t'",
        (_, "boolean") => "false",
        (_, "integer" | "bigint" | "numeric" | "smallint") => "1",
        (_, "date") => "'2026-01-01'",
        (_, "timestamp with time zone") => "now()",
        (_, "interval") => "'1 day'",
        (_, "regclass" | "oid") => "'arguments.t'::regclass",
        (_, "name[]" | "text[]") => "array['t']",
        (_, "uuid") => "'019ab1c8-7000-7000-8000-000000000000'",
        (_, "regtype") => "'bigint'",
        (_, "regnamespace") => "'arguments'",
        (_, "oid[]") => "array['arguments.t'::regclass::oid]",
        (_, "smallint[]") => "'{1}'",
        (_, "jsonb" | "aclitem[]") => "'{}'",
        // Only the server can call functions with other internal types.
        (_, "internal") => "null",
        (_, "\"char\"[]") => "array['r']",
        _ => bail!("there is no value of type {of} here"),
    })
}

/// Extreme and strange values of a type.
fn extremes(of: &str) -> Result<&'static [&'static str]> {
    Ok(match of {
        "text" | "unknown" => &[
            "''",
            "' '",
            "'unknown'",
            "repeat('x', 255)",
            "repeat('x', 300)",
            "repeat(U&'\\00e4', 255)",
            "E'\\n\\t'",
            "'it''s \\ \"a\" %s'",
            "'null'",
            "'{}'",
            "'[]'",
            "'-1'",
            "'9223372036854775808'",
        ],
        "name" => &["''", "'unknown'", "repeat('x', 63)", "'it''s \\ \"a\" %s'", "'ctid'"],
        "boolean" => &["true", "false"],
        "smallint" => &["-32768", "0", "32767"],
        "integer" => &["-2147483648", "-1", "0", "31", "2147483647"],
        "bigint" => {
            &["-9223372036854775808", "-1", "0", "4096", "9223372036854775806", "9223372036854775807"]
        }
        "numeric" => &[
            "'NaN'",
            "-1",
            "0",
            "0.5",
            "9223372036854775807",
            "9223372036854775808",
            "1e1000",
            "-9223372036854775808",
            "-1e1000",
        ],
        "date" => &["'-infinity'", "'infinity'", "'4713-01-01 BC'", "'5874897-12-31'", "'epoch'"],
        "timestamp with time zone" => &[
            "'-infinity'",
            "'infinity'",
            "'4713-01-01 00:00+00 BC'",
            "'294276-12-31 23:59:59.999999+00'",
            "'epoch'",
        ],
        "regclass" | "oid" => &[
            "0",
            "4294967295",
            "'pg_class'::regclass",
            "'arguments.v'::regclass",
            "'arguments.t_id_seq'::regclass",
            "'arguments.t_pkey'::regclass",
            "'arguments.parent'::regclass",
        ],
        "name[]" | "text[]" => &["'{}'", "'{null}'", "'{\"\"}'", "'{t,t}'", "'{{t},{u}}'"],
        "\"char\"[]" => &["'{}'", "'{null}'", "'{\"\"}'"],
        "uuid" => &[
            "'00000000-0000-0000-0000-000000000000'",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
            "'ffffffff-ffff-7fff-bfff-ffffffffffff'",
            "'017f22e2-79b0-4cc3-98c4-dc0c0c07398f'",
        ],
        "interval" => &[
            "'0'",
            "'-1 day'",
            "'1 month'",
            "'2147483647 days 9223372036854775807 us'",
            "'-2147483648 days -9223372036854775808 us'",
        ],
        "regnamespace" => &["0", "4294967295", "'pg_catalog'", "'information_schema'"],
        "oid[]" | "smallint[]" => &["'{}'", "'{null}'", "'{0,1}'", "'{{1},{2}}'"],
        "regtype" => &["0", "4294967295", "'regtype'", "'arguments.t'", "'unknown'"],
        "jsonb" => &["'null'", "'[]'", "'{\"a\": {}}'", "'1e400'", "'\"\"'"],
        "aclitem[]" => &[
            "'{}'",
            "array[makeaclitem(0, 10, 'USAGE', true)]",
            "array[makeaclitem(4294967295, 10, 'SELECT', false)]",
        ],
        "internal" => &[],
        _ => bail!("there are no values of type {of} here"),
    })
}

/// Lists of arguments: all combinations of nulls with valid arguments, and extreme values in one argument or in all. `few` leaves
/// out the combinations and most of the extreme values.
fn lists(function: &Function, few: bool) -> Result<Vec<Vec<String>>> {
    let typed = |value: &str, of: &str| format!("{value}::{of}");
    let mut sound = Vec::new();
    for (name, of) in &function.arguments {
        sound.push(typed(plain(name, of).context(function.name.clone())?, of));
    }
    let null = |place: usize| typed("null", &function.arguments[place].1);
    let count = sound.len();
    let mut lists = vec![sound.clone()];
    // The server does not call a STRICT function with a null.
    let combinations = if function.is_strict || few { 2.min(1 << count) } else { 1 << count };
    for nulls in 1..combinations {
        let nulls = if combinations == 2 { usize::MAX } else { nulls };
        lists.push(
            (0..count).map(|at| if nulls >> at & 1 == 1 { null(at) } else { sound[at].clone() }).collect(),
        );
    }
    let mut most = 0;
    for (place, (_, of)) in function.arguments.iter().enumerate() {
        let values = extremes(of).context(function.name.clone())?;
        most = most.max(values.len());
        for value in values.iter().filter(|_| !few) {
            let mut list = sound.clone();
            list[place] = typed(value, of);
            lists.push(list);
        }
    }
    let ends = if few { vec![0, most / 2, most.saturating_sub(1)] } else { (0..most).collect() };
    for number in ends.into_iter().filter(|_| most > 0) {
        let mut list = Vec::new();
        for (_, of) in &function.arguments {
            let values = extremes(of)?;
            list.push(typed(values.get(number).or(values.last()).unwrap_or(&"null"), of));
        }
        lists.push(list);
    }
    Ok(lists)
}

/// Calls of all functions.
fn calls(client: &mut Client, few: bool) -> Result<Vec<String>> {
    let mut calls = Vec::new();
    for function in functions(client)? {
        for list in lists(&function, few)? {
            calls.push(format!("{}({})", function.name, list.join(", ")));
        }
    }
    ensure!(calls.len() > 200, "only {} calls", calls.len());
    Ok(calls)
}

/// Sends statements, and returns those that failed with an internal error of the extension.
fn internal_errors(client: &mut Client, statements: impl IntoIterator<Item = String>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for statement in statements {
        let Err(error) = client.simple_query(&statement) else { continue };
        let error =
            error.as_db_error().with_context(|| format!("the session is gone: {error}: {statement}"))?;
        // The server's own error for an OID that is no sequence, as for nextval(0).
        let is_servers_own = error.message().starts_with("could not open relation with OID ");
        if error.code().code().starts_with("XX") && !is_servers_own {
            found.push(format!("{statement}: {} {}", error.code().code(), error.message()));
        }
        client.run("rollback")?;
    }
    Ok(found)
}

/// Creates objects for the calls, and two roles. The first role may call every function, the second only functions that PUBLIC
/// may call.
fn prepare(server: &Server) -> Result<Client> {
    let mut client = server.session()?;
    client.run(
        "create role clerk; create role passer_by;
         grant usage on schema snowflake_ids, snowflake_ids_internal to clerk;
         grant execute on all functions in schema snowflake_ids, snowflake_ids_internal to clerk;
         grant all on all tables in schema snowflake_ids, snowflake_ids_internal to clerk;
         create schema arguments; grant all on schema arguments to public;
         create table arguments.t (id bigserial primary key, other text);
         create table arguments.parent (id bigint, note text) partition by hash (id);
         create view arguments.v as select 1::bigint as id;
         alter table arguments.t owner to clerk;
         select snowflake_ids.segment_create('t')",
    )?;
    client
        .batch_execute("set snowflake_ids.segment_wait_timeout = '2s'")
        .or_else(|_| client.batch_execute("select"))?;
    Ok(client)
}

/// Sends all calls as a role, in the form that `form` gives them.
fn check(client: &mut Client, role: &str, few: bool, form: impl Fn(&str) -> String) -> Result<()> {
    let calls = calls(client, few)?;
    client.run(&format!("set role {role}"))?;
    let found = internal_errors(client, calls.iter().map(|call| form(call)))?;
    client.run("reset role")?;
    ensure!(found.is_empty(), "{} of {} calls of {role}: {found:#?}", found.len(), calls.len());
    Ok(())
}

fn undone(statement: &str) -> String {
    format!("begin; {statement}; rollback")
}

/// Checks that no process of the server has died.
fn check_server(server: &Server) {
    for words in ["was terminated by signal", "PANIC:", "panicked at"] {
        assert_eq!(server.logged(words), 0, "{words}: {}", server.log());
    }
}

#[test]
fn no_argument_of_a_superuser_is_an_internal_error() -> Result<()> {
    let server = Server::builder().start()?;
    let mut client = prepare(&server)?;
    check(&mut client, "postgres", false, |call| undone(&format!("select {call}")))?;
    check_server(&server);
    Ok(())
}

#[test]
fn no_argument_of_another_role_is_an_internal_error() -> Result<()> {
    let server = Server::builder().start()?;
    let mut client = prepare(&server)?;
    check(&mut client, "clerk", true, |call| undone(&format!("select {call}")))?;
    check(&mut client, "passer_by", true, |call| undone(&format!("select {call}")))?;
    // Some functions refuse to run in a transaction block, so calls also run without one.
    check(&mut client, "clerk", true, |call| format!("select {call}"))?;
    check_server(&server);
    Ok(())
}

/// The calls run within other statements, in failing subtransactions, in read-only transactions, and in parallel workers.
#[test]
fn no_place_of_a_call_is_an_internal_error() -> Result<()> {
    let server = Server::builder().start()?;
    let mut client = prepare(&server)?;
    let places: &[fn(&str) -> String] = &[
        |call| undone(&format!("select * from {call} with ordinality")),
        |call| undone(&format!("select {call}, {call} from generate_series(1, 2) group by 1")),
        |call| undone(&format!("select 1 from generate_series(1, 2) as g where {call} is not null limit 1")),
        |call| undone(&format!("select g from generate_series(1, 2) as g order by {call}")),
        |call| {
            undone(&format!("select case when g = 1 then {call}::text end from generate_series(1, 2) as g"))
        },
        |call| {
            undone(&format!(
                "declare c scroll cursor for select {call}; fetch all from c; move backward all from c"
            ))
        },
        |call| format!("begin read only; select {call}; rollback"),
        |call| format!("begin isolation level serializable; select {call}; rollback"),
        |call| {
            let body = format!(
                "begin perform {call}; perform 1 / 0; exception when division_by_zero then
                                perform {call}; end"
            );
            undone(&format!("do $do$ begin {body}; end $do$"))
        },
    ];
    for place in places {
        check(&mut client, "postgres", true, place)?;
    }
    let version: i32 = client.one("select current_setting('server_version_num')::integer")?;
    let forced = if version < 160_000 { "force_parallel_mode" } else { "debug_parallel_query" };
    client.run(&format!("set {forced} = on"))?;
    check(&mut client, "postgres", true, |call| undone(&format!("select {call}")))?;
    check(&mut client, "postgres", true, |call| {
        undone(&format!("select count({call}) from generate_series(1, 2)"))
    })?;
    check_server(&server);
    Ok(())
}

/// The extension's trigger functions are attached to tables for which they are not meant.
#[test]
fn no_table_of_a_trigger_is_an_internal_error() -> Result<()> {
    let server = Server::builder().start()?;
    let mut client = prepare(&server)?;
    let tables = [
        "(id bigint)",
        "(tag integer, max_id text)",
        "()",
        "(tag text, max_id bigint, step text, reset date, format bytea)",
        "(tag text[], start bigint, step bigint, max_step bigint, increment bigint, remainder bigint, max_id bigint)",
    ];
    let fires = [
        "before insert or update or delete on arguments.fired for each row",
        "after insert or update or delete on arguments.fired for each row",
        "before insert or update or delete or truncate on arguments.fired for each statement",
        "after insert or update or delete or truncate on arguments.fired for each statement",
    ];
    let triggers: Vec<_> =
        functions(&mut client)?.into_iter().filter(|function| function.is_trigger).collect();
    ensure!(!triggers.is_empty(), "no triggers");
    let mut statements = Vec::new();
    for (table, fires) in tables.iter().flat_map(|table| fires.iter().map(move |fires| (table, fires))) {
        for argument in ["", "'moved'", "'tuned', 'tuned'"] {
            for Function { name, .. } in &triggers {
                let trigger = format!(
                    "create table arguments.fired {table};
                     create trigger fired {fires} execute function {name}({argument})"
                );
                statements.push(undone(&format!("{trigger}; insert into arguments.fired default values")));
                statements.push(undone(&format!(
                    "create table arguments.fired {table}; insert into arguments.fired default values;
                     create trigger fired {fires} execute function {name}({argument});
                     delete from arguments.fired"
                )));
                statements.push(undone(&format!("{trigger}; truncate arguments.fired")));
            }
        }
    }
    let found = internal_errors(&mut client, statements)?;
    ensure!(found.is_empty(), "{found:#?}");
    check_server(&server);
    Ok(())
}

/// The servers are a standby, and a server that has not preloaded the library.
#[test]
fn no_server_is_an_internal_error() -> Result<()> {
    let primary = Server::builder().start()?;
    let mut client = prepare(&primary)?;
    let standby = primary.standby()?;
    standby.catch_up(&primary)?;
    client.run("select")?;
    let mut client = standby.connect("postgres")?;
    check(&mut client, "postgres", true, |call| undone(&format!("select {call}")))?;
    check_server(&standby);
    let bare = Server::builder().without_preload().start()?;
    let mut client = prepare(&bare)?;
    check(&mut client, "postgres", true, |call| undone(&format!("select {call}")))?;
    check_server(&bare);
    Ok(())
}
