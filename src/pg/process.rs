//! Background workers: start, stop, connection and transactions.

use super::guc;
use super::per_process::PerProcess;
use super::wait::{self, Event};
use crate::pg::report::{caught, letters};
use pgrx::bgworkers::DynamicBackgroundWorker;
use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, BgWorkerStartTime, SignalWakeFlags};
use pgrx::{PgLogLevel, PgTryBuilder, check_for_interrupts, pg_guard, pg_sys};
use snowflake_ids_core::registry::error::SqlError;
use snowflake_ids_core::registry::lease_launch::LeaseTask;
use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// The time until the server restarts a launcher that has ended.
const RESTART: Duration = Duration::from_secs(1);

/// Registers the launcher. The server starts the launcher as soon as the server accepts writes.
pub fn register_launcher() {
    builder("snowflake_ids launcher", "snowflake_ids_launcher_main").set_restart_time(Some(RESTART)).load();
}

/// Starts a refill worker for a database and a worker slot; None if `max_worker_processes` is reached. Only the launcher
/// may call this function.
pub fn start_refill_worker(worker_slot: u32, database: u32) -> Option<DynamicBackgroundWorker> {
    start("snowflake_ids refill worker", "snowflake_ids_refill_worker_main", worker_slot, database)
}

/// Starts a lease worker, which serves a database or only inspects it; None if `max_worker_processes` is reached. Only the
/// launcher may call this function.
pub fn start_lease_worker(task: LeaseTask, database: u32) -> Option<DynamicBackgroundWorker> {
    start(
        "snowflake_ids lease worker",
        "snowflake_ids_lease_worker_main",
        (task == LeaseTask::Look).into(),
        database,
    )
}

/// Starts a worker that receives the two numbers as its argument.
fn start(name: &str, main: &str, number: u32, database: u32) -> Option<DynamicBackgroundWorker> {
    // SAFETY: the variable is set once, at the start of every process.
    let me = unsafe { pg_sys::MyProcPid };
    builder(name, main)
        .set_restart_time(None)
        .set_argument(Some(pg_sys::Datum::from(u64::from(number) << 32 | u64::from(database))))
        .set_notify_pid(me)
        .load_dynamic()
        .ok()
}

fn builder(name: &str, function: &str) -> BackgroundWorkerBuilder {
    BackgroundWorkerBuilder::new(name)
        .set_type(name)
        .set_library("snowflake_ids")
        .set_function(function)
        .enable_spi_access()
        .set_start_time(BgWorkerStartTime::RecoveryFinished)
}

// This declaration bypasses pg_sys's Rust wrapper: a signal handler must be the C function itself.
unsafe extern "C-unwind" {
    fn die(signal: c_int, #[cfg(feature = "pg19")] sender: *const pg_sys::pg_signal_info);
}

/// Makes SIGTERM end the next sleep, without a log line. Suits a worker whose work needs no interruption.
pub fn record_termination() {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP | SignalWakeFlags::SIGTERM);
}

/// Makes SIGTERM end this worker like a session, even while it waits for a lock or a disk.
pub fn die_when_terminated() {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP);
    // SAFETY: the handler is the server's own.
    unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17"))]
        pg_sys::pqsignal(pg_sys::SIGTERM.cast_signed(), Some(die));
        #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17")))]
        pg_sys::pqsignal_be(pg_sys::SIGTERM.cast_signed(), Some(die));
    }
}

/// Connects to no database. The worker appears in `pg_stat_activity`, can read `pg_database`, and blocks no DROP DATABASE.
pub fn connect_to_no_database() {
    // SAFETY: the function is called once, by a worker that has no connection.
    unsafe { pg_sys::BackgroundWorkerInitializeConnectionByOid(pg_sys::InvalidOid, pg_sys::InvalidOid, 0) };
}

/// Decodes the argument of [`start`]: the worker slot or the task, and the database.
#[allow(clippy::cast_possible_truncation, reason = "the two halves that it put together")]
pub fn number_and_database(argument: pg_sys::Datum) -> (u32, u32) {
    let argument = argument.value() as u64;
    ((argument >> 32) as u32, argument as u32)
}

/// Runs `action` when this process exits, also after a fatal error. A crash skips the action.
pub fn on_exit(action: fn()) {
    // SAFETY: the function's address is passed as a number. `exiting` converts the number back.
    unsafe { pg_sys::before_shmem_exit(Some(exiting), pg_sys::Datum::from(action as usize)) };
}

#[pg_guard]
unsafe extern "C-unwind" fn exiting(_code: c_int, action: pg_sys::Datum) {
    // SAFETY: `on_exit` passed this address.
    let action: fn() = unsafe { std::mem::transmute(action.value()) };
    action();
}

/// An action that must not fail.
type OnFatal = fn(i32);

/// The action for a fatal error. Its argument is the SQLSTATE in the server's packed form.
static ON_FATAL: PerProcess<Cell<Option<OnFatal>>> = PerProcess::new(Cell::new(None));
/// The previous log hook.
static LOGGED_BEFORE: PerProcess<Cell<pg_sys::emit_log_hook_type>> = PerProcess::new(Cell::new(None));

/// Runs `action` when an error ends this process, and passes the error's SQLSTATE to `action`.
pub fn on_fatal_error(action: OnFatal) {
    ON_FATAL.set(Some(action));
    // SAFETY: a variable of this process, which only the main thread uses; `logged` calls the previous hook.
    unsafe {
        LOGGED_BEFORE.set(pg_sys::emit_log_hook);
        pg_sys::emit_log_hook = Some(logged);
    }
}

unsafe extern "C-unwind" fn logged(error: *mut pg_sys::ErrorData) {
    // SAFETY: the server's struct lives during the call.
    let (level, code) = unsafe { ((*error).elevel, (*error).sqlerrcode) };
    if level >= PgLogLevel::FATAL as c_int
        && let Some(action) = ON_FATAL.get()
    {
        action(code);
    }
    if let Some(before) = LOGGED_BEFORE.get() {
        // SAFETY: called with the server's argument.
        unsafe { before(error) };
    }
}

/// Ends a worker like `pg_terminate_backend`.
pub fn terminate(pid: pg_sys::pid_t) {
    // SAFETY: the number belongs to a process of this server.
    unsafe { libc::kill(pid, libc::SIGTERM) };
}

/// The longest wait of a connecting worker for a lock on its database. The time is short, so that a waiting worker does
/// not delay sessions.
const CONNECT_TIMEOUT: &CStr = c"1s";

/// Connects this worker to a database as the bootstrap superuser, even if the database allows no connections. Users cannot
/// change the settings made here. If the connection fails, the function throws an error or the worker ends.
pub fn connect(database: u32, lock_timeout: &CStr) {
    let of_its_own: [(&CStr, &CStr); 6] = [
        (c"search_path", c"pg_catalog, pg_temp"),
        (c"default_transaction_isolation", c"read committed"),
        (c"default_transaction_read_only", c"off"),
        (c"session_replication_role", c"origin"),
        (c"lock_timeout", lock_timeout),
        // JIT compilation of a statement takes a hundred times as long as running the statement.
        (c"jit", c"off"),
    ];
    // An uncommitted ALTER DATABASE may hold a lock on the database.
    guc::impose(c"lock_timeout", CONNECT_TIMEOUT);
    // SAFETY: the function is called once, by a worker that has no connection.
    unsafe {
        pg_sys::BackgroundWorkerInitializeConnectionByOid(
            pg_sys::Oid::from(database),
            pg_sys::InvalidOid,
            pg_sys::BGWORKER_BYPASS_ALLOWCONN,
        );
    }
    for (name, value) in of_its_own {
        guc::impose(name, value);
    }
    // The reservation of a range must be on disk before its ids are handed out. The stricter `remote_apply` is kept.
    if guc::shown(c"synchronous_commit").as_deref() != Some("remote_apply") {
        guc::impose(c"synchronous_commit", c"on");
    }
}

/// The reason why a worker's sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// The worker was woken, or the time is over.
    Over,
    /// The worker has to stop.
    Stopped,
}

/// Sleeps until this worker is woken or the time is over. A worker that handles SIGTERM like a session may end here.
pub fn sleep(event: Event, limit: Duration) -> Sleep {
    check_for_interrupts!();
    if BackgroundWorker::sigterm_received() {
        return Sleep::Stopped;
    }
    wait::until_woken(event, limit);
    check_for_interrupts!();
    if BackgroundWorker::sigterm_received() {
        return Sleep::Stopped;
    }
    if BackgroundWorker::sighup_received() {
        // SAFETY: the server's own processes also reload the configuration between two pieces of work.
        unsafe { pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP) };
    }
    Sleep::Over
}

/// Ends the launcher. The server restarts the launcher, unless the server is stopping.
pub fn end() -> ! {
    // SAFETY: called between two pieces of work.
    unsafe { pg_sys::proc_exit(1) };
    #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17")))]
    unreachable!("the process has ended")
}

/// Runs `work` in a transaction and commits the transaction. After an error, rolls the transaction back.
pub fn transaction<T>(work: impl FnOnce() -> T) -> Result<T, SqlError> {
    let work = AssertUnwindSafe(|| Ok(BackgroundWorker::transaction(AssertUnwindSafe(work))));
    PgTryBuilder::new(work)
        .catch_others(|error| {
            // SAFETY: the server's own workers also abort their transaction after an error.
            unsafe { pg_sys::AbortCurrentTransaction() };
            let report = caught(error);
            Err(SqlError::new(letters(report.sql_error_code() as i32), report.message()))
        })
        .execute()
}

/// Sets the activity of this worker in `pg_stat_activity`; None means idle.
pub fn show_activity(what: Option<&str>) {
    use pg_sys::BackendState;
    let text = what.and_then(|what| std::ffi::CString::new(what).ok());
    let state = if text.is_some() { BackendState::STATE_RUNNING } else { BackendState::STATE_IDLE };
    let text = text.as_deref().map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the text is copied.
    unsafe { pg_sys::pgstat_report_activity(state, text) };
}
