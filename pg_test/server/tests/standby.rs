//! A streaming standby decodes ids and refuses to issue ids. After its promotion, each source of ids starts above the primary's
//! ids.

use anyhow::{Result, ensure};
use postgres::error::SqlState;
use snowflake_ids_server_tests::segments::{create, next};
use snowflake_ids_server_tests::{Server, ids, snowflakes, sql::Session};

const SETUP: &str = "select snowflake_ids.generator_create('web', 'javascript');
    select snowflake_ids.segment_create('t', step => 100);
    select snowflake_ids.series_create('chat', kind => 'monotonic', sections => 2, step => 10);
    select snowflake_ids.series_create('invoices');
    create sequence numbers; select snowflake_ids.bind_sequence('numbers', 'segment', 'numbers')";

/// Queries that each return many growing numbers.
const SOURCES: [&str; 6] = [
    "select snowflake_nextval() from generate_series(1, 1000)",
    "select snowflake_nextval('web') from generate_series(1, 1000)",
    "select segment_nextval('t') from generate_series(1, 950)",
    "select series_nextval('chat', 7) from generate_series(1, 600)",
    "select series_nextval('invoices', 7::bigint) from generate_series(1, 20)",
    "select nextval('numbers') from generate_series(1, 10)",
];
const UUID: &str = "select snowflake_uuid()::text";
const TIMELINE: &str = "select snowflake_ids_internal.registry_timeline()";

/// Calls that a standby refuses, besides [`SOURCES`].
const REFUSED: [&str; 8] = [
    "select snowflake_nextvals(10)",
    UUID,
    "select snowflake_uuid_text()",
    "select segment_nextvals('t', 5)",
    "select segment_nextval_text('t')",
    "select segment_nextval('unknown')",
    "select snowflake_ids.segment_create('u')",
    "select series_nextval('chat', 1)",
];

#[test]
fn a_standby_refuses_and_after_its_promotion_goes_on_above_the_primary() -> Result<()> {
    let (primary, mut of_primary) = Server::builder().set("snowflake_ids.worker_id", "6").with_session()?;
    of_primary.run(SETUP)?;
    let mut taken = [const { Vec::<i64>::new() }; SOURCES.len()];
    for (call, taken) in SOURCES.iter().zip(&mut taken) {
        taken.extend(of_primary.column::<i64>(call)?);
    }
    let uuid: String = of_primary.one(UUID)?;
    let standby = primary.standby()?;
    for (call, taken) in SOURCES.iter().zip(&mut taken) {
        taken.extend(of_primary.column::<i64>(call)?);
    }
    standby.catch_up(&primary)?;
    let mut client = standby.connect("postgres")?;

    for call in SOURCES.iter().chain(&REFUSED) {
        let error = client.fails(call, &SqlState::READ_ONLY_SQL_TRANSACTION)?;
        let function = call.split(['(', ' ']).nth(1).unwrap_or_default();
        let names = error.message() == format!("cannot execute {function}() during recovery");
        ensure!(
            names || !call.starts_with("select snowflake_n") && !call.contains("uuid"),
            "{call}: {error:?}"
        );
    }
    for id in [taken[0][0].to_string(), format!("'{uuid}'::uuid")] {
        assert_eq!(client.one::<i32>(&format!("select snowflake_worker_id({id})"))?, 6);
    }
    client.run("select * from snowflake_ids.segment_status")?;
    assert_eq!(snowflakes::status::<i64>(&mut client, "ids_issued")?, 0, "a refused call takes nothing");
    // The nodes of a Citus cluster tell each other their timelines, and may also ask a standby for its timeline.
    assert_eq!(of_primary.one::<i64>(TIMELINE)?, 1);
    assert_eq!(client.one::<i64>(TIMELINE)?, 1);

    // The refused session continues, without a new connection.
    drop((of_primary, primary));
    assert!(client.one::<bool>("select pg_promote()")?);
    assert_eq!(client.one::<i64>(TIMELINE)?, 2);
    for (number, (call, mut taken)) in SOURCES.iter().zip(taken).enumerate() {
        taken.extend(client.column::<i64>(call)?);
        if number == 0 {
            assert_eq!(snowflakes::status::<i64>(&mut client, "ids_issued")?, 1000);
        }
        taken.extend(standby.connect("postgres")?.column::<i64>(call)?);
        ids::growing(&taken)?;
        if call.contains("invoices") {
            ids::dense(taken)?;
        }
    }
    assert!(client.one::<String>(UUID)? > uuid);
    create(&mut client, "u", "")?;
    assert_eq!(next(&mut client, "u")?, 1);
    Ok(())
}
