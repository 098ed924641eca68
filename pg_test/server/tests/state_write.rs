//! The state file under a running server. If the file is missing, or cannot be written or read, ids stop once the reserved ids
//! are used up. After most of these faults, ids continue without an operator.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::snowflakes::{next, refused, take};
use snowflake_ids_server_tests::state_file::Fault;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

const TIMEOUT: Duration = wait::LONG;
const RESERVE: Duration = Duration::from_secs(1);
const DAMAGED: &str = "the state file of snowflake_ids is damaged";
const MISSING: &str = "the state file of snowflake_ids is missing";

fn server() -> Result<Server> {
    Server::builder().set("snowflake_ids.reserve", "1s").start()
}

/// Takes ids until a call is refused.
fn take_until_refused(client: &mut Client, taken: &mut Vec<i64>) -> Result<DbError> {
    wait::until(TIMEOUT, "a refusal", || match client.column::<i64>("select snowflake_nextvals(3)") {
        Ok(ids) => {
            taken.extend(ids);
            Ok(None)
        }
        Err(error) => match error.downcast::<postgres::Error>()?.as_db_error() {
            Some(error) => Ok(Some(error.clone())),
            None => bail!("the session was lost"),
        },
    })
}

/// Checks that reserved ids are issued despite `fault`, that calls then say why they fail, and that ids continue without a
/// restart once the fault is mended.
fn goes_on_once_mended(fault: Fault, code: &SqlState, reason: &str) -> Result<()> {
    let server = server()?;
    let mut client = server.session()?;
    let start = Instant::now();
    let mut taken = take(&mut client, 100)?;
    let obstacle = server.obstruct_state_file(fault)?;
    let reserved = next(&mut client);
    assert!(
        reserved.is_ok() || start.elapsed() >= RESERVE / 2,
        "what was reserved before the fault was refused"
    );
    taken.extend(reserved.ok());
    let error = take_until_refused(&mut client, &mut taken)?;
    sql::explains(&error, code, "could not write the state file of snowflake_ids")?;
    assert!(error.detail().is_some_and(|detail| detail.contains(reason)), "{error:?}");
    assert_eq!(client.one::<i32>("select 1")?, 1, "the session lives on");

    obstacle.remove()?;
    taken.push(wait::until(TIMEOUT, "an id after the fault", || Ok(next(&mut client).ok()))?);
    taken.extend(take(&mut client, 100)?);
    assert!(server.logged("could not write the state file of snowflake_ids") < 50, "{}", server.log());
    ids::growing(&taken)
}

#[test]
fn a_file_that_cannot_be_written_stops_ids_until_it_can() -> Result<()> {
    goes_on_once_mended(Fault::Unwritable, &SqlState::IO_ERROR, "directory")
}

#[test]
fn a_file_that_cannot_be_read_stops_ids_until_it_can() -> Result<()> {
    let mut server = server()?;
    let mut taken = take(&mut server.session()?, 100)?;
    server.stop(Shutdown::Fast)?;
    fs::set_permissions(server.state_file(), Permissions::from_mode(0o000))?;
    server.start_again()?;
    let mut client = server.session()?;
    let error = refused(&mut client)?;
    sql::explains(&error, &SqlState::IO_ERROR, "could not read the state file of snowflake_ids")?;
    fs::set_permissions(server.state_file(), Permissions::from_mode(0o600))?;
    taken.extend(take(&mut client, 100)?);
    ids::growing(&taken)
}

#[test]
fn a_full_disk_stops_ids_until_there_is_room() -> Result<()> {
    goes_on_once_mended(Fault::DiskFull, &SqlState::DISK_FULL, "No space left on device")
}

/// A running server does not replace the file by itself, because an operator may want to see its content.
#[test]
fn a_file_lost_or_damaged_under_a_running_server_stops_ids_until_it_is_reset() -> Result<()> {
    let server = server()?;
    let mut client = server.session()?;
    let mut taken = take(&mut client, 100)?;
    for (harm, message) in [(None, MISSING), (Some("nonsense"), DAMAGED)] {
        match harm {
            None => fs::remove_file(server.state_file())?,
            Some(text) => server.damage_state_file(|_| text.into())?,
        }
        let error = take_until_refused(&mut client, &mut taken)?;
        sql::explains(&error, &SqlState::DATA_CORRUPTED, message)?;
        // The reset begins above all ids issued since this server's start, even if the operator names an earlier time.
        client.run("select snowflake_ids.state_reset(now() - interval '1 day')")?;
        taken.extend(take(&mut client, 100)?);
    }
    ids::growing(&taken)
}
