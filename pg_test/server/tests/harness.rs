//! What the library for tests with servers does when no other test looks: its errors, and what it leaves behind.

use anyhow::Result;
use snowflake_ids_server_tests::{Builder, Server};

fn plain() -> Builder {
    Server::builder().without_preload().without("snowflake_ids.worker_id")
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let error = plain().set("shared_buffers", "nonsense").start().map(drop).unwrap_err();
    assert!(format!("{error:#}").contains("invalid value for parameter \"shared_buffers\""), "{error:#}");
}

#[test]
fn a_dropped_server_leaves_nothing() -> Result<()> {
    let server = plain().start()?;
    let (folder, port) = (server.socket_folder().to_owned(), server.port());
    drop(server);
    assert!(!folder.exists());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "port {port} is still open");
    Ok(())
}
