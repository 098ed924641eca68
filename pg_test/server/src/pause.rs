//! A server that hangs: all its processes are there and none of them does anything.

use crate::crash::children;
use crate::server::Server;
use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A server that hangs until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Paused {
    processes: Vec<Pid>,
}

impl Server {
    /// Stops all its processes where they are. Connections to it are still accepted, by the kernel.
    ///
    /// # Errors
    /// It is not running.
    pub fn pause(&self) -> Result<Paused> {
        let postmaster = self.pid()?;
        let mut paused = Paused { processes: vec![postmaster] };
        // A stopped postmaster forks no more, so the list of its children is whole.
        kill(postmaster, Signal::SIGSTOP)?;
        paused.processes.extend(children(postmaster)?);
        for child in &paused.processes[1..] {
            // An error says that it has just ended.
            let _ = kill(*child, Signal::SIGSTOP);
        }
        Ok(paused)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        for process in &self.processes {
            let _ = kill(*process, Signal::SIGCONT);
        }
    }
}
