//! Errors of a registry on another server.

use crate::clock::{human, micros};
use crate::error::{Explain, Kind};
use crate::registry::wire::{self, Stranger};
use std::fmt;
use std::time::Duration;

/// The server belongs to a cluster whose nodes share a registry, and uses none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this server is a worker of a Citus cluster, and uses no registry")]
pub struct Unregistered;

impl Explain for Unregistered {
    fn kind(&self) -> Kind {
        Kind::NotReady
    }

    fn detail(&self) -> Option<String> {
        Some("Its own tables would give ids that other nodes give, too.".to_owned())
    }

    fn hint(&self) -> Option<String> {
        Some("On the coordinator, CALL snowflake_ids.use_citus(), which has this node use_registry('citus_coordinator').".to_owned())
    }
}

/// Reason why a statement on another server has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionError {
    /// There is no connection; libpq's words.
    Unreachable(String),
    /// The name of the host has no address; why not.
    NoAddress(String),
    /// The server lets nobody in who connects so: its SQLSTATE, and libpq's words.
    Rejected([u8; 5], String),
    /// No response came within this time. The connection is given up.
    Silent(Duration),
    /// There was none yet when others could not wait any longer for this process. The connection is given up.
    GivenUp,
    /// The connection broke while the server was asked: whether it did what it was asked is not known.
    Lost(String),
    /// The response is longer than what is read. The connection is given up.
    TooLong,
    /// An SQL error, and nothing was done. The connection stays good.
    Refused {
        /// The SQLSTATE.
        code: [u8; 5],
        /// The message.
        message: String,
        /// What the server adds to it.
        detail: Option<String>,
        /// What it advises.
        hint: Option<String>,
    },
}

/// Reason why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryError {
    /// The connection, or the statement, failed.
    Failed(ConnectionError),
    /// The foreign server, or its user mapping, is not there or not usable.
    NoServer(String),
    /// It is not the registry that is meant.
    Stranger(Stranger),
    /// It has another version of the extension.
    Version(u32),
    /// Its clock differs from this server's by so much.
    Clocks(Duration),
    /// What it says makes no sense.
    Garbled(String),
    /// It was not asked: it has given no response just before.
    Before(String),
}

/// What is wrong with a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// What it is.
    pub why: String,
    /// The same for users that are not to know that: it may tell where the registry is, or name a tag.
    pub briefly: Option<String>,
    /// What to do about it.
    pub hint: String,
}

impl Complaint {
    /// One that every user may know.
    pub fn new(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { why: why.into(), briefly: None, hint: hint.into() }
    }
}

impl ConnectionError {
    /// Why there is no connection, by libpq's lines about it. With each error of a server they have its SQLSTATE, and where in its
    /// source it was raised, as libpq is asked to tell: only so does it give the former.
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

/// A SQLSTATE between the severity and the message of an error, and what is before and behind it.
fn code_in(line: &str) -> Option<(&str, [u8; 5], &str)> {
    line.match_indices(":  ").find_map(|(place, gap)| {
        let (before, rest) = line.split_at(place + gap.len());
        let (code, behind) = rest.split_once(": ")?;
        let is_code = code.bytes().all(|letter| letter.is_ascii_digit() || letter.is_ascii_uppercase());
        Some((before, code.as_bytes().try_into().ok().filter(|_| is_code)?, behind))
    })
}

impl RegistryError {
    /// A response of another kind than the request.
    pub fn other_kind() -> Self {
        Self::Garbled("it answers another question".to_owned())
    }

    /// Returns whether another attempt may succeed at once: rows were locked.
    pub fn is_conflict(&self) -> bool {
        const CONFLICTS: [&[u8; 5]; 3] = [b"55P03", b"40001", b"40P01"];
        matches!(self, Self::Failed(ConnectionError::Refused { code, .. }) if CONFLICTS.contains(&code))
    }

    /// Returns whether it is one tag that cannot be served: the statement failed, and not for what the registry is.
    pub fn is_of_tag(&self) -> bool {
        const OF_REGISTRY: [&[u8]; 9] = [b"08", b"25", b"28", b"3D", b"3F", b"42", b"53", b"55", b"57"];
        match self {
            Self::Failed(ConnectionError::Refused { code, .. }) => {
                self.is_conflict() || !OF_REGISTRY.iter().any(|class| code.starts_with(class))
            }
            _ => false,
        }
    }

    /// Returns whether nothing was done there for certain: it was not reached, or has rolled back.
    pub fn is_undone(&self) -> bool {
        match self {
            Self::Failed(
                ConnectionError::Unreachable(_)
                | ConnectionError::NoAddress(_)
                | ConnectionError::Rejected(..)
                | ConnectionError::Refused { .. },
            )
            | Self::NoServer(_)
            | Self::Before(_) => true,
            Self::Failed(_) | Self::Stranger(_) | Self::Version(_) | Self::Clocks(_) | Self::Garbled(_) => {
                false
            }
        }
    }

    /// The SQLSTATE of an SQL error, packed as the server has it.
    pub fn sqlstate(&self) -> Option<i32> {
        match self {
            Self::Failed(ConnectionError::Refused { code, .. }) => {
                let packed = code.iter().rev().map(|letter| i32::from(letter.wrapping_sub(b'0') & 0x3f));
                Some(packed.fold(0, |packed, letter| packed << 6 | letter))
            }
            _ => None,
        }
    }

    /// Returns whether another host of the same server may do better.
    pub fn is_of_host(&self) -> bool {
        match self {
            Self::Failed(ConnectionError::Refused { code, .. }) => code == b"25006",
            Self::Failed(_) | Self::Stranger(_) => true,
            _ => false,
        }
    }

    /// The same for every user: libpq's words tell where the registry is, and its own come from there.
    pub fn briefly(&self) -> String {
        match self {
            Self::Failed(ConnectionError::Lost(_)) => "the connection broke".to_owned(),
            other if other.is_private() => "it cannot be reached".to_owned(),
            other => other.to_string(),
        }
    }

    fn is_private(&self) -> bool {
        matches!(
            self,
            Self::Failed(
                ConnectionError::Unreachable(_)
                    | ConnectionError::NoAddress(_)
                    | ConnectionError::Rejected(..)
                    | ConnectionError::Lost(_)
            )
        )
    }

    /// Returns what is noted of it.
    pub fn complaint(&self) -> Complaint {
        let (why, briefly) = (self.to_string(), self.is_private().then(|| self.briefly()));
        Complaint { why, briefly, hint: self.hint().to_owned() }
    }

    /// Returns what the caller that needs the response now can do about it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Failed(ConnectionError::Refused { code, .. }) => match code {
                b"42501" => Kind::Denied,
                b"25006" => Kind::ReadOnly,
                _ => Kind::NotReady,
            },
            Self::Failed(_) => Kind::Unreachable,
            _ => Kind::NotReady,
        }
    }

    /// Returns what the registry adds to it; empty where nothing.
    pub fn detail(&self) -> &str {
        match self {
            Self::Failed(ConnectionError::Refused { detail, .. }) => detail.as_deref().unwrap_or_default(),
            _ => "",
        }
    }

    /// Returns what to do about it.
    pub fn hint(&self) -> &str {
        match self {
            Self::Failed(ConnectionError::Refused { code, message, hint, .. }) => match code {
                // What is denied is named by the message, and granted in one statement.
                b"42501" if message.contains("registry_take_over") => {
                    "There, GRANT EXECUTE ON FUNCTION snowflake_ids.registry_take_over(text) to the role of the user mapping."
                }
                b"42501" => {
                    "There, GRANT EXECUTE ON FUNCTION snowflake_ids.registry_serve(text) to the role of the user mapping; \
                     to hand tags over, that on snowflake_ids.registry_take_over(text), too."
                }
                b"42883" | b"3F000" => {
                    "There, give CREATE EXTENSION snowflake_ids in the database that the foreign server names."
                }
                b"25006" => "Name all of its servers as hosts, with target_session_attrs 'read-write'.",
                _ => hint.as_deref().unwrap_or("See the log of that server."),
            },
            Self::Failed(ConnectionError::TooLong) | Self::Version(_) | Self::Garbled(_) => {
                "Install the same version of the extension on both servers."
            }
            Self::Failed(ConnectionError::NoAddress(_)) => {
                "Set the host of the foreign server to a name that this server can look up, or to an address: ALTER SERVER ... OPTIONS \
                 (SET host '...')."
            }
            Self::Failed(ConnectionError::Rejected(code, _)) => match code {
                b"28P01" => {
                    "Set the password of the user mapping to the one that the role has there: ALTER USER MAPPING ... OPTIONS (SET password \
                     '...')."
                }
                b"28000" => {
                    "There, see that the role of the user mapping exists and may log in, and that pg_hba.conf has a line for it, the \
                     database and this server's address."
                }
                b"3D000" => {
                    "Set the database of the foreign server to the one that has the registry: ALTER SERVER ... OPTIONS (SET dbname '...')."
                }
                b"42501" => "There, GRANT CONNECT ON DATABASE to the role of the user mapping.",
                b"53300" => "There, raise max_connections, or end sessions that nobody needs.",
                b"57P03" => "It is starting, or shutting down. Ids go on by themselves when it answers.",
                _ => "See the log of that server.",
            },
            Self::Failed(_) | Self::Before(_) => {
                "See that it runs, and that the foreign server has its host and port. Ids go on by themselves when it answers."
            }
            Self::Clocks(_) => "Set the clocks of all servers by the same time service.",
            Self::NoServer(_) => {
                "Create the foreign server, and a user mapping for the owner of the table snowflake_ids.segment. Nodes of a \
                 Citus cluster: CALL snowflake_ids.use_citus() on the coordinator."
            }
            Self::Stranger(Stranger::Another) => {
                "Where that is meant: there, raise the tags above all ids in use with snowflake_ids.segment_raise; then \
                 call snowflake_ids.use_registry here again."
            }
            Self::Stranger(Stranger::Former { .. }) => {
                "Stop that server, and have the foreign server name the promoted one."
            }
        }
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(
                ConnectionError::Unreachable(why)
                | ConnectionError::NoAddress(why)
                | ConnectionError::Rejected(_, why),
            ) => write!(f, "it cannot be reached: {why}"),
            Self::Failed(ConnectionError::Silent(limit)) => {
                write!(
                    f,
                    "it gave no answer within {}",
                    human(Duration::from_millis(micros(*limit).div_ceil(1_000)))
                )
            }
            Self::Failed(ConnectionError::GivenUp) => {
                f.write_str("it has not answered yet, and is asked again")
            }
            Self::Failed(ConnectionError::Lost(why)) => write!(f, "the connection broke: {why}"),
            Self::Failed(ConnectionError::TooLong) => {
                write!(f, "its answer is longer than the {} bytes that are read", wire::MAX_BYTES)
            }
            Self::Failed(ConnectionError::Refused { code, message, .. }) => {
                write!(f, "it gives SQLSTATE {}: {message}", String::from_utf8_lossy(code))
            }
            Self::NoServer(why) | Self::Before(why) => f.write_str(why),
            Self::Stranger(Stranger::Another) => {
                f.write_str("it is another registry than before, or was restored from a dump")
            }
            Self::Stranger(Stranger::Former { timeline, seen }) => {
                write!(f, "it is on timeline {timeline}, a former primary: timeline {seen} was seen before")
            }
            Self::Version(version) => {
                write!(f, "it speaks version {version} of the protocol, not {}", wire::VERSION)
            }
            Self::Clocks(by) => {
                write!(f, "the clocks of this server and its registry differ by {}", human(*by))
            }
            Self::Garbled(why) => write!(f, "its answer makes no sense: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_connecting_is_told_by_its_sqlstate_and_without_the_servers_source() {
        let of = ConnectionError::of_connecting;
        let refused = "connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?\n";
        assert_eq!(of(refused), ConnectionError::Unreachable(refused.trim_end().to_owned()));
        let password = "connection to server at \"::1\", port 5432 failed: FATAL:  28P01: password authentication failed for user \"x\"\n\
                        LOCATION:  auth_failed, auth.c:340\n";
        let words = "connection to server at \"::1\", port 5432 failed: FATAL:  password authentication failed for user \"x\"";
        assert_eq!(of(password), ConnectionError::Rejected(*b"28P01", words.to_owned()));
        // In another language, and of several hosts: by the last.
        let several = "FATAL:  57P03: the database system is starting up\nFATAL:  3D000: Datenbank »a: b« existiert nicht\nORT:  InitPostgres, postinit.c:1014\n";
        let words = "FATAL:  the database system is starting up\nFATAL:  Datenbank »a: b« existiert nicht";
        assert_eq!(of(several), ConnectionError::Rejected(*b"3D000", words.to_owned()));
        assert_eq!(
            of("FATAL:  abc: no code"),
            ConnectionError::Unreachable("FATAL:  abc: no code".to_owned())
        );
        assert_eq!(of(""), ConnectionError::Unreachable(String::new()));
    }
}
