//! The way to the registry: transactions in this database, or questions to another server.

use crate::issuer;
use crate::pg::catalog::Source;
use crate::pg::clock::uptime;
use crate::pg::report;
use crate::pg::server;
use crate::pg::worker;
use crate::registry::call::RegistryCaller;
use crate::registry::serve;
use crate::settings;
use crate::shared::generator::shared;
use crate::store::citus;
use crate::store::registry as sites;
use crate::store::tables::{WORKER_CHOSEN, WORKER_LEASE};
use crate::store::worker as worker_rows;
use crate::worker::log;
use pgrx::PgLogLevel;
use pgrx::spi::SpiError;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::error::ended;
use snowflake_ids_core::registry::error::{RegistryError, Unregistered};
use snowflake_ids_core::registry::failover;
use snowflake_ids_core::registry::lease_launch::Use;
use snowflake_ids_core::registry::lease_worker::{Doubt, LeaseLink, LinkError, Other, RegistryPlace};
use snowflake_ids_core::registry::link::{RegistryLink as _, RegistryNotes, Site};
use snowflake_ids_core::registry::wire::{LeaseError, Registry, RequestBody, Response, ResponseBody};
use snowflake_ids_core::server::issuer::IssuerError;
use snowflake_ids_core::worker::refill::TransactionError;
use std::fmt;

/// The way.
#[derive(Default)]
pub struct Link {
    caller: RegistryCaller,
    /// The registry on another server that was found last.
    site: Option<Site>,
}

impl Link {
    /// Returns what this database is to worker ids, or should be; None where that cannot be found out now.
    pub fn look(&mut self) -> Option<Use> {
        let found = note_chosen().and_then(|()| self.find());
        match found {
            Ok(RegistryPlace::Nowhere) => Some(Use::None),
            Ok(RegistryPlace::Here) => Some(Use::Registry),
            Ok(RegistryPlace::On(_)) | Err(RegistryLinkError::Unregistered) => Some(Use::Node),
            Err(error) => {
                let why = error.explain();
                report::log(format!(
                    "snowflake_ids could not look for a registry in database {}: {}",
                    server::database(),
                    why.detail
                ));
                None
            }
        }
    }
}

impl LeaseLink for Link {
    type Error = RegistryLinkError;

    fn find(&mut self) -> Result<RegistryPlace, RegistryLinkError> {
        let sites = match transaction(sites::sites) {
            Err(RegistryLinkError::Dropped) => return Ok(RegistryPlace::Nowhere),
            sites => sites?,
        };
        // Worker ids come from the first.
        self.site = sites.into_iter().next();
        if self.site.is_none() && transaction(citus::is_worker)? {
            return Err(RegistryLinkError::Unregistered);
        }
        if let Some(site) = &self.site {
            return Ok(RegistryPlace::On(Other { server: site.server.clone(), seen: site.seen.clone() }));
        }
        let is_registry = transaction(serve::is_registry)?;
        Ok(if is_registry { RegistryPlace::Here } else { RegistryPlace::Nowhere })
    }

    fn ask_own(&mut self, ask: RequestBody, now: UnixMicros) -> Result<ResponseBody, RegistryLinkError> {
        transaction(|| serve::answer(ask, now))
    }

    fn ask_other(&mut self, other: &Other, ask: RequestBody) -> Result<Response, RegistryLinkError> {
        let away = |error| RegistryLinkError::Away(other.server.clone(), error);
        let Some(site) = &self.site else { return Err(away(RegistryError::NoServer(String::new()))) };
        self.caller.ask(site, ask, settings::registry_timeout()).map_err(away)
    }

    fn has_just_failed(&self, _: &Other) -> bool {
        let health = self.site.as_ref().map(|site| self.caller.notes(site).health());
        let due = health.and_then(|health| failover::until_due(&[health], uptime(), true));
        due.is_some_and(|due| !due.is_zero())
    }

    fn note_seen(&mut self, registry: &Registry) -> Result<(), RegistryLinkError> {
        transaction(|| sites::note_seen(registry))
    }

    fn doubt(&self, other: &Other, doubt: Doubt) -> RegistryLinkError {
        let why = match doubt {
            Doubt::JustFailed => RegistryError::Before("it has given no answer just before".to_owned()),
            Doubt::Clocks(by) => RegistryError::Clocks(by),
            Doubt::Garbled(why) => RegistryError::Garbled(why),
        };
        RegistryLinkError::Away(other.server.clone(), why)
    }
}

/// Has the state know the worker ids that the tables here name, if there are any: this server is none of those that have them.
fn note_chosen() -> Result<(), RegistryLinkError> {
    let read = || WORKER_CHOSEN.find().map(|source| source.as_owner(worker_rows::chosen)).transpose();
    let read = worker::transaction(|| {
        let is_installed = WORKER_LEASE.find().is_some();
        (is_installed, read().unwrap_or_else(|error| report::raise(report::spi(&error))))
    });
    let (is_installed, chosen) = read.map_err(RegistryLinkError::Failed)?;
    let Some(shared) = shared().filter(|_| is_installed) else { return Ok(()) };
    let chosen = chosen.unwrap_or_default();
    let noted = issuer::change(shared, |state, here| state.note_chosen(here, &chosen));
    noted.map_err(RegistryLinkError::State)
}

/// Runs a transaction with the rights of the owner of the registry's table; what fails in it is rolled back.
fn transaction<T>(work: impl FnOnce() -> Result<T, SpiError>) -> Result<T, RegistryLinkError> {
    let run =
        |source: Source| source.as_owner(work).unwrap_or_else(|error| report::raise(report::spi(&error)));
    let done = worker::transaction(|| WORKER_LEASE.find().map(run));
    done.map_err(RegistryLinkError::Failed)?.ok_or(RegistryLinkError::Dropped)
}

/// Reason why the registry gave no answer.
#[derive(Debug)]
pub enum RegistryLinkError {
    /// Its transaction in this database failed.
    Failed(TransactionError),
    /// The server's state could not be written.
    State(IssuerError),
    /// The extension was dropped from this database meanwhile.
    Dropped,
    /// This server should use one on another server.
    Unregistered,
    /// The one on the server of this name gave none.
    Away(String, RegistryError),
}

impl LinkError for RegistryLinkError {
    fn is_conflict(&self) -> bool {
        match self {
            Self::Failed(failed) => failed.is_lock_timeout,
            Self::Away(_, error) => error.is_conflict(),
            Self::State(_) | Self::Dropped | Self::Unregistered => false,
        }
    }

    fn explain(self) -> LeaseError {
        match self {
            Self::Failed(failed) => {
                let message =
                    format!("snowflake_ids could not reach the registry of worker ids: {}", failed.message);
                log::once(PgLogLevel::LOG, message);
                LeaseError::yet(
                    format!(
                        "The registry, the table snowflake_ids.worker_lease, gives SQLSTATE {}: {}.",
                        report::sqlstate(failed.code),
                        failed.message
                    ),
                    "Ids go on by themselves when the table can be written to.",
                )
            }
            Self::State(error) => LeaseError::of(&error),
            Self::Unregistered => LeaseError::of(&Unregistered),
            Self::Dropped => LeaseError::yet(ended(self.to_string()), "Try again."),
            Self::Away(server, error) => LeaseError::yet(
                ended(format!("Registry \"{server}\", which leases worker ids: {}", error.briefly())),
                error.hint(),
            ),
        }
    }
}

impl fmt::Display for RegistryLinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failed) => f.write_str(&failed.message),
            Self::State(error) => error.fmt(f),
            Self::Dropped => {
                f.write_str("The extension has just been dropped from the database that holds the registry")
            }
            Self::Unregistered => Unregistered.fmt(f),
            Self::Away(_, error) => error.fmt(f),
        }
    }
}
