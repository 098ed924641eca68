//! Settings: refused values, with the moment and the words of the refusal; and the ids of several layouts.

use snowflake_ids_server_tests::prelude::*;

/// Values that are refused, each with words that the refusal must contain. core/tests/layouts.rs has more wrong layouts.
const WRONG: [(&str, &str, &str); 34] = [
    ("datacenter_id", "-2", "outside the valid range"),
    ("datacenter_id", "32", "datacenter"),
    ("datacenter_id", "north", "invalid value"),
    ("worker_id", "-1", "worker id"),
    ("worker_id", "32", "worker"),
    ("worker_id", "2147483648", "worker id"),
    ("worker_id", "1.5", "worker id"),
    ("worker_id", "first", "worker id"),
    ("worker_id", "", "worker id"),
    ("worker_id_policy", "recycle", "Available values"),
    ("max_drift", "-1", "outside the valid range"),
    ("max_drift", "1 parsec", "Valid units"),
    ("clock_wait_timeout", "-1", "outside the valid range"),
    ("clock_wait_timeout", "long", "invalid value"),
    ("max_clock_jump", "-1", "outside the valid range"),
    ("max_clock_jump", "far", "invalid value"),
    ("reserve", "99ms", "outside the valid range"),
    ("reserve", "61min", "outside the valid range"),
    ("lease_duration", "59s", "outside the valid range"),
    ("lease_duration", "soon", "invalid value"),
    ("max_clock_skew", "-1", "outside the valid range"),
    ("max_clock_skew", "much", "invalid value"),
    ("clock_rollback", "ignore", "Available values"),
    ("sequence_start", "one", "Available values"),
    ("cache", "0", "outside the valid range"),
    ("cache", "1000001", "outside the valid range"),
    ("cache", "many", "invalid value"),
    ("shard", "3", "two whole numbers"),
    ("shard", "16/16", "must be 0 to 15"),
    ("shard", "0/0", "must be 1 to 65536"),
    ("shard", "-1/2", "two whole numbers"),
    ("layout", "", "empty"),
    ("layout", "tritter", "neither field widths nor a known name"),
    ("layout", "41/5/5/13", "64 bits"),
];

/// Settings whose values are valid by themselves, but invalid with the layout. The server detects such values when it starts.
const WRONG_FOR_THE_LAYOUT: [&str; 2] = ["datacenter_id", "worker_id"];

#[test]
fn a_server_with_a_wrong_setting_does_not_start_and_says_why() -> Result<()> {
    let mut server = Server::builder().start()?;
    server.stop(Shutdown::Fast)?;
    for (setting, value, words) in WRONG {
        let name = format!("snowflake_ids.{setting}");
        let right = right_value(setting);
        server.set(&name, value)?;
        let refused =
            server.start_again().err().with_context(|| format!("{name} = '{value}' was accepted"))?;
        let log = format!("{refused:#}");
        assert!(log.contains("FATAL: "), "{name} = '{value}':\n{log}");
        assert!(log.contains(words), "{name} = '{value}' does not say \"{words}\":\n{log}");
        assert!(log.contains(setting) || WRONG_FOR_THE_LAYOUT.contains(&setting), "which setting?\n{log}");
        assert!(!log.contains("panicked"), "{log}");
        server.set(&name, right)?;
    }
    server.start_again()?;
    server.session()?.one::<i64>("select snowflake_nextval()").map(drop)
}

fn right_value(setting: &str) -> &'static str {
    match setting {
        "layout" => "twitter",
        "clock_rollback" => "wait",
        "worker_id_policy" => "reuse",
        "lease_duration" => "1h",
        "sequence_start" => "zero",
        "shard" => "0/1",
        "reserve" | "max_clock_jump" | "max_clock_skew" | "max_drift" | "clock_wait_timeout" => "1s",
        _ => "1",
    }
}

#[test]
fn alter_system_refuses_a_wrong_value_and_keeps_the_old_one() -> Result<()> {
    let (_server, mut client) = Server::builder().with_session()?;
    for (setting, value, words) in WRONG {
        if value == "32" && WRONG_FOR_THE_LAYOUT.contains(&setting) {
            continue;
        }
        let error = client.fails(
            &format!("alter system set snowflake_ids.{setting} = '{value}'"),
            &SqlState::INVALID_PARAMETER_VALUE,
        )?;
        let said = format!("{} {:?} {:?}", error.message(), error.detail(), error.hint());
        assert!(said.contains(&format!("snowflake_ids.{setting}")), "{said}");
        assert!(said.contains(words), "{setting} = '{value}' does not say \"{words}\": {said}");
    }
    let written: String = client.one("select pg_read_file('postgresql.auto.conf')")?;
    assert!(!written.contains("snowflake_ids"), "{written}");
    Ok(())
}

#[test]
fn an_unknown_setting_is_warned_of_at_start_and_refused_in_a_session() -> Result<()> {
    let server = Server::builder().set("snowflake_ids.worker_lease", "5").start()?;
    let (log, mut client) = (server.log(), server.session()?);
    let version: i32 = client.one("select current_setting('server_version_num')::integer")?;
    if version < 150_000 {
        // Before Postgres 15 a library cannot reserve a prefix, so a session may set any name.
        let warning = "unrecognized configuration parameter \"snowflake_ids.worker_lease\"";
        ensure!(log.contains(warning), "{log}");
        return client.run("set snowflake_ids.cashe = 5");
    }
    assert!(log.contains("invalid configuration parameter name \"snowflake_ids.worker_lease\""), "{log}");
    client.fails("set snowflake_ids.cashe = 5", &SqlState::INVALID_NAME)?;
    Ok(())
}

#[test]
fn an_ordinary_user_may_tune_only_what_harms_no_other_session() -> Result<()> {
    let (_server, mut client) = Server::builder().with_session()?;
    client.run("create role app; set role app")?;
    client.run("set snowflake_ids.cache = 100; set snowflake_ids.clock_wait_timeout = '5s'")?;
    client.one::<i64>("select snowflake_nextval()")?;
    for setting in ["max_drift = '1h'", "clock_rollback = switch", "sequence_start = random"] {
        client.fails(&format!("set snowflake_ids.{setting}"), &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
    for setting in [
        "worker_id = 2",
        "datacenter_id = 2",
        "layout = twitter",
        "reserve = '1s'",
        "max_clock_jump = '1s'",
        "shard = '3/16'",
    ] {
        client.fails(&format!("set snowflake_ids.{setting}"), &SqlState::CANT_CHANGE_RUNTIME_PARAM)?;
    }
    Ok(())
}

/// A server layout, its datacenter and worker, a mask, and the bits that every id must have under this mask.
const LAYOUTS: [(&str, i32, i32, i64, i64); 5] = [
    ("sonyflake", 0, 0xABCD, 0xFFFF, 0xABCD),
    ("pgedge", 0, 513, 0x3FF, 513),
    ("twitter", 3, 4, 0x3FF << 12, (3 << 5 | 4) << 12),
    ("javascript", 0, 5, 7 << 9, 5 << 9),
    ("spreadsheet", 0, 5, 7 << 8, 5 << 8),
];

#[test]
fn a_server_generates_ids_of_the_layout_it_was_given() -> Result<()> {
    for (layout, datacenter, worker, mask, bits) in LAYOUTS {
        let (_server, mut client) = Server::builder()
            .set("snowflake_ids.layout", layout)
            .set("snowflake_ids.datacenter_id", &datacenter.to_string())
            .set("snowflake_ids.worker_id", &worker.to_string())
            .with_session()?;
        let taken: Vec<i64> = client.column("select snowflake_nextval() from generate_series(1, 2000)")?;
        ids::growing(&taken)?;
        for id in &taken {
            assert_eq!(id & mask, bits, "{layout}: {id:x}");
        }
        let limit = match layout {
            "javascript" => 1 << 53,
            "spreadsheet" => 1_000_000_000_000_000,
            _ => i64::MAX,
        };
        assert!(taken[1999] < limit, "{layout}: {}", taken[1999]);
        decodes(&mut client, taken[0], layout, (datacenter, worker))?;
    }
    Ok(())
}

/// Checks that the server's own functions and those with a layout argument decode a new id alike.
fn decodes(client: &mut Client, id: i64, layout: &str, node: (i32, i32)) -> Result<()> {
    for argument in [String::new(), format!(", '{layout}'")] {
        let row = client.query_one(
            &format!(
                "select snowflake_datacenter_id({id}{argument}), snowflake_worker_id({id}{argument}),
                 abs(extract(epoch from clock_timestamp() - snowflake_timestamp({id}{argument})))::float8"
            ),
            &[],
        )?;
        assert_eq!((row.get(0), row.get(1)), node, "{layout}{argument}");
        assert!(
            row.get::<_, f64>(2) < 20.0,
            "{layout}{argument}: the time is {} s off",
            row.get::<_, f64>(2)
        );
    }
    Ok(())
}
