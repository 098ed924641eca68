//! No backtraces in errors.

use std::backtrace::Backtrace;
use std::env;

/// The variables that ask for backtraces.
const VARIABLES: [&str; 2] = ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE"];

/// Has this library make no backtraces: pgrx would put them into the DETAIL of errors, and each takes far longer than an error.
/// Rust looks at the environment when the first one is made, so one is made while the variables are away; other libraries find them
/// again. Called when the library is loaded.
pub fn suppress() {
    let given = VARIABLES.map(|name| (name, env::var_os(name)));
    for (name, value) in &given {
        if value.is_some() {
            // SAFETY: libraries are loaded by processes of the server, which have one thread.
            unsafe { env::remove_var(name) };
        }
    }
    drop(Backtrace::capture());
    for (name, value) in given {
        if let Some(value) = value {
            // SAFETY: as above.
            unsafe { env::set_var(name, value) };
        }
    }
}
