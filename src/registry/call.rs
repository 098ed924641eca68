//! Asking a registry that is another server.

use crate::error::raise;
use crate::pg::catalog::is_superuser;
use crate::pg::clock::uptime;
use crate::pg::libpq::{Connection, Failure, options_of, owner_of};
use crate::pg::shmem::registries::{self, Entry};
use crate::pg::{server, worker};
use crate::store::registry::Site;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode as Code, function_name};
use snowflake_ids_core::clock::{human, micros};
use snowflake_ids_core::hosts;
use snowflake_ids_core::wire::{self, Answer, Ask, Request, Said, Stranger};
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// What is sent.
const SERVE: &str = "SELECT snowflake_ids.registry_serve($1)";

/// How long the row of a tag is waited for: as long as many servers may need that want the same tag at once.
const TAG_PATIENCE: Duration = Duration::from_millis(100);

/// libpq's options for a registry.
pub type Options = Vec<(String, String)>;

/// What keeps this process connected to registries.
#[derive(Default)]
pub struct Caller {
    lines: Vec<Line>,
    /// Of each server, which of its hosts to try first.
    first_hosts: HashMap<String, usize>,
}

/// A connection that stays open for the next question.
struct Line {
    server: String,
    options: Options,
    connection: Connection,
    /// Which of the hosts this is.
    host: usize,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The connection, or the statement, failed.
    Failed(Failure),
    /// The foreign server, or its user mapping, is not there or not usable.
    NoServer(String),
    /// It is not the registry that is meant.
    Stranger(Stranger),
    /// It has another version of the extension.
    Version(u32),
    /// What it says makes no sense.
    Garbled(String),
    /// It was not asked: it has given no answer just before.
    Before(String),
}

impl NoAnswer {
    /// Whether another attempt may succeed at once: rows were locked.
    pub fn is_conflict(&self) -> bool {
        const CONFLICTS: [&[u8; 5]; 3] = [b"55P03", b"40001", b"40P01"];
        matches!(self, Self::Failed(Failure::Refused { code, .. }) if CONFLICTS.contains(&code))
    }

    /// Whether it is one tag that can't be served: the statement failed, and not for what the registry is.
    pub fn is_of_tag(&self) -> bool {
        const OF_REGISTRY: [&[u8]; 9] = [b"08", b"25", b"28", b"3D", b"3F", b"42", b"53", b"55", b"57"];
        match self {
            Self::Failed(Failure::Refused { code, .. }) => {
                self.is_conflict() || !OF_REGISTRY.iter().any(|class| code.starts_with(class))
            }
            _ => false,
        }
    }

    /// The SQLSTATE of an SQL error, packed as the server has it.
    pub fn sqlstate(&self) -> Option<i32> {
        match self {
            Self::Failed(Failure::Refused { code, .. }) => {
                let packed = code.iter().rev().map(|letter| i32::from(letter.wrapping_sub(b'0') & 0x3f));
                Some(packed.fold(0, |packed, letter| packed << 6 | letter))
            }
            _ => None,
        }
    }

    /// Whether another host of the same server may do better.
    fn is_of_host(&self) -> bool {
        match self {
            Self::Failed(Failure::Refused { code, .. }) => code == b"25006",
            Self::Failed(_) | Self::Stranger(_) => true,
            _ => false,
        }
    }

    /// The SQLSTATE for whoever needs the answer now.
    pub fn code(&self) -> Code {
        match self {
            Self::Failed(Failure::Refused { code, .. }) => match code {
                b"42501" => Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
                b"25006" => Code::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                _ => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            },
            Self::Failed(_) => Code::ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION,
            _ => Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        }
    }

    /// The same for everybody, without where the registry is.
    pub fn briefly(&self) -> String {
        match self {
            Self::Failed(Failure::Unreachable(_)) => "it can't be reached".to_owned(),
            Self::Failed(Failure::Lost(_)) => "the connection broke".to_owned(),
            other => other.to_string(),
        }
    }

    /// What the registry adds to it; empty where nothing.
    pub fn detail(&self) -> &str {
        match self {
            Self::Failed(Failure::Refused { detail, .. }) => detail.as_deref().unwrap_or_default(),
            _ => "",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Failed(Failure::Refused { code, .. }) => match code {
                b"42501" => {
                    "There, GRANT EXECUTE ON FUNCTION snowflake_ids.registry_serve(text) to the role of the user mapping."
                }
                b"42883" | b"3F000" => {
                    "There, give CREATE EXTENSION snowflake_ids in the database that the foreign server names."
                }
                b"25006" => "Name all of its servers as hosts, with target_session_attrs 'read-write'.",
                _ => "See the log of that server.",
            },
            Self::Failed(_) | Self::Before(_) => {
                "See that it runs, and the options of the foreign server and of the user mapping. Ids go on by themselves \
                 when it answers."
            }
            Self::NoServer(_) => {
                "Create the foreign server, and a user mapping for the owner of the extension."
            }
            Self::Stranger(Stranger::Another) => {
                "Where that is meant: there, raise the tags above all ids in use with snowflake_ids.segment_raise; then \
                 call snowflake_ids.use_registry here again."
            }
            Self::Stranger(Stranger::Former { .. }) => {
                "Stop that server, and have the foreign server name the promoted one."
            }
            Self::Version(_) | Self::Garbled(_) => {
                "Install the same version of the extension on both servers."
            }
        }
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(Failure::Unreachable(why)) => write!(f, "it can't be reached: {why}"),
            Self::Failed(Failure::Silent(limit)) => {
                write!(f, "it gave no answer within {}", human(micros(*limit).div_ceil(1_000) * 1_000))
            }
            Self::Failed(Failure::Lost(why)) => write!(f, "the connection broke: {why}"),
            Self::Failed(Failure::Refused { code, message, .. }) => {
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
            Self::Garbled(why) => write!(f, "its answer makes no sense: {why}"),
        }
    }
}

impl Caller {
    /// Asks a registry of this database, and notes how that went. For workers, outside of transactions.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub fn ask(&mut self, site: &Site, ask: Ask, limit: Duration) -> Result<Answer, NoAnswer> {
        let entry = registries::entry(server::database(), site.position, &site.server);
        let started = uptime();
        if let Some(entry) = entry {
            entry.asked();
        }
        let options = worker::transaction(|| options(&site.server));
        let answer = match options {
            Ok(options) => self.ask_at(&site.server, &options, Some(&site.seen), ask, limit),
            Err(failed) => Err(NoAnswer::NoServer(failed.message)),
        };
        note(entry, &site.server, &answer, uptime().saturating_sub(started));
        answer
    }

    /// Asks a registry with these options; `seen` says which one is meant.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub fn ask_at(
        &mut self,
        server: &str,
        options: &Options,
        seen: Option<&wire::Registry>,
        ask: Ask,
        limit: Duration,
    ) -> Result<Answer, NoAnswer> {
        // A tag whose row is locked must not hold the others up for long.
        let patience = if matches!(ask, Ask::Reserve(_)) { TAG_PATIENCE } else { limit }.min(limit / 4);
        let request = Request { version: wire::VERSION, registry: seen.cloned(), patience, ask };
        let question = request.to_text().map_err(|error| NoAnswer::Garbled(error.to_string()))?;
        let deadline = uptime() + limit;
        let hosts = hosts::each(options);
        // A host that is not the registry any more, or not its primary, is passed over.
        let mut answer = self.ask_host(server, options, &hosts, seen, &question, deadline);
        for _ in 1..hosts.len() {
            if !answer.as_ref().err().is_some_and(NoAnswer::is_of_host) {
                break;
            }
            answer = self.ask_host(server, options, &hosts, seen, &question, deadline);
        }
        answer
    }

    /// Asks the host that answered last, or the next one that can be connected to.
    fn ask_host(
        &mut self,
        server: &str,
        options: &Options,
        hosts: &[Options],
        seen: Option<&wire::Registry>,
        question: &str,
        deadline: Duration,
    ) -> Result<Answer, NoAnswer> {
        let first = self.first_hosts.get(server).copied().unwrap_or(0);
        // Taken out: one that fails is not kept.
        let mut line = if let Some(line) = self.take(server, options) {
            line
        } else {
            let (connection, host) = connect(hosts, first, deadline)?;
            Line { server: server.to_owned(), options: options.clone(), connection, host }
        };
        let answer = line.ask(question, deadline.saturating_sub(uptime())).and_then(|answer| match seen {
            Some(seen) => answer.registry.check(seen).map_err(NoAnswer::Stranger).map(|()| answer),
            None => Ok(answer),
        });
        let good = answer.as_ref().err().is_none_or(|no_answer| !no_answer.is_of_host());
        self.first_hosts.insert(server.to_owned(), if good { line.host } else { line.host + 1 });
        if good {
            self.lines.push(line);
        }
        answer
    }

    /// The open connection to a server, if it is still good and what is wanted.
    fn take(&mut self, server: &str, options: &Options) -> Option<Line> {
        let place = self.lines.iter().position(|line| line.server == server)?;
        let mut line = self.lines.swap_remove(place);
        (line.options == *options && line.connection.is_good()).then_some(line)
    }
}

impl Line {
    fn ask(&mut self, question: &str, limit: Duration) -> Result<Answer, NoAnswer> {
        let told = self.connection.ask(SERVE, question, limit).map_err(NoAnswer::Failed)?;
        let answer = Answer::from_text(&told).map_err(|error| NoAnswer::Garbled(error.to_string()))?;
        match answer.said {
            Said::Stranger(stranger) => Err(NoAnswer::Stranger(stranger)),
            Said::Version(version) => Err(NoAnswer::Version(version)),
            _ => Ok(answer),
        }
    }
}

/// Connects to the first host that answers, each with its part of the time that is left.
fn connect(hosts: &[Options], first: usize, deadline: Duration) -> Result<(Connection, usize), NoAnswer> {
    let mut failure = Failure::Unreachable("no host is given".to_owned());
    for step in 0..hosts.len() {
        let host = (first + step) % hosts.len();
        let left = deadline.saturating_sub(uptime());
        let share = left / u32::try_from(hosts.len() - step).unwrap_or(1).max(1);
        match Connection::open(&hosts[host], share) {
            Ok(connection) => return Ok((connection, host)),
            Err(failed) => failure = failed,
        }
    }
    Err(NoAnswer::Failed(failure))
}

/// libpq's options for a foreign server, with the user mapping of the extension's owner. Only within a transaction; what
/// is missing is an SQL error. Connections are made with the server's own account, so nobody else may say where to.
pub fn options(server: &str) -> Options {
    let owner = super::role().unwrap_or(pgrx::pg_sys::InvalidOid);
    let theirs = owner_of(server);
    for (owner, what) in [
        (owner, "table \"snowflake_ids.segment\"".to_owned()),
        (theirs, format!("foreign server \"{server}\"")),
    ] {
        if !is_superuser(owner) {
            raise(not_trusted(&what));
        }
    }
    options_of(server, owner)
}

fn not_trusted(what: &str) -> ErrorReport {
    ErrorReport::new(
        Code::ERRCODE_INSUFFICIENT_PRIVILEGE,
        format!("{what} must belong to a superuser"),
        function_name!(),
    )
    .set_detail(
        "Its owner decides where this server's background workers connect, with the server's own account.",
    )
    .set_hint("Change its owner with ALTER ... OWNER TO.")
}

fn note(entry: Option<&Entry>, server: &str, answer: &Result<Answer, NoAnswer>, took: Duration) {
    let failure = answer.as_ref().err().filter(|no_answer| !no_answer.is_of_tag()).map(NoAnswer::to_string);
    // The log gets it once; the view shows the rest.
    if let Some(why) = &failure
        && entry.is_none_or(|entry| entry.health().failures == 0 || entry.error() != *why)
    {
        pgrx::log!("snowflake_ids could not ask registry \"{server}\": {why}");
    }
    match (entry, failure) {
        (Some(entry), Some(why)) => entry.failed(&why, answer.as_ref().err().map_or("", NoAnswer::hint)),
        (Some(entry), None) => entry.answered(took),
        (None, _) => {}
    }
}
