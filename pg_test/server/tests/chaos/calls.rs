//! The ways in which sessions take ids.

use super::database::{A, D, T, TAGS};
use postgres::{Client, Error};
use snowflake_ids_server_tests::random::Random;
use std::io::Write;

/// The ids of a call, with their tag. None: snowflake ids.
pub struct Ids {
    pub tag: Option<usize>,
    pub ids: Vec<i64>,
}

type Taken = Result<Option<Ids>, Error>;

/// Runs a random statement or transaction. Ids count even if their transaction is rolled back.
pub fn any(client: &mut Client, random: &mut Random) -> Taken {
    match random.below(20) {
        0..4 => one(client, random),
        4..6 => several(client, random),
        6..9 => rows(client, random),
        9..12 => in_transaction(client, random),
        12 => copied(client, random),
        13 => dated(client),
        14 => other(client, random),
        15 => views(client),
        _ => snowflakes(client, random),
    }
}

const fn segment(tag: usize, ids: Vec<i64>) -> Ids {
    Ids { tag: Some(tag), ids }
}

fn column(client: &mut Client, query: &str) -> Result<Vec<i64>, Error> {
    client.query(query, &[])?.iter().map(|row| row.try_get(0)).collect()
}

fn one(client: &mut Client, random: &mut Random) -> Taken {
    let tag = random.of(D);
    Ok(Some(segment(tag, column(client, &format!("select segment_nextval('{}')", TAGS[tag]))?)))
}

fn several(client: &mut Client, random: &mut Random) -> Taken {
    let (tag, count) = (random.of(D), 1 + random.below(60));
    Ok(Some(segment(tag, column(client, &format!("select segment_nextvals('{}', {count})", TAGS[tag]))?)))
}

fn rows(client: &mut Client, random: &mut Random) -> Taken {
    let (table, tag) = [("t", Some(T)), ("s", None), ("a", Some(A))][random.of(3)];
    let insert = format!(
        "insert into {table} (note) select 'n' from generate_series(1, {}) returning id",
        1 + random.below(20)
    );
    let mut ids = column(client, &insert)?;
    // While the column is detached, the ids come from its sequence.
    if tag == Some(A) {
        ids.clear();
    }
    Ok(Some(Ids { tag, ids }))
}

fn in_transaction(client: &mut Client, random: &mut Random) -> Taken {
    let tag = random.of(A);
    let call = format!("select segment_nextval('{}')", TAGS[tag]);
    client.batch_execute("begin")?;
    let mut ids = column(client, &call)?;
    client.batch_execute("savepoint a")?;
    ids.extend(column(client, &call)?);
    client.batch_execute("insert into t (note) values ('in a transaction'), ('in a transaction')")?;
    if random.once_in(2) {
        client.batch_execute("rollback to a")?;
        ids.extend(column(client, &call)?);
    }
    client.batch_execute(if random.once_in(3) { "rollback" } else { "commit" })?;
    Ok(Some(segment(tag, ids)))
}

fn copied(client: &mut Client, random: &mut Random) -> Taken {
    let mut writer = client.copy_in(&format!("copy {} (note) from stdin", ["t", "s", "a"][random.of(3)]))?;
    // COPY reports an error only when it ends.
    let _ = writer.write_all("copied\n".repeat(10).as_bytes());
    writer.finish()?;
    Ok(None)
}

/// Takes a dated id, with its digits as one number.
fn dated(client: &mut Client) -> Taken {
    let text: String = client.query_one("select segment_nextval_text('d')", &[])?.try_get(0)?;
    Ok(Some(segment(D, text.replace('-', "").parse().into_iter().collect())))
}

fn other(client: &mut Client, random: &mut Random) -> Taken {
    let set = if random.once_in(2) { "set local snowflake_ids.segment_auto_create = on;" } else { "" };
    client.batch_execute(&format!("begin; {set} select segment_nextval('x{}'); commit", random.below(5)))?;
    Ok(None)
}

fn views(client: &mut Client) -> Taken {
    client.batch_execute("select * from snowflake_ids.status; select * from snowflake_ids.segment_status; select * from snowflake_ids.registry_status")?;
    Ok(None)
}

fn snowflakes(client: &mut Client, random: &mut Random) -> Taken {
    let ids = match random.below(3) {
        0 => column(client, "select snowflake_nextvals(50)"),
        1 => column(client, "select snowflake_nextval() from generate_series(1, 3)"),
        _ => column(client, "insert into s (note) values ('n') returning id"),
    };
    Ok(Some(Ids { tag: None, ids: ids? }))
}
