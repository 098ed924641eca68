//! Joining in one call a side: `registry_allow` on a registry, `registry_join` and `registry_leave` on a node. This module
//! decides the steps and words the errors; the shell runs the steps.
//!
//! A connection string may contain a password. No step, error or type of this module shows it.

use crate::error::{Explain, ended, sentence};
use crate::registry::client::Options;
use crate::registry::error::UnusableRegistry;
use std::collections::BTreeMap;
use std::fmt;

/// The type (`CREATE SERVER ... TYPE`) of the foreign servers that `registry_join` makes. A server's type never changes, and
/// stays through a dump.
pub const MADE_HERE: &str = "snowflake_ids";

/// Options of a user mapping: the role, and secrets, which the catalog shows only to superusers and to the mapping's role.
const OF_MAPPING: [&str; 4] = ["user", "password", "sslpassword", "oauth_client_secret"];

/// The options of a foreign server, or of a user mapping.
#[derive(Clone, PartialEq, Eq)]
pub struct Values(pub BTreeMap<String, String>);

/// Shows the names, because values may be secret.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A foreign server as `registry_join` finds it.
#[derive(Clone, Debug)]
pub struct ForeignServer {
    /// True if `registry_join` made the server.
    pub made_here: bool,
    /// The options of the server.
    pub server: Values,
    /// The options of the user mapping that counts; None without a mapping.
    pub mapping: Option<Values>,
}

/// A statement about the foreign server or about the user mapping of the extension's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupStep {
    /// CREATE SERVER.
    CreateServer(Values),
    /// ALTER SERVER: drops the options of these names, and adds the others.
    AlterServer(Vec<String>, Values),
    /// CREATE USER MAPPING.
    CreateMapping(Values),
    /// DROP USER MAPPING.
    DropMapping,
    /// DROP SERVER.
    DropServer,
}

/// Returns the steps that lead from `found` to the options of a connection string. A server that somebody else made must
/// already have these options.
pub fn join(
    server: &str,
    found: Option<ForeignServer>,
    wanted: Options,
) -> Result<Vec<SetupStep>, JoinError> {
    let wanted = wanted.into_iter().filter(|(_, value)| !value.is_empty());
    let (mapping, options) = wanted.partition(|(name, _)| OF_MAPPING.contains(&name.as_str()));
    let (mapping, options) = (Values(mapping), Values(options));
    let Some(found) = found else {
        return Ok(vec![SetupStep::CreateServer(options), SetupStep::CreateMapping(mapping)]);
    };
    let mut steps = Vec::new();
    if found.server != options {
        steps.push(SetupStep::AlterServer(found.server.0.into_keys().collect(), options));
    }
    if found.mapping.as_ref() != Some(&mapping) {
        steps.extend(found.mapping.map(|_| SetupStep::DropMapping));
        steps.push(SetupStep::CreateMapping(mapping));
    }
    if steps.is_empty() || found.made_here { Ok(steps) } else { Err(JoinError::Another(server.to_owned())) }
}

/// Returns the steps by which `registry_leave` removes a foreign server that `registry_join` made. The server stays if
/// objects other than the mapping of the extension's owner depend on it.
pub fn leave(has_mapping: bool, has_others: bool) -> Vec<SetupStep> {
    let mapping = has_mapping.then_some(SetupStep::DropMapping);
    mapping.into_iter().chain((!has_others).then_some(SetupStep::DropServer)).collect()
}

/// The reason why a server could not join a registry.
#[derive(Debug, thiserror::Error, Explain)]
pub enum JoinError {
    /// The name of the foreign server is null or empty, or the connection string is null.
    #[error("connection and name of the registry must not be null or empty")]
    #[explain(BadArgument, hint = "{EXAMPLE}")]
    Missing,
    /// The role is no superuser.
    #[error("permission denied to join a registry")]
    #[explain(
        Denied,
        detail = "Background workers connect to the registry under the account of this server."
    )]
    #[explain(hint = "Call the function as a superuser.")]
    Denied,
    /// libpq cannot parse the text. Its message could quote a part of the password.
    #[error("invalid connection string")]
    #[explain(BadArgument, detail = "It may contain a password, so it is not shown.")]
    #[explain(hint = "{EXAMPLE}")]
    NotAConnection,
    /// The database is on a worker of a Citus cluster.
    #[error("this server is a worker of a Citus cluster")]
    #[explain(NotReady, detail = "All nodes of a cluster use one registry.")]
    #[explain(hint = "On the coordinator, CALL snowflake_ids.use_citus().")]
    OfCluster,
    /// The foreign server exists, and must not be changed.
    #[error("foreign server \"{0}\" was not made by registry_join")]
    #[explain(NotReady, detail = "Its options or its user mapping differ from the connection string.")]
    #[explain(
        hint = "Pass another name for the foreign server, as the second argument. Or change its options, and SELECT \
                      snowflake_ids.use_registry with its name."
    )]
    Another(String),
    /// The registry gives no response, or must not be used.
    #[error("could not join the registry")]
    #[explain(transparent = 0, detail_with = format!("{} {}", ended(sentence(&_0.reason())), _0.detail().unwrap_or_default()).trim_end().to_owned())]
    Unusable(#[from] UnusableRegistry),
}

const EXAMPLE: &str = "Pass a connection string of libpq, such as 'host=registry port=5432 dbname=ids user=shard password=...'. Quote a \
                       value with spaces: password=''...''.";

/// The role of the nodes, as `registry_allow` finds it.
#[derive(Clone, Copy, Debug)]
pub struct NodesRole {
    /// True if the role may log in.
    pub can_login: bool,
    /// True if the role is a superuser, or may become one by SET ROLE.
    pub can_be_superuser: bool,
}

/// Returns whether the role of the nodes has to be created. The password of a role that exists stays.
pub fn allow(role: &str, found: Option<NodesRole>, password: Option<&str>) -> Result<bool, AllowError> {
    match found {
        _ if role.is_empty() => Err(AllowError::Missing),
        _ if password.is_some_and(str::is_empty) => Err(AllowError::EmptyPassword),
        Some(NodesRole { can_be_superuser: true, .. }) => Err(AllowError::Superuser(role.to_owned())),
        Some(NodesRole { can_login: false, .. }) => Err(AllowError::NoLogin(role.to_owned())),
        found => Ok(found.is_none()),
    }
}

/// The reason why a role cannot be the role of the nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
#[explain(BadArgument)]
pub enum AllowError {
    /// The role is null or empty.
    #[error("role must not be null or empty")]
    #[explain(
        hint = "Name the role by which nodes log in. registry_allow creates the role if it does not exist."
    )]
    Missing,
    /// The password is empty, so the role would have none.
    #[error("password must not be empty")]
    #[explain(hint = "Omit the password if nodes log in by another method, such as certificates.")]
    EmptyPassword,
    /// The role is, or can become, a superuser.
    #[error("role \"{0}\" is a superuser, or may become one")]
    #[explain(detail = "Whoever learns a node's password could do everything on this server.")]
    #[explain(
        hint = "Name a role for the nodes alone. registry_allow creates the role if it does not exist."
    )]
    Superuser(String),
    /// The role exists, and may not log in.
    #[error("role \"{0}\" is not permitted to log in")]
    #[explain(
        NotReady,
        hint = "ALTER ROLE ... LOGIN, or name another role. registry_allow creates the role if it does not exist."
    )]
    NoLogin(String),
}
