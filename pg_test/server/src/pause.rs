//! Servers or processes that hang: they exist, and do nothing.

use crate::processes;
use crate::server::Server;
use anyhow::Result;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// Stopped processes, continued when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Paused {
    processes: Vec<Pid>,
}

impl Server {
    /// Stops all of the server's processes. The kernel still accepts connections for them.
    pub fn pause(&self) -> Result<Paused> {
        let postmaster = self.pid()?;
        let mut paused = Paused { processes: vec![postmaster] };
        paused.processes.extend(processes::stop(postmaster)?);
        Ok(paused)
    }

    /// Stops one of the server's processes.
    pub fn pause_process(&self, process: i32) -> Result<Paused> {
        let child = self.child(process)?;
        processes::signal(&[child], Signal::SIGSTOP);
        Ok(Paused { processes: vec![child] })
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        processes::signal(&self.processes, Signal::SIGCONT);
    }
}
