//! A counter written by hand, with which series are compared.

/// Sessions that take numbers at the same time.
pub const SESSIONS: usize = 16;

/// A counter for each key, as applications without series write it.
pub const COUNTER: &str =
    "create table counter (key bigint primary key, n bigint not null) with (fillfactor = 50)";
/// Takes the counter's next number. A variable of pgbench holds the key.
pub const BY_HAND: &str =
    "insert into counter as c values (:k, 1) on conflict (key) do update set n = c.n + 1 returning n";
