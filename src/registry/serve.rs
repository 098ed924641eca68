//! The registry's side of a request. Each function does its work in one transaction, with the rights of the tables' owner.

use crate::issuer;
use crate::lease;
use crate::pg::catalog::Source;
use crate::pg::report::{raise, reported};
use crate::pg::{cluster, database, process, server};
use crate::settings;
use crate::shared::generator::SHARED;
use crate::store::citus;
use crate::store::registry::{OwnTables, TagTables};
use crate::store::tables::{self, SEGMENT, WORKER_LEASE};
use crate::store::worker_id::{Rows, has_others};
use crate::tag::error::SegmentError;
use pgrx::spi::SpiError;
use serde_json::value::RawValue;
use snowflake_ids_core::error::END_IT_WITH_COMMIT;
use snowflake_ids_core::registry::error::{RegistryError, SqlError, UnusableRegistry};
use snowflake_ids_core::registry::handover::{HandoverTables as _, take_over};
use snowflake_ids_core::registry::setup::{AllowError, JoinError};
use snowflake_ids_core::registry::tags::reserve_all;
use snowflake_ids_core::registry::wire::{self, RequestBody, Response, ResponseBody};
use snowflake_ids_core::registry::worker_ids::{self, LeaseLimits};
use snowflake_ids_core::server::issuer::IssuerError;
use snowflake_ids_core::server::lease::LeaseError;
use snowflake_ids_core::{Explain, Layout, UnixMicros};

/// Returns this database's name as a registry, without its fork; None without the extension. Needs a transaction.
pub fn this() -> Option<wire::RegistryName> {
    let (extension, database) = (tables::extension()?, server::database());
    let identity = format!("{}/{database}/{extension}", cluster::system_identifier());
    Some(wire::RegistryName { identity, timeline: cluster::timeline(), ..Default::default() })
}

/// Returns the layout of this server's ids.
pub fn layout() -> String {
    let configured = || settings::layout_text_without_preload().parse().ok();
    let layout: Option<Layout> = SHARED.get().map(|shared| shared.layout).or_else(configured);
    layout.map(|layout| layout.to_string()).unwrap_or_default()
}

/// Returns the worker ids that this server uses itself. The registry must not lease these worker ids to the requesting
/// server. `tokens` are the lease tokens of the requesting server. First makes this server lease its own worker id from this
/// registry, so that a promoted standby finds that worker id in the table.
pub fn taken_worker_ids(datacenter: u32, tokens: [Option<i64>; 2]) -> Result<Vec<u32>, LeaseError> {
    let Some((shared, this)) = SHARED.get().zip(this()) else { return Ok(Vec::new()) };
    let taken = || {
        let taken = issuer::change(shared, |state, here| {
            let taken = state.taken_worker_ids(here, datacenter, tokens)?;
            Some((taken, state.leases_out(here, server::database(), &this.identity)))
        });
        // A server that cannot read its state file issues no ids, so none of its worker ids is in use.
        taken.ok().flatten().unwrap_or((Vec::new(), true))
    };
    match taken() {
        (taken, true) => Ok(taken),
        (_, false) => lease::ask(shared, false).map(|()| taken().0),
    }
}

/// Returns whether this database leases worker ids to other servers.
pub fn is_registry() -> Result<bool, SpiError> {
    let Some((shared, this)) = SHARED.get().zip(this()) else { return Ok(false) };
    let known = issuer::change(shared, |state, _| {
        let is_known = state.source.database() == Some(server::database())
            && state.source.shared() == Some(this.identity.as_str());
        (is_known, [state.lease.as_ref().map(|lease| lease.token), state.pending_token])
    });
    let (is_known, own) = known.unwrap_or_default();
    Ok(is_known || has_others(own, shared.now())?)
}

/// Returns another database through which this server leases its worker id, if this database belongs to a Citus cluster.
/// With such a database, the cluster's nodes would use two registries, which could both lease the same worker id.
pub fn leases_elsewhere() -> Option<String> {
    let (shared, this) = SHARED.get().zip(this())?;
    if !citus::is_there() {
        return None;
    }
    let held = issuer::change(shared, |state, _| state.held_for(server::database(), &this.identity));
    held.ok().flatten().and_then(database::name)
}

/// The reason why this database failed as a registry, or as a client of a registry.
#[derive(Debug, thiserror::Error, Explain)]
pub enum RegistryFailure {
    /// A statement failed without an SQL error.
    #[error("snowflake_ids could not run its SQL: {0}")]
    #[explain(Internal)]
    Spi(#[from] SpiError),
    /// The server's state could not be changed.
    #[error(transparent)]
    State(#[from] IssuerError),
    /// One of the registries on other servers did not respond, or must not be used.
    #[error(transparent)]
    Unusable(#[from] UnusableRegistry),
    /// The extension was dropped.
    #[error(transparent)]
    NoTable(#[from] SegmentError),
    #[error("{object} must belong to a superuser")]
    #[explain(
        Denied,
        detail = "The owner decides where background workers of this server connect. These workers run under the server's account.",
        hint = "Change the owner with ALTER ... OWNER TO."
    )]
    NotTrusted { object: String },
    #[error("cannot PREPARE a transaction that has changed the registry")]
    #[explain(Unsupported, hint = "{END_IT_WITH_COMMIT}")]
    Prepared,
    /// This server could not join a registry in one call.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A role cannot be the role of the nodes.
    #[error(transparent)]
    Allow(#[from] AllowError),
}

reported!(RegistryFailure);

/// Answers a request about worker ids or tags. `now` is the time by the registry's clock.
pub fn answer(
    ask: RequestBody,
    limits: &LeaseLimits,
    now: UnixMicros,
) -> Result<ResponseBody, RegistryFailure> {
    Ok(match ask {
        RequestBody::Introduce => {
            ResponseBody::Introduced { version: env!("CARGO_PKG_VERSION").to_owned(), layout: layout() }
        }
        RequestBody::Tags { after } => ResponseBody::Tags(OwnTables.tags(after.as_deref())?),
        RequestBody::HandOver { rows, received, share } => {
            let rows: Vec<&RawValue> = rows.iter().map(AsRef::as_ref).collect();
            ResponseBody::HandedOver(take_over(&mut OwnTables, &rows, &received, share)?)
        }
        RequestBody::Reserve(wants) => {
            ResponseBody::Reserved(reserve_all(&mut TagTables(SEGMENT.find()), wants)?)
        }
        RequestBody::Lease(demand) => {
            ResponseBody::Leased(worker_ids::lease(&mut Rows, &demand, limits, now)?)
        }
        RequestBody::Renew { worker_id, token, entry } => {
            ResponseBody::Renewed(worker_ids::renew(&mut Rows, worker_id, token, &entry, now)?)
        }
        RequestBody::Release { datacenter, worker_id, token, from } => {
            worker_ids::release(&mut Rows, datacenter, worker_id, token, from)?;
            ResponseBody::Released
        }
    })
}

/// Answers a request of this server's own lease worker, in a transaction of its own. `now` is the time by the server's clock.
pub fn ask_here(ask: RequestBody, now: UnixMicros) -> Result<Response, RegistryError> {
    const DROPPED: &str = "the extension has just been dropped from the database that holds the registry";
    let dropped = || RegistryError::NoServer(SqlError::new(*b"42704", DROPPED));
    let said = in_transaction(|| Ok(this().zip(Some(answer(ask, &LeaseLimits::default(), now)?))))?.flatten();
    let (registry, said) = said.ok_or_else(dropped)?;
    Ok(Response { registry, clock: now, said })
}

/// Runs `work` in a transaction of a background worker, with the rights of the owner of the table of worker ids. Returns
/// None if that table does not exist.
///
/// # Errors
/// Returns [`RegistryError::Here`] after a rollback of the transaction.
pub fn in_transaction<T>(
    work: impl FnOnce() -> Result<T, RegistryFailure>,
) -> Result<Option<T>, RegistryError> {
    let run = |source: Source| source.as_owner(work).unwrap_or_else(|failure| raise(failure));
    process::transaction(|| WORKER_LEASE.find().map(run)).map_err(RegistryError::Here)
}
