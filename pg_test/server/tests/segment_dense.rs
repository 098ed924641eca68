//! Dense segments: without a crash or a rollback, n ids of a tag are exactly 1..n, whichever sessions take them.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next};

const SESSIONS: usize = 16;

fn sixteen_sessions_take_the_ids_of_one_tag_in_every_way(server: &mut Server) -> Result<()> {
    const ROUNDS: usize = 100;
    let mut client = server.session()?;
    create(&mut client, "t", "step => 100")?;
    client.run("create table t (id bigint primary key default segment_nextval('t'), filler int)")?;
    let taken = at_once(server.sessions("postgres", SESSIONS)?, |number, mut client| {
        let mut taken: Vec<i64> = Vec::new();
        for round in 1..=ROUNDS {
            taken.push(next(&mut client, "t")?);
            assert_eq!(Some(&client.one("select segment_currval('t')")?), taken.last());
            let insert =
                format!("insert into t (filler) select 0 from generate_series(1, {round}) returning id");
            taken.extend(client.column::<i64>(&insert)?);
            // Calls take blocks that are smaller or larger than a segment.
            let count = if round == number { 5_000 } else { round };
            taken.extend(client.column::<i64>(&format!("select segment_nextvals('t', {count})"))?);
        }
        ids::growing(&taken)?;
        Ok(taken)
    })?;
    assert!(taken.iter().map(Vec::len).sum::<usize>() > SESSIONS * ROUNDS * ROUNDS);
    ids::dense(taken.concat())
}

fn sixteen_sessions_use_a_thousand_tags(server: &mut Server) -> Result<()> {
    const TAGS: usize = 1000;
    const ROUNDS: usize = 15;
    server.session()?.run(&format!(
        "select snowflake_ids.segment_create('tag ' || n, step => 20) from generate_series(1, {TAGS}) n"
    ))?;
    // Each session calls the tags in an order of its own.
    let taken = at_once(server.sessions("postgres", SESSIONS)?, |number, mut client| {
        let call = client.prepare(&format!(
            "select n, segment_nextval('tag ' || n)
             from (select (i * 7 + {number} * 61) % {TAGS} + 1 as n from generate_series(1, {TAGS}) i) t"
        ))?;
        let mut taken: Vec<(i32, i64)> = Vec::new();
        for _ in 0..ROUNDS {
            taken.extend(
                client.query(&call, &[])?.iter().map(|row| (row.get::<_, i32>(0), row.get::<_, i64>(1))),
            );
        }
        Ok(taken)
    })?;
    let mut by_tag = vec![Vec::new(); TAGS];
    for (tag, id) in taken.concat() {
        by_tag[usize::try_from(tag)? - 1].push(id);
    }
    for ids in by_tag {
        assert_eq!(ids.len(), SESSIONS * ROUNDS);
        ids::dense(ids)?;
    }
    Ok(())
}

fn tags_of_one_increment_and_all_remainders_make_up_all_numbers(server: &mut Server) -> Result<()> {
    const INCREMENT: usize = 3;
    let mut client = server.session()?;
    for remainder in 0..INCREMENT {
        let definition = format!("increment => {INCREMENT}, remainder => {remainder}, step => 7, start => 1");
        create(&mut client, &format!("t{remainder}"), &definition)?;
    }
    let taken = at_once(server.sessions("postgres", 2 * INCREMENT)?, |number, mut client| {
        let tag = format!("t{}", number % INCREMENT);
        let mut taken: Vec<i64> =
            client.column(&format!("select segment_nextval('{tag}') from generate_series(1, 1000)"))?;
        taken.extend(client.column::<i64>(&format!("select segment_nextvals('{tag}', 1000)"))?);
        let remainder = i64::try_from(number % INCREMENT)?;
        assert!(taken.iter().all(|id| *id % 3 == remainder));
        ids::growing(&taken)?;
        Ok(taken)
    })?;
    ids::dense(taken.concat())
}

#[test]
fn ids_of_a_tag_are_dense() -> Result<()> {
    Server::builder().set("synchronous_commit", "off").cases(cases![
        sixteen_sessions_take_the_ids_of_one_tag_in_every_way,
        sixteen_sessions_use_a_thousand_tags,
        tags_of_one_increment_and_all_remainders_make_up_all_numbers
    ])
}
