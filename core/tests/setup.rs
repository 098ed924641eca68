//! The steps by which a server joins a registry in one call, and their errors.

use snowflake_ids_core::registry::error::{ConnectionError, RegistryError, SqlError, UnusableRegistry};
use snowflake_ids_core::registry::setup::{
    AllowError, ForeignServer, JoinError, NodesRole, SetupStep, Values, allow, join, leave,
};
use snowflake_ids_core::{Explain, Kind};

/// Options in the usual text form: `host=a,b port=1`.
fn options(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.split_whitespace().map(|text| pair(text).unwrap()).collect()
}

fn values(text: &str) -> Values {
    Values(options(text).into_iter().collect())
}

fn found(made_here: bool, server: &str, mapping: Option<&str>) -> ForeignServer {
    ForeignServer { made_here, server: values(server), mapping: mapping.map(values) }
}

const WANTED: &str = "host=a user=u dbname=d password=p port=";

#[test]
fn a_server_joins_by_the_missing_steps_only() {
    let (server, mapping) = (values("host=a dbname=d"), values("user=u password=p"));
    let create = SetupStep::CreateMapping(mapping);
    let alter = |former: &[&str]| {
        SetupStep::AlterServer(former.iter().map(|name| (*name).to_owned()).collect(), server.clone())
    };
    for (present, steps) in [
        (None, vec![SetupStep::CreateServer(server.clone()), create.clone()]),
        (Some(found(true, "dbname=d host=a", Some("password=p user=u"))), vec![]),
        (Some(found(false, "dbname=d host=a", Some("password=p user=u"))), vec![]),
        (Some(found(true, "dbname=d host=b", Some("password=p user=u"))), vec![alter(&["dbname", "host"])]),
        (
            Some(found(true, "", Some("user=u password=q"))),
            vec![alter(&[]), SetupStep::DropMapping, create.clone()],
        ),
        (Some(found(true, "host=a dbname=d", None)), vec![create.clone()]),
    ] {
        let shown = format!("{present:?}");
        assert_eq!(join("s", present, options(WANTED)).unwrap(), steps, "{shown}");
    }
    for present in
        [found(false, "host=b dbname=d", Some("user=u password=p")), found(false, "host=a dbname=d", None)]
    {
        let refused = join("s", Some(present), options(WANTED)).unwrap_err();
        assert!(matches!(&refused, JoinError::Another(name) if name == "s"), "{refused:?}");
    }
}

#[test]
fn secrets_are_options_of_the_mapping_and_are_not_shown() {
    let wanted = options("user=u password=secret sslpassword=secret oauth_client_secret=secret sslkey=k");
    let steps = join("s", None, wanted).unwrap();
    assert_eq!(steps[0], SetupStep::CreateServer(values("sslkey=k")));
    let shown = format!("{steps:?}");
    assert!(shown.contains("oauth_client_secret") && !shown.contains("\"secret\""), "{shown}");
}

#[test]
fn what_registry_join_made_is_dropped_and_what_others_need_stays() {
    assert_eq!(leave(true, false), [SetupStep::DropMapping, SetupStep::DropServer]);
    assert_eq!(leave(true, true), [SetupStep::DropMapping]);
    assert_eq!(leave(false, false), [SetupStep::DropServer]);
}

#[test]
fn only_a_role_that_logs_in_without_power_is_allowed() {
    let role = |can_login, can_be_superuser| Some(NodesRole { can_login, can_be_superuser });
    assert_eq!(allow("shard", None, Some("p")), Ok(true));
    assert_eq!(allow("shard", None, None), Ok(true));
    assert_eq!(allow("shard", role(true, false), Some("p")), Ok(false));
    assert_eq!(allow("", None, None), Err(AllowError::Missing));
    assert_eq!(allow("shard", role(true, false), Some("")), Err(AllowError::EmptyPassword));
    assert_eq!(allow("shard", role(false, false), None), Err(AllowError::NoLogin("shard".to_owned())));
    for can_login in [false, true] {
        let refused = allow("shard", role(can_login, true), None);
        assert_eq!(refused, Err(AllowError::Superuser("shard".to_owned())));
    }
}

/// The cause is in DETAIL, and HINT names the remedy.
#[test]
fn a_registry_that_cannot_be_joined_is_told_with_cause_and_remedy() {
    let rejected = |code: &[u8; 5], words: &str| ConnectionError::Rejected(*code, words.to_owned()).into();
    let refused = |code: &[u8; 5]| ConnectionError::Refused(SqlError::new(*code, "no")).into();
    let silent = |words: &str| ConnectionError::Unreachable(words.to_owned()).into();
    let cases: [(RegistryError, Kind, &str, &str); 14] = [
        (ConnectionError::NoAddress("no name".to_owned()).into(), Kind::Unreachable, "no name", "host '...'"),
        (silent("Connection refused"), Kind::Unreachable, "Connection refused", "host and port"),
        (silent("server does not support SSL"), Kind::Unreachable, "SSL", "ssl = on"),
        (silent("root certificate file"), Kind::Unreachable, "certificate", "host and port"),
        (silent("fe_sendauth: none"), Kind::Unreachable, "fe_sendauth", "ADD password"),
        (rejected(b"28P01", "FATAL"), Kind::Unreachable, "FATAL", "SET password"),
        (rejected(b"28000", "pg_hba.conf"), Kind::Unreachable, "pg_hba.conf", "above other lines"),
        (rejected(b"28000", "no role"), Kind::Unreachable, "no role", "registry_allow"),
        (rejected(b"3D000", "FATAL"), Kind::Unreachable, "FATAL", "SET dbname"),
        (
            rejected(b"42501", "FATAL"),
            Kind::Unreachable,
            "FATAL",
            "dbname is the registry's database. If it is",
        ),
        (refused(b"42501"), Kind::Denied, "SQLSTATE 42501", "dbname is the registry's database. If it is"),
        (refused(b"3F000"), Kind::NotReady, "SQLSTATE 3F000", "dbname is the registry's database. If it is"),
        (refused(b"25006"), Kind::ReadOnly, "SQLSTATE 25006", "primary"),
        (
            RegistryError::Layout("1".to_owned(), "2".to_owned()),
            Kind::NotReady,
            "It has another layout of ids. The registry has layout 1, and this server has layout 2.",
            "snowflake_ids.layout",
        ),
    ];
    for (error, kind, cause, remedy) in cases {
        let error = JoinError::from(UnusableRegistry::Failed("reg".to_owned(), error));
        let (detail, hint) = (error.detail().unwrap(), error.hint().unwrap());
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, "could not join the registry"));
        assert!(detail.contains(cause) && detail.starts_with("It ") && detail.ends_with('.'), "{detail}");
        // A server that never joined has had no ids from the registry.
        assert!(hint.contains(remedy) && !hint.contains("issued again"), "{hint}");
    }
    let same = JoinError::from(UnusableRegistry::Same("reg".to_owned()));
    assert!(same.detail().unwrap().contains("reg"));
}
