//! `kill -9` for one of a server's processes.

use crate::processes;
use crate::server::Server;
use crate::wait;
use anyhow::{Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

impl Server {
    /// Kills one of the server's processes. The server then restarts all other processes by itself.
    pub fn kill9_process(&self, process: i32) -> Result<()> {
        Ok(kill(self.child(process)?, Signal::SIGKILL)?)
    }

    /// Kills one of the server's processes, and waits until the server has ended all other processes.
    pub fn crash_by(&self, process: i32) -> Result<()> {
        const RESTART: &str = "all server processes terminated; reinitializing";
        let before = self.logged(RESTART);
        self.kill9_process(process)?;
        let restarts = || Ok((self.logged(RESTART) > before).then_some(()));
        wait::until(wait::LONG, "the server to end its processes", restarts)
    }

    /// Checks that the postmaster started this process.
    pub(crate) fn child(&self, process: i32) -> Result<Pid> {
        let process = Pid::from_raw(process);
        ensure!(processes::parent(process) == Some(self.pid()?), "process {process} is none of the server's");
        Ok(process)
    }
}
