//! Texts from callers: of the greatest possible length, and with any letters in any encoding.

use snowflake_ids_server_tests::prelude::*;

/// The longest possible text. A message cannot contain this text and a few more words.
const LONGEST: usize = 1_073_741_815;

/// Calls that take a text in place of `$`.
const CALLS: [&str; 5] = [
    "snowflake_encode(1, $)",
    "snowflake_decode_text($, 'hex')",
    "snowflake_worker_id(1, $)",
    "segment_nextval($)",
    "snowflake_ids.segment_create($)",
];

fn is_refused(client: &mut Client, query: &str, length: usize) -> Result<()> {
    let error = client.error(query).with_context(|| query.to_owned())?;
    assert_eq!(error.code(), &SqlState::INVALID_PARAMETER_VALUE, "{query}: {error:?}");
    assert!(error.message().ends_with("is too long"), "{query}: {error:?}");
    assert!(error.detail().is_some_and(|detail| detail.contains(&length.to_string())), "{query}: {error:?}");
    Ok(())
}

#[test]
fn the_longest_text_is_an_error_and_no_crash() -> Result<()> {
    let (server, mut client) = Server::builder().with_session()?;
    let started = client.one::<String>("select pg_postmaster_start_time()::text")?;
    is_refused(&mut client, &format!("select snowflake_encode(1, repeat('x', {LONGEST}))"), LONGEST)?;
    // The compressed text fills only a few pages. The calls refuse the text without decompressing it.
    client.run("create table long as select repeat('x', 50000000) as a")?;
    for call in CALLS {
        is_refused(&mut client, &format!("select {} from long", call.replace('$', "a")), 50_000_000)?;
    }
    let again = client.one::<String>("select pg_postmaster_start_time()::text")?;
    assert_eq!((again, server.logged("terminated by signal")), (started, 0));
    Ok(())
}

#[test]
fn a_setting_of_the_longest_text_is_an_error_and_no_crash() -> Result<()> {
    let (mut server, mut client) = Server::builder().with_session()?;
    for setting in ["layout", "worker_id"] {
        let length = 1_025;
        let value = "x".repeat(length);
        let error = client.fails(
            &format!("alter system set snowflake_ids.{setting} = '{value}'"),
            &SqlState::INVALID_PARAMETER_VALUE,
        )?;
        assert!(error.detail().is_some_and(|detail| detail.contains("1025 bytes")), "{error:?}");
    }
    // If the server has not preloaded the library, any user may set this setting to a text of any length.
    server.set("shared_preload_libraries", "")?;
    server.restart()?;
    let mut client = server.session()?;
    client.run("select set_config('snowflake_ids.layout', repeat('x', 50000000), false) is null")?;
    let error = client.fails("select snowflake_worker_id(1)", &SqlState::INVALID_PARAMETER_VALUE)?;
    assert!(error.message().len() < 1_000, "a message of {} bytes", error.message().len());
    Ok(())
}
