//! A server at its start, for the tests of its state.

use snowflake_ids_core::server::clock_reference::Reading;
use snowflake_ids_core::server::lease::Policy;
use snowflake_ids_core::server::state::{DataDirectory, Here, Identity};
use snowflake_ids_core::{Layout, UnixMicros};
use std::time::Duration;

pub const SECOND: Duration = Duration::from_secs(1);
/// An instant on a full second.
pub const NOW: UnixMicros = UnixMicros(1_770_000_000_000_000);
pub const FIXED: Identity = Identity::Fixed { datacenter: 0, worker_id: 3 };
pub const LEASED: Identity = Identity::Leased { datacenter: Some(0) };

pub fn home(name: &str) -> DataDirectory {
    DataDirectory { identity: name.into(), host: "h".into(), directory: "/data".into(), ..Default::default() }
}

/// What the server in the data directory `name` finds.
pub fn here(name: &str, layout: Layout, identity: Identity) -> Here {
    Here {
        system_identifier: 7,
        timeline: 1,
        home: home(name),
        layout,
        identity,
        clock: Reading { wall: NOW, boot: "b".into(), since_boot: 1_000_000_000 },
        replayed: None,
        max_drift: 60 * SECOND,
        max_clock_jump: 3_600 * SECOND,
        token: 21,
        policy: Policy::Reuse,
        starts: false,
    }
}
