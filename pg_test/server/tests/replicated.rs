//! Tags where rows arrive by logical replication. Functions that run on the subscriber take effect there as usual. The
//! publisher's own tags are not replicated. Publisher and subscriber are two databases of one server.

use snowflake_ids_server_tests::cluster::row;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{create, next, take};

/// Makes the subscriber execute the SQL in column `what` of each row that arrives.
const ON_ARRIVAL: &str = "
    create function obey() returns trigger language plpgsql as $$
    begin
        if new.what is not null then execute new.what; end if;
        return null;
    end $$;
    create trigger obey after insert on orders for each row execute function obey();
    alter table orders enable always trigger obey";

/// Starts a server with both databases, opens a session in each, and publishes everything.
fn replicating() -> Result<(Server, Client, Client)> {
    let server = Server::builder().set("wal_level", "logical").start()?;
    let mut clients = Vec::new();
    for name in ["publisher", "subscriber"] {
        let mut client = server.create_database(name)?;
        client.run(
            "create table orders (id bigint primary key, what text); create sequence copied; create sequence sent",
        )?;
        clients.push(client);
    }
    let [mut publisher, mut subscriber] =
        <[Client; 2]>::try_from(clients).map_err(|_| anyhow::anyhow!("two"))?;
    subscriber.run(ON_ARRIVAL)?;
    create(&mut publisher, "theirs", "")?;
    create(&mut publisher, "both", "increment => 5")?;
    publisher.run("select snowflake_ids.bind_sequence('copied')")?;
    publisher.run("create publication everything for all tables")?;
    // The slot is made beforehand. A subscription that made the slot would wait for its own transaction.
    publisher.run("select pg_create_logical_replication_slot('s', 'pgoutput')")?;
    Ok((server, publisher, subscriber))
}

fn subscribe(server: &Server, subscriber: &mut Client) -> Result<()> {
    subscribe_to(server, subscriber, "everything", "s")
}

/// Subscribes to a publication through an existing slot, under the publication's name.
fn subscribe_to(server: &Server, subscriber: &mut Client, publication: &str, slot: &str) -> Result<()> {
    subscriber.run(&format!(
        "create subscription {publication} connection 'host={} port={} user=postgres dbname=publisher'
             publication {publication} with (create_slot = false, slot_name = '{slot}')",
        server.socket_folder().display(),
        server.port()
    ))?;
    all_copied(subscriber)
}

fn all_copied(subscriber: &mut Client) -> Result<()> {
    wait::until_true("the initial copies", || {
        let left = "select count(*) from pg_subscription_rel where srsubstate <> 'r'";
        Ok(subscriber.one::<i64>(left)? == 0)
    })
}

/// Has the subscriber run a statement for an arriving row, and waits until the statement has run.
fn send(server: &Server, publisher: &mut Client, subscriber: &mut Client, id: i64, what: &str) -> Result<()> {
    publisher.execute("insert into orders values ($1, $2)", &[&id, &what])?;
    let arrived = format!("select true from orders where id = {id}");
    wait::until_true(&format!("the row with {what}"), || {
        let error = server.log().lines().find(|line| line.contains("ERROR")).map(str::to_owned);
        ensure!(error.is_none(), "{error:?}");
        Ok(!subscriber.column::<bool>(&arrived)?.is_empty())
    })
}

#[test]
fn what_functions_do_where_rows_arrive_counts_and_what_arrives_does_not() -> Result<()> {
    let (server, mut publisher, mut subscriber) = replicating()?;
    for tag in ["raised", "moved", "by_hand", "altered", "dropped", "granted", "both"] {
        create(&mut subscriber, tag, "")?;
        take(&mut subscriber, tag, 10)?;
    }
    subscriber.run("create role r; create table items (id bigint); insert into items values (5000)")?;
    subscribe(&server, &mut subscriber)?;
    let steps = [
        "select snowflake_ids.segment_raise('raised', 500)",
        "select snowflake_ids.segment_set('moved', 20000)",
        "update snowflake_ids.segment set max_id = 30000 where tag = 'by_hand'",
        "select snowflake_ids.segment_alter('altered', increment => 7)",
        "select snowflake_ids.segment_drop('dropped')",
        "select snowflake_ids.segment_grant('granted', 'r', 'USAGE')",
        "select snowflake_ids.segment_create('created', start => 77)",
        "select snowflake_ids.attach('public.items', 'id', 'segment')",
        "select segment_nextval('raised')",
    ];
    for (id, what) in (1..).zip(steps) {
        send(&server, &mut publisher, &mut subscriber, id, what)?;
    }
    assert_eq!(next(&mut subscriber, "raised")?, 502);
    assert_eq!(next(&mut subscriber, "moved")?, 20_001);
    assert_eq!(next(&mut subscriber, "by_hand")?, 30_001);
    assert_eq!(next(&mut subscriber, "altered")?, 14);
    assert_eq!(subscriber.one::<i64>("select count(*) from snowflake_ids.segment_privilege")?, 1);
    assert_eq!(next(&mut subscriber, "created")?, 77);
    assert_eq!(subscriber.one::<i64>("insert into items default values returning id")?, 5001);
    // Changes of the publisher's own tags stay there, whether made before or during the subscription.
    publisher.run(
        "select snowflake_ids.bind_sequence('sent');
         select snowflake_ids.segment_alter('both', increment => 9); select snowflake_ids.segment_create('later');
         select snowflake_ids.segment_drop('theirs')",
    )?;
    send(&server, &mut publisher, &mut subscriber, 1000, "select 1")?;
    assert_eq!(row::<i64>(&mut subscriber, "both", "increment")?, 1);
    assert_eq!(next(&mut subscriber, "both")?, 11);
    let strangers = "select count(*) from snowflake_ids.segment where tag in ('theirs', 'later', 'dropped')";
    assert_eq!(subscriber.one::<i64>(strangers)?, 0);
    assert!(next(&mut subscriber, "dropped").is_err());
    // The publisher's bound sequences are not bound on the subscriber, where their OIDs belong to other sequences.
    let bound =
        "select count(*) from snowflake_ids.sequence_binding where tag is distinct from 'public.items'";
    assert_eq!(subscriber.one::<i64>(bound)?, 0);
    Ok(())
}

/// On the subscriber, the TRUNCATE runs no statement that the extension could notice, but restarts the sequences of the tables.
#[test]
fn a_truncate_that_arrives_leaves_bound_sequences_at_their_end() -> Result<()> {
    let (server, mut publisher, mut subscriber) = replicating()?;
    let emptied = "create table emptied (id bigserial primary key)";
    publisher.run(emptied)?;
    subscriber.run(emptied)?;
    subscriber.run("select snowflake_ids.attach('emptied', 'id', 'segment')")?;
    subscriber.run("insert into emptied select from generate_series(1, 3)")?;
    subscribe(&server, &mut subscriber)?;
    publisher.run("truncate emptied restart identity")?;
    send(&server, &mut publisher, &mut subscriber, 1, "select 1")?;
    assert_eq!(subscriber.one::<i64>("select count(*) from emptied")?, 0, "the TRUNCATE arrived");
    let at_end = "select is_called and last_value = 9223372036854775807 from emptied_id_seq";
    assert!(subscriber.one::<bool>(at_end)?, "a call that is not redirected gives old numbers");
    assert_eq!(subscriber.one::<i64>("select nextval('emptied_id_seq')")?, 4);
    Ok(())
}

/// From Postgres 19 on, a publisher's sequences arrive, too. A sequence bound on the subscriber gives the subscriber's numbers.
/// If only the publisher has bound the sequence, calls on the subscriber fail instead of giving the publisher's numbers.
#[test]
fn sequences_that_arrive_move_no_bound_one() -> Result<()> {
    let (server, mut publisher, mut subscriber) = replicating()?;
    if publisher.one::<i32>("select current_setting('server_version_num')::int")? < 190_000 {
        println!("sequences are replicated from 19 on");
        return Ok(());
    }
    for client in [&mut publisher, &mut subscriber] {
        client.run("create sequence theirs; create sequence ours")?;
    }
    publisher.run("select setval('ours', 70); select snowflake_ids.bind_sequence('theirs')")?;
    publisher.run("create publication sequences for all sequences")?;
    subscriber.run("select snowflake_ids.bind_sequence('ours')")?;
    let first: i64 = subscriber.one("select nextval('ours')")?;
    publisher.run("select pg_create_logical_replication_slot('q', 'pgoutput')")?;
    subscribe_to(&server, &mut subscriber, "sequences", "q")?;
    for again in [false, true] {
        if again {
            subscriber.run("alter subscription sequences refresh sequences")?;
            all_copied(&mut subscriber)?;
        }
        let at_end = "select is_called and last_value = 9223372036854775807 from ours";
        assert!(
            subscriber.one::<bool>(at_end)?,
            "a call that is not redirected gives the publisher's numbers"
        );
        assert!(subscriber.one::<i64>("select nextval('theirs')").is_err(), "a number of the publisher's");
    }
    let next: i64 = subscriber.one("select nextval('ours')")?;
    assert!(next > first, "{next} after {first}");
    Ok(())
}

/// A publisher's TRUNCATE cannot be skipped row by row.
#[test]
fn a_truncate_that_arrives_empties_none_of_the_extensions_tables() -> Result<()> {
    let (server, mut publisher, mut subscriber) = replicating()?;
    create(&mut subscriber, "t", "")?;
    subscribe(&server, &mut subscriber)?;
    send(&server, &mut publisher, &mut subscriber, 1, "select 1")?;
    subscriber.run("select snowflake_ids.segment_revoke('t', 'public', 'ALL')")?;
    publisher.run("truncate snowflake_ids.segment_restricted")?;
    wait::until_true("an error", || {
        let restricted = "select count(*) from snowflake_ids.segment_restricted";
        ensure!(subscriber.one::<i64>(restricted)? == 1, "the tag is open");
        Ok(server.logged("cannot apply TRUNCATE") > 0)
    })
}
