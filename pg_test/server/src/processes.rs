//! The processes of a server, as the operating system lists them.

use crate::wait;
use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;

/// Stops a postmaster and all its children.
pub(crate) fn stop(postmaster: Pid) -> Result<Vec<Pid>> {
    // A stopped postmaster starts no more children, so the list is complete.
    kill(postmaster, Signal::SIGSTOP)?;
    wait::until_true("the postmaster to stop", || {
        Ok(matches!(state(postmaster), None | Some('T' | 'Z' | 'X')))
    })?;
    let children = children(postmaster)?;
    signal(&children, Signal::SIGSTOP);
    Ok(children)
}

/// Sends a signal to processes. Some may have ended already.
pub(crate) fn signal(processes: &[Pid], signal: Signal) {
    for process in processes {
        // An error means that the process is gone.
        let _ = kill(*process, signal);
    }
}

/// The processes that a process has started.
fn children(parent: Pid) -> Result<Vec<Pid>> {
    let list = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
    list.split_whitespace().map(|pid| Ok(Pid::from_raw(pid.parse()?))).collect()
}

/// Waits until none of these processes runs.
pub(crate) fn wait_for_end(processes: &[Pid]) -> Result<()> {
    wait::until_true("the server's children to die", || Ok(!processes.iter().any(|process| runs(*process))))
}

/// Whether a process runs, and does not just wait to be reaped.
fn runs(process: Pid) -> bool {
    !matches!(state(process), None | Some('Z' | 'X'))
}

/// The state of a process as `ps` shows it. None: the process is gone.
fn state(process: Pid) -> Option<char> {
    stat(process).and_then(|fields| fields.chars().next())
}

/// The parent of a process, if the process exists.
pub(crate) fn parent(process: Pid) -> Option<Pid> {
    stat(process)?.split_whitespace().nth(1)?.parse().ok().map(Pid::from_raw)
}

/// The fields of `/proc/PID/stat`, from the state on.
fn stat(process: Pid) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The format is "pid (name) state parent ...", where the name may contain anything.
    stat.rsplit_once(')').map(|(_, fields)| fields.trim_start().to_owned())
}

/// A field of a process's `/proc` status in kB, such as `VmHWM`, its highest memory use. None: the process is gone.
pub fn memory(process: i32, line: &str) -> Result<Option<u64>> {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else { return Ok(None) };
    let found = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    found.map(|text| Ok(text.trim().trim_end_matches(" kB").parse()?)).transpose()
}
