//! Lists of hosts: split as libpq splits them, or left unchanged if libpq would refuse them.

use proptest::prelude::*;
use snowflake_ids_core::registry::error::ConnectionError;
use snowflake_ids_core::registry::hosts::{Setting, each, name, with_addresses};

/// Options in the usual text form: `host=a,b port=1`.
fn options(text: &str) -> Vec<Setting> {
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.split_whitespace().map(|text| pair(text).expect(text)).collect()
}

fn shown(options: &[Setting]) -> String {
    options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn split(text: &str) -> Vec<String> {
    each(&options(text)).iter().map(|options| shown(options)).collect()
}

#[test]
fn each_host_has_its_own_list() {
    for (list, expected) in [
        ("host=a,b port=1,2", &["host=a port=1", "host=b port=2"][..]),
        ("host=a,b,c port=5", &["host=a port=5", "host=b port=5", "host=c port=5"]),
        ("host=a,b", &["host=a", "host=b"]),
        ("hostaddr=1.1.1.1,::1", &["hostaddr=1.1.1.1", "hostaddr=::1"]),
        (
            "host=a,b hostaddr=1.1.1.1,2.2.2.2 port=1,2",
            &["host=a hostaddr=1.1.1.1 port=1", "host=b hostaddr=2.2.2.2 port=2"],
        ),
        ("host=/run/a,/run/b", &["host=/run/a", "host=/run/b"]),
    ] {
        assert_eq!(split(list), expected, "{list}");
    }
}

#[test]
fn an_empty_element_is_the_default() {
    for (list, expected) in [
        ("host=a, port=1", &["host=a port=1", "port=1"][..]),
        ("host=,b", &["", "host=b"]),
        ("host=a,b port=,2", &["host=a", "host=b port=2"]),
        ("host=a,b port=,", &["host=a", "host=b"]),
        ("host=a,b hostaddr=,2.2.2.2", &["host=a", "host=b hostaddr=2.2.2.2"]),
    ] {
        assert_eq!(split(list), expected, "{list}");
    }
}

#[test]
fn one_host_is_left_as_it_is() {
    for list in [
        "",
        "host=a",
        "host=a port=1",
        "hostaddr=::1 host=a",
        "dbname=d",
        "host= port=1",
        "service=s",
        "port=1",
    ] {
        assert_eq!(split(list), [list], "{list}");
    }
}

#[test]
fn what_libpq_would_refuse_is_left_as_it_is() {
    for list in [
        "host=a,b port=1,2,3",
        "host=a,b,c port=1,2",
        "host=a port=1,2",
        "port=1,2",
        "host=a,b hostaddr=1.1.1.1",
        "host=a hostaddr=1.1.1.1,2.2.2.2",
        "host=a,b hostaddr=1.1.1.1,2.2.2.2 port=1,2,3",
    ] {
        assert_eq!(split(list), [list], "{list}");
    }
}

#[test]
fn all_else_is_in_every_list() {
    assert_eq!(
        split("dbname=d host=a,b user=u target_session_attrs=read-write options=-c,x=y"),
        [
            "dbname=d user=u target_session_attrs=read-write options=-c,x=y host=a",
            "dbname=d user=u target_session_attrs=read-write options=-c,x=y host=b",
        ]
    );
}

#[test]
fn the_last_of_a_name_counts() {
    assert_eq!(
        split("host=a,b host=c,d,e port=1,2,3 port="),
        ["host=c port=1", "host=d port=2", "host=e port=3"]
    );
    assert_eq!(split("host=a,b host=c"), ["host=a,b host=c"]);
}

#[test]
fn a_single_name_is_to_be_looked_up() {
    for (list, expected) in [
        ("host=a.example port=1", Some("a.example")),
        ("host=1.2.3.4 host=a", Some("a")),
        ("host=a hostaddr=", Some("a")),
        ("host=10.example", Some("10.example")),
        ("host=a hostaddr=1.1.1.1", None),
        ("host=1.2.3.4", None),
        ("host=::1", None),
        ("host=/run/a", None),
        ("host=@a", None),
        ("host=a,b", None),
        ("host=a port=1,2", None),
        ("host= port=1", None),
        ("dbname=a", None),
    ] {
        assert_eq!(name(&options(list)), expected, "{list}");
    }
}

#[test]
fn addresses_stand_beside_the_name() {
    let found = |addresses: &[&str]| {
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        shown(&with_addresses(&options("host=a port=1"), "a", &addresses))
    };
    assert_eq!(found(&["1.1.1.1"]), "host=a port=1 host=a hostaddr=1.1.1.1");
    assert_eq!(found(&["::1", "1.1.1.1"]), "host=a port=1 host=a,a hostaddr=::1,1.1.1.1");
}

proptest! {
    /// Hosts, addresses and ports keep their order, whatever they are.
    #[test]
    fn nothing_is_lost(
        rows in prop::collection::vec(("[a-z0-9.-]{0,8}", "[0-9.:]{0,8}", "[0-9]{0,5}"), 2..6),
        others in prop::collection::vec(("[a-g]{1,3}", "[ -~]{0,6}"), 0..4),
    ) {
        let lists: [(&str, Vec<&str>); 3] = [
            ("host", rows.iter().map(|row| row.0.as_str()).collect()),
            ("hostaddr", rows.iter().map(|row| row.1.as_str()).collect()),
            ("port", rows.iter().map(|row| row.2.as_str()).collect()),
        ];
        let mut options = others.clone();
        options.extend(lists.iter().map(|(name, list)| ((*name).to_owned(), list.join(","))));
        let split = each(&options);
        prop_assert_eq!(split.len(), rows.len());
        for (index, own) in split.iter().enumerate() {
            prop_assert!(own.starts_with(&others));
            let expected = lists.iter().map(|(name, list)| (name.to_string(), list[index].to_owned()));
            let expected: Vec<_> = expected.filter(|(_, value)| !value.is_empty()).collect();
            prop_assert_eq!(&own[others.len()..], expected);
        }
    }

    /// Lists with one host each stay the same when they are split again.
    #[test]
    fn what_was_taken_apart_stays_so(host in "[a,]{0,8}", address in "[1,]{0,6}", port in "[5,]{0,6}") {
        let options = [("host", host), ("hostaddr", address), ("port", port)];
        let lists = each(&options.map(|(name, value)| (name.to_owned(), value)));
        prop_assert!(!lists.is_empty());
        for list in lists {
            prop_assert_eq!(each(&list), [list]);
        }
    }
}

#[test]
fn an_error_of_connecting_is_told_by_its_sqlstate_and_without_the_servers_source() {
    let of = ConnectionError::of_connecting;
    let refused = "connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?\n";
    assert_eq!(of(refused), ConnectionError::Unreachable(refused.trim_end().to_owned()));
    let password = "connection to server at \"::1\", port 5432 failed: FATAL:  28P01: password authentication failed for user \"x\"\n\
                    LOCATION:  auth_failed, auth.c:340\n";
    let words = "connection to server at \"::1\", port 5432 failed: FATAL:  password authentication failed for user \"x\"";
    assert_eq!(of(password), ConnectionError::Rejected(*b"28P01", words.to_owned()));
    // The message is in another language and names several hosts; the last host's SQLSTATE counts.
    let several = "FATAL:  57P03: the database system is starting up\nFATAL:  3D000: Datenbank »a: b« existiert nicht\nORT:  InitPostgres, postinit.c:1014\n";
    let words = "FATAL:  the database system is starting up\nFATAL:  Datenbank »a: b« existiert nicht";
    assert_eq!(of(several), ConnectionError::Rejected(*b"3D000", words.to_owned()));
    assert_eq!(of("FATAL:  abc: no code"), ConnectionError::Unreachable("FATAL:  abc: no code".to_owned()));
    assert_eq!(of(""), ConnectionError::Unreachable(String::new()));
}
