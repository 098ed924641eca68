//! `cargo pgrx` keeps unreferenced sections of the shared library, because it reads the SQL metadata from them. This script sets
//! the same flag for every build, so that nothing is built twice.

fn main() {
    #[cfg(target_os = "linux")]
    println!("cargo:rustc-cdylib-link-arg=-Wl,--no-gc-sections");
}
