//! Where background workers begin.

use crate::pg::worker::{self, Errand};
use crate::worker::{refiller, registrar, supervisor};
use pgrx::{pg_guard, pg_sys};

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn snowflake_ids_supervisor_main(_argument: pg_sys::Datum) {
    worker::note_termination();
    worker::connect_to_no_database();
    supervisor::run();
}

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn snowflake_ids_refiller_main(argument: pg_sys::Datum) {
    worker::die_when_terminated();
    let (desk, database) = worker::number_and_database(argument);
    refiller::run(desk, database);
}

#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn snowflake_ids_registrar_main(argument: pg_sys::Datum) {
    worker::die_when_terminated();
    let (errand, database) = worker::number_and_database(argument);
    let errand = if errand == Errand::Survey as u32 { Errand::Survey } else { Errand::Serve };
    registrar::run(errand, database);
}
