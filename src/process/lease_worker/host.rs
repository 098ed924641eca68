//! Implements the trait through which the core's lease worker reaches its process, shared memory and the registry.

use crate::issuer;
use crate::lease;
use crate::pg::clock::uptime;
use crate::pg::report::new_report;
use crate::pg::{guc, report, server};
use crate::process::log;
use crate::registry::call::RegistryCaller;
use crate::registry::serve::{ask_here, in_transaction, is_registry};
use crate::settings;
use crate::shared::generator::Shared;
use crate::shared::leases::Leases;
use crate::store::tables::WORKER_CHOSEN;
use crate::store::{citus, registry as store, worker_id as worker_id_rows};
use pgrx::{PgLogLevel, PgSqlErrorCode};
use snowflake_ids_core::registry::error::RegistryError;
use snowflake_ids_core::registry::failover::Health;
use snowflake_ids_core::registry::lease_launch::DatabaseUse;
use snowflake_ids_core::registry::lease_worker::{
    LeaseEvent, LeaseHost, LeaseSettings, RegistryLocation, own_trouble,
};
use snowflake_ids_core::registry::link::{Endpoint, EndpointStatus as _};
use snowflake_ids_core::registry::wire::{RegistryName, RequestBody, Response};
use snowflake_ids_core::server::issuer::Compared;
use snowflake_ids_core::server::lease::{Lease, LeaseError};
use snowflake_ids_core::{Explain, UnixMicros};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The process, its shared memory and its connections.
pub struct LeaseServer {
    pub shared: &'static Shared,
    pub leases: &'static Leases,
    pub caller: RegistryCaller,
}

impl LeaseServer {
    /// Returns this database's role in leasing worker ids: a registry, a user of a registry, or neither. Returns None if the
    /// role is unknown at the moment.
    pub fn look(&mut self) -> Option<DatabaseUse> {
        let why = match self.record_chosen().map(|()| self.find()) {
            Ok(Ok(RegistryLocation::Nowhere)) => return Some(DatabaseUse::None),
            Ok(Ok(RegistryLocation::Here)) => return Some(DatabaseUse::Registry),
            Ok(Ok(RegistryLocation::On(_) | RegistryLocation::Unregistered)) => {
                return Some(DatabaseUse::Node);
            }
            Ok(Err(error)) => own_trouble(&error).detail,
            Err(why) => why,
        };
        let database = server::database();
        report::log(format!("snowflake_ids could not search database {database} for a registry: {why}"));
        None
    }

    /// Copies the chosen worker ids from this database's table to the state file, so that this server does not choose a
    /// worker id that another server has chosen.
    fn record_chosen(&self) -> Result<(), String> {
        let read = in_transaction(|| match WORKER_CHOSEN.find() {
            Some(source) => Ok(source.as_owner(worker_id_rows::chosen)?),
            None => Ok(Vec::new()),
        });
        let Some(chosen) = read.map_err(|error| own_trouble(&error).detail)? else { return Ok(()) };
        let recorded = issuer::change(self.shared, |state, here| state.record_chosen(here, &chosen));
        recorded.map_err(|error| error.detail().unwrap_or_default())
    }
}

impl LeaseHost for LeaseServer {
    fn uptime(&self) -> Duration {
        uptime()
    }

    fn settings(&self) -> LeaseSettings {
        lease::settings()
    }

    fn port(&self) -> Option<i32> {
        guc::shown(c"port").and_then(|port| port.parse().ok())
    }

    fn database(&self) -> u32 {
        server::database()
    }

    fn find(&mut self) -> Result<RegistryLocation, RegistryError> {
        let found = in_transaction(|| {
            // Worker ids come from the first registry.
            Ok(match store::endpoints()?.into_iter().next() {
                Some(endpoint) => RegistryLocation::On(endpoint),
                None if citus::is_worker()? => RegistryLocation::Unregistered,
                None if is_registry()? => RegistryLocation::Here,
                None => RegistryLocation::Nowhere,
            })
        })?;
        Ok(found.unwrap_or(RegistryLocation::Nowhere))
    }

    fn ask(
        &mut self,
        endpoint: Option<&Endpoint>,
        ask: RequestBody,
        now: UnixMicros,
    ) -> Result<Response, RegistryError> {
        match endpoint {
            Some(endpoint) => self.caller.ask(endpoint, ask, settings::registry_timeout()),
            None => ask_here(ask, now),
        }
    }

    fn health(&self, endpoint: &Endpoint) -> Health {
        self.caller.status(endpoint).health()
    }

    fn record_seen(&mut self, registry: &RegistryName) -> Result<(), RegistryError> {
        in_transaction(|| Ok(store::record_seen(registry)?)).map(drop)
    }

    fn record(&mut self, event: LeaseEvent<'_>) {
        match event {
            LeaseEvent::Switched => {
                self.shared.counts.switches.fetch_add(1, Relaxed);
            }
            LeaseEvent::Lost(lease) => warn_of_loss(lease),
            LeaseEvent::Compared(Compared::Agrees) => {}
            LeaseEvent::Compared(Compared::Followed) => {
                report::log(
                    "snowflake_ids follows the clock after its jump, because the registry's clock agrees",
                );
            }
            LeaseEvent::Compared(Compared::NotFollowed(error)) => {
                report::log(format!("snowflake_ids could not follow the clock: {error}"));
            }
            LeaseEvent::Compared(Compared::Differs(skew)) => {
                new_report(PgSqlErrorCode::ERRCODE_WARNING, skew.to_string())
                    .set_detail(skew.detail().unwrap_or_default())
                    .set_hint(skew.hint().unwrap_or_default())
                    .report(PgLogLevel::WARNING);
            }
            LeaseEvent::NotReleased(worker_id, why) => {
                report::log(format!("snowflake_ids could not release worker id {worker_id}: {why}"));
            }
            LeaseEvent::Unreachable(why) => {
                let message = format!("snowflake_ids could not reach the registry of worker ids: {why}");
                log::once(PgLogLevel::LOG, message);
            }
        }
    }

    fn answer(&mut self, ticket: u64, outcome: Result<(), LeaseError>) {
        lease::answer(self.leases, ticket, outcome);
    }
}

fn warn_of_loss(lease: &Lease) {
    new_report(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!("the lease of worker id {} is lost, and no more ids are issued under it", lease.worker_id),
    )
    .set_detail(format!(
        "It was leased until {}; the row of datacenter {}, worker {} in snowflake_ids.worker_lease has another lease token now.",
        lease.expiry, lease.datacenter, lease.worker_id
    ))
    .set_hint("Check whether a copy of this server is running. This server leases another worker id.")
    .report(PgLogLevel::WARNING);
}
