//! Instants and durations as text, and the check of the wall clock.

use super::memory::{Machine, Server};
use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::clock::human;
use snowflake_ids_core::server::clock_reference::{Reading, Verdict};
use snowflake_ids_core::server::state::Identity;
use std::time::Duration;

#[test]
fn lengths_are_said_in_the_unit_people_use() {
    let said: Vec<_> = [0, 1_500, 90_000_000, 7_200_000_000, 1_073_000_000_000_000]
        .map(|micros| human(Duration::from_micros(micros)))
        .into();
    assert_eq!(said, ["0 ms", "1.5 ms", "90 s", "2 h", "34.002 years"]);
}

#[test]
fn instants_are_iso_8601_or_a_year() {
    assert_eq!(UnixMicros(1_577_836_800_000_000).to_string(), "2020-01-01T00:00:00Z");
    assert_eq!(UnixMicros(i64::MAX).to_string(), "about the year 294247");
}

const HOUR: i64 = 3_600_000_000;

fn reading(wall: i64, since_boot: u64) -> Reading {
    Reading { wall: UnixMicros(wall), boot: "a".into(), since_boot }
}

#[test]
fn time_that_passes_is_no_step() {
    let later = reading(10 * HOUR + 5_000_000, 6_000_000);
    let verdict = later.judged_by(&reading(10 * HOUR, 1_000_000), Duration::from_micros(1));
    assert_eq!(verdict, Verdict::Believed { step: Duration::ZERO });
}

#[test]
fn a_step_up_to_the_limit_is_followed_and_a_larger_one_is_not() {
    let clock_reference = reading(0, 0);
    let limit = Duration::from_hours(1);
    assert_eq!(reading(HOUR, 0).judged_by(&clock_reference, limit), Verdict::Believed { step: limit });
    let ahead = Verdict::Ahead { by: limit + Duration::from_micros(1), instead: UnixMicros(7) };
    assert_eq!(reading(HOUR + 8, 7).judged_by(&clock_reference, limit), ahead);
}

#[test]
fn a_step_back_leaves_the_clock_reference_where_it_is() {
    let clock_reference = reading(10 * HOUR, 0);
    for back in [1, HOUR, 10 * HOUR] {
        assert_eq!(
            reading(10 * HOUR - back, 0).judged_by(&clock_reference, Duration::from_hours(1)),
            Verdict::Behind
        );
    }
}

/// A jump ahead is measured from the clock reference, which no step back may move.
#[test]
fn a_clock_that_was_set_back_in_steps_and_right_in_one_is_believed() {
    let now = UnixMicros(491_666 * HOUR);
    let machine = Machine::new(now);
    let layout = "34/0/5/2r/6 unit=1s epoch=2020-01-01".parse().unwrap();
    let server = Server::start(&machine, layout, Identity::Fixed { datacenter: 0, worker_id: 3 }, 1);
    server.issuer().begin().unwrap();
    for hours in 1..4 {
        let back = UnixMicros(now.0 - HOUR * hours);
        machine.step(back);
        server.issuer().watch();
        assert_eq!(server.issuer().believed_now(), back);
    }
    machine.step(now);
    server.issuer().watch();
    assert_eq!(server.issuer().believed_now(), now);
}

#[test]
fn another_start_of_the_machine_can_not_be_compared() {
    let clock_reference = Reading { boot: "b".into(), ..reading(0, 0) };
    assert_eq!(
        reading(1_000 * HOUR, 1).judged_by(&clock_reference, Duration::from_micros(1)),
        Verdict::Believed { step: Duration::ZERO }
    );
    assert_eq!(reading(1_000 * HOUR, 1).step_since(&clock_reference), None);
}
