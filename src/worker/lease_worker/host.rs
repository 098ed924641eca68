//! The server, as the lease worker sees it.

use crate::lease;
use crate::pg::clock::uptime;
use crate::pg::{guc, report, server};
use crate::shared::generator::Shared;
use crate::shared::leases::Leases;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name};
use snowflake_ids_core::Explain;
use snowflake_ids_core::registry::lease::Lease;
use snowflake_ids_core::registry::lease_worker::{LeaseEvent, LeaseHost, LeaseSettings};
use snowflake_ids_core::registry::wire::LeaseError;
use snowflake_ids_core::server::issuer::Compared;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The process and what it shares with others.
pub struct LeaseServer {
    pub shared: &'static Shared,
    pub leases: &'static Leases,
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

    fn note(&mut self, event: LeaseEvent<'_>) {
        match event {
            LeaseEvent::Switched => {
                self.shared.counts.switches.fetch_add(1, Relaxed);
            }
            LeaseEvent::Lost(lease) => warn_of_loss(lease),
            LeaseEvent::Compared(compared) => tell(compared),
            LeaseEvent::NotReleased(worker, why) => {
                report::log(format!("snowflake_ids could not give worker id {worker} back: {why}"));
            }
        }
    }

    fn answer(&mut self, ticket: u64, outcome: Result<(), LeaseError>) {
        lease::answer(self.leases, ticket, outcome);
    }
}

fn tell(compared: &Compared) {
    match compared {
        Compared::Agrees => {}
        Compared::Followed => report::log("the clock has jumped, and is followed: the registry's agrees"),
        Compared::NotFollowed(error) => {
            report::log(format!("snowflake_ids could not follow the clock: {error}"));
        }
        Compared::Differs(skew) => pgrx::warning!("{skew}. {}", skew.detail().unwrap_or_default()),
    }
}

fn warn_of_loss(lease: &Lease) {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!("the lease of worker id {} is lost, and nothing is issued under it any more", lease.worker),
        function_name!(),
    )
    .set_detail(format!(
        "It was leased until {}; the row of datacenter {}, worker {} in snowflake_ids.worker_lease has another token now.",
        lease.expiry, lease.datacenter, lease.worker
    ))
    .set_hint("Another worker id is leased. See whether a copy of this server is running.")
    .report(PgLogLevel::WARNING);
}
