//! Errors of a registry on another server.

use crate::clock::{human, micros};
use crate::error::Explain;
use crate::registry::wire::{self, Stranger};
use crate::server::form::RELEASE;
use crate::server::lease::Skew;
use crate::tag::reservation::Unfit;
use std::time::Duration;

/// The server is a node of a Citus cluster, and does not use the cluster's registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[error("this server is a worker of a Citus cluster, and uses no registry")]
#[explain(
    NotReady,
    detail = "Ids from this server's own tables could repeat ids of other nodes.",
    hint = "On the coordinator, CALL snowflake_ids.use_citus()."
)]
pub struct Unregistered;

/// An SQL error of this server or of another server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlError {
    /// The SQLSTATE.
    pub code: [u8; 5],
    /// The message.
    pub message: String,
    /// DETAIL.
    pub detail: Option<String>,
    /// HINT.
    pub hint: Option<String>,
}

impl SqlError {
    /// Returns an error with an SQLSTATE and a message only.
    pub fn new(code: [u8; 5], message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None, hint: None }
    }

    /// Returns the SQLSTATE as the integer into which Postgres packs it.
    pub fn sqlstate(&self) -> i32 {
        let packed = self.code.iter().rev().map(|letter| i32::from(letter.wrapping_sub(b'0') & 0x3f));
        packed.fold(0, |packed, letter| packed << 6 | letter)
    }

    /// Returns whether an immediate retry may succeed, because rows were locked.
    fn is_conflict(&self) -> bool {
        [b"55P03", b"40001", b"40P01"].contains(&&self.code)
    }

    /// Returns whether a lock was not granted in time.
    pub fn is_lock_timeout(&self) -> bool {
        self.code == *b"55P03"
    }
}

const DENIED: &str = "Check that dbname is the registry's database. If it is, SELECT snowflake_ids.registry_allow there with the role of \
                      the user mapping.";
const SAME_VERSION: &str = "Install the same version of the extension on both servers.";
const CHECK_THAT_IT_RUNS: &str = "Check that the registry runs, that its listen_addresses let this server in, and that the foreign server has \
                                  its host and port.";

/// The reason why a statement on another server has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(Unreachable, hint = "{CHECK_THAT_IT_RUNS}")]
pub enum ConnectionError {
    /// The connection failed. The text is libpq's message.
    #[error("it cannot be reached: {0}")]
    #[explain(for_others = Some(briefly("it cannot be reached")))]
    // libpq leaves these words untranslated. fe_sendauth needs a password that it does not have.
    #[explain(hint_with = if _0.contains("fe_sendauth") {
        "Add the password: by registry_join, or by ALTER USER MAPPING ... OPTIONS (ADD password '...').".to_owned()
    } else if _0.contains("SSL") || _0.contains("certificate") {
        "Check that host and port are the registry's. If they are, set ssl = on there, with a certificate that sslmode accepts. Or \
         choose another sslmode: by registry_join, or by ALTER SERVER ... OPTIONS (SET sslmode '...').".to_owned()
    } else {
        format!("{CHECK_THAT_IT_RUNS}")
    })]
    Unreachable(String),
    /// The host name cannot be resolved.
    #[error("it cannot be reached: {0}")]
    #[explain(
        hint = "Set the host to a name that this server can look up, or to an address: by registry_join, or by \
                      ALTER SERVER ... OPTIONS (SET host '...')."
    )]
    #[explain(for_others = Some(briefly("it cannot be reached")))]
    NoAddress(String),
    /// The server rejected the connection. The fields are the rejection's SQLSTATE and libpq's message.
    #[error("it cannot be reached: {1}")]
    #[explain(for_others = Some(briefly("it cannot be reached")), hint = "{}", match _0 {
        b"28P01" => {
            "Check that host, port and user are the registry's. Give the user mapping the password of the role: by registry_join, or by \
             ALTER USER MAPPING ... OPTIONS (SET password '...'). On the registry, snowflake_ids.registry_allow makes the role if it \
             is missing."
        }
        // Each language of the server has this name in its messages about the file.
        b"28000" if _1.contains("pg_hba.conf") => {
            "Check that dbname, user and port are the registry's. If they are, add a line for them and for this server's address to \
             pg_hba.conf there, above other lines that match, and SELECT pg_reload_conf(). A line hostssl needs ssl = on there."
        }
        b"28000" => {
            "On the registry, SELECT snowflake_ids.registry_allow with this role, which makes the role if it is missing. A role that \
             exists needs LOGIN."
        }
        b"3D000" => {
            "Check that host and port are the registry's. If they are, set dbname to the registry's database: by registry_join, or by \
             ALTER SERVER ... OPTIONS (SET dbname '...')."
        }
        b"42501" => DENIED,
        b"53300" => "On the registry's server, raise max_connections, or end sessions that nobody needs.",
        b"57P03" => "Wait until the registry's server has started.",
        _ => "See the log of the registry's server.",
    })]
    Rejected([u8; 5], String),
    /// The server gave no response within this time. The connection is closed.
    #[error("it did not answer within {}", human(Duration::from_millis(micros(*.0).div_ceil(1_000))))]
    Silent(Duration),
    /// The process stopped waiting, because other databases need this process. The connection is closed.
    #[error("it has not answered yet, and is asked again")]
    GivenUp,
    /// The connection broke during the request. The server may have served the request.
    #[error("the connection broke: {0}")]
    #[explain(for_others = Some(briefly("the connection broke")))]
    Lost(String),
    /// The response is too long. The connection is closed.
    #[error("its answer is longer than the limit of {} bytes", wire::MAX_BYTES)]
    #[explain(hint = "{SAME_VERSION}")]
    TooLong,
    /// The server reported an SQL error. The statement had no effect, and the connection stays usable.
    #[error("it failed with SQLSTATE {}: {}", String::from_utf8_lossy(&.0.code), .0.message)]
    #[explain(kind_with = Kind::of_sqlstate(_0.code), detail_with = _0.detail.clone(), hint = "{}", match &_0.code {
        b"42501" => DENIED,
        b"42883" | b"3F000" => {
            "Check that dbname is the registry's database. If it is, CREATE EXTENSION snowflake_ids there."
        }
        b"25006" => {
            "Set the host to the registry's primary, or to the list of all its hosts: by registry_join, or by ALTER SERVER ... \
             OPTIONS (SET host '...')."
        }
        _ => _0.hint.as_deref().unwrap_or("See the log of the registry's server."),
    })]
    Refused(SqlError),
}

/// Returns a message without libpq's words, which contain the server's address, and an empty DETAIL.
fn briefly(message: &str) -> (String, String) {
    (message.to_owned(), String::new())
}

/// The reason why a registry gives no response, or cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(NotReady)]
pub enum RegistryError {
    /// The connection or the statement failed.
    #[error(transparent)]
    Failed(#[from] ConnectionError),
    /// The registry is this database, and the transaction of the request failed.
    #[error("{}", .0.message)]
    #[explain(hint = "See the server's log for the reason. Ids are issued again when the table can be \
                      written to.")]
    Here(SqlError),
    /// The foreign server or its user mapping is missing or not usable.
    #[error("{}", .0.message)]
    #[explain(kind_with = if _0.code == *b"42704" { Kind::Undefined } else { Kind::of_sqlstate(_0.code) })]
    #[explain(detail_with = _0.detail.clone(), hint_with = _0.hint.as_deref().unwrap_or(
        "Make the foreign server and its user mapping with snowflake_ids.registry_join. Nodes of a Citus cluster: CALL \
         snowflake_ids.use_citus() on the coordinator."
    ).to_owned())]
    NoServer(SqlError),
    /// The server is not the expected registry.
    #[error(transparent)]
    Stranger(#[from] Stranger),
    /// The registry uses another version of the protocol.
    #[error("it uses version {0} of the protocol, not {version}", version = wire::VERSION)]
    #[explain(hint = "{SAME_VERSION}")]
    Version(u32),
    /// The clocks of the registry and this server differ by this much.
    #[error("the clocks of this server and its registry differ by {}", human(*.0))]
    #[explain(hint = "Synchronise the clocks of all servers with one time service.")]
    Clocks(Duration),
    /// The response is not valid.
    #[error("its answer is not valid: {0}")]
    #[explain(hint = "{SAME_VERSION}")]
    Garbled(String),
    /// The registry was not asked, because the previous request to the registry has just failed.
    #[error("the previous request to it has just failed")]
    #[explain(hint = "{CHECK_THAT_IT_RUNS}")]
    Before,
    /// The registry has another version of the extension. The field is that version.
    #[error("it has another version of the extension")]
    #[explain(detail = "The registry has version {0}, and this server has version {}.", RELEASE)]
    #[explain(hint = "Install the same version on both servers. Servers that already use the registry are \
                      not affected.")]
    Release(String),
    /// The registry has another layout. The fields are that layout, and the layout of this server.
    #[error("it has another layout of ids")]
    #[explain(detail = "The registry has layout {0}, and this server has layout {1}.")]
    #[explain(
        hint = "Set snowflake_ids.layout to the same value on both servers before they issue ids, and restart."
    )]
    Layout(String, String),
    /// The foreign server points to this database itself.
    #[error("it is this database itself")]
    #[explain(BadArgument, detail = "The foreign server points to this database.")]
    #[explain(hint = "To make this database its own registry, SELECT snowflake_ids.use_local_registry().")]
    Itself,
    /// The difference between the clocks is above the limit.
    #[error(transparent)]
    Skew(Skew),
    /// The server already leases its worker id from another registry. The field is the database that uses the other
    /// registry.
    #[error("this server leases its worker id from another registry, for database \"{0}\"")]
    #[explain(detail = "Two registries could lease the same worker id to two servers.")]
    #[explain(hint = "Use that registry in this database, too.")]
    Elsewhere(String),
    /// The registry's row of this tag cannot be used.
    #[error("segment tag \"{0}\" there cannot be used")]
    #[explain(detail = "{1}", hint_with = _1.hint(_0))]
    Unfit(String, Unfit),
}

/// A fault of a registry, as the registry's status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The message.
    pub why: String,
    /// The message for users that must not see addresses or tag names. None if every user may see `why`.
    pub briefly: Option<String>,
    /// The hint.
    pub hint: String,
}

impl Complaint {
    /// Returns a complaint that every user may see.
    pub fn new(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { why: why.into(), briefly: None, hint: hint.into() }
    }
}

impl ConnectionError {
    /// Parses libpq's message about a failed connection. The client asks libpq for verbose errors, which contain the
    /// SQLSTATE and a source location. This function removes the source location.
    pub fn of_connecting(lines: &str) -> Self {
        let is_place = |line: &&str| {
            let number = line.rsplit_once(".c:").map_or("", |(_, number)| number);
            !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
        };
        let (mut words, mut code) = (String::new(), None);
        for line in lines.lines().filter(|line| !is_place(line)) {
            match code_in(line) {
                Some((before, found, behind)) => {
                    code = Some(found);
                    words.extend([before, behind, "\n"]);
                }
                None => words.extend([line, "\n"]),
            }
        }
        let words = words.trim_end().to_owned();
        code.map_or(Self::Unreachable(words.clone()), |code| Self::Rejected(code, words))
    }
}

/// Finds the SQLSTATE between the severity and the message in a line. Returns the text before the SQLSTATE, the
/// SQLSTATE, and the text after the SQLSTATE.
fn code_in(line: &str) -> Option<(&str, [u8; 5], &str)> {
    line.match_indices(":  ").find_map(|(place, gap)| {
        let (before, rest) = line.split_at(place + gap.len());
        let (code, behind) = rest.split_once(": ")?;
        let is_code = code.bytes().all(|letter| letter.is_ascii_digit() || letter.is_ascii_uppercase());
        Some((before, code.as_bytes().try_into().ok().filter(|_| is_code)?, behind))
    })
}

impl RegistryError {
    /// Returns the error for a response that does not match the request.
    pub fn other_kind() -> Self {
        Self::Garbled("it answered another request".to_owned())
    }

    fn refused(&self) -> Option<&SqlError> {
        match self {
            Self::Failed(ConnectionError::Refused(error)) | Self::Here(error) => Some(error),
            _ => None,
        }
    }

    /// Returns whether an immediate retry may succeed, because rows were locked.
    pub fn is_conflict(&self) -> bool {
        self.refused().is_some_and(SqlError::is_conflict)
    }

    /// Returns whether the error concerns a single tag, and not the registry as a whole.
    pub fn is_of_tag(&self) -> bool {
        const OF_REGISTRY: [&[u8]; 9] = [b"08", b"25", b"28", b"3D", b"3F", b"42", b"53", b"55", b"57"];
        let is_of_tag = |error: &SqlError| {
            error.is_conflict() || !OF_REGISTRY.iter().any(|class| error.code.starts_with(class))
        };
        self.refused().is_some_and(is_of_tag)
    }

    /// Returns the SQLSTATE of an SQL error as the integer into which Postgres packs it.
    pub fn sqlstate(&self) -> Option<i32> {
        self.refused().map(SqlError::sqlstate)
    }

    /// Returns whether another host of the same foreign server may succeed.
    pub fn is_of_host(&self) -> bool {
        match self {
            Self::Failed(ConnectionError::Refused(error)) => &error.code == b"25006",
            other => matches!(other, Self::Failed(_) | Self::Stranger(_)),
        }
    }

    /// Returns the message for users that must not see the registry's address.
    pub fn briefly(&self) -> String {
        self.for_others().map_or_else(|| self.to_string(), |(message, _)| message)
    }

    /// Returns the complaint for the registry's status.
    pub fn complaint(&self) -> Complaint {
        let briefly = self.for_others().map(|(message, _)| message);
        Complaint { why: self.to_string(), briefly, hint: self.hint().unwrap_or_default() }
    }
}

/// A registry that cannot be used, in an error for the session's user. The first field is the foreign server.
#[derive(Debug, thiserror::Error, Explain)]
pub enum UnusableRegistry {
    /// The registry gives no response, or must not be used.
    #[error("cannot use registry \"{0}\": {1}")]
    #[explain(transparent = 1, for_others = _1.for_others().map(|(message, detail)| {
        (format!("cannot use registry \"{}\": {message}", _0), detail)
    }))]
    Failed(String, RegistryError),
    /// Two foreign servers point to the same registry.
    #[error("registry \"{0}\" is the same database as another registry in the list")]
    #[explain(BadArgument, detail = "Two of the foreign servers point to the same database.")]
    Same(String),
}

impl UnusableRegistry {
    /// Returns the reason without the name of the foreign server.
    pub fn reason(&self) -> String {
        match self {
            Self::Failed(_, error) => error.to_string(),
            Self::Same(_) => self.to_string(),
        }
    }
}
