//! Suppression of backtraces in errors.

use std::backtrace::Backtrace;
use std::env;

/// Environment variables that turn on backtraces.
const VARIABLES: [&str; 2] = ["RUST_BACKTRACE", "RUST_LIB_BACKTRACE"];

/// Turns off the backtraces that pgrx would add to the DETAIL of errors. Capturing a backtrace takes far longer than raising
/// an error. Rust reads the environment variables once, at the first capture. Therefore the function removes the variables,
/// captures a backtrace, and restores the variables for other libraries. Call this function when the library is loaded.
pub fn suppress() {
    let given = VARIABLES.map(|name| (name, env::var_os(name)));
    for (name, value) in &given {
        if value.is_some() {
            // SAFETY: the server loads libraries in processes that have one thread.
            unsafe { env::remove_var(name) };
        }
    }
    drop(Backtrace::capture());
    for (name, value) in given {
        if let Some(value) = value {
            // SAFETY: the server loads libraries in processes that have one thread.
            unsafe { env::set_var(name, value) };
        }
    }
}
