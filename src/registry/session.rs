//! Asking registries in a session, whose user is told at once what stands in the way.

use super::call::{Block, Options, RegistryCaller, options};
use crate::pg::report::{caught, report, spi, sqlstate_of};
use crate::pg::server::may_see_all_activity;
use crate::segment::error::SegmentError;
use crate::settings;
use crate::store::tables::SEGMENT;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::spi::SpiError;
use pgrx::{PgSqlErrorCode as Code, PgTryBuilder, function_name};
use snowflake_ids_core::registry::error::RegistryError;
use snowflake_ids_core::registry::link::Site;
use snowflake_ids_core::registry::wire::{self, RequestBody, Response};
use snowflake_ids_core::sequence::reservation::Unfit;

/// What came of something, or the report of why nothing did.
pub type Checked<T> = Result<T, Box<ErrorReport>>;

/// Asks the registry of a foreign server; `seen` says which one is meant.
pub fn ask(
    caller: &mut RegistryCaller,
    server: &str,
    seen: Option<&wire::Registry>,
    ask: RequestBody,
) -> Checked<Response> {
    let options = options_of(server)?;
    let answer = caller.ask_at(server, &options, seen, ask, settings::registry_timeout());
    answer.map_err(|error| refused(server, &error))
}

/// Returns which registry a name leads to now.
pub fn look(server: &str) -> Checked<wire::Registry> {
    ask(&mut RegistryCaller::default(), server, None, RequestBody::Introduce).map(|answer| answer.registry)
}

fn options_of(server: &str) -> Checked<Options> {
    PgTryBuilder::new(|| Ok(options(server)))
        .catch_others(|error| {
            let report = caught(error);
            let no_server = RegistryError::NoServer(String::new());
            let hint = report.hint().unwrap_or(no_server.hint());
            let detail = report.detail().unwrap_or_default();
            Err(refusal(report.sql_error_code(), server, report.message(), detail, hint))
        })
        .execute()
}

/// Begins a transaction at a registry in use, which is one of so many that are asked by turns.
pub fn begin(caller: &mut RegistryCaller, site: &Site, of: usize) -> Checked<Block> {
    let block = caller.begin(site, &options_of(&site.server)?, of, settings::registry_timeout());
    block.map_err(|error| refused(&site.server, &error))
}

/// Why a registry gave no answer, for the session's user.
pub fn refused(server: &str, why: &RegistryError) -> Box<ErrorReport> {
    // Not every user is to know where it is.
    let shown = if may_see_all_activity() { why.to_string() } else { why.briefly() };
    refusal(sqlstate_of(why.kind()), server, &shown, why.detail(), why.hint())
}

/// An answer to another question.
pub fn garbled(server: &str) -> Box<ErrorReport> {
    refused(server, &RegistryError::other_kind())
}

/// What keeps a registry from being used can be mended.
pub const NOT_READY: Code = Code::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;

/// Returns the reason why a registry can't be used.
pub fn refusal(code: Code, server: &str, why: &str, detail: &str, hint: &str) -> Box<ErrorReport> {
    let message = format!("cannot use registry \"{server}\": {why}");
    let report = ErrorReport::new(code, message, function_name!());
    Box::new(if detail.is_empty() { report } else { report.set_detail(detail) }.set_hint(hint))
}

/// A tag's row there is not fit.
pub fn unfit_row(server: &str, tag: &str, unfit: Unfit) -> Box<ErrorReport> {
    let why = format!("segment tag \"{tag}\" there is not fit");
    refusal(NOT_READY, server, &why, &unfit.detail(), &unfit.hint(tag))
}

/// Runs SQL on the tables of this database, with the rights of their owner.
pub fn here<T>(work: impl FnOnce() -> Result<T, SpiError>) -> Checked<T> {
    let source = SEGMENT.find().ok_or_else(|| Box::new(report(&SegmentError::NoTable)))?;
    source.as_owner(work).map_err(|error| Box::new(spi(&error)))
}
