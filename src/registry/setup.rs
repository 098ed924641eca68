//! Runs the steps of `snowflake_ids_core::registry::setup`, with the caller's rights.

use super::handover;
use super::serve::RegistryFailure;
use crate::pg::catalog::{Source, is_superuser};
use crate::pg::encoding::{from_utf8, legible};
use crate::pg::libpq::options_of_string;
use crate::pg::{database, role, secret, server};
use crate::store::registry::OwnTables;
use crate::store::tables::SEGMENT;
use crate::store::{citus, setup as store};
use crate::tag::error::SegmentError;
use pgrx::spi::{quote_identifier, quote_literal};
use snowflake_ids_core::registry::handover::HandoverTables as _;
use snowflake_ids_core::registry::setup::{self, JoinError, MADE_HERE, SetupStep, Values};
use std::ffi::CString;

/// Creates the role of the nodes if it is missing, and grants the rights of a node.
pub fn allow(role: &str, password: Option<&str>) -> Result<(), RegistryFailure> {
    let source = SEGMENT.find().ok_or(SegmentError::NoTable)?;
    let found = source.as_owner(|| store::nodes_role(role))?;
    let is_new = setup::allow(role, found, password)?;
    let quoted = quote_identifier(role);
    if is_new {
        let password = password.map(|password| format!(" PASSWORD {}", quote_literal(password)));
        run(&format!("CREATE ROLE {quoted} LOGIN{}", password.unwrap_or_default()));
    } else if password.is_some() {
        pgrx::notice!("role \"{}\" already exists, and keeps its password", legible(role));
    }
    let database = database::name(server::database()).unwrap_or_default();
    for right in [
        &format!("CONNECT ON DATABASE {}", quote_identifier(database)),
        "USAGE ON SCHEMA snowflake_ids",
        "EXECUTE ON FUNCTION snowflake_ids.registry_serve(pg_catalog.text), snowflake_ids.registry_take_over(pg_catalog.text)",
    ] {
        run(&format!("GRANT {right} TO {quoted}"));
    }
    Ok(())
}

/// Makes the foreign server of a connection string, or changes it, and makes this database use its registry. The registry must have
/// `layout`.
pub fn join(connection: &str, name: &str, layout: String) -> Result<(), RegistryFailure> {
    let source = SEGMENT.find().ok_or(SegmentError::NoTable)?;
    if !is_superuser(role::current()) {
        return Err(JoinError::Denied.into());
    }
    if source.as_owner(citus::is_worker)? {
        return Err(JoinError::OfCluster.into());
    }
    let wanted = options_of_string(connection).map_err(|_| JoinError::NotAConnection)?;
    // Another call of this function then waits, and finds the foreign server.
    source.as_owner(|| OwnTables.lock())?;
    let found = source.as_owner(|| store::foreign_server(name, source.owner()))?;
    let steps = setup::join(name, found, wanted)?;
    if !steps.is_empty() && !source.as_owner(store::has_wrapper)? {
        run("CREATE EXTENSION postgres_fdw");
    }
    take(source, name, &steps);
    handover::join(&[name.to_owned()], Some(layout)).map_err(|failure| match failure {
        RegistryFailure::Unusable(error) => JoinError::from(error).into(),
        other => other,
    })
}

/// Removes the foreign servers that [`join`] has made.
pub fn forget() -> Result<(), RegistryFailure> {
    let source = SEGMENT.find().ok_or(SegmentError::NoTable)?;
    for (name, has_mapping, has_others) in source.as_owner(|| store::made_servers(source.owner()))? {
        if has_others {
            pgrx::notice!("foreign server \"{}\" stays, because other objects depend on it", legible(&name));
        }
        take(source, &name, &setup::leave(has_mapping, has_others));
    }
    Ok(())
}

fn take(source: Source, name: &str, steps: &[SetupStep]) {
    let name = quote_identifier(name);
    let owner = quote_identifier(role::name(source.owner()).unwrap_or_default());
    let mapping = format!("USER MAPPING FOR {owner} SERVER {name}");
    for step in steps {
        run(&match step {
            SetupStep::CreateServer(options) => format!(
                "CREATE SERVER {name} TYPE '{MADE_HERE}' FOREIGN DATA WRAPPER postgres_fdw{}",
                written(&[], options, "")
            ),
            SetupStep::AlterServer(former, options) => {
                format!("ALTER SERVER {name}{}", written(former, options, "ADD "))
            }
            SetupStep::CreateMapping(options) => format!("CREATE {mapping}{}", written(&[], options, "")),
            SetupStep::DropMapping => format!("DROP {mapping}"),
            SetupStep::DropServer => format!("DROP SERVER {name}"),
        });
    }
}

/// Returns an OPTIONS clause, empty without options.
fn written(dropped: &[String], added: &Values, verb: &str) -> String {
    let dropped = dropped.iter().map(|name| format!("DROP {}", quote_identifier(name)));
    let added = added.0.iter().map(|(name, value)| {
        let (name, value) = (quote_identifier(name), quote_literal(value));
        format!("{verb}{name} {value}")
    });
    let all = dropped.chain(added).collect::<Vec<_>>().join(", ");
    if all.is_empty() { all } else { format!(" OPTIONS ({all})") }
}

/// Runs a statement, which may contain a password. The caller is within [`secret::keep`].
fn run(statement: &str) {
    let statement = from_utf8(statement).unwrap_or_default();
    secret::run(&CString::new(statement).unwrap_or_default());
}
