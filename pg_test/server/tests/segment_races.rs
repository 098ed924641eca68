//! Tags that are changed under load, again and again. The tests aim at the moments between a change and its commit, and between a
//! reservation and its publication.

use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::{WORKER, create, processes, take};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;

const SESSIONS: usize = 6;

/// Takes ids until `stop` is set. The ids of each session grow. The tag may be missing for a moment.
fn take_until(stop: &AtomicBool, mut client: Client, given: &AtomicUsize) -> Result<Vec<i64>> {
    let call = client.prepare("select segment_nextval('t')")?;
    let mut taken = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        match client.query_one(&call, &[]) {
            Ok(row) => {
                taken.push(row.get(0));
                given.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_OBJECT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    ids::growing(&taken)?;
    Ok(taken)
}

/// Runs rounds of changes for a while, and until each other session has got enough ids.
fn change(
    client: &mut Client,
    round: impl Fn(&mut Client, usize) -> Result<Vec<i64>>,
    given: &[AtomicUsize],
) -> Result<Vec<i64>> {
    let time = Duration::from_millis(if full() { 15_000 } else { 2_000 });
    let (start, mut rounds, mut taken) = (Instant::now(), 0, Vec::new());
    let few = || given.iter().find(|given| given.load(Ordering::Relaxed) <= 50);
    while start.elapsed() < time || rounds <= 40 || few().is_some() {
        ensure!(start.elapsed() < wait::LONG, "{rounds} rounds, while a session was given {:?} ids", few());
        taken.extend(round(client, rounds)?);
        rounds += 1;
        // A session that changes a tag locks the tag's row. The worker must get the lock in between.
        sleep(Duration::from_millis(5));
    }
    Ok(taken)
}

/// What happens to the worker during the rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Worker {
    LetAlone,
    HeldUp,
}

/// Pauses the worker at a random point for longer than a round takes. From time to time the worker runs freely until sessions get
/// ids. Without these times the worker would serve nobody on a busy machine, because its lock waits would time out while it is paused.
fn hold_worker_up(
    server: &Server,
    stop: &AtomicBool,
    mut client: Client,
    given: &[AtomicUsize],
) -> Result<()> {
    let in_all = || given.iter().map(|given| given.load(Ordering::Relaxed)).sum::<usize>();
    while !stop.load(Ordering::Relaxed) {
        // There is no worker if no session has asked for ids for a while.
        let Some(&worker) = processes(&mut client, WORKER)?.first() else {
            sleep(Duration::from_millis(10));
            continue;
        };
        let before = in_all();
        for micros in (0..1_500).step_by(13) {
            // If the worker has ended meanwhile, the loop looks for the next worker.
            let Ok(paused) = server.pause_process(worker) else { break };
            sleep(Duration::from_millis(12));
            drop(paused);
            sleep(Duration::from_micros(micros));
        }
        wait::until_true("ids to flow", || Ok(stop.load(Ordering::Relaxed) || in_all() > before))?;
    }
    Ok(())
}

/// Lets sessions take ids while another session runs rounds of changes. Returns the ids of all sessions.
fn under_load(
    server: &Server,
    worker: Worker,
    round: impl Fn(&mut Client, usize) -> Result<Vec<i64>> + Sync,
) -> Result<Vec<i64>> {
    let stop = AtomicBool::new(false);
    let given: [AtomicUsize; SESSIONS] = Default::default();
    let taken = at_once(server.sessions("postgres", SESSIONS + 2)?, |number, mut client| match number {
        SESSIONS => {
            let changed = change(&mut client, &round, &given);
            stop.store(true, Ordering::Relaxed);
            changed
        }
        0..SESSIONS => take_until(&stop, client, &given[number]),
        _ if worker == Worker::HeldUp => hold_worker_up(server, &stop, client, &given).map(|()| Vec::new()),
        _ => Ok(Vec::new()),
    })?;
    Ok(taken.concat())
}

fn a_tag_dropped_and_created_again_and_again_gives_nothing_of_before(server: &mut Server) -> Result<()> {
    create(&mut server.session()?, "t", "step => 10")?;
    let taken = under_load(server, Worker::HeldUp, |client, round| {
        let again = format!(
            "begin; select snowflake_ids.segment_drop('t');
             select snowflake_ids.segment_create('t', start => {}, step => 10); commit",
            (round + 1) * 1_000_000
        );
        client.run(&again)?;
        take(client, "t", 3)
    })?;
    ids::unique(taken)
}

fn altering_a_tag_again_and_again_repeats_no_id(server: &mut Server) -> Result<()> {
    create(&mut server.session()?, "t", "step => 10")?;
    let taken = under_load(server, Worker::LetAlone, |client, round| {
        // The change takes back buffered ids, and the worker reserves again. A range that the worker has not published yet
        // becomes a gap.
        let max_value = 1_000_000_000 + round;
        client.run(&format!("select snowflake_ids.segment_alter('t', max_value => {max_value})"))?;
        take(client, "t", 3)
    })?;
    ids::unique(taken)
}

fn ids_of_changes_that_are_committed_or_rolled_back_by_turns_do_not_come_again(
    server: &mut Server,
) -> Result<()> {
    const CHANGES: [&str; 4] = [
        "select snowflake_ids.segment_alter('t', description => 'changed')",
        "select snowflake_ids.segment_alter('t', max_value => 1000000000000000)",
        "select snowflake_ids.segment_set('t', ROUND * 1000000)",
        "update snowflake_ids.segment set step = step % 10 + 5",
    ];
    create(&mut server.session()?, "t", "step => 10, max_step => 20")?;
    let taken = under_load(server, Worker::HeldUp, |client, round| {
        client.run("begin")?;
        let mut taken = Vec::new();
        for change in [CHANGES[round % 4], CHANGES[(round + 1 + round / 4 % 3) % 4]] {
            client.run(&change.replace("ROUND", &round.to_string()))?;
            taken.extend(take(client, "t", 3)?);
        }
        client.run(if round / 16 % 2 == 0 { "commit" } else { "rollback" })?;
        Ok(taken)
    })?;
    ids::unique(taken)
}

#[test]
fn changes_again_and_again_repeat_nothing() -> Result<()> {
    Server::builder().cases(cases![
        a_tag_dropped_and_created_again_and_again_gives_nothing_of_before,
        altering_a_tag_again_and_again_repeats_no_id,
        ids_of_changes_that_are_committed_or_rolled_back_by_turns_do_not_come_again
    ])
}
