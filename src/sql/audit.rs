//! Auditing the ids of a table.

use super::layout;
use crate::audit::subject::{self, Kind};
use crate::audit::{self, Told};
use crate::pg::column::Column;
use crate::pg::report::bad_argument;
use crate::pg::tag::{self, TagArg};
use crate::pg::text::{Text, TextOut, Texts};
use crate::segment::error::SegmentError;
use pgrx::datum::Date;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::audit::MAX_FINDINGS;
use snowflake_ids_core::audit::column_default::Origin;
use std::ffi::CStr;

/// All connections together, in bytes.
const MAX_CONNECTIONS_BYTES: usize = 64 * 1_024;

/// From 1970-01-01 to 2000-01-01, from which the server counts days.
const POSTGRES_EPOCH_DAYS: i64 = 10_957;

type Row = (String, bool, Option<i64>, i64, Option<i32>, Option<i32>, Option<Date>, Option<TextOut>);

/// What the ids of the column are: as the caller says, or as its default does.
fn kind(column: &Column, generator: Option<Text<'_>>, tag: Option<TagArg<'_>>) -> Result<Kind, ErrorReport> {
    match (generator, tag) {
        (Some(_), Some(_)) => {
            let detail = "Ids are those of a generator, or numbers of a segment tag.";
            Err(bad_argument("generator and tag exclude each other", detail))
        }
        (Some(generator), None) => Ok(Kind::Snowflakes(layout::of_generator(&generator)?)),
        (None, Some(tag)) => numbers(tag.0),
        (None, None) => match subject::origin_of(column).map_err(|report| *report)? {
            Some(Origin::Tag(tag)) => numbers(&tag),
            Some(Origin::Generator(name)) => Ok(Kind::Snowflakes(layout::of_name(&name)?)),
            None => Ok(Kind::Snowflakes(layout::of_server()?)),
        },
    }
}

fn numbers(tag: &[u8]) -> Result<Kind, ErrorReport> {
    let tag = tag::checked(tag).map_err(SegmentError::BadTag)?;
    subject::check(&tag)?;
    Ok(Kind::Numbers(Box::new(tag)))
}

fn row(told: Told) -> Row {
    let Told { finding, detail } = told;
    let number = |number: u32| number.cast_signed();
    let (datacenter, worker) =
        finding.node().map(|(datacenter, worker)| (number(datacenter), number(worker))).unzip();
    (
        finding.sort().name().to_owned(),
        finding.is_fault(),
        finding.id(),
        i64::try_from(finding.count()).unwrap_or(i64::MAX),
        datacenter,
        worker,
        finding.day().and_then(date),
        detail.and_then(TextOut::of),
    )
}

/// A day as SQL has it. Every layout ends before dates do.
fn date(day: i64) -> Option<Date> {
    let day = i32::try_from(day - POSTGRES_EPOCH_DAYS).ok()?;
    Date::try_from(day).ok()
}

#[pg_schema]
mod snowflake_ids {
    use super::{
        CStr, Column, Date, ErrorReport, MAX_CONNECTIONS_BYTES, MAX_FINDINGS, TagArg, Text, TextOut, Texts,
        audit, bad_argument, kind, row,
    };
    use pgrx::prelude::*;

    /// What is wrong with the ids of a table, and how many there are of each node and day.
    #[allow(clippy::too_many_arguments, reason = "what an audit takes")]
    #[pg_extern(sql = r#"
CREATE FUNCTION snowflake_ids.audit("table" regclass, "column" name, generator text DEFAULT NULL,
    connections text[] DEFAULT NULL, tag text DEFAULT NULL, max_findings integer DEFAULT 10000)
RETURNS TABLE (finding text, is_fault boolean, id bigint, count bigint, datacenter_id integer, worker_id integer,
    day date, detail text)
LANGUAGE c VOLATILE PARALLEL UNSAFE COST 100000 ROWS 100 AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_ids.audit IS
    'what is wrong with the ids of a table, here and on other servers, and how many there are of each node and day';
"#)]
    fn audit_run(
        table: Option<pg_sys::Oid>,
        column: Option<&CStr>,
        generator: Option<Text<'_>>,
        connections: Option<Texts<'_>>,
        tag: Option<TagArg<'_>>,
        max_findings: Option<i32>,
    ) -> Result<
        TableIterator<
            'static,
            (
                name!(finding, String),
                name!(is_fault, bool),
                name!(id, Option<i64>),
                name!(count, i64),
                name!(datacenter_id, Option<i32>),
                name!(worker_id, Option<i32>),
                name!(day, Option<Date>),
                name!(detail, Option<TextOut>),
            ),
        >,
        ErrorReport,
    > {
        let (Some(table), Some(column)) = (table, column) else {
            return Err(bad_argument("table and column must not be null", "They name the ids."));
        };
        let most = usize::try_from(max_findings.unwrap_or_default())
            .ok()
            .filter(|most| (1..=MAX_FINDINGS).contains(most));
        let most = most.ok_or_else(|| {
            let detail = format!("It must be 1 to {MAX_FINDINGS}.");
            bad_argument("max_findings is out of range", detail)
        })?;
        let column = Column::find(table, column).map_err(|report| *report)?;
        let kind = kind(&column, generator, tag)?;
        let connections =
            connections.map(|texts| texts.read(MAX_CONNECTIONS_BYTES, "connections")).transpose()?;
        let told =
            audit::run(&column, &kind, &connections.unwrap_or_default(), most).map_err(|report| *report)?;
        Ok(TableIterator::new(told.into_iter().map(row)))
    }
}
