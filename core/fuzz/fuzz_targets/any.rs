//! Fuzzes the target that the environment names in `TARGET_NAME`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use snowflake_ids_fuzz::{Target, find};
use std::sync::OnceLock;

static TARGET: OnceLock<&'static Target> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let name = || std::env::var("TARGET_NAME").expect("TARGET_NAME says what to fuzz");
    let target = TARGET.get_or_init(|| find(&name()).expect("there is such a target"));
    (target.check)(bytes);
});
