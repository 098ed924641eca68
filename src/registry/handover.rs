//! Handing tags over between this database and registries: what `snowflake_ids_core::registry::handover` touches.

use super::call::{Block, RegistryCaller};
use super::join;
use super::session::{NOT_READY, ask, begin, garbled, here, refusal, refused, unfit_row};
use crate::pg::clock::SystemClock;
use crate::pg::encoding::{from_utf8, to_utf8};
use crate::segment::place;
use crate::settings;
use crate::store::registry as store;
use crate::store::segment;
use crate::store::tables::SEGMENT;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::spi::SpiError;
use pgrx::{PgSqlErrorCode as Code, check_for_interrupts, function_name};
use serde_json::value::RawValue;
use snowflake_ids_core::registry::error::RegistryError;
use snowflake_ids_core::registry::handover::{
    self, HandoverError, NodeTables, NotedFloor, Registries, RegistryTags, Standing,
};
use snowflake_ids_core::registry::link::Site;
use snowflake_ids_core::registry::wire::{self, ReceivedTag, RequestBody, Response};
use snowflake_ids_core::sequence::directory::Tag;
use snowflake_ids_core::sequence::reservation::{Reached, Share};
use snowflake_ids_core::sequence::tag_rows::StoredRow;
use snowflake_ids_core::server::form::RELEASE;
use snowflake_ids_core::{Clock, Explain, UnixMicros};
use std::collections::BTreeSet;
use std::time::Duration;

type BoxedReport = Box<ErrorReport>;

/// The tables of this database, with the rights of their owner.
struct ThisDatabase;

/// Registries on other servers.
struct There(RegistryCaller);

/// Has this database use the registries of these foreign servers.
pub fn join(servers: &[String]) -> Result<(), BoxedReport> {
    handover::join(&mut ThisDatabase, &mut There(RegistryCaller::default()), servers).map_err(report)
}

/// Has this database be its own registry again; false where it is that already.
pub fn leave() -> Result<bool, BoxedReport> {
    let unheard = |error| {
        pgrx::notice!(
            "{}; tags that are known only there have the terms here that they had before this database used the \
             registry, or the defaults of segment_create",
            report(error).message()
        );
    };
    handover::leave(&mut ThisDatabase, &mut There(RegistryCaller::default()), unheard).map_err(report)
}

/// Has every registry in use make a tag, or raise it, so that its ids are above one. False where there is none in use.
pub fn seed(tag: &str, highest: i64) -> Result<bool, BoxedReport> {
    handover::seed(&mut ThisDatabase, &mut There(RegistryCaller::default()), tag, highest).map_err(report)
}

impl RegistryTags for ThisDatabase {
    type Error = BoxedReport;

    fn read_all(&mut self, tags: &BTreeSet<String>) -> Result<Vec<(String, StoredRow)>, BoxedReport> {
        here(|| segment::read_all(tags))
    }

    fn put(&mut self, rows: &[&RawValue], share: Share) -> Result<(), BoxedReport> {
        here(|| store::put(rows, share))
    }

    fn standings(&mut self, rows: &[&RawValue]) -> Result<Vec<Standing>, BoxedReport> {
        here(|| store::standings(rows))
    }

    fn check_for_interrupts(&mut self) {
        check_for_interrupts!();
    }
}

impl NodeTables for ThisDatabase {
    fn lock(&mut self) -> Result<(), BoxedReport> {
        here(store::lock)
    }

    fn keep_sites(&mut self) -> Result<(), BoxedReport> {
        here(store::keep_sites)
    }

    fn sites(&mut self) -> Result<Vec<Site>, BoxedReport> {
        here(store::sites)
    }

    fn set_sites(&mut self, sites: &[Site]) -> Result<(), BoxedReport> {
        here(|| store::set_sites(sites))
    }

    fn tags(&mut self, after: Option<&str>) -> Result<Vec<Box<RawValue>>, BoxedReport> {
        here(|| store::tags(after))
    }

    fn received(&mut self) -> Result<Vec<(String, ReceivedTag)>, BoxedReport> {
        here(store::received_tags)
    }

    fn received_of(&mut self, identity: &str, tag: &str) -> Result<Option<Reached>, BoxedReport> {
        let Some(tag) = from_utf8(tag).and_then(|tag| Tag::new(&tag)) else { return Ok(None) };
        Ok(here(|| store::received(identity, &tag))?.map(|received| received.reached))
    }

    fn floors(&mut self) -> Result<Vec<NotedFloor>, BoxedReport> {
        let floors = SEGMENT.find().map(place::floors).unwrap_or_default();
        let noted = |(tag, floor): (_, _)| {
            let life = segment::life(&tag)?;
            Ok(to_utf8(tag.as_bytes()).map(|tag| NotedFloor { tag, floor, life }))
        };
        let floors = here(|| floors.into_iter().map(noted).collect::<Result<Vec<_>, SpiError>>())?;
        Ok(floors.into_iter().flatten().collect())
    }

    fn note_all(&mut self) -> Result<(), BoxedReport> {
        here(store::note_all)
    }

    fn define(&mut self, rows: &[&RawValue]) -> Result<(), BoxedReport> {
        here(|| store::define(rows))
    }

    fn leases_for(&mut self, identity: &str) -> Result<Option<String>, BoxedReport> {
        join::leases_for(identity)
    }

    fn give_up_lease(&mut self, site: &Site) -> Result<(), BoxedReport> {
        join::give_up_lease(&site.server, &site.seen)
    }

    fn switch(&mut self, moves_lease: bool) -> Result<(), BoxedReport> {
        join::switch(moves_lease);
        Ok(())
    }

    fn identity(&mut self) -> Option<String> {
        super::serve::this().map(|this| this.identity)
    }

    fn now(&self) -> UnixMicros {
        SystemClock.now()
    }

    fn max_clock_skew(&self) -> Duration {
        settings::max_clock_skew()
    }
}

impl Registries for There {
    type Error = BoxedReport;
    type Block = (String, Block);

    fn ask(
        &mut self,
        server: &str,
        seen: Option<&wire::Registry>,
        what: RequestBody,
    ) -> Result<Response, BoxedReport> {
        ask(&mut self.0, server, seen, what)
    }

    fn begin(&mut self, site: &Site, of: usize) -> Result<Self::Block, BoxedReport> {
        Ok((site.server.clone(), begin(&mut self.0, site, of)?))
    }

    fn ask_in(
        &mut self,
        (server, block): &mut Self::Block,
        ask: RequestBody,
    ) -> Result<Response, BoxedReport> {
        block.ask(ask).map_err(|error: RegistryError| refused(server, &error))
    }

    fn commit(&mut self, (server, block): Self::Block) -> Result<(), BoxedReport> {
        block.commit().map_err(|error| refused(&server, &error))
    }
}

/// The same for the session's user.
fn report(error: HandoverError<BoxedReport, BoxedReport>) -> BoxedReport {
    match error {
        HandoverError::Here(report) | HandoverError::There { error: report, .. } => report,
        HandoverError::Garbled { server } => garbled(&server),
        HandoverError::Version { server, version } => refusal(
            NOT_READY,
            &server,
            "it has another version of the extension",
            &format!("It has {version}, and this server {RELEASE}."),
            "Install the same version on both servers. Those that use the registry already go on meanwhile.",
        ),
        HandoverError::Itself { server } => refusal(
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            &server,
            "it is this very database",
            "The foreign server leads back here.",
            "Without a foreign server a database is its own registry: SELECT snowflake_ids.use_local_registry().",
        ),
        HandoverError::Clock { server, skew } => {
            let (detail, hint) = (skew.detail().unwrap_or_default(), skew.hint().unwrap_or_default());
            refusal(NOT_READY, &server, &skew.to_string(), &detail, &hint)
        }
        HandoverError::Same { server } => {
            let message = format!("registry \"{server}\" is the same as another one");
            let report = ErrorReport::new(Code::ERRCODE_INVALID_PARAMETER_VALUE, message, function_name!());
            Box::new(report.set_detail("Two foreign servers lead to one database."))
        }
        HandoverError::Elsewhere { server, database } => refusal(
            NOT_READY,
            &server,
            &format!("this server leases its worker id from another one, for database \"{database}\""),
            "Two registries could lease the same worker id to two servers.",
            "Use that registry here, too.",
        ),
        HandoverError::Unfit { server, tag, unfit } => unfit_row(&server, &tag, unfit),
    }
}
