//! Implements the traits through which the core's refill worker reaches its process, shared memory and the tables.

use crate::lease;
use crate::pg::clock::{SystemClock, uptime};
use crate::pg::process;
use crate::pg::tag_text::TagText;
use crate::pg::wait::Event;
use crate::process::log;
use crate::process::rest::rest;
use crate::settings;
use crate::shared::registries;
use crate::shared::segments::Segments;
use crate::shared::slot::Slot;
use crate::shared::worker_slot::WorkerSlot;
use crate::store::registry::TagTables;
use crate::store::tables::SEGMENT;
use crate::tag::slot;
use pgrx::PgLogLevel;
use pgrx::spi::SpiError;
use snowflake_ids_core::process::refill::{RefillHost, RefillSettings, RefillTask};
use snowflake_ids_core::registry::error::SqlError;
use snowflake_ids_core::tag::directory::{Tag, TagKey};
use snowflake_ids_core::tag::reservation::{HighWaterMark, Reached};
use snowflake_ids_core::{Clock, UnixMicros};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

pub struct RefillServer {
    pub segments: &'static Segments,
    pub worker_slot: &'static WorkerSlot,
    pub database: u32,
}

impl RefillServer {
    fn key(&self, source: u32, tag: &Tag) -> TagKey {
        TagKey { database: self.database, source, tag: *tag }
    }
}

impl Clock for RefillServer {
    fn now(&self) -> UnixMicros {
        SystemClock.now()
    }
}

impl RefillHost for RefillServer {
    type Slot = Slot;
    type Tables = TagTables;

    fn uptime(&self) -> Duration {
        uptime()
    }

    fn with_directory_locked<T>(&self, work: impl FnOnce() -> T) -> T {
        let _directory = self.segments.change_directory();
        work()
    }

    fn high_water_mark(&self, source: u32, tag: &Tag) -> Option<HighWaterMark> {
        self.segments.high_water_marks.read().get(&self.key(source, tag))
    }

    fn clear_high_water_mark(&self, source: u32, tag: &Tag, known: Option<Reached>) {
        self.segments.high_water_marks.write().clear(&self.key(source, tag), known);
    }

    fn transaction<T>(
        &self,
        work: impl FnOnce(&mut TagTables) -> Result<T, SpiError>,
    ) -> Result<T, SqlError> {
        let done = process::transaction(|| match SEGMENT.find() {
            Some(source) => source.as_owner(|| work(&mut TagTables(Some(source)))),
            None => work(&mut TagTables(None)),
        });
        done?.map_err(|error| SqlError::new(*b"XX000", error.to_string()))
    }

    fn settings(&self) -> RefillSettings {
        RefillSettings {
            target: settings::segment_target_duration(),
            prefetch: settings::segment_prefetch(),
            registry_timeout: settings::registry_timeout(),
        }
    }

    fn tasks(&self) -> Vec<RefillTask<'_, Slot>> {
        let task = |slot_index: usize| {
            let slot = self.segments.slots.get(slot_index)?;
            let directory = self.segments.directory.read();
            let key = directory.get(slot_index).filter(|key| key.database == self.database)?;
            RefillTask::new(slot, key.tag, key.source)
        };
        self.segments.pending().into_iter().filter_map(task).collect()
    }

    fn has_registry_to_probe(&self) -> bool {
        registries::to_be_probed().contains(&self.database)
    }

    fn leave_table(&self, source: u32) {
        slot::leave_all(self.database, Some(source));
    }

    fn is_dismissed(&self) -> bool {
        self.worker_slot.is_dismissed()
    }

    fn is_overdue(&self) -> bool {
        self.worker_slot.time_left().is_some_and(|left| left.is_zero())
    }

    fn is_crowded(&self) -> bool {
        self.segments.crowded.load(Acquire)
    }

    fn record_served(&self) {
        self.worker_slot.served.store(true, Release);
    }

    fn rest(&self, last_work: Duration) -> bool {
        self.worker_slot.idle.store(true, Release);
        let stays = rest(Event::RefillWorker, last_work);
        self.worker_slot.idle.store(false, Release);
        stays
    }

    fn sleep(&self, limit: Duration) {
        process::sleep(Event::RefillWorker, limit);
    }

    fn renew_lease(&self) {
        if lease::origin().is_some() {
            lease::ask_to_renew();
        }
    }

    fn show_activity(&self, tags: usize) {
        process::show_activity(Some(&format!("reserving ids for {tags} of the tags in use")));
    }

    fn say_once(&self, warning: String) {
        log::once(PgLogLevel::WARNING, warning);
    }

    fn shown(&self, tag: &Tag) -> String {
        TagText(*tag).shown()
    }
}
