//! `cargo pgrx` keeps unreferenced sections of the shared library so that it can read the SQL metadata
//! out of them. Saying so here as well keeps the flags of every build equal, so that nothing is built twice.

fn main() {
    #[cfg(target_os = "linux")]
    println!("cargo:rustc-cdylib-link-arg=-Wl,--no-gc-sections");
}
