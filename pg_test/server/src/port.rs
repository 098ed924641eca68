//! TCP ports for servers.

use anyhow::{Context, Result};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Ports below the range from which the system chooses ports for outgoing connections.
const RANGE: Range<u16> = 10_000..32_000;

/// A port of 127.0.0.1 that no other test gets, even while nobody listens on it.
#[derive(Debug)]
pub struct Port {
    number: u16,
    /// An abstract socket address. Only one process can have it, and the system frees it when that process ends.
    _claim: UnixListener,
}

impl Port {
    /// Finds a port on which no process listens.
    ///
    /// # Errors
    /// All ports are in use.
    pub fn free() -> Result<Self> {
        let length = u64::from(RANGE.end - RANGE.start);
        let start = RandomState::new().build_hasher().finish() % length;
        let mut numbers =
            (0..length).map(|step| RANGE.start + u16::try_from((start + step) % length).unwrap_or(0));
        numbers.find_map(Self::claim).context("no free port on 127.0.0.1")
    }

    fn claim(number: u16) -> Option<Self> {
        let address = SocketAddr::from_abstract_name(format!("snowflake_ids test port {number}")).ok()?;
        let claim = UnixListener::bind_addr(&address).ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        Some(Self { number, _claim: claim })
    }

    /// The port itself.
    pub fn number(&self) -> u16 {
        self.number
    }
}
