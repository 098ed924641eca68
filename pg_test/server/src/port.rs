//! Free TCP ports.

use anyhow::{Context, Result};
use std::net::{Ipv4Addr, TcpListener};

/// A port of 127.0.0.1 that no process listens on now.
pub fn free() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?.port())
}
