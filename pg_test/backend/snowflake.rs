//! Snowflake ids inside a server.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::backend_tests::one;
    use crate::pg::clock::SystemClock;
    use crate::settings;
    use crate::shared::generator::SHARED;
    use pgrx::prelude::*;
    use snowflake_ids_core::server::state::Identity;
    use snowflake_ids_core::{Clock, ClockRollback, Layout, SequenceStart};
    use std::time::Duration;

    #[pg_test]
    fn ids_carry_the_servers_identity() {
        let id: i64 = one("SELECT snowflake_nextval()");
        let decoded = Layout::default().decode(id).unwrap();
        assert_eq!((decoded.datacenter_id, decoded.worker_id, decoded.rollback), (3, 7, 0));
        let shared = SHARED.get().unwrap();
        assert_eq!(shared.identity, Identity::Fixed { datacenter: 3, worker_id: 7 });
    }

    #[pg_test]
    fn the_servers_clock_is_postgress() {
        let before = SystemClock.now();
        let postgres: i64 = one("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
        let after = SystemClock.now();
        assert!((before.0..=after.0).contains(&postgres), "{before} {postgres} {after}");
    }

    #[pg_test]
    fn settings_reach_the_rules() {
        assert_eq!(settings::rules().max_drift, 60_000_000);
        assert_eq!(settings::rules().start, SequenceStart::Zero);
        assert_eq!(settings::rollback(), ClockRollback::Wait);
        assert_eq!(settings::clock_wait_timeout(), Duration::from_secs(1));
        assert_eq!(settings::cache().get(), 1);
        Spi::run("SET snowflake_ids.max_drift = '1500ms'").unwrap();
        Spi::run("SET snowflake_ids.sequence_start = rotate").unwrap();
        Spi::run("SET snowflake_ids.clock_rollback = error").unwrap();
        Spi::run("SET snowflake_ids.clock_wait_timeout = '2s'").unwrap();
        Spi::run("SET snowflake_ids.cache = 17").unwrap();
        assert_eq!(settings::rules().max_drift, 1_500_000);
        assert_eq!(settings::rules().start, SequenceStart::Rotate);
        assert_eq!(settings::rollback(), ClockRollback::Error);
        assert_eq!(settings::clock_wait_timeout(), Duration::from_secs(2));
        assert_eq!(settings::cache().get(), 17);
    }
}
