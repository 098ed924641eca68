//! What a login without rights can take from other databases. Twelve sessions of the login call one function or read one view
//! in a loop, beside sessions of another database that insert rows with snowflake ids and take ids of tags that have no slot.
//! These sessions keep at least half of what they have beside a stock statement in the same loop. Views, and functions that read
//! the state of tags, are also called in a database whose tags come from a registry, which is the login's other database.
//!
//! `make test-fair` runs this test. `FAIR_SECONDS` is the time for each loop, and `FAIR_CALLS` a part of the functions' names.

mod calls;

use calls::{CALLS, Call, call_of};
use snowflake_ids_server_tests::cluster::{JOIN, NAME};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::registry::lease_to_another;
use snowflake_ids_server_tests::setting;
use std::ops::RangeInclusive;
use std::time::{SystemTime, UNIX_EPOCH};

/// The number of sessions of the login.
const SESSIONS: usize = 12;
/// The least part of its work that the victim keeps.
const KEPT: f64 = 0.5;
/// What a call that is measured once has to leave, so that it need not be measured again.
const KEPT_CLEARLY: f64 = 0.8;
/// How often a suspicious call is measured, at least and at most. Other programs disturb measurements, so their sums count.
const TRIES: RangeInclusive<usize> = 5..=25;
/// The tags of the victim. More tags than there are slots left, so that each call finds its tag without a slot.
const TAGS: u64 = 3_000;

/// Statements in the login's loop, and how each round ends.
#[derive(Clone, Debug)]
struct Round {
    /// The login's database.
    database: Database,
    statement: String,
    end: &'static str,
    /// The statement of Postgres's own that takes the place of `statement`.
    stock: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Database {
    Registry,
    Node,
}

const READS: &str = "perform pg_catalog.length(t)";
const WRITES: &str = "update stock set number = k where place = n";

impl Round {
    /// The round of a function, which is named as in [`CALLS`].
    fn of(function: &str, call: Call) -> Option<Self> {
        let name = function.split('(').next().unwrap_or_default();
        let (first, arguments, end, stock) = match call {
            Call::Reads(arguments) => ("", arguments, "commit", READS),
            Call::Writes(arguments) => ("", arguments, "commit", WRITES),
            Call::After(first, arguments) => (first, arguments, "commit", WRITES),
            Call::Undone(arguments) => ("", arguments, "rollback", WRITES),
            Call::Not(_) => return None,
        };
        let comma = if first.is_empty() { "" } else { ", " };
        let statement = format!("perform {first}{comma}{name}({arguments})");
        Some(Self { database: Database::Registry, statement, end, stock })
    }

    fn of_view(view: &str) -> Self {
        Self {
            database: Database::Registry,
            statement: format!("perform * from {view}"),
            end: "commit",
            stock: READS,
        }
    }

    /// The same round on a node, if a node has something else to do, and may do it.
    fn on_node(&self) -> Option<Self> {
        let reads = ["* from", "segment_", "tags", "report", "status", "attention", "registry"];
        let is_other = self.stock == READS && reads.iter().any(|word| self.statement.contains(word));
        is_other.then(|| Self { database: Database::Node, ..self.clone() })
    }

    fn stock(&self) -> Self {
        Self { statement: self.stock.to_owned(), ..self.clone() }
    }

    /// The loop of a session, which ends at a time, in seconds since 1970. Makes at least one round.
    fn until(&self, end: f64, session: usize) -> String {
        let Self { statement, end: ends, .. } = self;
        format!(
            "do $do$ declare
                k integer := 0; n integer := {session}; t text; g text;
                i bigint := snowflake_min_id(now()); u uuid := snowflake_uuid();
                x text := snowflake_encode(snowflake_min_id(now()), 'base58');
                own regclass := 'own_{session}'; mine text := 'mine{session}';
             begin
                loop
                    k := k + 1; t := 't' || k % 900; g := 'g' || k % 100;
                    {statement};
                    {ends};
                    exit when extract(epoch from clock_timestamp()) > {end};
                end loop;
             end $do$"
        )
    }
}

/// How much the victim did: rows, ids of tags without a slot, and the time for each.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    rows: f64,
    row_seconds: f64,
    ids: f64,
    id_seconds: f64,
}

impl Done {
    fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.row_seconds += other.row_seconds;
        self.ids += other.ids;
        self.id_seconds += other.id_seconds;
    }

    /// Rows and ids in a second.
    fn rates(&self) -> [f64; 2] {
        [self.rows / self.row_seconds, self.ids / self.id_seconds]
    }

    /// The part of its work that the victim keeps, in whichever way it keeps less.
    fn kept_of(&self, stock: &Self) -> f64 {
        let ([rows, ids], [stock_rows, stock_ids]) = (self.rates(), stock.rates());
        (rows / stock_rows).min(ids / stock_ids)
    }
}

struct World {
    server: Server,
    /// The login's sessions, by their [`Database`].
    logins: [Vec<Client>; 2],
    rows: Client,
    ids: Client,
    /// The number of ids that the victim took.
    turn: u64,
}

/// The number of times that `work` ran until an instant, at least one, and the seconds that passed.
fn count_until(end: Instant, mut work: impl FnMut() -> Result<()>) -> Result<(f64, f64)> {
    let (began, mut count) = (Instant::now(), 0.0);
    loop {
        work()?;
        count += 1.0;
        if Instant::now() >= end {
            return Ok((count, began.elapsed().as_secs_f64()));
        }
    }
}

impl World {
    fn new() -> Result<Self> {
        // 900 slots for the login's tags, and fewer than `TAGS` for the victim's.
        let server = Server::builder()
            .set("snowflake_ids.max_tags", "2000")
            .set("max_connections", "60")
            .set("statement_timeout", "10min")
            .start()?;
        server.connect("postgres")?.run("create role login login")?;
        for database in ["sv", "node", "other"] {
            server.create_database(database)?;
        }
        let mut login = server.connect("sv")?;
        login.run(
            "select count(snowflake_ids.segment_create('t' || k)) from generate_series(0, 899) as k;
             select count(snowflake_ids.generator_create('g' || k, layout => '41/5/5/12 epoch=' || date '2020-01-01' + k))
             from generate_series(0, 99) as k;
             select count(snowflake_nextval('g' || k)) from generate_series(0, 99) as k;
             select snowflake_ids.series_create('bigints'), snowflake_ids.series_create('texts', key_type => 'text'),
                    snowflake_ids.series_create('uuids', key_type => 'uuid'),
                    snowflake_ids.series_create('monotonic', 'monotonic'),
                    snowflake_ids.series_create('own', owner => 'login'),
                    snowflake_ids.series_create('unused', owner => 'login'),
                    snowflake_ids.series_create('own_texts', key_type => 'text', owner => 'login'),
                    snowflake_ids.series_create('own_uuids', key_type => 'uuid', owner => 'login');
             select count(series_nextval('bigints', k)) from generate_series(1, 1000) as k;
             select count(series_nextval('monotonic', k)) from generate_series(1, 1000) as k;
             grant create on schema public to login;
             set role login; set client_min_messages = error;
             create table stock (place integer primary key, number bigint);
             insert into stock select k, 0 from generate_series(0, 100) as k;
             create sequence s",
        )?;
        for session in 0..SESSIONS {
            login.run(&format!(
                "reset role;
                 select snowflake_ids.segment_create('mine{session}', owner => 'login');
                 set role login;
                 create table own_{session} (id bigint primary key, key bigint, number bigint, attached bigint);
                 select snowflake_ids.series_attach('own_{session}', 'attached', 'own', 'key');
                 insert into own_{session} (id, key)
                 select id, 1 from snowflake_nextvals(1000) as id"
            ))?;
        }
        for worker in 2..32 {
            lease_to_another(&mut server.connect("sv")?, worker, "-1min", "2d")?;
        }
        let mut ids = server.connect("other")?;
        ids.run(&format!(
            "create table v (id bigint primary key default snowflake_nextval(), filler integer);
             select count(snowflake_ids.segment_create('v' || k)) from generate_series(0, {TAGS} - 1) as k"
        ))?;
        // Fills the records of ended transactions, which are kept from the first reader on.
        ids.run("select snowflake_safe_id()")?;
        ids.run(
            "do $$ begin for k in 1..5000 loop insert into v (filler) values (k); commit; end loop; end $$",
        )?;
        let mut node = server.connect("node")?;
        node.run(&format!(
            "create extension postgres_fdw;
             create server {NAME} foreign data wrapper postgres_fdw options (host '127.0.0.1', port '{}', dbname 'sv');
             create user mapping for postgres server {NAME} options (user 'postgres'); {JOIN}",
            server.port()
        ))?;
        for session in 0..SESSIONS {
            node.run(&format!("create table own_{session} (id bigint primary key)"))?;
        }
        let login = |database| {
            let mut config = server.config(database);
            config.user("login").options("-c client_min_messages=error");
            Ok(config.connect(NoTls)?)
        };
        let logins = |database| (0..SESSIONS).map(|_| login(database)).collect::<Result<_>>();
        let logins = [logins("sv")?, logins("node")?];
        Ok(Self { rows: server.connect("other")?, server, logins, ids, turn: 0 })
    }

    /// Returns the names of the extension's objects in a catalog, of those that the login has this right to.
    fn names(&self, catalog: &str, name: &str, right: &str) -> Result<Vec<String>> {
        self.server.connect("sv")?.column(&format!(
            "select o.oid::{name}::text from pg_catalog.{catalog} as o
                 join pg_depend as d on d.classid = 'pg_catalog.{catalog}'::regclass and d.objid = o.oid
                 join pg_extension as e on d.refclassid = 'pg_extension'::regclass and d.refobjid = e.oid
             where e.extname = 'snowflake_ids' and d.deptype = 'e' and {right} order by 1"
        ))
    }

    /// Returns the functions that the login may call, each with its call.
    fn functions(&self) -> Result<Vec<(String, Call)>> {
        let names =
            self.names("pg_proc", "regprocedure", "has_function_privilege('login', o.oid, 'EXECUTE')")?;
        let gone: Vec<_> =
            CALLS.iter().filter(|(name, _)| !names.iter().any(|known| known == name)).collect();
        ensure!(gone.is_empty(), "fair/calls.rs has functions that PUBLIC may not call: {gone:#?}");
        let with_call = |name: String| {
            let call =
                call_of(&name).with_context(|| format!("PUBLIC may call {name}; add it to fair/calls.rs"))?;
            Ok((name, call))
        };
        names.into_iter().map(with_call).collect()
    }

    /// Returns the views that the login may read.
    fn views(&self) -> Result<Vec<String>> {
        let right =
            "o.relkind in ('r', 'v', 'm', 'p') and has_any_column_privilege('login', o.oid, 'SELECT')";
        self.names("pg_class", "regclass", right)
    }

    /// Runs one round in one session, and returns its error.
    fn fails(&mut self, round: &Round) -> Option<String> {
        let error = self.logins[round.database as usize][0].batch_execute(&round.until(0.0, 0)).err()?;
        Some(error.as_db_error().map_or_else(|| error.to_string(), |error| format!("{error:?}")))
    }

    /// Runs the loop of all sessions for a while, and returns what the victim did meanwhile.
    fn beside(&mut self, round: &Round, time: Duration) -> Result<Done> {
        // The tags of the login have slots again, if the victim's tags have taken some.
        self.server
            .connect("sv")?
            .run("select count(segment_nextval('t' || k)) from generate_series(0, 899) as k")?;
        let (Self { logins, rows, ids, turn, .. }, end) = (self, Instant::now() + time);
        let until = (SystemTime::now() + time).duration_since(UNIX_EPOCH)?.as_secs_f64();
        thread::scope(|scope| {
            let loops = logins[round.database as usize].iter_mut().enumerate().map(|(number, client)| {
                let statement = round.until(until, number);
                scope.spawn(move || client.batch_execute(&statement).context(statement))
            });
            let loops: Vec<_> = loops.collect();
            let rows =
                scope.spawn(move || count_until(end, || rows.run("insert into v (filler) values (1)")));
            let (ids, id_seconds) = count_until(end, || {
                *turn += 1;
                ids.run(&format!("select segment_nextval('v{}')", *turn % TAGS))
            })?;
            let (rows, row_seconds) = rows.ended()?;
            loops.into_iter().try_for_each(Ends::ended)?;
            Ok(Done { rows, row_seconds, ids, id_seconds })
        })
    }
}

/// A measured call: what the victim keeps, and its rates beside the call and beside the stock statement.
struct Found {
    kept: f64,
    name: String,
    beside: [f64; 2],
    stock: [f64; 2],
}

#[test]
#[ignore = "takes minutes: make test-fair"]
fn no_login_takes_half_of_what_others_have() -> Result<()> {
    let time = Duration::from_secs(setting("FAIR_SECONDS").unwrap_or(1));
    let only = std::env::var("FAIR_CALLS").unwrap_or_default();
    let mut world = World::new()?;
    let (functions, views) = (world.functions()?, world.views()?);
    let rounds: Vec<_> = functions
        .iter()
        .filter_map(|(name, call)| Some((name.clone(), Round::of(name, *call)?)))
        .chain(views.iter().map(|view| (view.clone(), Round::of_view(view))))
        .flat_map(|(name, round)| {
            let on_node = round.on_node().map(|round| (format!("{name} on a node"), round));
            std::iter::once((name, round)).chain(on_node)
        })
        .filter(|(name, _)| name.contains(&only))
        .collect();
    ensure!(!rounds.is_empty(), "no function or view has {only:?} in its name");
    let failed: Vec<_> =
        rounds.iter().filter_map(|(name, round)| Some(format!("{name}: {}", world.fails(round)?))).collect();
    ensure!(failed.is_empty(), "calls with errors do not count: {failed:#?}");
    for (name, call) in &functions {
        if let Call::Not(reason) = call {
            println!("not called: {name}: {reason}");
        }
    }
    let mut all = Vec::new();
    for (name, round) in &rounds {
        let (mut beside, mut stock) = (Done::default(), Done::default());
        let mut kept = 0.0;
        for tried in 1..=*TRIES.end() {
            beside.add(world.beside(round, time).with_context(|| name.clone())?);
            stock.add(world.beside(&round.stock(), time)?);
            kept = beside.kept_of(&stock);
            if kept >= KEPT_CLEARLY || tried >= *TRIES.start() && kept >= KEPT {
                break;
            }
        }
        let found = Found { kept, name: name.clone(), beside: beside.rates(), stock: stock.rates() };
        println!("{}", line(&found));
        all.push(found);
    }
    all.sort_by(|one, other| one.kept.total_cmp(&other.kept));
    let worst: Vec<_> = all.iter().take(10).map(line).collect();
    println!("the worst ten of {}:\n{}", all.len(), worst.join("\n"));
    let unfair: Vec<_> = all.iter().filter(|found| found.kept < KEPT).map(line).collect();
    ensure!(unfair.is_empty(), "others keep less than half beside:\n{}", unfair.join("\n"));
    Ok(())
}

fn line(Found { kept, name, beside, stock }: &Found) -> String {
    let [rows, ids] = beside;
    let [stock_rows, stock_ids] = stock;
    format!(
        "{kept:.2} {name}: {rows:.0} rows and {ids:.0} ids a second, beside the stock statement {stock_rows:.0} and {stock_ids:.0}"
    )
}
