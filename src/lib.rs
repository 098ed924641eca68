//! `snowflake_ids`: distributed 64-bit ids as column defaults, inside Postgres.
//!
//! The algorithms are in the crate `snowflake_ids_core`. This crate connects the algorithms to the server. This crate also
//! holds the settings, the shared memory, the SQL functions and the errors. Unsafe code is allowed in `pg` and `entry` only.

mod bound;
mod column;
mod entry;
mod issuer;
mod lease;
mod named;
mod open_transaction;
mod pg;
mod process;
mod progress;
mod registry;
mod safe_position;
mod series;
mod settings;
mod shared;
mod snowflake;
mod sql;
mod store;
mod tag;

use pgrx::prelude::*;

::pgrx::pg_module_magic!(name, version);

/// Initializes the library. The server calls this function at server start if `shared_preload_libraries` names the library.
/// Without that setting, a session loads the library with its first call of a library function. That session can decode ids,
/// but not create any, because the server creates the shared memory for new ids only at its start.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    pg::backtrace::suppress();
    if !pg::server::preloading() {
        return;
    }
    // The sizes of the shared memory depend on the settings, so the settings are defined first.
    settings::define();
    settings::check().unwrap_or_else(|report| pg::report::raise(*report));
    // If this fails, calls for ids report the error.
    drop(issuer::identify_data_directory());
    pg::shmem::request(pg::shmem::Wanted {
        blocks: &shared::BLOCKS,
        begin: process::saved_ranges::restore_high_water_marks,
        end: process::saved_ranges::save,
    });
    pg::redirect::redirect_calls(pg::redirect::Redirect {
        is_known: bound::cache::is_known,
        targets: bound::cache::targets_at_once,
    });
    pg::inline::keep_out(bound::cache::is_redirecting);
    open_transaction::watch();
    store::replayed::watch();
    pg::foreign::assign_xids();
    bound::changes::watch_appliers();
    pg::access::watch();
    pg::utility::watch(pg::utility::Watch {
        database_created: process::forget_database,
        database_dropped: process::leave_database,
        sequence_dropped: bound::changes::sequence_dropped,
        default_dropped: bound::changes::default_dropped,
        preparing: store::replayed::preparing,
        setval_called: bound::changes::setval_called,
        sequence_altered: bound::changes::altered,
        identities_restarted: bound::changes::identities_restarted,
        session_discarded,
        persistence_set: bound::changes::persistence_set,
        has_dropped: bound::changes::has_dropped,
        objects_dropped: bound::changes::objects_dropped,
        watches_columns: || settings::new_columns().is_some(),
        columns_created: bound::changes::columns_created,
        column_altered: column::changes::column_altered,
        identities: pg::identity::IdentityWatch {
            is_any: bound::cache::is_any_bound,
            sequence_of: bound::cache::former_identity,
            all_of: bound::cache::identities_at_once,
            liked: column::changes::liked,
            sequence_altering: column::changes::sequence_altering,
            set: bound::changes::identity_set,
            added: bound::changes::identity_added,
        },
        copies: pg::copying::CopyWatch {
            redirects: || bound::cache::targets_at_once().is_some(),
            left_out: column::changes::copied,
        },
    });
    if !pg::server::upgrading() {
        pg::process::register_launcher();
    }
}

/// Forgets the last ids and numbers of this session. Called for DISCARD ALL, DISCARD SEQUENCES and RESET ALL.
fn session_discarded() {
    snowflake::forget_last();
    tag::cache::forget_last();
    series::forget_last();
    bound::forget_numbers();
}

#[cfg(any(test, feature = "pg_test"))]
#[path = "../pg_test/backend/mod.rs"]
mod backend_tests;

/// Functions that `cargo pgrx test` calls.
#[cfg(test)]
pub mod pg_test {
    /// Does nothing, because the server needs only the settings below.
    pub fn setup(_options: Vec<&str>) {}

    /// Returns the lines of the test server's `postgresql.conf`.
    #[must_use]
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        vec![
            "shared_preload_libraries = 'snowflake_ids'",
            "snowflake_ids.datacenter_id = 3",
            "snowflake_ids.worker_id = 7",
        ]
    }
}
