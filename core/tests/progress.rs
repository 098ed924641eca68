//! The progress that a process shows during a long call, as other processes see it.

use snowflake_ids_core::UnixMicros;
use snowflake_ids_core::report::progress::{Call, Command, Phase, ProgressSlot};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A call whose figures are all this number.
fn call(figure: u32) -> Call {
    Call {
        command: Command::Audit,
        process: figure,
        database: figure,
        role: figure,
        relation: figure,
        began: UnixMicros(figure.into()),
    }
}

#[test]
fn a_call_is_seen_from_its_beginning_to_its_end() {
    let slot = ProgressSlot::default();
    assert_eq!(slot.read(), None);
    slot.begin(&call(7));
    let seen = slot.read().unwrap();
    assert_eq!(seen.call, call(7));
    assert_eq!((seen.phase, seen.tables, seen.tables_in_all), (Phase::Initializing, 0, None));
    slot.enter(Phase::ReadingIds);
    assert_eq!(slot.read().unwrap().phase, Phase::ReadingIds);
    slot.set_tables(1, 3);
    let seen = slot.read().unwrap();
    assert_eq!((seen.tables, seen.tables_in_all), (1, Some(3)));
    slot.enter(Phase::ChangingDefaults);
    let seen = slot.read().unwrap();
    assert_eq!((seen.tables, seen.tables_in_all), (0, None), "tables are those of a phase");
    slot.end();
    assert_eq!(slot.read(), None);
    slot.begin(&call(8));
    assert_eq!(slot.read().unwrap().phase, Phase::Initializing, "another call begins anew");
}

#[test]
fn names_are_told_apart_and_found_again() {
    let slot = ProgressSlot::default();
    for command in Command::ALL {
        slot.begin(&Call { command, ..call(1) });
        for phase in Phase::ALL {
            slot.enter(phase);
            let seen = slot.read().unwrap();
            assert_eq!((seen.call.command, seen.phase), (command, phase));
        }
    }
}

#[test]
fn readers_never_see_one_call_with_figures_of_another() {
    const CALLS: u32 = if cfg!(miri) { 100 } else { 100_000 };
    let (slot, over) = (ProgressSlot::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if let Some(seen) = slot.read() {
                        assert_eq!(seen.call, call(seen.call.process));
                        assert!(seen.tables <= 1);
                    }
                }
            });
        }
        for figure in 1..=CALLS {
            slot.begin(&call(figure));
            slot.set_tables(1, 2);
            if figure % 2 == 0 {
                slot.end();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}
