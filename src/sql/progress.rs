//! The view `snowflake_ids.progress`, and the functions by which the SQL functions `attach` and `detach` report their
//! progress.

use crate::pg::text::Text;
use crate::pg::{role, server, time};
use crate::progress;
use crate::shared::progress::slots;
use crate::sql::error::CallError;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_ids_core::report::progress::{Command, Phase, ProgressSlot};

fn command_of(name: &Text<'_>) -> Result<Command, ErrorReport> {
    let name = name.read("command")?;
    Ok(Command::ALL.into_iter().find(|command| command.name() == name).ok_or(CallError::UnknownCommand)?)
}

fn phase_of(name: &Text<'_>) -> Result<Phase, ErrorReport> {
    let name = name.read("phase")?;
    Ok(Phase::ALL.into_iter().find(|phase| phase.name() == name).ok_or(CallError::UnknownPhase)?)
}

#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn progress_enter(command: Text<'_>, relation: pg_sys::Oid, phase: Text<'_>) -> Result<(), ErrorReport> {
    progress::enter(command_of(&command)?, relation.to_u32(), phase_of(&phase)?);
    Ok(())
}

#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_unsafe, strict)]
fn progress_end(command: Text<'_>) -> Result<(), ErrorReport> {
    progress::end(command_of(&command)?);
    Ok(())
}

/// Returns the progress of all processes. Shows details of other roles' calls only if the caller may see all activity.
#[pg_extern(schema = "snowflake_ids_internal", volatile, parallel_safe)]
fn progress_slots() -> Result<
    TableIterator<
        'static,
        (
            name!(pid, i32),
            name!(datid, pg_sys::Oid),
            name!(relid, Option<pg_sys::Oid>),
            name!(command, Option<&'static str>),
            name!(phase, Option<&'static str>),
            name!(tables_done, Option<i64>),
            name!(tables_total, Option<i64>),
            name!(started_at, Option<TimestampWithTimeZone>),
        ),
    >,
    ErrorReport,
> {
    let all = server::may_see_all_activity();
    let mut rows = Vec::new();
    for seen in slots().iter().filter_map(ProgressSlot::read) {
        let call = seen.call;
        let shown = all || role::has_privileges_of(call.role.into());
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let tables = seen.tables_in_all.filter(|_| shown);
        rows.push((
            call.process.cast_signed(),
            pg_sys::Oid::from(call.database),
            shown.then(|| call.relation.into()),
            shown.then_some(call.command.name()),
            shown.then_some(seen.phase.name()),
            tables.map(|_| count(seen.tables)),
            tables.map(count),
            if shown { Some(time::to_sql(call.began)?) } else { None },
        ));
    }
    Ok(TableIterator::new(rows))
}

pgrx::extension_sql!(
    "
CREATE VIEW snowflake_ids.progress AS
SELECT p.pid, p.datid, d.datname, p.relid, p.command, p.phase, p.tables_done, p.tables_total, p.started_at
FROM snowflake_ids_internal.progress_slots() AS p LEFT JOIN pg_catalog.pg_database AS d ON d.oid = p.datid;
COMMENT ON VIEW snowflake_ids.progress IS 'the progress of running calls of audit, attach and detach';
",
    name = "progress",
    requires = [progress_slots, "status_view"]
);
