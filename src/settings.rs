//! The settings: `snowflake_ids.*`. What they mean to users is in docs/settings.md.

mod definitions;
mod values;

pub use definitions::define;
pub use values::{
    cache, check, clock_wait_timeout, config, layout_text_without_preload, lease_duration,
    max_bound_sequences, max_clock_jump, max_clock_skew, registry_timeout, reserve, rollback, rules,
    sample_interval, segment_auto_create, segment_prefetch, segment_target_duration, segment_wait_timeout,
    set_layout_at_next_start, shard, worker_id_policy,
};
