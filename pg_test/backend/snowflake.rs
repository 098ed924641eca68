//! Snowflake ids inside a server.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::backend_tests::{one, sqlstate};
    use crate::pg::clock::SystemClock;
    use crate::shared::generator::SHARED;
    use crate::{named, settings, snowflake};
    use pgrx::prelude::*;
    use snowflake_ids_core::server::state::Identity;
    use snowflake_ids_core::session::SessionError;
    use snowflake_ids_core::{Cause, Clock, ClockRollback, Drift, GeneratorError, Layout, SequenceStart};
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    #[pg_test]
    fn ids_carry_the_servers_identity() {
        let id: i64 = one("SELECT snowflake_nextval()");
        let decoded = Layout::default().decode(id).unwrap();
        assert_eq!((decoded.datacenter_id, decoded.worker_id, decoded.rollback), (3, 7, 0));
        let shared = SHARED.get().unwrap();
        assert_eq!(shared.identity, Identity::Fixed { datacenter: 3, worker_id: 7 });
    }

    #[pg_test]
    fn ids_carry_the_time_at_which_they_were_made() {
        let before = SystemClock.now();
        let id: i64 = one("SELECT snowflake_nextval()");
        let after = SystemClock.now();
        let made = Layout::default().decode(id).unwrap().timestamp;
        // A tick is a millisecond, and other tests on this server may have borrowed future ticks.
        assert!(made.0 > before.0 - 1_000, "{made} is before {before}");
        assert!(made.0 <= after.0 + 60_000_000, "{made} is beyond the drift after {after}");
    }

    #[pg_test]
    fn the_servers_clock_is_postgress() {
        let before = SystemClock.now();
        let postgres: i64 = one("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
        let after = SystemClock.now();
        assert!((before.0..=after.0).contains(&postgres), "{before} {postgres} {after}");
    }

    #[pg_test]
    fn ids_are_unique_and_grow_whatever_the_cache() {
        let mut last = 0;
        let mut all = HashSet::new();
        for cache in [1, 64, 1, 1000, 3] {
            Spi::run(&format!("SET snowflake_ids.cache = {cache}")).unwrap();
            for _ in 0..500 {
                let id = snowflake::next("test", named::own()).unwrap();
                assert!(id > last, "{id} after {last}");
                assert!(all.insert(id));
                last = id;
            }
        }
        assert_eq!(snowflake::last(), Some(last));
    }

    #[pg_test]
    fn several_take_what_the_session_holds_first() {
        Spi::run("SET snowflake_ids.cache = 100").unwrap();
        let first = snowflake::next("test", named::own()).unwrap();
        let mut several = snowflake::several("test", named::own(), 150).unwrap();
        let mut last = first;
        for _ in 0..150 {
            let id = several.next().unwrap().unwrap();
            assert!(id > last, "{id} after {last}");
            last = id;
        }
        assert_eq!(several.next().unwrap(), None);
        assert!(snowflake::next("test", named::own()).unwrap() > last);
    }

    #[pg_test]
    fn every_id_taken_is_counted_once() {
        Spi::run("SET snowflake_ids.cache = 1").unwrap();
        // Uses up ids that an earlier test left in this process, because the server has already counted them.
        Spi::run("SELECT snowflake_nextvals(10000)").unwrap();
        let before: i64 = one("SELECT ids_issued FROM snowflake_ids.status");
        Spi::run("SELECT snowflake_nextval() FROM generate_series(1, 1000)").unwrap();
        Spi::run("SELECT snowflake_nextvals(2345)").unwrap();
        let after: i64 = one("SELECT ids_issued FROM snowflake_ids.status");
        // Other sessions of this server may take ids at the same time, so the count may be higher.
        assert!(after - before >= 3345, "{before} {after}");
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

    #[pg_test]
    fn errors_have_their_sqlstates() {
        assert_eq!(sqlstate("SELECT snowflake_nextvals(0)"), "22023");
        assert_eq!(sqlstate("SELECT snowflake_timestamp(-1)"), "22023");
        assert_eq!(sqlstate("SELECT snowflake_timestamp(1, 'nonsense')"), "22023");
        assert_eq!(sqlstate("SELECT snowflake_min_id('1999-01-01')"), "22023");
        assert_eq!(sqlstate("SELECT snowflake_decode_text('!', 'hex')"), "22023");
        assert_eq!(sqlstate("SET snowflake_ids.cache = 0"), "22023");
        assert_eq!(sqlstate("SELECT snowflake_nextval()"), "no error");
    }

    /// Takes 13 ticks of 4096 ids. Without drift, the session waits for the end of each full tick.
    #[pg_test]
    fn without_drift_a_burst_takes_as_long_as_its_ticks() {
        Spi::run("SET snowflake_ids.max_drift = 0").unwrap();
        Spi::run("SET snowflake_ids.clock_wait_timeout = '1min'").unwrap();
        // Waits until the ticks that other tests borrowed have passed.
        snowflake::next("test", named::own()).unwrap();
        let started = Instant::now();
        let mut several = snowflake::several("test", named::own(), 50_000).unwrap();
        let ids: Vec<i64> = (0..50_000).map(|_| several.next().unwrap().unwrap()).collect();
        let elapsed = started.elapsed();
        assert!(ids.is_sorted());
        assert!(elapsed >= Duration::from_millis(11), "{elapsed:?}");
    }

    #[pg_test]
    fn a_session_may_refuse_to_wait() {
        Spi::run("SET snowflake_ids.max_drift = 0").unwrap();
        Spi::run("SET snowflake_ids.clock_wait_timeout = 0").unwrap();
        // Each call takes the rest of the present tick, and discards it.
        let failure =
            (0..10_000).find_map(|_| snowflake::several("test", named::own(), 8192).unwrap().next().err());
        assert!(
            matches!(
                failure,
                Some(SessionError::Refused(GeneratorError::Drift(Drift { cause: Cause::Demand, .. }), _))
            ),
            "{failure:?}"
        );
    }
}
