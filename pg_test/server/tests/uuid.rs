//! UUIDs of version 7. No UUID repeats across sessions, crashes and parallel workers, and no UUID has the position of an id.

use snowflake_ids_server_tests::prelude::*;
use std::collections::HashSet;

const SESSIONS: usize = 16;
const CALLS: usize = 150;

/// A UUID as a number.
fn number(uuid: &str) -> Result<u128> {
    u128::from_str_radix(&uuid.replace('-', ""), 16).with_context(|| format!("not a uuid: {uuid}"))
}

/// The milliseconds since 1970 and the sequence of a UUID in the default layout.
fn position(uuid: u128) -> i64 {
    i64::try_from(uuid >> 80 << 12 | uuid >> 64 & 0xfff).unwrap_or(i64::MAX)
}

/// The milliseconds since 1970 and the sequence of an id.
fn position_of_id(id: i64) -> i64 {
    const EPOCH: i64 = 1_577_836_800_000;
    ((id >> 22) + EPOCH) << 12 | id & 0xfff
}

fn uuid(client: &mut Client, call: &str) -> Result<u128> {
    number(&client.one::<String>(&format!("select {call}::text"))?)
}

/// Lets sixteen sessions take UUIDs in both forms, and ids.
fn taken(server: &Server) -> Result<(Vec<u128>, Vec<i64>)> {
    let clients = server.sessions("postgres", SESSIONS)?;
    let per_session = at_once(clients, |number, mut client| {
        client.run(&format!("set snowflake_ids.cache = {}", [1, 50][number % 2]))?;
        let (mut uuids, mut positions) = (Vec::new(), Vec::new());
        for _ in 0..CALLS {
            for call in ["snowflake_uuid()", "snowflake_uuid_text()"] {
                uuids.push(uuid(&mut client, call)?);
            }
            positions.extend(uuids[uuids.len() - 2..].iter().map(|uuid| position(*uuid)));
            positions.push(position_of_id(client.one("select snowflake_nextval()")?));
        }
        assert!(uuids.is_sorted(), "UUIDs of a session grow");
        ids::growing(&positions)?;
        Ok((uuids, positions))
    })?;
    let (uuids, positions): (Vec<_>, Vec<_>) = per_session.into_iter().unzip();
    Ok((uuids.concat(), positions.concat()))
}

fn sixteen_sessions_get_uuids_and_ids_and_no_position_twice(server: &mut Server) -> Result<()> {
    server.session()?;
    let (mut uuids, mut positions) = taken(server)?;
    let last = uuids.iter().copied().max();
    server.crash()?;
    let (after, positions_after) = taken(server)?;
    assert!(after.iter().copied().min() > last, "after a crash UUIDs go on above those before it");
    uuids.extend(after);
    positions.extend(positions_after);
    assert_eq!(uuids.len(), 2 * SESSIONS * CALLS * 2);
    assert_eq!(uuids.iter().collect::<HashSet<_>>().len(), uuids.len());
    ids::unique(positions)
}

/// The random bits begin with a different number in each process. If two servers issue as the same node by mistake, only these
/// bits distinguish their UUIDs.
fn each_session_fills_uuids_up_by_itself(server: &mut Server) -> Result<()> {
    server.session()?;
    let mut clients = server.sessions("postgres", SESSIONS)?;
    let firsts = clients
        .iter_mut()
        .map(|client| Ok(uuid(client, "snowflake_uuid()")? & ((1 << 52) - 1)))
        .collect::<Result<HashSet<_>>>()?;
    assert_eq!(firsts.len(), SESSIONS);
    Ok(())
}

#[test]
fn uuids_are_unique() -> Result<()> {
    Server::builder().cases(cases![
        sixteen_sessions_get_uuids_and_ids_and_no_position_twice,
        each_session_fills_uuids_up_by_itself
    ])
}
