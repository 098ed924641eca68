//! The second form of `chaos.rs`, with a registry and two nodes, while sessions take ids in every way. The servers are restarted,
//! killed and stopped for a while; nodes leave and join. Columns are attached again after rows arrived from elsewhere, and tags
//! are changed at the registry. The environment variables are the same, but only the action `import` can be left out.

mod nodes;
mod strikes;

use super::chaos::{database, judge, load, story};
use anyhow::{Context, Result};
use nodes::World;
use snowflake_ids_server_tests::setting;
use std::time::Duration;

#[test]
fn nodes_and_their_registry_repeat_no_id_whatever_is_done_to_them() -> Result<()> {
    let seed = setting("CHAOS_SEED").unwrap_or(12);
    let time = Duration::from_secs(setting("CHAOS_SECONDS").unwrap_or(15));
    let mut world = World::start(seed)?;
    let done = (|| {
        while world.story.start.elapsed() < time {
            world.random.sleep(300);
            world.strike()?;
            world.check()?;
        }
        world.end()
    })();
    done.with_context(|| format!("seed {seed}\n{}", world.story))
}
