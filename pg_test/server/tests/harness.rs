//! What the library for tests with servers does when no other test looks: what it leaves behind.

use anyhow::Result;
use snowflake_ids_server_tests::Server;

#[test]
fn a_dropped_server_leaves_nothing() -> Result<()> {
    let server = Server::builder().without_preload().without("snowflake_ids.worker_id").start()?;
    let (folder, port) = (server.socket_folder().to_owned(), server.port());
    drop(server);
    assert!(!folder.exists());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "port {port} is still open");
    Ok(())
}
