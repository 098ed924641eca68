//! Audits: the ids of a table, here and on other servers, read in their order, and what is found.
//!
//! | module | holds |
//! | --- | --- |
//! | [`subject`] | what ids a column has |
//! | [`local`] | the table of this database |
//! | [`remote`] | the same table on another server |

mod local;
mod remote;
pub mod subject;

use crate::pg::clock::SystemClock;
use crate::pg::column::{Column, table_name};
use crate::pg::encoding::legible;
use crate::pg::report::bad_argument;
use crate::progress;
use crate::settings;
use local::Local;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgSqlErrorCode, function_name};
use remote::Remote;
use snowflake_ids_core::Clock;
use snowflake_ids_core::audit::{
    self, AuditError, Finding, Place, Snowflakes, Source, Stored, Subject, Unsorted,
};
use snowflake_ids_core::progress::{Command, Phase};
use std::collections::HashMap;
use subject::Kind;

/// What came of something, or the report of why nothing did.
type Checked<T> = Result<T, Box<ErrorReport>>;

/// How many other servers may have the table.
const MAX_CONNECTIONS: usize = 64;

/// What is found, with what else there is to say of it.
pub struct Told {
    pub finding: Finding,
    pub detail: Option<String>,
}

/// Looks at all ids of a column, here and where the connections lead. No more than `most` findings of each sort are listed.
///
/// # Errors
/// It can't be read here, or there.
pub fn run(column: &Column, kind: &Kind, connections: &[Option<Vec<u8>>], most: usize) -> Checked<Vec<Told>> {
    if connections.len() > MAX_CONNECTIONS {
        let detail = format!("{} are given; {MAX_CONNECTIONS} are the most there may be.", connections.len());
        return Err(Box::new(bad_argument("there are too many connections", detail)));
    }
    // How many rows there are elsewhere is not known.
    let rows_here = column.estimated_rows()?.filter(|_| connections.is_empty());
    let table = column.table().to_u32();
    let _shown = progress::begin(Command::Audit, table, rows_here);
    progress::enter(Command::Audit, table, Phase::Reading);
    let mut rows = vec![Rows::Local(Local::open(column))];
    for (number, connection) in (1..).zip(connections) {
        rows.push(Rows::Remote(Box::new(Remote::open(number, connection.as_deref(), column)?)));
    }
    // What these are compared with can't be older than the rows.
    let subject = match kind {
        Kind::Snowflakes(layout) => {
            let max_drift = settings::rules().max_drift;
            Subject::Snowflakes(Snowflakes { layout: *layout, now: SystemClock.now(), max_drift })
        }
        Kind::Numbers(tag) => Subject::Numbers(subject::numbers(tag)),
    };
    let progress = |rows: u64| pgrx::notice!("audited {rows} rows of {}", legible(&column.shown()));
    let found = audit::audit(rows, &subject, most, progress).map_err(|failed| match failed {
        AuditError::Source(report) => report,
        AuditError::Unsorted(unsorted) => Box::new(out_of_order(column, unsorted)),
    })?;
    let mut names = Names::default();
    Ok(found.into_iter().map(|finding| names.tell(finding, column)).collect())
}

/// The rows of a table, wherever it is.
enum Rows {
    Local(Local),
    Remote(Box<Remote>),
}

impl Source for Rows {
    type Error = Box<ErrorReport>;

    fn next(&mut self) -> Checked<Option<Stored>> {
        match self {
            Self::Local(local) => Ok(local.next()),
            Self::Remote(remote) => remote.next(),
        }
    }
}

/// The names of the tables that rows are in, each looked up once.
#[derive(Default)]
struct Names(HashMap<u32, String>);

impl Names {
    fn tell(&mut self, finding: Finding, column: &Column) -> Told {
        let known = std::cell::RefCell::new(&mut self.0);
        let name = |place: Place| match place.source {
            0 => known.borrow_mut().entry(place.table).or_insert_with(|| named(place.table, column)).clone(),
            number => format!("connection {number}"),
        };
        let detail = finding.detail(&name);
        Told { finding, detail }
    }
}

fn named(table: u32, column: &Column) -> String {
    table_name(table.into()).unwrap_or_else(|| column.shown())
}

/// A foreign table may give its rows in any order, as may another server.
fn out_of_order(column: &Column, unsorted: Unsorted) -> ErrorReport {
    let shown = |id: Option<i64>| id.map_or_else(|| "null".to_owned(), |id| id.to_string());
    let place = match unsorted.source {
        0 => format!("table {}", legible(&column.shown())),
        number => format!("connection {number}"),
    };
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_FDW_ERROR,
        format!("rows of {place} do not come in the order of their ids"),
        function_name!(),
    )
    .set_detail(format!("{} comes after {}.", shown(unsorted.id), shown(unsorted.before)))
    .set_hint("Look at the server that gives them, or at the index of the column.")
}
