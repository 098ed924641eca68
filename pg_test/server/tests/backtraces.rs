//! `RUST_BACKTRACE` in the server's environment does not reach clients.

use snowflake_ids_server_tests::prelude::*;

/// Errors that the extension raises, and errors that the server raises in code that the extension calls.
const ERRORS: [&str; 5] = [
    "select snowflake_encode(1, 'morse')",
    "select snowflake_ids_internal.registry_use('[]\"nowhere\"')",
    "select snowflake_ids.segment_create(repeat('x', 129))",
    "select snowflake_ids_internal.registry_use_local()",
    "select segment_nextval('locked')",
];

fn server() -> Builder {
    Server::builder().environment("RUST_BACKTRACE", "full").environment("RUST_LIB_BACKTRACE", "1")
}

fn has_no_backtraces(server: &Server, client: &mut Client) -> Result<()> {
    let mut other = server.session()?;
    other.run("begin; lock snowflake_ids.segment in access exclusive mode")?;
    for query in ERRORS {
        let error = client.error_within("200ms", query)?;
        let said = format!("{} {:?} {:?}", error.message(), error.detail(), error.hint());
        for part in ["backtrace", "::", "pgrx"] {
            assert!(!said.contains(part), "{query}: {said}");
        }
    }
    Ok(())
}

#[test]
fn no_error_has_a_backtrace() -> Result<()> {
    let (server, mut client) = server().with_session()?;
    client.run("select snowflake_ids.segment_create('locked')")?;
    has_no_backtraces(&server, &mut client)?;
    // Other programs still see the variable.
    client.run("create temp table said (word text); copy said from program 'echo $RUST_BACKTRACE'")?;
    assert_eq!(client.one::<String>("select word from said")?, "full");
    Ok(())
}

#[test]
fn nor_where_a_session_loads_the_library() -> Result<()> {
    let server = server().without_preload().start()?;
    has_no_backtraces(&server, &mut server.session()?)
}
