//! How often servers without a common registry choose the same worker id. README and docs/guarantees.md state the figures.

use super::here::here;
use snowflake_ids_core::ids::layout::Layout;
use snowflake_ids_core::server::lease::{Preferred, capacity};
use snowflake_ids_core::server::state::{Here, Identity, State};
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

/// The pair that a new server without a configured datacenter id chooses.
fn first_pair(numbers: &mut Numbers, layout: Layout) -> (u32, u32) {
    let system_identifier = numbers.identifier();
    let identity = format!(
        "born {}.{:09} {}",
        system_identifier >> 32,
        numbers.below(1_000_000_000),
        numbers.below(10_000)
    );
    let here = Here { system_identifier, ..here(&identity, layout, Identity::Leased { datacenter: None }) };
    let mut state = State::fresh(&here);
    state.be_alone(&here, false);
    state.node.map(|node| (node.datacenter, node.worker_id)).unwrap()
}

/// Draws 100,000 pairs of the default layout. Each pair should come up 98 times. Neighbours clash as often as two
/// independent servers do.
#[test]
fn all_pairs_are_drawn_alike() {
    let (mut numbers, layout) = (Numbers(0x1234_5678_9abc_def1), Layout::default());
    let pairs: Vec<_> = (0..100_000).map(|_| first_pair(&mut numbers, layout)).collect();
    let mut drawn = vec![0_u32; 1_024];
    for (datacenter, worker_id) in &pairs {
        drawn[(datacenter * 32 + worker_id) as usize] += 1;
    }
    let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
    assert!(*least > 50 && *most < 150, "a pair was drawn {least} to {most} times");
    let clashes = |servers: usize| {
        let of_group = |group: &[(u32, u32)]| group.iter().collect::<HashSet<_>>().len() < servers;
        let clashed = pairs.chunks_exact(servers).filter(|group| of_group(group)).count();
        clashed * 10_000 / (pairs.len() / servers)
    };
    let found = [2, 7, 32].map(clashes);
    let expected = [6..=14, 160..=250, 3_500..=4_200];
    assert!(expected.iter().zip(found).all(|(range, found)| range.contains(&found)), "{found:?} of 10,000");
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
