//! Sessions write on two servers at the same time, and the servers replicate to each other logically. The rows' keys never collide.

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_ids_server_tests::{Server, ids, sessions, sql::Session, wait};

/// The number of rows on the first server before the second one exists. The initial copy of the subscription transfers these
/// rows.
const BEFORE: usize = 1_000;
const SESSIONS: usize = 4;
const INSERTS: usize = 300;
const ROWS: usize = 5;

/// Two servers with different worker ids, and with different remainders for the tag `orders`.
fn primaries() -> Result<[Server; 2]> {
    let primary = |number: i32| -> Result<Server> {
        let server = Server::builder()
            .set("wal_level", "logical")
            .set("snowflake_ids.worker_id", &(number + 1).to_string())
            .start()?;
        let definition = format!("'orders', increment => 2, remainder => {number}");
        server.session()?.run(&format!("select snowflake_ids.segment_create({definition})"))?;
        Ok(server)
    };
    Ok([primary(0)?, primary(1)?])
}

fn create_table(server: &Server, table: &str) -> Result<()> {
    server.session()?.run(&format!(
        "create table if not exists {table} (
             id bigint primary key default snowflake_nextval(),
             number bigint unique default segment_nextval('orders'),
             origin int not null)"
    ))
}

/// Subscribes a server to another server's publication.
fn subscribe(server: &Server, publisher: &Server, options: &str) -> Result<()> {
    let address = format!("host={} port={}", publisher.socket_folder().display(), publisher.port());
    server.session()?.run(&format!(
        "create subscription theirs connection '{address} user=postgres dbname=postgres'
             publication mine with ({options})"
    ))
}

/// Makes each server publish the table with its number. The second server is not written before both have subscribed. So the
/// initial copy contains only the first server's rows, and the second server's rows are all replicated.
fn link(servers: &[Server; 2], tables: [&str; 2], options: &str) -> Result<()> {
    for (server, table) in servers.iter().zip(tables) {
        tables.iter().try_for_each(|table| create_table(server, table))?;
        server.session()?.run(&format!("create publication mine for table {table}"))?;
    }
    insert(&mut servers[0].session()?, tables[0], 0, BEFORE)?;
    subscribe(&servers[1], &servers[0], &format!("copy_data = true{options}"))?;
    subscribe(&servers[0], &servers[1], &format!("copy_data = false{options}"))
}

fn insert(client: &mut Client, table: &str, origin: usize, rows: usize) -> Result<()> {
    client.run(&format!("insert into {table} (origin) select {origin} from generate_series(1, {rows})"))
}

/// Writes on both servers at once, each into the table with its number.
fn write(servers: &[Server; 2], tables: [&str; 2]) -> Result<()> {
    let clients = [servers[0].sessions("postgres", SESSIONS)?, servers[1].sessions("postgres", SESSIONS)?];
    let work = |number, mut client| {
        let origin = number / SESSIONS;
        (0..INSERTS).try_for_each(|_| insert(&mut client, tables[origin], origin, ROWS))
    };
    sessions::at_once(clients.into_iter().flatten().collect(), work).map(drop)
}

/// A row: its snowflake id, the tag's number, and the server that made it.
type Row = (i64, i64, i32);

/// The rows of a server, once all have arrived.
fn arrived(server: &Server, tables: [&str; 2]) -> Result<Vec<Row>> {
    const ALL: usize = BEFORE + 2 * SESSIONS * INSERTS * ROWS;
    let query = format!("select * from {} union select * from {} order by id, origin", tables[0], tables[1]);
    let mut client = server.session()?;
    wait::until(wait::LONG, "all rows to arrive", || {
        let errors = server.log().lines().find(|line| line.contains("ERROR")).map(str::to_owned);
        ensure!(errors.is_none(), "{errors:?}");
        let rows = client.query(&query, &[])?;
        ensure!(rows.len() <= ALL, "{} rows instead of {ALL}", rows.len());
        let rows = (rows.len() == ALL).then_some(rows);
        Ok(rows.map(|rows| rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()))
    })
}

/// Writes on both servers, and compares their rows at the end.
fn keys_never_meet(servers: &[Server; 2], tables: [&str; 2], options: &str) -> Result<()> {
    link(servers, tables, options)?;
    write(servers, tables)?;
    let rows = arrived(&servers[0], tables)?;
    ensure!(rows == arrived(&servers[1], tables)?, "the servers hold different rows");
    ids::unique(rows.iter().map(|row| row.0).collect())?;
    ids::unique(rows.iter().map(|row| row.1).collect())?;
    written_at_once(&rows)
}

/// Checks that both servers issued ids during the same time.
fn written_at_once(rows: &[Row]) -> Result<()> {
    let of = |origin| rows.iter().skip(BEFORE).filter(move |row| row.2 == origin).map(|row| row.0);
    let began = [of(0).min(), of(1).min()];
    let ended = [of(0).max(), of(1).max()];
    ensure!(began[0] < ended[1] && began[1] < ended[0], "one after the other: {began:?} to {ended:?}");
    Ok(())
}

#[test]
fn two_tables_one_way_each() -> Result<()> {
    keys_never_meet(&primaries()?, ["first", "second"], "")
}

#[test]
fn one_table_both_ways() -> Result<()> {
    let servers = primaries()?;
    let version: i32 = servers[0].session()?.one("select current_setting('server_version_num')::int")?;
    if version < 160_000 {
        eprintln!("skipped: subscriptions have origin = none from PostgreSQL 16 on, this is {version}");
        return Ok(());
    }
    keys_never_meet(&servers, ["shared", "shared"], ", origin = none")
}
/// Reserved ids and the definitions of tags belong to each server alone.
#[test]
fn a_publication_for_all_tables_leaves_the_tags_alone() -> Result<()> {
    for copy in [true, false] {
        let servers = primaries()?;
        servers.iter().try_for_each(|server| create_table(server, "shared"))?;
        servers[0].session()?.run("create publication mine for all tables")?;
        subscribe(&servers[1], &servers[0], &format!("copy_data = {copy}"))?;
        let mut clients = [servers[0].session()?, servers[1].session()?];
        insert(&mut clients[1], "shared", 1, 1)?;
        insert(&mut clients[0], "shared", 0, BEFORE)?;
        let all = "select count(*) from shared";
        wait::until_true("the rows to arrive", || {
            ensure!(servers[1].logged("ERROR") == 0, "{}", servers[1].log());
            Ok(clients[1].one::<i64>(all)? > i64::try_from(BEFORE)?)
        })?;
        insert(&mut clients[1], "shared", 1, 3 * BEFORE)?;
        let own = "select bool_and(number % 2 = origin) from shared";
        ensure!(clients[1].one::<bool>(own)?, "numbers of the other server's remainder");
    }
    Ok(())
}
