//! Calls that repair a node whose registry answers, hangs or is down. Each call ends as the documents say, or changes nothing.

use snowflake_ids_server_tests::cluster::{NAME, said};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::next;
use snowflake_ids_server_tests::snowflakes;
use snowflake_ids_server_tests::snowflakes::status;

/// The outcome of a call.
#[derive(Clone, Copy)]
enum Outcome {
    Done,
    /// The call fails with these words.
    Refused(&'static str),
}
use Outcome::{Done, Refused};

const LEASED: Outcome = Refused("worker ids are leased from registry");
const KEPT: Outcome = Refused("segment tags of this database are kept by registry");
const SILENT: Outcome = Refused("does not answer");
const LOW: Outcome = Refused("would never be above those of");

/// A call, its outcome if the registry answers, and its outcome if not.
const CALLS: [(&str, Outcome, Outcome); 11] = [
    ("state_adopt()", Done, Done),
    ("clock_accept()", Done, Done),
    ("worker_release(0)", LEASED, LEASED),
    ("worker_release(7)", LEASED, LEASED),
    ("segment_set('t', 5000, force => true)", KEPT, KEPT),
    ("segment_raise('t', 5000)", KEPT, KEPT),
    ("layout_check('javascript', 'web')", Done, Done),
    ("layout_change('javascript', 'web')", LOW, LOW),
    ("layout_change('41/4/6/12 epoch=2019-01-01', 'web')", Done, Done),
    ("state_reset()", Done, SILENT),
    ("state_reset(now())", Done, SILENT),
];

/// A session of a node that gives ids of each kind.
fn node(cluster: &Cluster) -> Result<Client> {
    cluster.create("t", "step => 1000, max_step => 1000")?;
    let mut client = cluster.session()?;
    wait_for_id(&mut client)?;
    client.run("select snowflake_ids.generator_create('web', '41/0/10/12 epoch=2020-01-01')")?;
    Ok(client)
}

/// Makes each call, and checks that ids of each kind continue above the earlier ones.
fn call_all(client: &mut Client, answers: bool) -> Result<()> {
    let web = "select snowflake_nextval('web')";
    let mut former = (snowflakes::next(client)?, client.one::<i64>(web)?, next(client, "t")?);
    for (call, answered, otherwise) in CALLS {
        let worker = status::<Option<i32>>(client, "worker_id")?;
        let statement = format!("select snowflake_ids.{call}");
        match if answers { answered } else { otherwise } {
            Done => client.batch_execute(&statement).context(call)?,
            Refused(words) => {
                let error = client.error(&statement).context(call)?;
                assert_eq!(error.code(), sql::NOT_IN_STATE, "{call}: {error:?}");
                assert!(error.message().contains(words), "{call}: {error:?}");
                assert!(!words.contains("answer") || said(&error).contains(NAME), "{call}: {error:?}");
                assert_eq!(status::<Option<i32>>(client, "worker_id")?, worker, "{call}");
            }
        }
        let later = (
            snowflakes::next(client).context(call)?,
            client.one::<i64>(web).context(call)?,
            next(client, "t")?,
        );
        assert!(later.0 > former.0 && later.2 > former.2, "{call}: {former:?}, {later:?}");
        assert!(later.1 > former.1, "{call}: {former:?}, {later:?}");
        former = later;
    }
    Ok(())
}

fn on_a_node_whose_registry_answers(cluster: &mut Cluster) -> Result<()> {
    let mut client = node(cluster)?;
    call_all(&mut client, true)
}

fn on_a_node_whose_registry_hangs(cluster: &mut Cluster) -> Result<()> {
    let mut client = node(cluster)?;
    next(&mut client, "t")?;
    let paused = cluster.registry.pause()?;
    call_all(&mut client, false)?;
    drop(paused);
    snowflakes::next(&mut client).map(drop)
}

fn on_a_node_whose_registry_is_away(cluster: &mut Cluster) -> Result<()> {
    let mut client = node(cluster)?;
    next(&mut client, "t")?;
    cluster.registry.stop(Shutdown::Immediate)?;
    call_all(&mut client, false)?;
    cluster.registry.start_again()
}

/// A server with its own leases needs no other server.
#[test]
fn on_a_server_that_is_its_own_registry() -> Result<()> {
    let (_server, mut client) = Server::builder().set("snowflake_ids.worker_id", "auto").with_session()?;
    let mut former = wait_for_id(&mut client)?;
    client.run("select snowflake_ids.segment_create('t')")?;
    for call in [
        "state_adopt()",
        "clock_accept()",
        "worker_release((select worker_id from snowflake_ids.status))",
        "state_reset()",
    ] {
        client.batch_execute(&format!("select snowflake_ids.{call}")).context(call)?;
        let later = wait_for_id(&mut client).context(call)?;
        assert!(later > former, "{call}: {former}, {later}");
        former = later;
    }
    let number = next(&mut client, "t")?;
    client.run("select snowflake_ids.segment_set('t', 5000, force => true)")?;
    assert_eq!((number, next(&mut client, "t")?), (1, 5001));
    Ok(())
}

#[test]
fn calls_end_in_what_their_page_says() -> Result<()> {
    Cluster::cases(
        1,
        cases![
            on_a_node_whose_registry_answers,
            on_a_node_whose_registry_hangs,
            on_a_node_whose_registry_is_away
        ],
    )
}
