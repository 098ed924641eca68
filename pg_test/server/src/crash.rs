//! `kill -9` for a whole server and for one of its processes; a process that is held up.

use crate::server::Server;
use crate::wait;
use anyhow::{Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

impl Server {
    /// Kills the postmaster and all its children at once and waits until none of them runs: a child that
    /// lives on keeps the shared memory and with it the next start out.
    ///
    /// # Errors
    /// The server is not running, or a process does not die.
    pub fn kill9(&mut self) -> Result<()> {
        let postmaster = self.pid()?;
        // A stopped postmaster forks no more, so the list of its children is whole.
        kill(postmaster, Signal::SIGSTOP)?;
        let children = children(postmaster)?;
        kill(postmaster, Signal::SIGKILL)?;
        for child in &children {
            // An error says that it is gone already.
            let _ = kill(*child, Signal::SIGKILL);
        }
        self.wait_for_exit()?;
        wait::until(Duration::from_secs(20), "the server's children to die", || {
            Ok((!children.iter().any(|child| runs(*child))).then_some(()))
        })
    }

    /// Kills one of the server's processes; the server then restarts all the others by itself.
    ///
    /// # Errors
    /// It is none of the server's.
    pub fn kill9_process(&self, process: i32) -> Result<()> {
        Ok(kill(self.child(process)?, Signal::SIGKILL)?)
    }

    /// Kills one of the server's processes and waits until the server has ended all the others.
    ///
    /// # Errors
    /// It is none of the server's, or the server goes on.
    pub fn crash_by(&self, process: i32) -> Result<()> {
        const RESTART: &str = "all server processes terminated; reinitializing";
        let before = self.logged(RESTART);
        self.kill9_process(process)?;
        let restarts = || Ok((self.logged(RESTART) > before).then_some(()));
        wait::until(Duration::from_secs(20), "the server to end its processes", restarts)
    }

    /// Stops one of the server's processes wherever it is and lets it go on after a while.
    ///
    /// # Errors
    /// It is none of the server's.
    pub fn hold_up(&self, process: i32, time: Duration) -> Result<()> {
        let child = self.child(process)?;
        kill(child, Signal::SIGSTOP)?;
        sleep(time);
        Ok(kill(child, Signal::SIGCONT)?)
    }

    fn child(&self, process: i32) -> Result<Pid> {
        let process = Pid::from_raw(process);
        ensure!(children(self.pid()?)?.contains(&process), "process {process} is none of the server's");
        Ok(process)
    }
}

/// The processes that a process has started.
pub(crate) fn children(parent: Pid) -> Result<Vec<Pid>> {
    let list = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
    list.split_whitespace().map(|pid| Ok(Pid::from_raw(pid.parse()?))).collect()
}

/// Whether a process is there and not merely waiting to be reaped.
fn runs(process: Pid) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // "pid (name) state ...", and the name may hold anything.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}
