//! The order in which a server syncs and renames its files. A crash of the machine loses what was not synced.

use anyhow::{Result, ensure};
use snowflake_ids_server_tests::{Server, Shutdown, sql::Session, wait};

/// The files, under the names that they have until they are renamed.
const FILES: [&str; 2] = ["snowflake_ids.state.json.new", "snowflake_ids.saved_ranges.json.new"];

/// Returns how often the file was renamed.
///
/// # Errors
/// A process renamed the file before it had synced the file, or did something else before it synced the folder.
fn renames(server: &Server, file: &str) -> Result<usize> {
    let (sync, rename) = (format!("sync {file}"), format!("rename {file}"));
    let mut renames = 0;
    for (process, calls) in server.syncs()? {
        for place in (0..calls.len()).filter(|place| calls[*place] == rename) {
            let before = place.checked_sub(1).map(|before| calls[before].as_str());
            ensure!(before == Some(&sync), "process {process} renamed {file} after {before:?}: {calls:#?}");
            let after = calls.get(place + 1).map(String::as_str);
            ensure!(
                after == Some("sync data"),
                "process {process} renamed {file} before {after:?}: {calls:#?}"
            );
            renames += 1;
        }
    }
    Ok(renames)
}

#[test]
fn a_file_is_synced_then_renamed_and_then_its_folder_is_synced() -> Result<()> {
    let (mut server, mut client) =
        Server::builder().records_syncs().set("snowflake_ids.reserve", "1s").with_session()?;
    client.run("select snowflake_ids.segment_create('orders')")?;
    client.run("select segment_nextval('orders')")?;
    wait::until(wait::LONG, "three high-water marks", || {
        client.run("select snowflake_nextval()")?;
        let marks = server.syncs()?.values().flatten().filter(|call| call.ends_with(FILES[0])).count();
        Ok((marks >= 6).then_some(()))
    })?;
    drop(client);
    server.stop(Shutdown::Fast)?;
    for file in FILES {
        ensure!(renames(&server, file)? > 0, "{file} was never renamed: {:#?}", server.syncs()?);
    }
    Ok(())
}
