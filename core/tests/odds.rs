//! How often servers without a common registry choose the same worker id. README and docs/guarantees.md state the figures.

use snowflake_ids_core::ids::layout::Layout;
use snowflake_ids_core::registry::lease::{Preferred, capacity};
use std::collections::HashSet;

/// The number of groups of servers.
const GROUPS: u64 = 20_000;

/// A generator of random numbers for the servers of a group.
struct Numbers(u64);

impl Numbers {
    /// The next number below `end`, by xorshift.
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// A system identifier as initdb makes it. The cluster is created at some time in a year.
    fn identifier(&mut self) -> u64 {
        let second = 1_790_000_000 + self.below(31_536_000);
        second << 32 | self.below(1_000_000) << 12 | self.below(4_096)
    }

    /// The first worker id that a server chooses.
    fn first_choice(&mut self, identifier: u64, capacity: u32) -> u32 {
        let home =
            format!("born {}.{:09} {}", identifier >> 32, self.below(1_000_000_000), self.below(10_000));
        Preferred::of_home(identifier, &home, capacity).worker_id
    }
}

/// The number of groups, out of 1,000 groups of this size, in which two servers choose the same worker id. `image`: all servers
/// come from one image.
fn clashes(layout: &str, servers: usize, image: bool) -> u64 {
    let layout: Layout = layout.parse().unwrap();
    let (mut numbers, capacity) = (Numbers(0x1234_5678_9abc_def1), capacity(&layout));
    let group = |_: &u64| {
        let (mut chosen, mut identifier) = (HashSet::new(), numbers.identifier());
        let mut choose = || {
            if !image {
                identifier = numbers.identifier();
            }
            numbers.first_choice(identifier, capacity)
        };
        (0..servers).filter(|_| !chosen.insert(choose())).count() > 0
    };
    let clashed = (0..GROUPS).filter(group).count();
    u64::try_from(clashed).unwrap() * 1_000 / GROUPS
}

#[test]
fn servers_without_a_registry_clash_as_often_as_the_documents_say() {
    for (layout, servers, expected) in [
        ("41/5/5/12", 2, 29..=34),
        ("41/5/5/12", 7, 495..=520),
        ("41/5/5/12", 32, 1_000..=1_000),
        ("41/0/10/12", 2, 0..=2),
        ("41/0/10/12", 7, 17..=24),
        ("41/0/10/12", 32, 377..=397),
    ] {
        for image in [false, true] {
            let clashed = clashes(layout, servers, image);
            assert!(
                expected.contains(&clashed),
                "{clashed} of 1,000 groups of {servers} servers of {layout}"
            );
        }
    }
}
