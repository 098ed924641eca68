//! The directory of tags: compared with a model, under threads, in memory of any size.
#![allow(clippy::disallowed_types, reason = "threads of one process, which is what the lock is for")]

use parking_lot::RwLock;
use proptest::prelude::*;
use rustc_hash::FxBuildHasher;
use snowflake_ids_core::tag::definition::MAX_TAG_BYTES;
use snowflake_ids_core::tag::directory::{DatabaseShare, Directory, DirectoryEntry, Tag, TagKey};
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::thread;

fn key(database: u32, tag: &str) -> TagKey {
    TagKey { database, source: 16_400, tag: Tag::new(tag.as_bytes()).unwrap() }
}

/// Memory for a directory.
struct Memory {
    entries: Vec<DirectoryEntry>,
    shares: Vec<DatabaseShare>,
}

impl Memory {
    fn new(entries: usize) -> Self {
        Self {
            entries: vec![DirectoryEntry::EMPTY; entries],
            shares: vec![DatabaseShare::default(); entries],
        }
    }

    fn directory(&mut self) -> Directory<'_> {
        Directory::new(&mut self.entries, &mut self.shares)
    }
}

#[test]
fn tags_are_their_bytes() {
    let tag = Tag::new("größe".as_bytes()).unwrap();
    assert_eq!(tag.as_bytes(), "größe".as_bytes());
    assert_eq!(format!("{tag:?}"), "Tag(\"größe\")");
    assert_eq!(format!("{:?}", Tag::new(b"a\xff").unwrap()), "Tag(\"a\u{fffd}\")");
    assert_ne!(Tag::new(b"a"), Tag::new(b"a\0"));
    assert_eq!(Tag::new(b"").unwrap().as_bytes(), b"");
    assert_eq!(Tag::new(&[b'x'; MAX_TAG_BYTES]).unwrap().as_bytes().len(), 512);
    assert_eq!(Tag::new(&[b'x'; MAX_TAG_BYTES + 1]), None);
}

#[test]
fn a_key_is_all_of_its_parts() {
    let mut memory = Memory::new(4);
    let mut directory = memory.directory();
    let slot_index = directory.insert(key(5, "a"), ()).unwrap();
    assert_eq!(directory.find(&key(5, "a")), Some(slot_index));
    assert_eq!(directory.find(&key(6, "a")), None);
    assert_eq!(directory.find(&key(5, "b")), None);
    assert_eq!(directory.find(&TagKey { source: 16_401, ..key(5, "a") }), None);
}

/// With two slots, every other key has the same chain.
#[test]
fn keys_of_the_same_hash_are_told_apart() {
    let hashed = |number: &u32| FxBuildHasher.hash_one(key(1, &format!("tag {number}"))).is_multiple_of(2);
    let mut same = (0..100).filter(hashed).map(|number| key(1, &format!("tag {number}")));
    let (one, other) = same.next().zip(same.next()).expect("a pair of the same hash");
    let mut memory = Memory::new(2);
    for which in [0, 1] {
        let mut directory = memory.directory();
        let slots = [directory.insert(one, ()), directory.insert(other, ())];
        assert_eq!([directory.find(&one), directory.find(&other)], slots);
        directory.remove(slots[which].unwrap());
        let left = [slots[0].filter(|_| which == 1), slots[1].filter(|_| which == 0)];
        assert_eq!([directory.find(&one), directory.find(&other)], left);
    }
}

#[test]
fn a_full_directory_takes_no_more_until_one_leaves() {
    let mut memory = Memory::new(2);
    let mut directory = memory.directory();
    assert!(directory.is_empty());
    let slots = [directory.insert(key(1, "a"), ()), directory.insert(key(1, "b"), ())];
    assert_eq!(directory.insert(key(1, "c"), ()), None);
    assert_eq!((directory.len(), directory.find(&key(1, "c"))), (2, None));
    let slot_index = slots[0].unwrap();
    assert_eq!(directory.remove(slot_index), Some(key(1, "a")));
    assert_eq!((directory.remove(slot_index), directory.get(slot_index)), (None, None));
    assert_eq!(directory.insert(key(1, "c"), ()), Some(slot_index));
    assert_eq!(directory.find(&key(1, "b")), slots[1]);
}

#[test]
fn a_new_directory_is_empty_whatever_was_in_the_memory() {
    let mut memory = Memory::new(4);
    for tag in ["a", "b", "c", "d"] {
        memory.directory().insert(key(1, tag), ()).unwrap();
    }
    let directory = memory.directory();
    assert_eq!((directory.len(), directory.iter().count()), (0, 0));
    assert_eq!(directory.find(&key(1, "d")), None);
}

#[test]
fn a_directory_without_memory_is_full() {
    let mut directory = Directory::new(&mut [], &mut []);
    assert_eq!((directory.insert(key(1, "x"), ()), directory.find(&key(1, "x"))), (None, None));
    assert_eq!(directory.remove(0), None);
}

#[derive(Clone, Debug)]
enum Act {
    Insert(u32),
    Remove(prop::sample::Index),
    RemoveSlot(usize),
    Find(u32),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0_u32..24).prop_map(Act::Insert),
        3 => any::<prop::sample::Index>().prop_map(Act::Remove),
        1 => (0_usize..20).prop_map(Act::RemoveSlot),
        2 => (0_u32..24).prop_map(Act::Find),
    ];
    prop::collection::vec(act, 1..400)
}

/// One of few keys, so that keys repeat. Some of the keys differ in the tag, some in the database.
fn nth(number: u32) -> TagKey {
    key(number % 3, &format!("tag {}", number / 3))
}

fn assert_same(directory: &Directory<'_>, model: &HashMap<TagKey, usize>) -> Result<(), TestCaseError> {
    let listed: HashMap<_, _> = directory.iter().map(|(slot_index, key)| (*key, slot_index)).collect();
    prop_assert_eq!(&listed, model);
    prop_assert_eq!(directory.len(), model.len());
    prop_assert_eq!(directory.is_empty(), model.is_empty());
    let slots =
        |database| u32::try_from(model.keys().filter(|key| key.database == database).count()).unwrap();
    let shares = [0, 1, 2].map(slots);
    prop_assert_eq!([0, 1, 2].map(|database| directory.shares().of(database)), shares);
    prop_assert_eq!(Some(directory.shares().most()), shares.into_iter().max());
    for number in 0..24 {
        prop_assert_eq!(directory.find(&nth(number)), model.get(&nth(number)).copied());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 200 }, ..ProptestConfig::default() })]

    /// Directories are small: many keys share a chain, and the directory is often full.
    #[test]
    fn a_directory_is_a_map(capacity in 0_usize..=16, acts in acts()) {
        let mut memory = Memory::new(capacity);
        let mut directory = memory.directory();
        let mut model = HashMap::new();
        for act in acts {
            match act {
                Act::Insert(number) if model.contains_key(&nth(number)) => {}
                Act::Insert(number) => {
                    let slot_index = directory.insert(nth(number), ());
                    prop_assert_eq!(slot_index.is_some(), model.len() < capacity);
                    if let Some(slot_index) = slot_index {
                        prop_assert!(slot_index < capacity && !model.values().any(|taken| *taken == slot_index));
                        prop_assert_eq!(directory.get(slot_index), Some(&nth(number)));
                        model.insert(nth(number), slot_index);
                    }
                }
                Act::Remove(which) if !model.is_empty() => {
                    // The model's order is random; sorting makes a failure reproducible.
                    let mut slots: Vec<_> = model.iter().map(|(key, slot_index)| (*slot_index, *key)).collect();
                    slots.sort_by_key(|(slot_index, _)| *slot_index);
                    let (slot_index, key) = slots[which.index(slots.len())];
                    prop_assert_eq!(directory.remove(slot_index), Some(key));
                    model.remove(&key);
                }
                Act::Remove(_) => {}
                Act::RemoveSlot(slot_index) => {
                    let key = model.iter().find(|(_, taken)| **taken == slot_index).map(|(key, _)| *key);
                    prop_assert_eq!(directory.remove(slot_index), key);
                    key.and_then(|key| model.remove(&key));
                }
                Act::Find(number) => {
                    prop_assert_eq!(directory.find(&nth(number)), model.get(&nth(number)).copied());
                }
            }
            assert_same(&directory, &model)?;
        }
    }
}

#[test]
fn threads_find_their_own_keys_and_each_slot_has_one_owner() {
    const THREADS: u32 = 8;
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 2_000 };
    const KEPT: usize = 12;
    let mut memory = Memory::new(THREADS as usize * KEPT);
    let directory = RwLock::new(memory.directory());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let directory = &directory;
            scope.spawn(move || {
                let mut mine: Vec<(TagKey, usize)> = Vec::new();
                for round in 0..ROUNDS {
                    if mine.len() == KEPT {
                        let (key, slot_index) = mine.remove(round as usize % KEPT);
                        assert_eq!(directory.write().remove(slot_index), Some(key));
                        assert_eq!(directory.read().find(&key), None);
                    }
                    let key = key(thread, &round.to_string());
                    let slot_index = directory.write().insert(key, ()).expect("there is room for all");
                    mine.push((key, slot_index));
                    for (key, slot_index) in &mine {
                        let directory = directory.read();
                        assert_eq!(
                            (directory.find(key), directory.get(*slot_index)),
                            (Some(*slot_index), Some(key))
                        );
                    }
                }
            });
        }
    });
    let directory = directory.into_inner();
    let kept: HashSet<_> = directory.iter().map(|(slot_index, _)| slot_index).collect();
    assert_eq!((kept.len(), directory.len()), (THREADS as usize * KEPT, THREADS as usize * KEPT));
}
