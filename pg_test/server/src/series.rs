//! Numbers of series that sessions got, and what every list of them must be.

use crate::cluster::{Cluster, said};
use crate::random::Random;
use crate::server::Server;
use crate::sessions;
use crate::sql;
use crate::wait;
use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::DbError;
use std::collections::BTreeMap;

/// Makes a series at a registry and at each of its nodes.
#[track_caller]
pub fn create_at_all(cluster: &Cluster, create: &str) -> Result<()> {
    for server in cluster.nodes.iter().chain([&cluster.registry]) {
        server.connect("postgres")?.batch_execute(create)?;
    }
    Ok(())
}

/// The numbers that were got of each key.
pub type Numbers = BTreeMap<i64, Vec<i64>>;

/// The next number of a key that is a bigint.
#[track_caller]
pub fn next(client: &mut Client, series: &str, key: i64) -> Result<i64> {
    sql::one(client, &format!("select series_nextval('{series}', {key}::bigint)"))
}

/// So many numbers of a key in a row.
#[track_caller]
pub fn take(client: &mut Client, series: &str, key: i64, count: usize) -> Result<Vec<i64>> {
    sql::column(
        client,
        &format!("select series_nextval('{series}', {key}::bigint) from generate_series(1, {count})"),
    )
}

/// Takes numbers of a key until a call is refused and says this of why, and gives them and the error.
#[track_caller]
pub fn refused_with(client: &mut Client, series: &str, key: i64, words: &str) -> Result<(Vec<i64>, DbError)> {
    let mut taken = Vec::new();
    let error = wait::until(wait::LONG, "a refusal that says why", || {
        let error = match next(client, series, key) {
            Ok(number) => {
                taken.push(number);
                return Ok(None);
            }
            Err(error) => error.downcast::<postgres::Error>()?,
        };
        let error = error.as_db_error().with_context(|| format!("the session is lost: {error}"))?.clone();
        Ok(Some(error).filter(|error| said(error).contains(words)))
    })?;
    Ok((taken, error))
}

/// A number of each of these keys, in one statement.
///
/// # Errors
/// The server's: then none of them counts.
pub fn take_all(client: &mut Client, series: &str, keys: &[i64]) -> Result<Vec<(i64, i64)>> {
    let rows = client.query(
        &format!("select k, series_nextval('{series}', k) from unnest($1::bigint[]) as k"),
        &[&keys],
    )?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Puts numbers to others.
pub fn add(all: &mut Numbers, more: impl IntoIterator<Item = (i64, i64)>) {
    for (key, number) in more {
        all.entry(key).or_default().push(number);
    }
}

/// Has so many sessions take numbers of so many keys, in statements of 50 keys, one of them a few times; gives what they got.
pub fn load(server: &Server, database: &str, series: &str, load: Load) -> Result<Numbers> {
    let clients = server.sessions(database, load.sessions)?;
    let got = sessions::at_once(clients, |number, mut client| {
        let mut random = Random::new(load.seed + number as u64);
        let mut got = Vec::new();
        for _ in 0..load.statements {
            let keys: Vec<i64> = (0..50).map(|_| load.key(&mut random)).collect();
            got.append(&mut take_all(&mut client, series, &keys)?);
        }
        Ok(got)
    })?;
    let mut all = Numbers::new();
    for got in got {
        add(&mut all, got);
    }
    Ok(all)
}

/// How much is taken.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// By how many sessions.
    pub sessions: usize,
    /// How many statements each gives.
    pub statements: usize,
    /// Of how many keys.
    pub keys: u64,
    /// Of which seed.
    pub seed: u64,
}

impl Load {
    /// A key: half of the calls are for a few.
    fn key(&self, random: &mut Random) -> i64 {
        let bound = if random.once_in(2) { 8 } else { self.keys };
        i64::try_from(random.below(bound)).unwrap_or(0)
    }
}

/// No key has a number twice.
#[track_caller]
pub fn unique(all: &Numbers) -> Result<()> {
    for (key, numbers) in all {
        crate::ids::unique(numbers.clone()).map_err(|error| error.context(format!("key {key}")))?;
    }
    Ok(())
}

/// The numbers of each key are 1, 2, 3 and so on.
#[track_caller]
pub fn without_gaps(all: &Numbers) -> Result<()> {
    for (key, numbers) in all {
        let mut numbers = numbers.clone();
        numbers.sort_unstable();
        let wrong = (1..).zip(&numbers).find(|(expected, number)| expected != *number);
        ensure!(wrong.is_none(), "key {key} has {} numbers, and {wrong:?}", numbers.len());
    }
    Ok(())
}
