//! Copies of a data directory: two servers must not issue as the same node, however the copy was made.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::programs;
use snowflake_ids_server_tests::restores::{From, Part};
use snowflake_ids_server_tests::segments::{self, create};
use snowflake_ids_server_tests::snowflakes::{refused, status, take, worker};
use std::fs;

const COPY: &str = "this data directory is a copy";
const PUT_BACK: &str = "the state file of snowflake_ids was restored from an older copy";

fn fixed() -> Builder {
    Server::builder()
}

/// A stopped server that has issued ids.
pub fn used(builder: Builder) -> Result<(Server, Vec<i64>)> {
    let mut server = builder.start()?;
    let taken = take(&mut server.session()?, 1000)?;
    server.stop(Shutdown::Fast)?;
    Ok((server, taken))
}

/// A server with so many worker ids that two copies are unlikely to choose the same one. A copy never chooses its original's worker
/// id.
pub fn many_ids() -> Builder {
    auto().set("snowflake_ids.layout", "41/0/20/2 epoch=2020-01-01")
}

fn refuses_as_a_copy(copy: &Server) -> Result<()> {
    let error = refused(&mut copy.connect("postgres")?)?;
    assert_eq!(error.code(), sql::NOT_IN_STATE, "{error:?}");
    assert!(error.message().starts_with(COPY) && error.detail().is_some(), "{error:?}");
    assert!(error.hint().is_some_and(|hint| hint.contains("state_adopt")), "{error:?}");
    Ok(())
}

/// Puts all servers under load at once, and checks that no id is repeated.
pub fn share_no_id(servers: &[&Server], mut taken: Taken) -> Result<()> {
    let mut loads = Vec::new();
    for server in servers {
        wait_for_id(&mut server.connect("postgres")?).map(|id| taken.ids.push(id))?;
        loads.push(server.load(3)?);
    }
    for load in &loads {
        load.goes_on()?;
        load.run(Duration::from_millis(300));
    }
    for load in loads {
        taken.add(load.end());
    }
    assert!(taken.refusals.is_empty(), "{:?}", taken.refusals);
    taken.unique()
}

#[test]
fn a_copy_with_a_set_worker_id_refuses_until_it_is_adopted() -> Result<()> {
    let (mut original, mut taken) = used(fixed())?;
    let mut copy = original.copy()?;
    original.start_again()?;
    copy.start_again()?;
    refuses_as_a_copy(&copy)?;
    assert!(status::<String>(&mut copy.connect("postgres")?, "state")?.starts_with(COPY));
    copy.restart()?;
    refuses_as_a_copy(&copy)?;
    taken.extend(take(&mut original.connect("postgres")?, 1000)?);
    original.stop(Shutdown::Fast)?;

    let mut client = copy.connect("postgres")?;
    client.run("select snowflake_ids.state_adopt()")?;
    taken.extend(take(&mut client, 1000)?);
    copy.restart()?;
    taken.extend(take(&mut copy.connect("postgres")?, 1000)?);
    ids::growing(&taken)
}

#[test]
fn a_copy_with_another_worker_id_needs_nothing_else() -> Result<()> {
    let (mut original, taken) = used(fixed())?;
    let mut copy = original.copy()?;
    copy.set("snowflake_ids.worker_id", "2")?;
    original.start_again()?;
    copy.start_again()?;
    share_no_id(&[&original, &copy], Taken::own(taken))?;
    // The copy's former worker id belongs to the original while the original exists.
    copy.set("snowflake_ids.worker_id", "1")?;
    copy.restart()?;
    refuses_as_a_copy(&copy)?;
    let mut newest = take(&mut original.connect("postgres")?, 1000)?;
    original.stop(Shutdown::Fast)?;
    let mut client = copy.connect("postgres")?;
    client.run("select snowflake_ids.state_adopt()")?;
    newest.extend(take(&mut client, 1000)?);
    ids::growing(&newest)
}

/// In some folders, Postgres takes a file with an unknown name for a table's file.
#[test]
fn a_server_with_checksums_can_be_backed_up_and_checked() -> Result<()> {
    let mut original = fixed().checksums().start()?;
    take(&mut original.session()?, 1000)?;
    let mut copy = original.base_backup()?;
    copy.start_again()?;
    refuses_as_a_copy(&copy)?;
    original.stop(Shutdown::Fast)?;
    programs::output(original.command("pg_checksums").arg("--check").arg("--pgdata").arg(original.data()))?;
    Ok(())
}

#[test]
fn a_base_backup_under_auto_leases_another_id() -> Result<()> {
    let original = auto().start()?;
    let taken = take(&mut original.session()?, 1000)?;
    let mut copy = original.base_backup()?;
    copy.start_again()?;
    share_no_id(&[&original, &copy], Taken::own(taken))
}

/// Copies of one directory have the same state, but must choose different worker ids.
#[test]
fn two_copies_under_auto_lease_an_id_each() -> Result<()> {
    let (mut original, taken) = used(many_ids())?;
    let mut copies = [original.copy()?, original.copy()?];
    original.start_again()?;
    for copy in &mut copies {
        copy.start_again()?;
    }
    let servers = [&original, &copies[0], &copies[1]];
    share_no_id(&servers, Taken::own(taken))?;
    let of = |server: &&Server| status::<i32>(&mut server.connect("postgres")?, "worker_id");
    let workers = servers.iter().map(of).collect::<Result<BTreeSet<_>>>()?;
    assert_eq!(workers.len(), 3, "{workers:?}");
    Ok(())
}

#[test]
fn a_copy_of_a_copy_is_a_copy() -> Result<()> {
    let (mut original, taken) = used(many_ids())?;
    let mut copy = original.copy()?;
    copy.start_again()?;
    let of_copy = take(&mut copy.connect("postgres")?, 1000)?;
    copy.stop(Shutdown::Fast)?;
    let mut second = copy.copy()?;
    for server in [&mut original, &mut copy, &mut second] {
        server.start_again()?;
    }
    share_no_id(&[&original, &copy, &second], Taken::own([taken, of_copy].concat()))
}

#[test]
fn a_directory_put_back_from_a_copy_is_a_copy() -> Result<()> {
    let (mut original, mut taken) = used(fixed())?;
    let old = original.copy()?;
    original.start_again()?;
    taken.extend(take(&mut original.connect("postgres")?, 1000)?);
    original.stop(Shutdown::Fast)?;
    fs::remove_dir_all(original.data())?;
    fs::rename(old.data(), original.data())?;
    // The copied files contain the copy's address.
    original.set_address()?;
    original.start_again()?;
    refuses_as_a_copy(&original)?;
    let mut client = original.connect("postgres")?;
    client.run("select snowflake_ids.state_adopt()")?;
    taken.extend(take(&mut client, 1000)?);
    ids::growing(&taken)
}

/// The directory and its identity stay; only the directory's contents are from an earlier moment.
#[test]
fn a_backup_put_back_into_its_own_directory_is_refused_until_it_is_adopted() -> Result<()> {
    // There are few ids per tick, so they run ahead of the clock by half a second.
    let (mut server, mut taken) = used(fixed().set("snowflake_ids.layout", "41/5/5/2"))?;
    let backup = server.keep()?;
    server.start_again()?;
    taken.extend(take(&mut server.connect("postgres")?, 2000)?);
    server.stop(Shutdown::Fast)?;
    server.put_back(&backup, true, |_| From::Old)?;
    server.start_again()?;
    let mut client = server.connect("postgres")?;
    for call in ["select snowflake_nextval()", "select snowflake_nextvals(10)"] {
        client.explained(call, sql::NOT_IN_STATE, PUT_BACK)?;
    }
    assert_eq!(status::<String>(&mut client, "state")?, PUT_BACK);
    client.run("create role anybody; set role anybody")?;
    let brief = refused(&mut client)?;
    assert!(brief.detail().is_some_and(|detail| detail.contains("worker 1")), "{brief:?}");
    client.run("reset role; select snowflake_ids.state_adopt()")?;
    taken.extend(take(&mut client, 1000)?);
    server.restart()?;
    taken.extend(take(&mut server.connect("postgres")?, 1000)?);
    ids::growing(&taken)
}

/// Only the state file is old; Postgres's own files are current.
#[test]
fn a_state_file_put_back_alone_is_known() -> Result<()> {
    let (mut server, mut taken) = used(fixed().set("snowflake_ids.layout", "41/5/5/2"))?;
    let backup = server.keep()?;
    server.start_again()?;
    taken.extend(take(&mut server.connect("postgres")?, 2000)?);
    let old = fs::read(backup.file(Part::State))?;
    server.stop(Shutdown::Immediate)?;
    // An editor or cp changes the content of the same file.
    server.damage_state_file(|_| old)?;
    server.start_again()?;
    let mut client = server.connect("postgres")?;
    let error = refused(&mut client)?;
    sql::explains(&error, sql::NOT_IN_STATE, PUT_BACK)?;
    client.run("select snowflake_ids.state_reset()")?;
    taken.extend(take(&mut client, 1000)?);
    ids::growing(&taken)
}

/// The server's own registry was restored too, and leases a free worker id at once.
#[test]
fn a_backup_put_back_under_auto_leases_another_id_at_once() -> Result<()> {
    let (mut server, mut taken) = used(many_ids())?;
    let backup = server.keep()?;
    server.start_again()?;
    let worker_before = worker(&mut server.connect("postgres")?, taken[0])?;
    for round in 0..3 {
        taken.extend(take(&mut server.connect("postgres")?, 2000)?);
        server.stop(Shutdown::Fast)?;
        server.put_back(&backup, true, |_| From::Old)?;
        server.start_again()?;
        let mut client = server.connect("postgres")?;
        let first = wait_for_id(&mut client)?;
        assert_ne!(worker(&mut client, first)?, worker_before, "round {round}");
        taken.push(first);
    }
    ids::unique(taken)
}

#[test]
fn a_moved_directory_is_no_copy() -> Result<()> {
    for builder in [fixed(), auto()] {
        let (mut original, mut taken) = used(builder)?;
        original.start_again()?;
        create(&mut original.connect("postgres")?, "t", TERMS)?;
        let numbers = segments::take(&mut original.connect("postgres")?, "t", 3)?;
        original.stop(Shutdown::Fast)?;
        let mut moved = original.moved()?;
        moved.start_again()?;
        let mut client = moved.connect("postgres")?;
        taken.extend(take(&mut client, 1000)?);
        assert_eq!(worker(&mut client, taken[0])?, worker(&mut client, taken[1999])?);
        ids::growing(&taken)?;
        assert_eq!(segments::next(&mut client, "t")?, numbers[2] + 1);
        assert_eq!(warnings(&mut client)?, 0);
    }
    Ok(())
}

const TERMS: &str = "step => 10, max_step => 100";

/// The number of rows of `attention` that warn of numbers that may come again.
fn warnings(client: &mut Client) -> Result<i64> {
    client.one("select count(*) from snowflake_ids.attention where subject = 'tags' and action like '%segment_raise%'")
}

/// The first id is above twice `max_step`, the tag skips once, and an alarm says what happened.
fn skips_once(server: &mut Server, taken: &mut Vec<i64>) -> Result<()> {
    let mut client = server.connect("postgres")?;
    assert_eq!(warnings(&mut client)?, 1);
    let after = segments::take(&mut client, "t", 100)?;
    taken.extend(&after);
    ids::unique(taken.clone())?;
    // A start may repeat the skip only if it has forgotten it.
    for adopts in [false, true] {
        if adopts {
            client.run("select snowflake_ids.state_adopt()")?;
        }
        drop(client);
        server.restart()?;
        client = server.connect("postgres")?;
        let next = segments::next(&mut client, "t")?;
        assert_eq!(next, taken[taken.len() - 1] + 1, "adopts: {adopts}");
        taken.push(next);
    }
    Ok(())
}

#[test]
fn tags_of_a_copy_skip_once_while_the_original_goes_on() -> Result<()> {
    for builder in [fixed(), auto()] {
        let original = builder.start()?;
        let mut client = original.session()?;
        create(&mut client, "t", TERMS)?;
        let mut taken = segments::take(&mut client, "t", 50)?;
        let mut copy = original.base_backup()?;
        taken.extend(segments::take(&mut client, "t", 150)?);
        copy.start_again()?;
        skips_once(&mut copy, &mut taken)?;
        assert_eq!(warnings(&mut client)?, 0);
    }
    Ok(())
}

/// Before the backup, the server gave only numbers of a transaction's own tag. The backup replaces the folder or its content.
#[test]
fn tags_of_a_backup_in_place_of_its_original_skip_once() -> Result<()> {
    for is_emptied in [true, false] {
        let mut server = auto().start()?;
        let mut client = server.session()?;
        client.run("begin")?;
        create(&mut client, "t", TERMS)?;
        let mut taken = segments::take(&mut client, "t", 50)?;
        client.run("commit")?;
        let (files, folder) = (server.keep_backup()?, server.base_backup()?);
        taken.extend(segments::take(&mut client, "t", 150)?);
        drop(client);
        server.stop(Shutdown::Immediate)?;
        if is_emptied {
            server.put_back(&files, true, |_| From::Old)?;
        } else {
            fs::remove_dir_all(server.data())?;
            fs::rename(folder.data(), server.data())?;
            server.set_address()?;
        }
        server.start_again()?;
        skips_once(&mut server, &mut taken)?;
    }
    Ok(())
}

#[test]
fn tags_of_an_unused_image_begin_at_their_start() -> Result<()> {
    let mut image = auto().start()?;
    create(&mut image.session()?, "t", TERMS)?;
    image.stop(Shutdown::Fast)?;
    let mut copy = image.copy()?;
    copy.start_again()?;
    let mut client = copy.connect("postgres")?;
    assert_eq!((segments::next(&mut client, "t")?, warnings(&mut client)?), (1, 0));
    Ok(())
}
