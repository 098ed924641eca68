//! A server on which everything happens at once, in random order, while sessions take ids in every way. Databases are dumped,
//! restored, dropped, recreated with the same OID, renamed, copied and closed. The extension is dropped and created. The extension's
//! tables are rewritten and locked. Processes are ended and killed. Despite all this, no id repeats within one generation of its tag,
//! and no call hangs. Every session can be ended, every database can be dropped, and no session gets an internal error.
//!
//! `CHAOS_SEED` selects the order, `CHAOS_SECONDS` the duration, and `CHAOS_STORY=1` prints events as they happen.
//! `CHAOS_WITHOUT=name,name` excludes actions. `CHAOS_LOG` names a file for the whole log of a failed run's server. `make chaos`
//! runs many seeds.

pub mod calls;
pub mod database;
mod databases;
pub mod generations;
mod held;
pub mod judge;
pub mod load;
mod processes;
pub mod story;
mod tags;
mod watch;
mod world;

use load::All;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::setting;
use std::env;
use std::sync::atomic::Ordering;
use world::World;

type Action = fn(&mut World) -> Result<()>;

/// Actions with their weights.
const ACTIONS: &[(u64, &str, Action)] = &[
    (8, "alter", World::alter),
    (3, "alter_and_wait", World::alter_and_wait),
    (6, "begin_anew", World::begin_anew),
    (2, "drop_and_create", World::drop_and_create),
    (4, "come_and_go", World::come_and_go),
    (5, "adopt", World::adopt),
    (4, "change_and_take", World::change_and_take),
    (4, "prepare", World::prepare),
    (2, "dump", World::dump),
    (5, "restore", World::restore),
    (4, "extension", World::extension),
    (4, "same_oid", World::same_oid),
    (2, "rename", World::rename),
    (2, "copy", World::copy),
    (2, "shut", World::shut),
    (3, "alter_database", World::alter_database),
    (6, "cancel", World::cancel),
    (4, "end_session", World::end_session),
    (6, "end_worker", World::end_worker),
    (2, "kill", World::kill),
    (2, "restart", World::restart),
    (4, "reload", World::reload),
    (6, "rewrite", World::rewrite),
    (5, "lock", World::lock),
];

/// Runs one action, and perhaps ends an action that was left open.
fn happen(world: &mut World) -> Result<()> {
    world.random.sleep(200);
    if world.held.len() > 3 || world.random.once_in(3) {
        world.release_any()?;
    }
    let without = env::var("CHAOS_WITHOUT").unwrap_or_default();
    let actions: Vec<_> =
        ACTIONS.iter().filter(|(_, name, _)| !without.split(',').any(|out| out == *name)).collect();
    let mut place = world.random.below(actions.iter().map(|(weight, ..)| weight).sum());
    for (weight, _, action) in actions {
        if place < *weight {
            action(world)?;
            break;
        }
        place -= weight;
    }
    world.check()
}

/// Ends the run: ids are issued again, sessions end, no id was given twice, all databases can be dropped, and the server stops.
fn end(world: &mut World) -> Result<()> {
    world.story.tell("the end");
    world.release_all(None)?;
    for database in 0..world.databases.len() {
        world.wait_for_ids(database)?;
    }
    world.stop.store(true, Ordering::SeqCst);
    let snowflakes = Taken::own(std::mem::take(&mut world.snowflakes));
    let mut given = All { segments: std::mem::take(&mut world.own), snowflakes, ..All::default() };
    given.segments.append(&mut world.taken);
    for load in std::mem::take(&mut world.loads) {
        let database = load.database;
        given.add(load).with_context(|| format!("d{database}\n{}", world.activity()))?;
    }
    world.check()?;
    given.unique()?;
    world.drop_databases()?;
    world.server.stop(Shutdown::Fast)?;
    judge::has_no_faults(&world.server.log(), world.killed)
}

fn run(world: &mut World, time: Duration) -> Result<()> {
    while world.story.start.elapsed() < time {
        happen(world)?;
    }
    end(world)
}

#[test]
fn no_id_comes_twice_and_no_call_hangs_whatever_is_done_to_databases_and_processes() -> Result<()> {
    let seed = setting("CHAOS_SEED").unwrap_or(12);
    let mut world = World::start(seed, env::var_os("CHAOS_STORY").is_some())?;
    run(&mut world, Duration::from_secs(setting("CHAOS_SECONDS").unwrap_or(20))).with_context(|| {
        let log = world.server.log();
        if let Some(path) = env::var_os("CHAOS_LOG") {
            // The error below shows the log's end.
            let _ = std::fs::write(path, &log);
        }
        let lines: Vec<_> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(60)..].join("\n");
        format!("seed {seed}\n{}\nthe end of the server's log:\n{last}", world.story)
    })
}
