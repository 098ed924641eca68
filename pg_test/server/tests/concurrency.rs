//! Many sessions at once.

use snowflake_ids_server_tests::prelude::*;
use std::env;

const SESSIONS: usize = 16;

/// The number of rows of one INSERT.
const ROWS: i64 = 64 * 49;
/// The number of ids in a block that a session with a cache takes.
const CACHE: usize = 64;

/// The ways in which a session takes ids.
#[derive(Clone, Copy)]
enum Way {
    One,
    Cached,
    Block,
}

impl Way {
    const fn of(session: usize) -> Self {
        match session % 3 {
            0 => Self::One,
            1 => Self::Cached,
            _ => Self::Block,
        }
    }

    const fn cache(self) -> usize {
        match self {
            Self::Cached => CACHE,
            Self::One | Self::Block => 1,
        }
    }

    fn insert(self, table: &str) -> String {
        match self {
            Self::One | Self::Cached => {
                format!("insert into {table} (filler) select 0 from generate_series(1, {ROWS}) returning id")
            }
            Self::Block => format!(
                "insert into {table} (id, filler) select id, 0 from snowflake_nextvals({ROWS}) id returning id"
            ),
        }
    }
}

#[test]
fn four_tables_in_two_databases_share_one_stream_of_ids() -> Result<()> {
    // The test takes one million ids; ten million with SNOWFLAKE_IDS_FULL=1.
    let inserts = if env::var("SNOWFLAKE_IDS_FULL").is_ok_and(|full| full == "1") { 200 } else { 20 };
    let server = Server::builder().set("synchronous_commit", "off").start()?;
    for database in ["a", "b"] {
        server.create_database(database)?.run(
            "create table t0 (id bigint primary key default snowflake_nextval(), filler int);
             create table t1 (like t0 including all)",
        )?;
    }
    let clients = (0..SESSIONS).map(|n| server.connect(["a", "b"][n % 2])).collect::<Result<_>>()?;
    let per_session = at_once(clients, |number, mut client| {
        let way = Way::of(number);
        client.run(&format!("set snowflake_ids.cache = {}", way.cache()))?;
        let insert = client.prepare(&way.insert(["t0", "t1"][number / 2 % 2]))?;
        let mut taken: Vec<i64> = Vec::new();
        for _ in 0..inserts {
            taken.extend(client.query(&insert, &[])?.iter().map(|row| row.get::<_, i64>(0)));
        }
        ids::growing(&taken)?;
        Ok(taken)
    })?;
    let taken = per_session.concat();
    let expected = SESSIONS * inserts * usize::try_from(ROWS)?;
    assert_eq!(taken.len(), expected);
    ids::unique(taken)?;
    let status =
        server.connect("a")?.query_one("select ids_issued, steps_back from snowflake_ids.status", &[])?;
    // A session with a cache may discard its block while the first call begins the node's term. It may also keep a part of its
    // last block, if the high-water mark or the clock cut a block short.
    let issued = usize::try_from(status.get::<_, i64>(0))?;
    let cached = (0..SESSIONS).filter(|session| matches!(Way::of(*session), Way::Cached)).count();
    assert!(
        (expected..expected + cached * 2 * CACHE).contains(&issued),
        "{issued} issued, {expected} handed out"
    );
    assert_eq!(status.get::<_, i64>(1), 0, "sessions that read the clock side by side are no step back");
    Ok(())
}
