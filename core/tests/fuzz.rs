//! Runs the fuzz targets of core/fuzz with stable Rust: each run tries thousands of new garbled texts per target.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use targets::{TARGETS, Target, find, sealed};

#[path = "../fuzz/src/lib.rs"]
mod targets;

/// How many texts each target gets.
fn cases() -> u32 {
    let full = std::env::var("SNOWFLAKE_IDS_FULL").is_ok_and(|full| full == "1");
    if full { 200_000 } else { 5_000 }
}

/// Damage to a text.
#[derive(Clone, Debug)]
enum Harm {
    Byte(Index, u8),
    Cut(Index),
    Without(Index, Index),
    Insert(Index, Vec<u8>),
    Twice(Index, Index),
    Letters(Index, String),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = any::<Index>;
    let words = "{ } [[[[ \" \\ud800 null -1 9223372036854775808 1e400 0.5 , \u{0} ż \u{1f600}";
    let words: Vec<_> = words.split(' ').collect();
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Harm::Byte(at, byte)),
        at().prop_map(Harm::Cut),
        (at(), at()).prop_map(|(from, to)| Harm::Without(from, to)),
        (at(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
        (at(), at()).prop_map(|(from, to)| Harm::Twice(from, to)),
        (at(), select(words)).prop_map(|(at, word)| Harm::Letters(at, word.to_owned())),
    ]
}

fn harmed(mut text: Vec<u8>, harms: &[Harm]) -> Vec<u8> {
    for harm in harms {
        let end = text.len() + 1;
        let between = |from: &Index, to: &Index| {
            let (from, to) = (from.index(end), to.index(end));
            from.min(to)..from.max(to)
        };
        match harm {
            Harm::Byte(at, byte) => {
                let at = at.index(end);
                if let Some(slot) = text.get_mut(at) {
                    *slot = *byte;
                }
            }
            Harm::Cut(at) => text.truncate(at.index(end)),
            Harm::Without(from, to) => drop(text.drain(between(from, to))),
            Harm::Insert(at, bytes) => drop(text.splice(at.index(end)..at.index(end), bytes.iter().copied())),
            Harm::Twice(from, to) => text.extend_from_within(between(from, to)),
            Harm::Letters(at, word) => drop(text.splice(at.index(end)..at.index(end), word.bytes())),
        }
    }
    text
}

fn texts(target: &Target) -> impl Strategy<Value = Vec<u8>> {
    let seeded = (select((target.seeds)()), prop::collection::vec(harm(), 0..6));
    prop_oneof![
        8 => seeded.prop_map(|(seed, harms)| harmed(seed, &harms)),
        1 => prop::collection::vec(any::<u8>(), 0..600),
    ]
}

fn fuzz(name: &str) {
    let target = find(name).unwrap();
    let config = Config { cases: cases(), failure_persistence: None, ..Config::default() };
    let check = |text: Vec<u8>| {
        (target.check)(&text);
        Ok(())
    };
    TestRunner::new(config).run(&texts(target), check).unwrap();
}

/// The seeds must be valid. If they were not, fuzzing would only test how texts are refused.
#[test]
fn every_target_understands_what_it_begins_with() {
    for target in TARGETS {
        for seed in (target.seeds)() {
            let seed = if target.name == "state" { sealed(&seed) } else { seed };
            assert!((target.understands)(&seed), "{}: {}", target.name, String::from_utf8_lossy(&seed));
        }
    }
}

#[test]
fn layouts() {
    fuzz("layout");
}

#[test]
fn ids_as_text() {
    fuzz("id_text");
}

#[test]
fn formats_of_dated_numbers() {
    fuzz("serial");
}

#[test]
fn tags() {
    fuzz("tag");
}

#[test]
fn lists_of_hosts() {
    fuzz("hosts");
}

#[test]
fn questions() {
    fuzz("question");
}

#[test]
fn answers() {
    fuzz("answer");
}

#[test]
fn state_files() {
    fuzz("state");
}

#[test]
fn notes_of_what_is_left_over() {
    fuzz("saved_ranges");
}
