//! The state file: if the server cannot trust the file, it issues no ids until an operator decides how to continue.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::snowflakes::{next, refused, status, take, time};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const DAMAGED: &str = "the state file of snowflake_ids is damaged";
const UNKNOWN_FORM: &str = "the state file of snowflake_ids has an unknown format";
const MISSING: &str = "the state file of snowflake_ids is missing";
const FUNCTIONS: [&str; 4] = ["state_reset()", "state_adopt()", "clock_accept()", "worker_release(1)"];

fn server() -> Result<Server> {
    Server::builder().set("snowflake_ids.reserve", "1s").start()
}

/// Stops a server that has issued ids, does `harm` to its state file, and starts the server again. The server must refuse ids
/// with this message and leave the file unchanged, until `state_reset()` repairs the state.
fn stops_until_reset(
    server: &mut Server,
    message: &str,
    harm: impl FnOnce(&Server) -> Result<()>,
) -> Result<()> {
    let mut taken = take(&mut server.session()?, 100)?;
    server.stop(Shutdown::Fast)?;
    harm(server).with_context(|| message.to_owned())?;
    let harmed = fs::read(server.state_file()).ok();
    server.start_again()?;
    let mut client = server.session()?;
    for call in ["select snowflake_nextval()", "select snowflake_nextvals(10)"] {
        let error = client.explained(call, &SqlState::DATA_CORRUPTED, message)?;
        assert!(error.hint().is_some_and(|hint| hint.contains("state_reset")), "{error:?}");
    }
    assert_eq!(status::<String>(&mut client, "state")?, message);
    assert_eq!(fs::read(server.state_file()).ok(), harmed, "the file was replaced unasked");

    client.run("select snowflake_ids.state_reset()")?;
    taken.extend(take(&mut client, 100)?);
    assert_eq!(status::<String>(&mut client, "state")?, "ready");
    if let Some(harmed) = harmed {
        assert!(server.rejected_state_files()?.contains(&harmed), "the file was not put aside");
    }
    server.restart()?;
    taken.extend(take(&mut server.session()?, 100)?);
    ids::growing(&taken).with_context(|| message.to_owned())
}

type Damage = fn(Vec<u8>) -> Vec<u8>;

#[test]
fn a_damaged_file_stops_ids_until_it_is_reset() -> Result<()> {
    let mut server = server()?;
    let damages: [(&str, Damage); 5] = [
        ("empty", |_| Vec::new()),
        ("half", |bytes| bytes[..bytes.len() / 2].to_vec()),
        ("one bit", |mut bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            bytes
        }),
        ("zeros", |bytes| vec![0; bytes.len()]),
        ("other text", |_| b"{}\n".to_vec()),
    ];
    for (damage, harm) in damages {
        stops_until_reset(&mut server, DAMAGED, |server| server.damage_state_file(harm)).context(damage)?;
    }
    Ok(())
}

/// The beginning of the file as the present release writes it.
const FORM: &str = concat!(r#"{"version":1,"release":""#, env!("CARGO_PKG_VERSION"), r#"","checksum":"#);

/// The file as another release would write it, in a form that this release does not know.
fn of_unknown_form(text: Vec<u8>) -> Result<Vec<u8>> {
    let text = String::from_utf8(text)?;
    let (form, state) = text.trim_end().split_once(r#","state":"#).context("no state")?;
    ensure!(form.starts_with(FORM), "another form than is told here: {form}");
    let state = state.replacen('{', r#"{"unknown_here":1,"#, 1);
    let state = state.strip_suffix('}').context("no end")?;
    let checksum = crc32fast::hash(format!("2 99.0 {state}").as_bytes());
    Ok(format!(r#"{{"version":2,"release":"99.0","checksum":{checksum},"state":{state}}}"#).into_bytes())
}

/// A reset would start above the present time, and could repeat ids that the other release has reserved.
#[test]
fn a_file_of_an_unknown_form_stops_ids_and_is_not_reset() -> Result<()> {
    let mut server = server()?;
    let mut taken = take(&mut server.session()?, 100)?;
    server.stop(Shutdown::Fast)?;
    let right = fs::read(server.state_file())?;
    let unknown = of_unknown_form(right.clone())?;
    server.damage_state_file(|_| unknown.clone())?;
    server.start_again()?;
    let mut client = server.session()?;
    let functions = ["state_reset()", "state_reset(now())", "state_adopt()", "clock_accept()"];
    let administration = functions.map(|function| format!("select snowflake_ids.{function}"));
    for call in ["select snowflake_nextval()".to_owned()].into_iter().chain(administration) {
        let error = client.error(&call)?;
        sql::explains(&error, sql::NOT_IN_STATE, UNKNOWN_FORM).context(call)?;
        assert!(error.detail().is_some_and(|detail| detail.contains("format 2")), "{error:?}");
        let hint = error.hint().unwrap_or_default();
        assert!(hint.contains("at least version 99.") && !hint.contains("reset"), "{error:?}");
    }
    assert_eq!(status::<String>(&mut client, "state")?, UNKNOWN_FORM);
    server.stop(Shutdown::Fast)?;
    assert_eq!(fs::read(server.state_file())?, unknown, "the file was touched");
    assert!(server.rejected_state_files()?.is_empty());
    server.damage_state_file(|_| right)?;
    server.start_again()?;
    taken.extend(take(&mut server.session()?, 100)?);
    ids::growing(&taken)
}

#[test]
fn a_missing_file_stops_ids_until_it_is_reset() -> Result<()> {
    stops_until_reset(&mut server()?, MISSING, |server| Ok(fs::remove_file(server.state_file())?))
}

#[test]
fn the_file_of_another_cluster_stops_ids_until_it_is_reset() -> Result<()> {
    let mut other = server()?;
    next(&mut other.session()?)?;
    other.stop(Shutdown::Fast)?;
    let foreign = fs::read(other.state_file())?;
    let message = "the state file of snowflake_ids belongs to another cluster";
    stops_until_reset(&mut server()?, message, |server| server.damage_state_file(|_| foreign))
}

/// A lost file may have held ids that ran ahead of the clock by up to `max_drift`.
#[test]
fn a_reset_of_a_lost_file_begins_above_ids_that_ran_ahead_of_the_clock() -> Result<()> {
    // A tick of 1 ms holds two ids, so that 80,000 ids run ahead by 40 s.
    let mut server = Server::builder().set("snowflake_ids.layout", "41/11/10/1").start()?;
    let taken = take(&mut server.session()?, 80_000)?;
    server.stop(Shutdown::Fast)?;
    fs::remove_file(server.state_file())?;
    server.start_again()?;
    let mut client = server.session()?;
    client.run("select snowflake_ids.state_reset()")?;
    let (last, first) = (taken[taken.len() - 1], next(&mut client)?);
    ensure!(first > last, "id {first} after a reset, and {last} before");
    Ok(())
}

/// A reset keeps all trusted marks, so it never repeats ids.
#[test]
fn a_reset_of_a_right_file_under_a_clock_that_is_behind_repeats_nothing() -> Result<()> {
    let mut server = Server::builder().false_clock().set("snowflake_ids.clock_wait_timeout", "0").start()?;
    let mut taken = take(&mut server.session()?, 100)?;
    server.stop(Shutdown::Fast)?;
    server.set_clock("-20m")?;
    server.start_again()?;
    let mut client = server.session()?;
    client.run("select snowflake_ids.state_reset()")?;
    taken.extend(next(&mut client).ok());
    server.set_clock("+0")?;
    taken.push(next(&mut client)?);
    ids::growing(&taken)
}

#[test]
fn a_reset_begins_above_the_instant_it_is_given() -> Result<()> {
    let mut server = server()?;
    next(&mut server.session()?)?;
    server.stop(Shutdown::Fast)?;
    server.damage_state_file(|_| Vec::new())?;
    server.start_again()?;
    let mut client = server.session()?;
    let above: f64 = client.one("select extract(epoch from now() + interval '20s')::float8")?;
    client.run(&format!("select snowflake_ids.state_reset(to_timestamp({above}))"))?;
    let id = next(&mut client)?;
    let begun = time(&mut client, id)?;
    assert!(begun >= above && begun < above + 1.0, "{begun} after a reset above {above}");
    Ok(())
}

#[test]
fn a_reset_far_ahead_of_the_clock_is_said_and_can_be_taken_back() -> Result<()> {
    const SAID: &str = "WARNING:  no snowflake ids are issued before ";
    let server = server()?;
    let mut client = server.session()?;
    next(&mut client)?;
    client.run("select snowflake_ids.state_reset(now() + interval '10 years')")?;
    wait::until_true("the warning of the ten years", || Ok(server.logged(SAID) == 1))?;
    let error = refused(&mut client)?;
    let message = "the clock is behind the ids already issued";
    sql::explains(&error, sql::NOT_IN_STATE, message)?;

    client.run("select snowflake_ids.state_reset(now())")?;
    let id = next(&mut client)?;
    let late = format!("select snowflake_timestamp({id}) > now() + interval '1 min'");
    assert!(!client.one::<bool>(&late)?, "id {id} is still far ahead");
    assert_eq!(server.logged(SAID), 1, "no word of the right instant");
    Ok(())
}

#[test]
fn another_layout_is_refused_and_the_former_one_goes_on() -> Result<()> {
    let mut server = server()?;
    let mut taken = take(&mut server.session()?, 100)?;
    server.set("snowflake_ids.layout", "twitter")?;
    server.restart()?;
    let mut client = server.session()?;
    let message = "the state file of snowflake_ids was written for another layout";
    let error = refused(&mut client)?;
    sql::explains(&error, sql::NOT_IN_STATE, message)?;
    let detail = error.detail().unwrap_or_default();
    assert!(detail.contains("2010-11-04") && detail.contains("2020-01-01"), "which layouts? {error:?}");

    server.set("snowflake_ids.layout", "41/5/5/12 epoch=2020-01-01")?;
    server.restart()?;
    taken.extend(take(&mut server.session()?, 100)?);
    ids::growing(&taken)?;

    server.set("snowflake_ids.layout", "twitter")?;
    server.restart()?;
    let mut client = server.session()?;
    client.run("select snowflake_ids.state_reset(now())")?;
    let id = next(&mut client)?;
    assert!(id > taken[199], "an id of Twitter's epoch is larger");
    Ok(())
}

/// The server accepts a damaged file whose correct content was restored, and continues above all earlier ids.
#[test]
fn a_file_that_is_put_back_serves_again() -> Result<()> {
    let mut server = server()?;
    let mut taken = take(&mut server.session()?, 100)?;
    server.stop(Shutdown::Fast)?;
    let right = fs::read(server.state_file())?;
    server.damage_state_file(|_| Vec::new())?;
    server.start_again()?;
    let mut client = server.session()?;
    assert_eq!(refused(&mut client)?.message(), DAMAGED);
    server.damage_state_file(|_| right)?;
    taken.extend(take(&mut client, 100)?);
    ids::growing(&taken)
}

#[test]
fn only_its_owner_can_read_the_file_and_only_the_extensions_may_act_on_it() -> Result<()> {
    let server = server()?;
    let mut client = server.session()?;
    next(&mut client)?;
    assert_eq!(fs::metadata(server.state_file())?.permissions().mode() & 0o777, 0o600);
    client.run("create role app; set role app")?;
    for function in FUNCTIONS {
        client.fails(&format!("select snowflake_ids.{function}"), &SqlState::INSUFFICIENT_PRIVILEGE)?;
    }
    client.fails("select * from snowflake_ids.worker_lease", &SqlState::INSUFFICIENT_PRIVILEGE)?;
    Ok(())
}
