//! The machine and the container, read from the files of the operating system.

use proptest::prelude::*;
use snowflake_ids_core::server::state::Machine;

const OVERLAY: i64 = 0x794c_7630;
const FUSE: i64 = 0x6573_5546;
const EXT4: i64 = 0xef53;
const NFS: i64 = 0x6969;
const ID: &str = "3d1219c7c4c5404aaa1f6d2a48adfda4";
const CONTAINER: &str = "8f4ab6c95df1c0ee2b0f0fd2a9d3a2e9b7c4f6a1d8e5b2c3a4f5e6d7c8b9a0f1";

fn mount(folder: &str) -> String {
    format!(
        "22 1 254:0 / / rw,relatime - overlay overlay rw\n\
         612 590 254:1 {folder}/hostname /etc/hostname rw,relatime - ext4 /dev/vda rw\n"
    )
}

fn container(mounts: &str) -> String {
    Machine::of(OVERLAY, ID, mounts).unwrap().container
}

#[test]
fn the_machine_counts_on_an_overlay_and_on_fuse() {
    let is_known = |file_system| Machine::of(file_system, ID, "").is_some();
    assert_eq!([OVERLAY, FUSE, EXT4, NFS].map(is_known), [true, true, false, false]);
}

#[test]
fn a_machine_id_that_is_missing_empty_or_not_yet_made_is_unknown() {
    let known = |text: &str| Machine::of(FUSE, text, "").unwrap().id;
    assert_eq!([ID, &format!("{ID}\n")].map(known), [ID, ID]);
    for unknown in ["", "\n", "uninitialized\n", &ID[1..], &ID.replace('3', "g")] {
        assert_eq!(known(unknown), "", "{unknown:?}");
    }
}

#[test]
fn the_container_is_known_by_the_source_of_its_host_name() {
    for folder in [
        format!("/var/lib/docker/containers/{CONTAINER}"),
        format!("/var/lib/containers/storage/overlay-containers/{CONTAINER}/userdata"),
        format!("/containers/overlay-containers/{CONTAINER}/userdata"),
        format!("/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/{CONTAINER}"),
        format!("/var/lib/nerdctl/1935db59/containers/default/{CONTAINER}"),
    ] {
        assert_eq!(container(&mount(&folder)), CONTAINER, "{folder}");
        assert_eq!(container(&(mount("/etc") + &mount(&folder))), CONTAINER, "the last mount counts");
        assert_eq!(container(&(mount(&folder) + &mount("/etc"))), "");
    }
    for none in ["", "\n", "1 2 3", "1 2 3 /a", &mount("/etc"), &mount(&CONTAINER[..60])] {
        assert_eq!(container(none), "", "{none:?}");
    }
}

proptest! {
    #[test]
    fn whatever_the_files_contain_the_facts_are_short(id in ".{0,40}", mounts in "[0-9a-f/ \n-]{0,200}|.*") {
        let machine = Machine::of(OVERLAY, &id, &(mount("/etc") + &mounts)).unwrap();
        prop_assert!([0, 32].contains(&machine.id.len()) && [0, 64].contains(&machine.container.len()));
    }
}
