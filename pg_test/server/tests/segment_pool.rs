//! Many databases that take ids of tags concurrently, while the server can run only a few workers.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next};

/// The number of databases, from `SNOWFLAKE_IDS_DATABASES`.
fn databases() -> Result<usize> {
    std::env::var("SNOWFLAKE_IDS_DATABASES").map_or(Ok(40), |number| number.parse().context("a number"))
}

/// Creates `count` databases with the extension and a tag, and opens a session in each.
fn many(builder: Builder, count: usize) -> Result<(Server, Vec<Client>)> {
    let server = builder.set("max_connections", &(count + 20).to_string()).start()?;
    server.create_database("model")?;
    create(&mut server.connect("model")?, "t", "")?;
    let mut client = server.connect("postgres")?;
    for number in 0..count {
        client.run(&format!("create database d{number} template model"))?;
    }
    let clients = (0..count).map(|number| server.connect(&format!("d{number}"))).collect::<Result<_>>()?;
    Ok((server, clients))
}

#[test]
fn each_of_many_databases_gets_its_first_id() -> Result<()> {
    let (_server, clients) = many(auto(), databases()?)?;
    let taken = at_once(clients, |_, mut client| next(&mut client, "t"))?;
    assert!(taken.iter().all(|id| *id == 1), "{taken:?}");
    Ok(())
}
