//! Entry points of the background workers.

use crate::pg::process;
use crate::process::{launcher, lease_worker, refill_worker};
use pgrx::{pg_guard, pg_sys};
use snowflake_ids_core::registry::lease_launch::LeaseTask;

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn snowflake_ids_launcher_main(_argument: pg_sys::Datum) {
    process::record_termination();
    process::connect_to_no_database();
    launcher::run();
}

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn snowflake_ids_refill_worker_main(argument: pg_sys::Datum) {
    process::die_when_terminated();
    let (worker_slot, database) = process::number_and_database(argument);
    refill_worker::run(worker_slot, database);
}

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn snowflake_ids_lease_worker_main(argument: pg_sys::Datum) {
    process::die_when_terminated();
    let (task, database) = process::number_and_database(argument);
    let task = if task == 1 { LeaseTask::Look } else { LeaseTask::Serve };
    lease_worker::run(task, database);
}
