//! A counter that is written by hand: what series are compared with.

/// Sessions that take numbers at once.
pub const SESSIONS: usize = 16;

/// A counter for each key, as people write it without series.
pub const COUNTER: &str =
    "create table counter (key bigint primary key, n bigint not null) with (fillfactor = 50)";
/// Takes the counter's next number. pgbench knows the key.
pub const BY_HAND: &str =
    "insert into counter as c values (:k, 1) on conflict (key) do update set n = c.n + 1 returning n";
