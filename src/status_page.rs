//! The page about this server: what its reader may see in the views, and what is known here, for the core to render.
#![allow(clippy::result_large_err, reason = "what pgrx takes")]

use crate::pg::clock::SystemClock;
use crate::pg::report::{report, spi};
use crate::pg::{cluster, extension, server};
use crate::settings;
use crate::shared::generator::shared;
use crate::shared::history::history;
use crate::shared::segments::segments;
use crate::store::status as views;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::spi::SpiError;
use snowflake_ids_core::history::samples;
use snowflake_ids_core::status_page::{ForbiddenError, Limits, Report, Running, Server, render};
use snowflake_ids_core::{Clock, Layout, UnixMicros};
use std::time::Duration;

/// The page, for a server whose ids have this layout.
///
/// # Errors
/// The present role may not read one of the views: then there is no page at all.
pub fn page(layout: Layout) -> Result<String, ErrorReport> {
    // Else the views, whose locks are waited for, may be somebody's own by then, and run their code as whoever looks at the page.
    if !extension::keep() {
        return Err(extension::missing());
    }
    let forbidden = views::forbidden().map_err(|error| spi(&error))?;
    let here = views::server().map_err(|error| spi(&error))?;
    if let Some(view) = forbidden {
        return Err(report(&ForbiddenError { view, role: here.role }));
    }
    let at = SystemClock.now();
    let running = running(at).map_err(|error| spi(&error))?;
    Ok(render(&Report { at, server: complete(here), layout, running }))
}

fn complete(here: Server) -> Server {
    Server {
        system_identifier: cluster::system_identifier(),
        timeline: cluster::timeline(),
        is_standby: server::in_recovery(),
        ..here
    }
}

fn running(at: UnixMicros) -> Result<Option<Running>, SpiError> {
    let (Some(_), Some(segments)) = (shared(), segments()) else { return Ok(None) };
    Ok(Some(Running {
        status: views::status()?,
        limits: limits(),
        has_launcher: segments.launcher.is_manned(),
        places_used: segments.directory.read().len() as u64,
        history: history().map(|history| samples(&history.readings())).unwrap_or_default(),
        tags: views::tags(at)?,
        generators: views::generators()?,
        series: views::series()?,
        registries: views::registries()?,
        sequences: views::sequences()?,
    }))
}

fn limits() -> Limits {
    Limits {
        max_drift: Duration::from_micros(settings::rules().max_drift),
        lease_duration: settings::lease_duration(),
        max_tags: settings::config().map_or(0, |config| config.max_tags as u64),
        sample_interval: settings::sample_interval(),
    }
}
