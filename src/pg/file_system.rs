//! File systems.

/// Returns the type of the working directory's file system, as in `statfs`; None if the call failed.
#[allow(clippy::useless_conversion, reason = "the field's type differs between platforms")]
pub fn of_working_directory() -> Option<i64> {
    // SAFETY: the struct consists of integers, for which zeros are valid.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero, and the call writes to a local variable.
    (unsafe { libc::statfs(c".".as_ptr(), &raw mut found) } == 0).then(|| found.f_type.into())
}
