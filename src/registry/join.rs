//! Beginning to use registries, and ending it: what is checked first, and what has to change at once.

use super::call::{Caller, NoAnswer, options};
use crate::error::{raise, spi};
use crate::pg::catalog::Source;
use crate::pg::clock::SystemClock;
use crate::pg::process::PerProcess;
use crate::pg::shmem::generator::shared;
use crate::pg::shmem::leases::leases;
use crate::pg::text::to_utf8;
use crate::pg::transaction::{self, Hooks};
use crate::pg::{database, server};
use crate::segment::failure::TagFailure;
use crate::segment::place;
use crate::store::registry::{self as store, Site};
use crate::worker::lease;
use crate::worker::registrar::end_of;
use crate::{settings, tenure};
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::spi::SpiError;
use pgrx::{PgSqlErrorCode as Code, PgTryBuilder, function_name};
use serde::Deserialize;
use serde_json::value::RawValue;
use snowflake_ids_core::lease::{Lease, check_clock};
use snowflake_ids_core::reservation::{Reached, Share, Unfit};
use snowflake_ids_core::state::Identity;
use snowflake_ids_core::wire::{self, Answer, Ask, Said};
use snowflake_ids_core::{Clock, Explain, UnixMicros};
use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::Ordering::Release;

type Checked<T> = Result<T, Box<ErrorReport>>;

/// Asks a foreign server which registry it is, and whether this server can use it.
///
/// # Errors
/// Why not. What is wrong with the foreign server itself is thrown.
pub fn introduce(server: &str) -> Checked<wire::Registry> {
    let answer = ask(&mut Caller::default(), server, None, Ask::Introduce)?;
    let Said::Introduced { version } = answer.said else { return Err(garbled(server)) };
    if version != env!("CARGO_PKG_VERSION") {
        return Err(refusal(
            NOT_READY,
            server,
            "it has another version of the extension",
            &format!("It has {version}, and this server {}.", env!("CARGO_PKG_VERSION")),
            "Install the same version on both servers.",
        ));
    }
    if super::this().is_some_and(|this| this.identity == answer.registry.identity) {
        return Err(refusal(
            Code::ERRCODE_INVALID_PARAMETER_VALUE,
            server,
            "it is this very database",
            "The foreign server leads back here.",
            "Without a foreign server a database is its own registry: SELECT snowflake_ids.use_local_registry().",
        ));
    }
    let skew = check_clock(SystemClock.now(), answer.clock, None, settings::max_clock_skew());
    skew.map_err(|skew| {
        let (detail, hint) = (skew.detail().unwrap_or_default(), skew.hint().unwrap_or_default());
        refusal(NOT_READY, server, &skew.to_string(), &detail, &hint)
    })?;
    Ok(answer.registry)
}

/// Sees to it that no registry is behind the tags of this database, nor behind each other.
///
/// # Errors
/// A registry can't be asked, or a tag's row is not fit for it.
pub fn hand_over() -> Checked<()> {
    let source = Source::find().ok_or_else(|| Box::new(TagFailure::NoTable.into()))?;
    let ours = || Ok((store::sites()?, store::tags()?, store::received_tags()?));
    let (sites, tags, received) = source.as_owner(ours).map_err(|error| of_spi(&error))?;
    let mut caller = Caller::default();
    let mut rows = Vec::new();
    if sites.len() > 1 {
        for site in &sites {
            rows.extend(tags_of(&mut caller, site, share(site, sites.len()))?);
        }
    }
    // Rows that say all of a tag come first: others only raise it.
    rows.extend(tags);
    rows.extend(received);
    // What transactions handed out and rolled back.
    rows.extend(
        place::floors(source).into_iter().filter_map(|(tag, floor)| row_of(&to_utf8(tag.as_bytes()), floor)),
    );
    sites.iter().try_for_each(|site| give(&mut caller, site, sites.len(), rows.clone()))
}

/// A row that raises a tag this far.
fn row_of(tag: &str, (day, max_id): Reached) -> Option<Box<RawValue>> {
    const DAY: i64 = 86_400_000_000;
    let first = UnixMicros(i64::from(day) * DAY);
    let period =
        (day != 0).then(|| first.to_string().chars().take_while(|letter| *letter != 'T').collect::<String>());
    let row = serde_json::json!({ "tag": tag, "period": period, "max_id": max_id });
    RawValue::from_string(row.to_string()).ok()
}

/// All tags of a registry, which are fit for it if it is one of several.
fn tags_of(caller: &mut Caller, site: &Site, share: Option<Share>) -> Checked<Vec<Box<RawValue>>> {
    /// What of a row says which ids it gives.
    #[derive(Deserialize)]
    struct Terms {
        tag: String,
        increment: i64,
        remainder: i64,
    }
    let Said::Tags(rows) = ask_site(caller, site, Ask::Tags)?.said else { return Err(garbled(&site.server)) };
    for row in &rows {
        let terms: Terms = serde_json::from_str(row.get()).map_err(|_| garbled(&site.server))?;
        let Terms { tag, increment, remainder } = terms;
        if let Some(share) = share.filter(|share| !share.holds(increment, remainder)) {
            return Err(unfit_row(&site.server, &tag, Unfit::Share { share, increment, remainder }));
        }
    }
    Ok(rows)
}

/// Makes rows here of the tags that were received from registries, as they are there: above all that those have reserved.
/// One that gives no answer is left out, with a notice.
///
/// # Errors
/// Those of SPI.
pub fn take_back() -> Checked<()> {
    let source = Source::find().ok_or_else(|| Box::new(TagFailure::NoTable.into()))?;
    let sites = source.as_owner(store::sites).map_err(|error| of_spi(&error))?;
    let mut caller = Caller::default();
    for site in &sites {
        match tags_of(&mut caller, site, None) {
            Ok(rows) => source
                .as_owner(|| rows.iter().try_for_each(|row| store::take_back(row, &site.seen.identity)))
                .map_err(|error| of_spi(&error))?,
            Err(report) => pgrx::notice!(
                "{}; tags that are known only there have the defaults of segment_create here",
                report.message()
            ),
        }
    }
    source
        .as_owner(|| store::received_tags()?.iter().try_for_each(|row| store::hand_over(row, None).map(drop)))
        .map_err(|error| of_spi(&error))
}

/// Has every registry make a tag, or raise it, so that its ids are above one: for a column that has ids already.
///
/// # Errors
/// A registry can't be asked, or the tag's row is not fit for it.
pub fn seed(tag: &str, highest: i64) -> Checked<()> {
    let source = Source::find().ok_or_else(|| Box::new(TagFailure::NoTable.into()))?;
    let sites = source.as_owner(store::sites).map_err(|error| of_spi(&error))?;
    let rows: Vec<Box<RawValue>> = row_of(tag, (0, highest)).into_iter().collect();
    let mut caller = Caller::default();
    sites.iter().try_for_each(|site| give(&mut caller, site, sites.len(), rows.clone()))
}

fn give(caller: &mut Caller, site: &Site, of: usize, rows: Vec<Box<RawValue>>) -> Checked<()> {
    if rows.is_empty() {
        return Ok(());
    }
    match ask_site(caller, site, Ask::HandOver { rows, share: share(site, of) })?.said {
        Said::HandedOver(None) => Ok(()),
        Said::HandedOver(Some((tag, unfit))) => Err(unfit_row(&site.server, &tag, unfit)),
        _ => Err(garbled(&site.server)),
    }
}

/// Which of several registries this one is; None where there is one.
pub fn share(site: &Site, of: usize) -> Option<Share> {
    u32::try_from(of).ok().filter(|of| *of > 1).map(|of| Share { index: site.position, of })
}

/// Gives the worker id back that this server leased from a registry. Should that fail, it is free when its horizon has
/// passed. Should the transaction be rolled back, it is leased again.
///
/// # Errors
/// Those of SPI; the state can't be written.
pub fn give_up_lease() -> Checked<()> {
    // Another database may be the one that leases it.
    let Some(shared) = shared().filter(|shared| shared.counts.registry() == Some(server::database())) else {
        return Ok(());
    };
    let source = Source::find().ok_or_else(|| Box::new(TagFailure::NoTable.into()))?;
    let sites = source.as_owner(store::sites).map_err(|error| of_spi(&error))?;
    let hindered = |hindrance: tenure::Hindrance| Box::new(hindrance.into());
    for site in &sites {
        let identity = &site.seen.identity;
        let lease = tenure::change(shared, |state, _| {
            let of_site =
                |lease: &Lease| lease.origin.as_ref().is_some_and(|origin| origin.identity == *identity);
            let lease = state.lease.clone().filter(of_site)?;
            // Not to be known again: who asks for a lease before this is committed gets another row.
            state.give_up();
            Some(lease)
        });
        let Some(lease) = lease.map_err(hindered)? else { continue };
        // Ended by now: its mark is exact.
        let end = tenure::change(shared, |state, here| end_of(state, &lease, &here.layout));
        let Lease { datacenter, worker, token, .. } = lease;
        let release = Ask::Release { datacenter, worker, token, from: end.map_err(hindered)? };
        if let Err(report) = ask_site(&mut Caller::default(), site, release) {
            pgrx::notice!("worker id {worker} stays leased until {}: {}", lease.horizon, report.message());
        }
    }
    Ok(())
}

/// Takes away what is in the buffers of this database, and has the worker id looked after when this is committed; from
/// here, if `moves_lease`.
/// What was reserved before can't be published any more: refills are held up by the locks that the caller has.
///
/// # Errors
/// The state can't be written.
pub fn switch(moves_lease: bool) -> Checked<()> {
    static HOOKS: Hooks = Hooks {
        watched: Once::new(),
        before_commit: || (),
        before_prepare: refuse_to_prepare,
        committed: look_after_lease,
        ended: forget,
        subtransaction_aborted: |_| (),
        subtransaction_committed: |_, _| (),
    };
    place::leave_all(server::database(), None);
    let Some(shared) = shared().filter(|shared| matches!(shared.identity, Identity::Leased { .. })) else {
        return Ok(());
    };
    transaction::watch(&HOOKS);
    CHANGED.set(true);
    let named = settings::database();
    if !moves_lease {
        return Ok(());
    }
    if named.is_empty() || database::of_name(&named) == Some(server::database()) {
        // Should the server end before it is acted on, the registrar looks whether this was committed.
        tenure::change(shared, |state, _| state.moving_to = Some(server::database()))
            .map_err(|hindrance| Box::new(hindrance.into()))?;
        MOVING.set(true);
    } else {
        pgrx::notice!(
            "worker ids are still leased from database \"{named}\", which snowflake_ids.database names"
        );
    }
    Ok(())
}

/// Whether the transaction moves the registry of worker ids here.
static MOVING: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));
/// Whether it changes what registries this database uses.
static CHANGED: PerProcess<Cell<bool>> = PerProcess::new(Cell::new(false));

/// Somebody else may commit it, who would not know what there is to do then.
fn refuse_to_prepare() {
    if CHANGED.get() {
        let report = ErrorReport::new(
            Code::ERRCODE_FEATURE_NOT_SUPPORTED,
            "cannot PREPARE a transaction that has changed the registry",
            function_name!(),
        );
        raise(report.set_hint("COMMIT it."));
    }
}

fn forget() {
    MOVING.set(false);
    CHANGED.set(false);
}

fn look_after_lease() {
    let (changed, moving) = (CHANGED.replace(false), MOVING.replace(false));
    if let Some(leases) = leases().filter(|_| changed) {
        if moving {
            leases.moved_to.store(server::database(), Release);
        }
        leases.renew.store(true, Release);
        leases.request.ask();
        lease::call(leases);
    }
}

fn ask(caller: &mut Caller, server: &str, seen: Option<&wire::Registry>, ask: Ask) -> Checked<Answer> {
    let options = PgTryBuilder::new(|| Ok(options(server)))
        .catch_others(|error| {
            let (CaughtError::PostgresError(report)
            | CaughtError::ErrorReport(report)
            | CaughtError::RustPanic { ereport: report, .. }) = error;
            let hint = NoAnswer::NoServer(String::new()).hint();
            Err(refusal(report.sql_error_code(), server, report.message(), "", hint))
        })
        .execute()?;
    let answer = caller.ask_at(server, &options, seen, ask, settings::registry_timeout());
    answer.map_err(|no_answer| refused(server, &no_answer))
}

fn ask_site(caller: &mut Caller, site: &Site, what: Ask) -> Checked<Answer> {
    ask(caller, &site.server, Some(&site.seen), what)
}

fn refused(server: &str, why: &NoAnswer) -> Box<ErrorReport> {
    refusal(why.code(), server, &why.to_string(), why.detail(), why.hint())
}

fn garbled(server: &str) -> Box<ErrorReport> {
    refused(server, &NoAnswer::Garbled("it answers another question".to_owned()))
}

const NOT_READY: Code = Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;

fn refusal(code: Code, server: &str, why: &str, detail: &str, hint: &str) -> Box<ErrorReport> {
    let message = format!("cannot use registry \"{server}\": {why}");
    let report = ErrorReport::new(code, message, function_name!());
    Box::new(if detail.is_empty() { report } else { report.set_detail(detail) }.set_hint(hint))
}

fn unfit_row(server: &str, tag: &str, unfit: Unfit) -> Box<ErrorReport> {
    let why = format!("segment tag \"{tag}\" there is not fit");
    refusal(NOT_READY, server, &why, &unfit.detail(), &unfit.hint(tag))
}

fn of_spi(error: &SpiError) -> Box<ErrorReport> {
    Box::new(spi(error))
}
