//! What the refill worker's process, and the memory of dense series, are to the core.

use crate::pg::clock::{SystemClock, uptime};
use crate::pg::worker;
use crate::settings;
use crate::shared::segments::wake_workers;
use crate::shared::series::{Counters, counters};
use crate::shared::worker_slot::WorkerSlot;
use crate::store::dense::{self as store, Tables};
use crate::store::tables::SERIES;
use crate::worker::log;
use pgrx::spi::SpiError;
use pgrx::{PgLogLevel, PgSqlErrorCode};
use snowflake_ids_core::Clock;
use snowflake_ids_core::refill_worker::{Counters as Round, TransactionError};
use snowflake_ids_core::registry_link::RegistryLink;
use snowflake_ids_core::series::dense::{self, Partition, Requests, RoundCounts, Served};
use std::time::Duration;

/// The worker's process.
struct Host {
    counters: &'static Counters,
    worker_slot: &'static WorkerSlot,
    database: u32,
}

/// Frees what a worker of this database left that died.
pub fn begin(worker_slot: &'static WorkerSlot, database: u32) {
    if let Some(counters) = counters() {
        dense::begin(&Host { counters, worker_slot, database });
    }
}

/// Serves the requests of this database once.
pub fn serve(worker_slot: &'static WorkerSlot, database: u32, link: &mut impl RegistryLink) -> Round {
    match counters().map(|counters| dense::serve(&Host { counters, worker_slot, database }, link)) {
        None | Some(Served::Nothing) => Round::Nothing,
        Some(Served::All) => Round::All,
        Some(Served::Failed(pause)) => Round::Failed(pause),
    }
}

impl dense::Host for Host {
    type Rows = Tables;

    fn database(&self) -> u32 {
        self.database
    }

    fn uptime(&self) -> Duration {
        uptime()
    }

    fn secret(&self) -> u64 {
        self.counters.secret()
    }

    fn partitions(&self) -> usize {
        self.counters.partitions.len()
    }

    fn with_partition<T>(&self, number: usize, work: impl FnOnce(&mut Partition<'_>) -> T) -> T {
        match self.counters.partitions.get(number) {
            Some(partition) => work(&mut partition.lock()),
            None => work(&mut Partition::new(&mut [], &mut [])),
        }
    }

    fn with_requests<T>(&self, work: impl FnOnce(&mut Requests<'_>) -> T) -> T {
        work(&mut self.counters.requests.write())
    }

    fn wake(&self, cell: usize) {
        if let Some(answered) = self.counters.answered.get(cell) {
            answered.broadcast();
        }
    }

    fn call_worker(&self, database: u32) {
        wake_workers(database);
    }

    fn today(&self) -> i32 {
        SystemClock.now().day()
    }

    fn registry_timeout(&self) -> Duration {
        settings::registry_timeout()
    }

    fn is_overdue(&self) -> bool {
        self.worker_slot.time_left().is_some_and(|left| left.is_zero())
    }

    fn say_once(&self, warning: String) {
        log::once(PgLogLevel::WARNING, warning);
    }

    fn count(&self, round: &RoundCounts) {
        self.counters.counts.add(round);
    }

    fn transaction<T>(
        &self,
        work: impl FnOnce(&mut Tables) -> Result<T, SpiError>,
    ) -> Result<T, TransactionError> {
        let done = worker::transaction(|| match SERIES.find() {
            Some(table) => {
                store::plan_by_key();
                table.as_owner_qualified(|| work(&mut Tables(Some(table))))
            }
            None => work(&mut Tables(None)),
        });
        let of_spi = |error: SpiError| TransactionError {
            code: PgSqlErrorCode::ERRCODE_INTERNAL_ERROR as i32,
            message: error.to_string(),
            is_lock_timeout: false,
        };
        done?.map_err(of_spi)
    }
}
