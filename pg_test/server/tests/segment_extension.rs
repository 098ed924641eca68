//! The extension, dropped and created again while sessions know its tags.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, take};

#[test]
fn the_extension_dropped_and_created_again_gives_nothing_of_before() -> Result<()> {
    let server = Server::builder().start()?;
    create(&mut server.session()?, "t", "step => 10")?;
    let mut clients = server.sessions("postgres", 3)?;
    for round in 1..=5 {
        for client in &mut clients {
            take(client, "t", 4)?;
        }
        clients[0].run("drop extension snowflake_ids cascade; create extension snowflake_ids")?;
        for client in &mut clients {
            client.fails("select segment_nextval('t')", &SqlState::UNDEFINED_OBJECT)?;
        }
        create(&mut clients[1], "t", &format!("start => {}", round * 1000))?;
        let taken =
            clients.iter_mut().map(|client| take(client, "t", 2)).collect::<Result<Vec<_>>>()?.concat();
        assert_eq!(taken, (0..6).map(|n| round * 1000 + n).collect::<Vec<_>>());
    }
    Ok(())
}
