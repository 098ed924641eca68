//! Background workers: how they are started, stopped and connected, and their transactions.

use super::guc;
use super::process::PerProcess;
use super::wait::{self, Event};
use crate::pg::report::caught;
use pgrx::bgworkers::DynamicBackgroundWorker;
use pgrx::bgworkers::{BackgroundWorker, BackgroundWorkerBuilder, BgWorkerStartTime, SignalWakeFlags};
use pgrx::{PgLogLevel, PgSqlErrorCode, PgTryBuilder, check_for_interrupts, pg_guard, pg_sys};
use snowflake_ids_core::registry::lease_launch::LeaseTask;
use snowflake_ids_core::worker::refill::TransactionError;
use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// Time that the server waits before it starts a launcher that ended anew.
const RESTART: Duration = Duration::from_secs(1);

/// Has the server run a launcher from the moment on in which it accepts writes.
pub fn register_launcher() {
    builder("snowflake_ids launcher", "snowflake_ids_launcher_main").set_restart_time(Some(RESTART)).load();
}

/// Asks for a refill worker for a database at this worker slot; fails where no process is left. Only from the launcher.
pub fn start_refill_worker(worker_slot: u32, database: u32) -> Result<DynamicBackgroundWorker, Unavailable> {
    start("snowflake_ids refill worker", "snowflake_ids_refill_worker_main", worker_slot, database)
}

/// Asks for a lease worker for a database, to serve it or only to look into it. Only from the launcher.
///
/// # Errors
/// All of `max_worker_processes` are in use.
pub fn start_lease_worker(task: LeaseTask, database: u32) -> Result<DynamicBackgroundWorker, Unavailable> {
    start(
        "snowflake_ids lease worker",
        "snowflake_ids_lease_worker_main",
        (task == LeaseTask::Look).into(),
        database,
    )
}

/// The two numbers come to the worker as its argument.
fn start(name: &str, main: &str, number: u32, database: u32) -> Result<DynamicBackgroundWorker, Unavailable> {
    // SAFETY: set once at the start of every process.
    let me = unsafe { pg_sys::MyProcPid };
    builder(name, main)
        .set_restart_time(None)
        .set_argument(Some(pg_sys::Datum::from(u64::from(number) << 32 | u64::from(database))))
        .set_notify_pid(me)
        .load_dynamic()
        .map_err(|_| Unavailable)
}

/// There is no place for another worker.
#[derive(Clone, Copy, Debug)]
pub struct Unavailable;

fn builder(name: &str, function: &str) -> BackgroundWorkerBuilder {
    BackgroundWorkerBuilder::new(name)
        .set_type(name)
        .set_library("snowflake_ids")
        .set_function(function)
        .enable_spi_access()
        .set_start_time(BgWorkerStartTime::RecoveryFinished)
}

// The raw symbol: pg_sys's is wrapped in Rust, and a signal handler must be the function itself.
unsafe extern "C-unwind" {
    fn die(signal: c_int, #[cfg(feature = "pg19")] sender: *const pg_sys::pg_signal_info);
}

/// SIGTERM ends the next sleep, without a line in the log: for a worker that nothing needs to interrupt.
pub fn record_termination() {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP | SignalWakeFlags::SIGTERM);
}

/// SIGTERM ends this worker as it ends a session: waits for locks and for disks, too.
pub fn die_when_terminated() {
    BackgroundWorker::attach_signal_handlers(SignalWakeFlags::SIGHUP);
    // SAFETY: the server's own handler.
    unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17"))]
        pg_sys::pqsignal(pg_sys::SIGTERM.cast_signed(), Some(die));
        #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17")))]
        pg_sys::pqsignal_be(pg_sys::SIGTERM.cast_signed(), Some(die));
    }
}

/// Connects to no database: the worker is seen in `pg_stat_activity`, can read `pg_database`, and is in no database's way.
pub fn connect_to_no_database() {
    // SAFETY: once, by a worker that has no connection.
    unsafe { pg_sys::BackgroundWorkerInitializeConnectionByOid(pg_sys::InvalidOid, pg_sys::InvalidOid, 0) };
}

/// Returns what [`start`] gave a worker: its worker slot or errand, and its database.
#[allow(clippy::cast_possible_truncation, reason = "the two halves that it put together")]
pub fn number_and_database(argument: pg_sys::Datum) -> (u32, u32) {
    let argument = argument.value() as u64;
    ((argument >> 32) as u32, argument as u32)
}

/// Has `action` called when this process ends, whatever the reason.
pub fn on_exit(action: fn()) {
    // SAFETY: a function's address is passed, and taken for one again.
    unsafe { pg_sys::before_shmem_exit(Some(exiting), pg_sys::Datum::from(action as usize)) };
}

#[pg_guard]
unsafe extern "C-unwind" fn exiting(_code: c_int, action: pg_sys::Datum) {
    // SAFETY: what `on_exit` passed.
    let action: fn() = unsafe { std::mem::transmute(action.value()) };
    action();
}

/// It must not fail.
type OnFatal = fn(i32);

/// The action for the SQLSTATE of the error that ends this process, as the server packs it.
static ON_FATAL: PerProcess<Cell<Option<OnFatal>>> = PerProcess::new(Cell::new(None));
/// Whose hook was there before ours.
static LOGGED_BEFORE: PerProcess<Cell<pg_sys::emit_log_hook_type>> = PerProcess::new(Cell::new(None));

/// Has `action` called with the SQLSTATE of an error that ends this process.
pub fn on_fatal_error(action: OnFatal) {
    ON_FATAL.set(Some(action));
    // SAFETY: a variable of this process, which has one thread; the hook that was there is called by ours.
    unsafe {
        LOGGED_BEFORE.set(pg_sys::emit_log_hook);
        pg_sys::emit_log_hook = Some(logged);
    }
}

unsafe extern "C-unwind" fn logged(error: *mut pg_sys::ErrorData) {
    // SAFETY: the server's, and there during the call.
    let (level, code) = unsafe { ((*error).elevel, (*error).sqlerrcode) };
    if level >= PgLogLevel::FATAL as c_int
        && let Some(action) = ON_FATAL.get()
    {
        action(code);
    }
    if let Some(before) = LOGGED_BEFORE.get() {
        // SAFETY: as the server would have called it.
        unsafe { before(error) };
    }
}

/// Ends a worker as a session is ended.
pub fn terminate(pid: pg_sys::pid_t) {
    // SAFETY: the process is one of the server's, which knows it by this number.
    unsafe { libc::kill(pid, libc::SIGTERM) };
}

/// Time that a worker waits for the lock of its database, so that it is in no session's way for long.
const CONNECT_TIMEOUT: &CStr = c"1s";

/// Connects this worker to a database, also a closed one, as its superuser, with settings that users can't change for it, and this
/// `lock_timeout`. Where it can't, an error is thrown, or the worker ends.
pub fn connect(database: u32, lock_timeout: &CStr) {
    let of_its_own: [(&CStr, &CStr); 6] = [
        (c"search_path", c"pg_catalog, pg_temp"),
        (c"default_transaction_isolation", c"read committed"),
        (c"default_transaction_read_only", c"off"),
        (c"session_replication_role", c"origin"),
        (c"lock_timeout", lock_timeout),
        // A statement would be compiled in each of these processes, which takes a hundred times as long as it runs.
        (c"jit", c"off"),
    ];
    // The database itself may be locked, by an ALTER DATABASE that is not committed.
    guc::impose(c"lock_timeout", CONNECT_TIMEOUT);
    // SAFETY: once, by a worker that has no connection.
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
    // Ids that are handed out must have reached the disk. An operator that asks for more than that gets it.
    if guc::shown(c"synchronous_commit").as_deref() != Some("remote_apply") {
        guc::impose(c"synchronous_commit", c"on");
    }
}

/// The end of a worker's sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// It was woken, or the time was over.
    Over,
    /// It is to stop.
    Stopped,
}

/// Sleeps until this worker is woken, at most so long. Shutdown ends a worker here that handles signals like a session.
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
        // SAFETY: as the server's own processes do between two pieces of work.
        unsafe { pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP) };
    }
    Sleep::Over
}

/// Ends this worker. Unless it is the server that stops, another takes its place.
pub fn end() -> ! {
    // SAFETY: between two pieces of work.
    unsafe { pg_sys::proc_exit(1) };
    #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17")))]
    unreachable!("the process has ended")
}

/// Runs a transaction and commits it; where it fails, nothing was changed. Its result is durable.
pub fn transaction<T>(work: impl FnOnce() -> T) -> Result<T, TransactionError> {
    let work = AssertUnwindSafe(|| Ok(BackgroundWorker::transaction(AssertUnwindSafe(work))));
    PgTryBuilder::new(work)
        .catch_others(|error| {
            // SAFETY: as in the server's own workers after an error.
            unsafe { pg_sys::AbortCurrentTransaction() };
            let report = caught(error);
            let code = report.sql_error_code();
            Err(TransactionError {
                code: code as i32,
                message: report.message().to_owned(),
                is_lock_timeout: code == PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
            })
        })
        .execute()
}

/// Says in `pg_stat_activity` what this worker does; None: nothing.
pub fn show_activity(what: Option<&str>) {
    use pg_sys::BackendState;
    let text = what.and_then(|what| std::ffi::CString::new(what).ok());
    let state = if text.is_some() { BackendState::STATE_RUNNING } else { BackendState::STATE_IDLE };
    let text = text.as_deref().map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the text is copied.
    unsafe { pg_sys::pgstat_report_activity(state, text) };
}
