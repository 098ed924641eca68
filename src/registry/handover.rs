//! The hand-over of tags between this database and registries. Implements, for this server, the traits of
//! `snowflake_ids_core::registry::handover`.

use super::call::others;
use super::join;
use super::serve::{RegistryFailure, this};
use crate::pg::clock::SystemClock;
use crate::pg::encoding::to_utf8;
use crate::pg::report::report;
use crate::settings;
use crate::store::registry::OwnTables;
use crate::store::tables::SEGMENT;
use crate::store::tag;
use crate::tag::error::SegmentError;
use crate::tag::slot;
use pgrx::spi::SpiError;
use snowflake_ids_core::registry::error::UnusableRegistry;
use snowflake_ids_core::registry::handover::{self, NodeServer, RolledBackTag};
use snowflake_ids_core::registry::link::Endpoint;
use snowflake_ids_core::registry::wire::{self, RequestBody};
use snowflake_ids_core::{Clock, UnixMicros};
use std::time::Duration;

/// Makes this database use the registries behind these foreign servers. With `layout`, the registries must have this layout.
pub fn join(servers: &[String], layout: Option<String>) -> Result<(), RegistryFailure> {
    here(|| handover::join(&mut ThisServer { layout, ..this_server() }, &mut others(), servers))
}

/// Makes this database its own registry again; returns false if this database used no other registry.
pub fn leave() -> Result<bool, RegistryFailure> {
    let unheard = |error: UnusableRegistry| {
        pgrx::notice!(
            "{}; tags known only there keep the definition that they had here before this database used the \
             registry, or the defaults of segment_create",
            report(error).message()
        );
    };
    here(|| handover::leave(&mut this_server(), &mut others(), unheard))
}

/// Asks every registry in use to create or raise a tag, so that new ids of the tag are above `highest`. Returns false
/// if this database uses no registry.
pub fn seed(tag: &str, highest: i64) -> Result<bool, RegistryFailure> {
    here(|| handover::seed(&mut this_server(), &mut others(), tag, highest))
}

/// Returns the identity and timeline of the registry behind a foreign server.
pub fn look(server: &str) -> Result<wire::RegistryName, UnusableRegistry> {
    others().ask(server, None, RequestBody::Introduce).map(|answer| answer.registry)
}

/// Runs work with the rights of the tables' owner.
fn here<T>(work: impl FnOnce() -> Result<T, RegistryFailure>) -> Result<T, RegistryFailure> {
    SEGMENT.find().ok_or(SegmentError::NoTable)?.as_owner(work)
}

/// This server, with the tables of this database.
struct ThisServer {
    tables: OwnTables,
    layout: Option<String>,
}

fn this_server() -> ThisServer {
    ThisServer { tables: OwnTables, layout: None }
}

impl NodeServer for ThisServer {
    type Tables = OwnTables;
    type Error = RegistryFailure;

    fn tables(&mut self) -> &mut OwnTables {
        &mut self.tables
    }

    fn high_water_marks(&mut self) -> Result<Vec<RolledBackTag>, RegistryFailure> {
        let recorded = |(tag, high_water_mark): (_, _)| {
            let tag_generation = tag::tag_generation(&tag)?;
            Ok(to_utf8(tag.as_bytes()).map(|tag| RolledBackTag { tag, high_water_mark, tag_generation }))
        };
        let high_water_marks = SEGMENT.find().map(slot::high_water_marks).unwrap_or_default();
        let high_water_marks =
            high_water_marks.into_iter().map(recorded).collect::<Result<Vec<_>, SpiError>>()?;
        Ok(high_water_marks.into_iter().flatten().collect())
    }

    fn leases_for(&mut self, identity: &str) -> Result<Option<String>, RegistryFailure> {
        Ok(join::leases_for(identity)?)
    }

    fn give_up_lease(&mut self, endpoint: &Endpoint) -> Result<(), RegistryFailure> {
        Ok(join::give_up_lease(endpoint)?)
    }

    fn switch(&mut self, moves_lease: bool) -> Result<(), RegistryFailure> {
        join::switch(moves_lease);
        Ok(())
    }

    fn identity(&mut self) -> Option<String> {
        this().map(|this| this.identity)
    }

    fn layout(&self) -> Option<String> {
        self.layout.clone()
    }

    fn now(&self) -> UnixMicros {
        SystemClock.now()
    }

    fn max_clock_skew(&self) -> Duration {
        settings::max_clock_skew()
    }
}
