//! The server's generator of snowflake ids in shared memory.

use super::Block;
use crate::pg::clock::SystemClock;
use crate::pg::server;
use crate::settings::Config;
use snowflake_ids_core::{Clock, Generator, Layout, Node};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The server's generator and what belongs to it. Tallies, one per process, follow it in memory.
#[repr(C, align(64))]
pub struct Shared {
    /// Hands out positions.
    pub generator: Generator,
    /// The layout of the ids.
    pub layout: Layout,
    /// The server's identity; None until an operator chose one.
    pub node: Option<Node>,
    /// The bits of the identity, in place.
    pub placed: u64,
    /// Steps back of the clock that sessions have met. Repeats the generator's count among what is hardly
    /// ever written: an id out of a session's block then touches no line that others write.
    steps_back: AtomicU64,
    tallies: usize,
}

/// How many ids one process after the other took in one place of the process table. Its owner alone writes
/// it, so that counting takes no atomic step; a cache line each, so that owners don't slow each other.
#[repr(C, align(64))]
struct Tally(AtomicU64);

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());

/// The server's shared state; None where the library was not preloaded.
#[inline]
pub fn shared() -> Option<&'static Shared> {
    // SAFETY: null, or what `attach` left there, which lives and stays where it is as long as this process.
    unsafe { SHARED.load(Ordering::Relaxed).as_ref() }
}

impl Shared {
    /// Steps back of the clock that sessions have met.
    #[inline]
    pub fn steps_back(&self) -> u64 {
        self.steps_back.load(Ordering::Relaxed)
    }

    /// Makes known what the generator has counted.
    #[inline]
    pub fn announce_steps_back(&self) {
        let counted = self.generator.steps_back();
        if counted != self.steps_back() {
            // Never downwards, so that no block seems fresh again.
            self.steps_back.fetch_max(counted, Ordering::Relaxed);
        }
    }

    /// Counts ids that this process took.
    #[inline]
    pub fn count(&self, ids: u64) {
        if let Some(Tally(tally)) = self.tallies().get(server::process_number()) {
            tally.store(tally.load(Ordering::Relaxed) + ids, Ordering::Relaxed);
        }
    }

    /// The ids that all processes took since server start.
    pub fn counted(&self) -> u64 {
        self.tallies().iter().map(|tally| tally.0.load(Ordering::Relaxed)).sum()
    }

    #[inline]
    fn tallies(&self) -> &[Tally] {
        // SAFETY: `fill` wrote this many tallies right behind the struct, in the same allocation.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).add(1).cast(), self.tallies) }
    }
}

const _: () = assert!(size_of::<Shared>().is_multiple_of(align_of::<Tally>()));

/// The block, as the server lays it out.
pub const BLOCK: Block = Block { name: c"snowflake_ids generator", size, fill, attach };

fn size(_: &Config) -> usize {
    size_of::<Shared>() + server::max_processes() * size_of::<Tally>()
}

unsafe fn attach(block: *mut u8) {
    SHARED.store(block.cast(), Ordering::Relaxed);
}

unsafe fn fill(block: *mut u8, config: &Config) {
    let block: *mut Shared = block.cast();
    let Config { layout, node, .. } = *config;
    let tallies = server::max_processes();
    let shared = Shared {
        generator: Generator::new(&layout, SystemClock.now()),
        layout,
        node,
        // Checked when the settings were read.
        placed: node.and_then(|node| layout.place(node).ok()).unwrap_or(0),
        steps_back: AtomicU64::new(0),
        tallies,
    };
    // SAFETY: the block is writable, aligned to a cache line and of the size above.
    unsafe {
        block.write(shared);
        let first: *mut Tally = block.add(1).cast();
        for index in 0..tallies {
            first.add(index).write(Tally(AtomicU64::new(0)));
        }
    }
}
