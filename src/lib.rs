//! `snowflake_ids`: distributed 64-bit ids as column defaults, inside Postgres.
//!
//! This crate is the shell around `snowflake_ids_core`. It knows Postgres and no algorithm: settings,
//! shared memory, SQL functions and errors are here. Unsafe code is in `pg` and `entry` only.

mod entry;
mod issuer;
mod lease;
mod named;
mod pg;
mod progress;
mod registry;
mod segment;
mod sequence;
mod series;
mod settings;
mod shared;
mod snowflake;
mod sql;
mod store;
mod worker;

use pgrx::prelude::*;

::pgrx::pg_module_magic!(name, version);

/// Called by Postgres when the library is loaded: at server start where it is in
/// `shared_preload_libraries`, else in the one session that first calls one of our functions. That session
/// can decode ids; to generate them takes shared memory, which exists only from server start.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    pg::backtrace::suppress();
    if !pg::server::preloading() {
        return;
    }
    // Settings first: the size and content of shared memory follow from them.
    settings::define();
    settings::check().unwrap_or_else(|report| pg::report::raise(*report));
    let keep = pg::shmem::Keep { begin: memory_made, end: server_stopped };
    pg::shmem::request(&shared::BLOCKS, keep);
    pg::redirect::redirect_calls(sequence::cache::targets_at_once);
    pg::inline::keep_out(sequence::cache::is_redirecting);
    sequence::changes::watch_appliers();
    pg::access::watch(pg::access::AccessWatch {
        database_created: worker::forget_database,
        database_dropped: worker::leave_database,
        sequence_dropped: sequence::changes::sequence_dropped,
        setval_called: sequence::changes::setval_called,
    });
    pg::utility::watch(pg::utility::Watch {
        sequence_altered: sequence::changes::altered,
        identities_restarted: sequence::changes::identities_restarted,
        session_discarded,
        watches_columns: || settings::new_columns().is_some(),
        columns_created: sequence::changes::columns_created,
    });
    if !pg::server::upgrading() {
        pg::worker::register_launcher();
    }
}

/// What the last stop left over goes on.
fn memory_made() {
    worker::saved_ranges::restore_high_water_marks();
}

/// What is left over is written down.
fn server_stopped() {
    worker::saved_ranges::save();
}

/// What the session got last is forgotten, as the server forgets it.
fn session_discarded() {
    snowflake::forget_last();
    segment::cache::forget_last();
    series::forget_last();
    sequence::forget_numbers();
}

#[cfg(any(test, feature = "pg_test"))]
#[path = "../pg_test/backend/mod.rs"]
mod backend_tests;

/// What `cargo pgrx test` looks for to set up its server.
#[cfg(test)]
pub mod pg_test {
    /// Nothing to prepare beyond the settings.
    pub fn setup(_options: Vec<&str>) {}

    /// The test server's `postgresql.conf`.
    #[must_use]
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec![
            "shared_preload_libraries = 'snowflake_ids'",
            "snowflake_ids.datacenter_id = 3",
            "snowflake_ids.worker_id = 7",
        ]
    }
}
