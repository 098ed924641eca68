//! The registry's side of a request. Each function is one transaction's work, with the rights of the tables' owner.

use crate::issuer::{self, LEASE_WAIT};
use crate::lease;
use crate::pg::encoding::from_utf8;
use crate::pg::{cluster, database, server, tag};
use crate::segment::place;
use crate::shared::generator::shared;
use crate::store::citus;
use crate::store::registry as tags;
use crate::store::segment::{self, TagTables};
use crate::store::tables::{self, SEGMENT};
use crate::store::worker::{Rows, has_others};
use pgrx::check_for_interrupts;
use pgrx::spi::SpiError;
use serde_json::value::RawValue;
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::registry::handover::{RegistryTags, Standing, take_over};
use snowflake_ids_core::registry::tags::{TagRegistry, reserve_all};
use snowflake_ids_core::registry::wire::{self, LeaseError, NoSeries, RequestBody, ResponseBody};
use snowflake_ids_core::registry::worker_ids;
use snowflake_ids_core::sequence::directory::Tag;
use snowflake_ids_core::sequence::reservation::{Floor, Share};
use snowflake_ids_core::sequence::tag_rows::StoredRow;
use std::collections::BTreeSet;

/// This database as a registry. Only within a transaction, and where there is the extension.
pub fn this() -> Option<wire::Registry> {
    let (extension, database) = (tables::extension()?, server::database());
    let identity = format!("{}/{database}/{extension}", cluster::system_identifier());
    Some(wire::Registry { identity, timeline: cluster::timeline() })
}

/// The worker ids that this registry must not lease to the server with these tokens, as this server has them itself. Others have
/// worker ids from here, so that this server leases its own from here first: a standby that is promoted knows of it by the table.
///
/// # Errors
/// Why it could not.
pub fn taken_workers(datacenter: u32, tokens: [Option<i64>; 2]) -> Result<Vec<u32>, LeaseError> {
    let Some((shared, this)) = shared().zip(this()) else { return Ok(Vec::new()) };
    let taken = || {
        let taken = issuer::change(shared, |state, here| {
            let taken = state.taken_workers(here, datacenter, tokens)?;
            Some((taken, state.leases_out(here, server::database(), &this.identity)))
        });
        // Without its state this server issues nothing.
        taken.ok().flatten().unwrap_or((Vec::new(), true))
    };
    match taken() {
        (taken, true) => Ok(taken),
        (_, false) => lease::ask(shared, false, LEASE_WAIT).map(|()| taken().0),
    }
}

/// Returns whether this database leases worker ids to other servers.
pub fn is_registry() -> Result<bool, SpiError> {
    let Some((shared, this)) = shared().zip(this()) else { return Ok(false) };
    let known = issuer::change(shared, |state, _| {
        let is_known =
            state.registry == Some(server::database()) && state.leases_with.as_ref() == Some(&this.identity);
        (is_known, [state.lease.as_ref().map(|lease| lease.token), state.claim])
    });
    let (is_known, own) = known.unwrap_or_default();
    Ok(is_known || has_others(own, shared.now())?)
}

/// The database by way of which this server has its worker ids together with others, where that is not this one and this one is
/// of a Citus cluster: nodes of both would get the same worker id from each.
pub fn leases_elsewhere() -> Option<String> {
    let (shared, this) = shared().zip(this())?;
    if !citus::is_there() {
        return None;
    }
    let held = issuer::change(shared, |state, _| state.held_for(server::database(), &this.identity));
    held.ok().flatten().and_then(database::name)
}

/// The tables of this database where it is a registry, with the rights that the caller has.
pub struct TagTable;

/// Answers a question about worker ids or tags. `now` is the registry's clock.
pub fn answer(ask: RequestBody, now: UnixMicros) -> Result<ResponseBody, SpiError> {
    Ok(match ask {
        RequestBody::Introduce => ResponseBody::Introduced { version: env!("CARGO_PKG_VERSION").to_owned() },
        RequestBody::Tags { after } => ResponseBody::Tags(tags::tags(after.as_deref())?),
        RequestBody::HandOver { rows, received, share } => {
            let rows: Vec<&RawValue> = rows.iter().map(AsRef::as_ref).collect();
            ResponseBody::HandedOver(take_over(&mut TagTable, &rows, &received, share)?)
        }
        RequestBody::Reserve(wants) => {
            ResponseBody::Reserved(reserve_all(&mut TagTables(SEGMENT.find()), wants)?)
        }
        RequestBody::ReserveNumbers(_) => ResponseBody::ReservedNumbers(NoSeries::Unknown),
        RequestBody::Lease(wish) => ResponseBody::Leased(worker_ids::lease(&mut Rows, &wish, now)?),
        RequestBody::Renew { worker, token, entry } => {
            ResponseBody::Renewed(worker_ids::renew(&mut Rows, worker, token, &entry, now)?)
        }
        RequestBody::Release { datacenter, worker, token, from } => {
            worker_ids::release(&mut Rows, datacenter, worker, token, from)?;
            ResponseBody::Released
        }
    })
}

impl RegistryTags for TagTable {
    type Error = SpiError;

    fn read_all(&mut self, tags: &BTreeSet<String>) -> Result<Vec<(String, StoredRow)>, SpiError> {
        segment::read_all(tags)
    }

    fn put(&mut self, rows: &[&RawValue], share: Share) -> Result<(), SpiError> {
        tags::put(rows, share)
    }

    fn standings(&mut self, rows: &[&RawValue]) -> Result<Vec<Standing>, SpiError> {
        tags::standings(rows)
    }

    fn check_for_interrupts(&mut self) {
        check_for_interrupts!();
    }
}

impl TagRegistry for TagTables {
    fn tag(&mut self, text: &str) -> Option<Tag> {
        from_utf8(text).and_then(|bytes| tag::checked(&bytes).ok())
    }

    fn floor(&mut self, tag: &Tag) -> Option<Floor> {
        self.0.and_then(|source| place::floor(source, tag))
    }

    fn check_for_interrupts(&mut self) {
        check_for_interrupts!();
    }
}
