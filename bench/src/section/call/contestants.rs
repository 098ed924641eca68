//! The calls that are compared, and the rows they are made for.

use crate::key::is_ours;
use crate::session::{Cost, Session};
use anyhow::Result;
use std::thread;
use std::time::Duration;

/// An expression that is evaluated once a row.
pub struct Call {
    pub label: &'static str,
    expression: &'static str,
    pub rows: Rows,
    /// What `snowflake_ids.cache` is set to, where it matters.
    cache: Option<u32>,
}

/// Where rows come from.
#[derive(Clone, Copy)]
pub enum Rows {
    /// A nested loop over two small sets, the cheapest source that needs no table.
    Loop,
    /// A table in which 100 tags take turns.
    Tagged,
}

/// Rows of one slice.
pub const ROWS: f64 = 100_000.0;

/// The rows alone. A constant, or the tag itself, takes the place of the call, so that the call is the only
/// difference.
pub const ROW: usize = 0;
pub const TAGGED_ROW: usize = 1;
pub const SNOWFLAKE: usize = 2;
pub const SNOWFLAKE_64: usize = 3;
pub const SEGMENT: usize = 5;
pub const SEGMENT_OF_100: usize = 6;
pub const CLOCK: usize = 7;
pub const NEXTVAL: usize = 8;
pub const NEXTVAL_1000: usize = 10;
/// Left out of the picture, where it would flatten all the others.
pub const UUID: usize = 11;
pub const SEGMENT_GRANTED: usize = 12;

pub const CALLS: [Call; 13] = [
    Call::of("a row", "1::bigint"),
    Call::by_tag("a row with a tag", "tag"),
    Call::of("snowflake_nextval()", "snowflake_nextval()").cached(1),
    Call::of("snowflake_nextval(), cache = 64", "snowflake_nextval()").cached(64),
    Call::of("snowflake_nextval(), cache = 1000", "snowflake_nextval()").cached(1000),
    Call::of("segment_nextval('tag')", "segment_nextval('tag 0')"),
    Call::by_tag("segment_nextval(tag), 100 tags", "segment_nextval(tag)"),
    Call::of("clock_timestamp()", "clock_timestamp()"),
    Call::of("nextval, CACHE 1", "nextval('one_by_one')"),
    Call::of("nextval, CACHE 32", "nextval('cache_32')"),
    Call::of("nextval, CACHE 1000", "nextval('cache_1000')"),
    Call::of("gen_random_uuid()", "gen_random_uuid()"),
    Call::of("segment_nextval('tag'), with privileges on it", "segment_nextval('granted')"),
];

/// Makes the tags and the table they take turns in. By the time the tags have given so many ids, the steps
/// of their segments have grown, and no slice waits for one.
pub fn prepare(session: &mut Session) -> Result<()> {
    session.execute("select snowflake_ids.segment_create('tag ' || i) from generate_series(0, 99) i")?;
    session.execute(
        "select count(id) from generate_series(0, 99) i, segment_nextvals('tag ' || i, 100000) id",
    )?;
    session.execute("select snowflake_ids.segment_create('granted')")?;
    session.execute("select snowflake_ids.segment_grant('granted', 'public', 'USAGE')")?;
    session.execute("select count(segment_nextval('granted')) from generate_series(1, 100000)")?;
    session.execute(&format!(
        "create table tagged as select 'tag ' || i % 100 as tag from generate_series(1, {ROWS}) i"
    ))?;
    // Otherwise the first to read the table would be the one to write down that its rows are committed.
    session.execute("vacuum (freeze, analyze) tagged")
}

impl Call {
    const fn of(label: &'static str, expression: &'static str) -> Self {
        Self { label, expression, rows: Rows::Loop, cache: None }
    }

    const fn by_tag(label: &'static str, expression: &'static str) -> Self {
        Self { rows: Rows::Tagged, ..Self::of(label, expression) }
    }

    const fn cached(self, cache: u32) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// Whether it is a row alone.
    pub fn is_row(&self) -> bool {
        CALLS[self.rows.baseline()].expression == self.expression
    }

    /// Whether it is one of this extension's.
    pub fn is_ours(&self) -> bool {
        is_ours(self.expression)
    }

    /// Evaluates it once a row; `count` has to, to see whether it is null.
    pub fn query(&self) -> String {
        format!("select count({}) from {}", self.expression, self.rows.source())
    }

    /// Measures it once.
    pub fn slice(&self, session: &mut Session) -> Result<Cost> {
        if let Some(cache) = self.cache {
            session.execute(&format!("set snowflake_ids.cache = {cache}"))?;
            session.execute("select count(snowflake_nextval()) from generate_series(1, 2000)")?;
            let_the_clock_catch_up(session)?;
        }
        session.cost(&self.query())
    }
}

impl Rows {
    const fn source(self) -> &'static str {
        match self {
            Self::Loop => "generate_series(1, 1000) a, generate_series(1, 100) b",
            Self::Tagged => "tagged",
        }
    }

    /// The place of the row without a call.
    pub const fn baseline(self) -> usize {
        match self {
            Self::Loop => ROW,
            Self::Tagged => TAGGED_ROW,
        }
    }
}

/// A loop takes ids faster than the ticks of the layout hold them; each slice starts without such a lead.
fn let_the_clock_catch_up(session: &mut Session) -> Result<()> {
    let ahead: f64 =
        session.value("select coalesce(extract(epoch from drift), 0)::float8 from snowflake_ids.status")?;
    thread::sleep(Duration::from_secs_f64(ahead.max(0.0)));
    Ok(())
}
