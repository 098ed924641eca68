//! Copies of a data directory that have the original's inode and no creation time, as on overlay file systems. Tests that cannot
//! mount such a file system print the reason and pass.

use crate::copies::{many_ids, share_no_id, used};
use snowflake_ids_server_tests::containers::{Container, Overlay, can_run};
use snowflake_ids_server_tests::facts::Facts;
use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::registry::{of_pairs, serving};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const OVERLAYS: [Overlay; 2] = [Overlay::Kernel, Overlay::Fuse];

fn on(host: impl Into<String>) -> Facts {
    Facts { host: host.into(), ..Facts::default() }
}

/// The worker id and the datacenter in the server's next id.
fn number(server: &Server) -> Result<i32> {
    let mut client = server.connect("postgres")?;
    let id = wait_for_id(&mut client)?;
    client.one(&format!("select snowflake_datacenter_id({id}) * 32 + snowflake_worker_id({id})"))
}

/// Restarts a server on a machine of these facts. Returns whether the server keeps its worker id.
fn keeps_number(server: &mut Server, facts: Facts) -> Result<bool> {
    let before = number(server)?;
    server.stop(Shutdown::Fast)?;
    server.set_facts(facts);
    server.start_again()?;
    Ok(number(server)? == before)
}

fn warns(server: &Server) -> Result<bool> {
    server.connect("postgres")?.one(
        "select exists (select from snowflake_ids.attention where severity = 'warning' and problem like '%is not recognised')",
    )
}

/// A stopped server whose data directory is an image for containers, and ids of the server.
fn image(builder: Builder) -> Result<(Server, Vec<i64>)> {
    used(builder.without_creation_times())
}

fn overlays() -> impl Iterator<Item = Overlay> {
    OVERLAYS.into_iter().filter(|overlay| can_run(*overlay))
}

/// A file for [`Facts`] with this content, in a folder that is named after a container.
fn file(folder: &Path, container: char, content: &str) -> Result<Option<PathBuf>> {
    let folder = folder.join(container.to_string().repeat(64));
    fs::create_dir_all(&folder)?;
    let file = folder.join("hostname");
    fs::write(&file, content)?;
    Ok(Some(file))
}

#[test]
fn containers_of_one_image_share_no_id() -> Result<()> {
    for overlay in overlays() {
        let (image, taken) = image(many_ids())?;
        let [one, two] = [image.container(overlay, on("a"))?, image.container(overlay, on("b"))?];
        let inode = |of: &Container| fs::metadata(of.server.data()).map(|data| data.ino());
        assert_eq!(inode(&one)?, inode(&two)?, "{overlay:?}: without one inode, the test shows nothing");
        share_no_id(&[&one.server, &two.server], Taken::own(taken))?;
        assert!(warns(&one.server)? && warns(&two.server)?);
    }
    Ok(())
}

/// Each new host name is another machine; a restart under the same name is none.
#[test]
fn a_container_made_anew_takes_another_worker_id_under_another_host_name() -> Result<()> {
    let hosts = if full() { 40 } else { 2 };
    for (overlay, is_leased) in overlays().flat_map(|overlay| [(overlay, false), (overlay, true)]) {
        let (mut image, _client) = of_pairs().without_creation_times().with_session()?;
        if is_leased {
            serving(&image)?;
        }
        let mut numbers = BTreeSet::from([number(&image)?]);
        image.stop(Shutdown::Fast)?;
        let mut container = image.container(overlay, on("0"))?;
        for host in 0..hosts {
            assert!(keeps_number(&mut container.server, on(host.to_string()))?, "host {host}");
            numbers.insert(number(&container.server)?);
            assert!(!keeps_number(&mut container.server, on((host + 1).to_string()))?, "host {host}");
        }
        numbers.insert(number(&container.server)?);
        println!("{overlay:?}, leased: {is_leased}: {} worker ids", numbers.len());
        assert_eq!(numbers.len(), hosts + 2);
    }
    Ok(())
}

#[test]
fn a_machine_id_or_a_container_tells_a_copy_under_the_same_host_name() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let id = |name, digit: &str| file(folder.path(), name, &digit.repeat(32));
    for overlay in overlays() {
        let (image, _) = image(of_pairs())?;
        let mut container = image.container(overlay, Facts { machine_id: id('1', "1")?, ..on("h") })?;
        let server = &mut container.server;
        for (name, digit, keeps) in [('1', "1", true), ('0', "", true), ('2', "2", true), ('3', "3", false)] {
            let facts = Facts { machine_id: id(name, digit)?, ..on("h") };
            assert_eq!(keeps_number(server, facts)?, keeps, "machine id {name}");
        }
        for (container, keeps) in [('a', true), ('b', false)] {
            let (machine_id, hostname) = (id('0', "")?, file(folder.path(), container, "h")?);
            let facts = Facts { machine_id, hostname, ..on("h") };
            assert_eq!(keeps_number(server, facts)?, keeps, "container {container}");
            assert!(!warns(server)?);
        }
    }
    Ok(())
}

/// On other file systems, and under a set worker id, a host name is no evidence.
#[test]
fn elsewhere_another_host_name_is_no_copy() -> Result<()> {
    for _ in overlays().take(1) {
        let (mut server, _client) = of_pairs().without_creation_times().with_session()?;
        assert!(keeps_number(&mut server, on("a"))? && keeps_number(&mut server, on("b"))?);
        let (image, _) = image(Server::builder())?;
        let mut fixed = image.container(Overlay::Kernel, on("a"))?;
        assert!(keeps_number(&mut fixed.server, on("b"))?);
        assert!(!warns(&server)? && !warns(&fixed.server)?);
    }
    Ok(())
}

#[test]
fn a_bind_mount_and_a_new_host_name_of_a_running_server_are_no_copies() -> Result<()> {
    for overlay in overlays() {
        let (image, _) = image(of_pairs())?;
        let mut container = image.container(overlay, on("a"))?;
        let before = number(&container.server)?;
        container.server.stop(Shutdown::Fast)?;
        let bound = container.server.bound()?;
        assert_eq!(number(&bound.server)?, before);
        bound.server.rename_host("b")?;
        assert_eq!(number(&bound.server)?, before);
    }
    Ok(())
}
