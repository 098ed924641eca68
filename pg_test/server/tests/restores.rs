//! Data directories whose parts are old, present or missing. Either no snowflake id repeats, or an error says what to do. No id
//! of a tag repeats among the rows in the restored directory.
//!
//! A mix says for each part whether it is old, present or missing. One server goes through one mix after another, and all its ids
//! are compared. `make restores` runs all mixes. The other tests run mixes that show each way in which a part can be wrong.

use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::restores::From::{self, Missing, Old, Present};
use snowflake_ids_server_tests::restores::Part;
use snowflake_ids_server_tests::segments::create;
use snowflake_ids_server_tests::snowflakes::take;
use std::collections::HashSet;

/// A layout with many worker ids, because each copy that leases a worker id takes another one.
const LAYOUT: &str = "41/0/20/2 epoch=2020-01-01";
/// The clock after the first ids. All later ids then follow from the state file, so an old state file would repeat ids.
const CLOCK: &str = "-1h";

#[derive(Clone, Copy, Debug)]
struct Mix {
    /// True if the old files come from a base backup of the running server, not from a copy of the stopped server.
    base_backup: bool,
    /// True if the directory is assembled in another place.
    elsewhere: bool,
    /// True if Postgres's own files are old.
    postgres: bool,
    state: From,
    marker: From,
    saved_ranges: From,
}

const ALL_OLD: Mix =
    Mix { base_backup: false, elsewhere: false, postgres: true, state: Old, marker: Old, saved_ranges: Old };
const PRESENT: Mix =
    Mix { postgres: false, state: Present, marker: Present, saved_ranges: Present, ..ALL_OLD };

/// Old directories of a stopped and of a running server, an old state file, lost files, and an old state file in a copy.
const CHOSEN: [Mix; 5] = [
    ALL_OLD,
    Mix { base_backup: true, ..ALL_OLD },
    Mix { state: Old, ..PRESENT },
    Mix { state: Missing, saved_ranges: Missing, ..PRESENT },
    Mix { elsewhere: true, state: Old, ..PRESENT },
];

/// All mixes except those with an old marker file, which has the same effect as the present marker file.
fn all() -> Vec<Mix> {
    let mut all = Vec::new();
    for number in 0..2 * 2 * 2 * 3 * 2 * 3 {
        let (mut rest, mut digit) = (number, 0);
        let mut next = |base: usize| {
            (digit, rest) = (rest % base, rest / base);
            digit
        };
        let from = |digit: usize| [Old, Present, Missing][digit];
        all.push(Mix {
            base_backup: next(2) == 1,
            elsewhere: next(2) == 1,
            postgres: next(2) == 1,
            marker: [Present, Missing][next(2)],
            state: from(next(3)),
            saved_ranges: from(next(3)),
        });
    }
    all
}

/// A server, and all snowflake ids that it has issued, with whichever files.
struct Course {
    server: Server,
    snowflakes: HashSet<i64>,
}

impl Course {
    fn begin(builder: Builder) -> Result<Self> {
        let builder =
            builder.false_clock().set("snowflake_ids.layout", LAYOUT).set("snowflake_ids.max_drift", "2h");
        let (server, mut client) = builder.with_session()?;
        create(&mut client, "orders", "")?;
        client.run("create table orders (id bigint primary key)")?;
        let mut course = Self { server, snowflakes: HashSet::new() };
        course.live()?;
        course.server.set_clock(CLOCK)?;
        Ok(course)
    }

    /// Takes snowflake ids and ids of a tag.
    fn live(&mut self) -> Result<()> {
        let mut client = self.server.connect("postgres")?;
        follow_errors(&mut client)?;
        for id in take(&mut client, 500)? {
            ensure!(self.snowflakes.insert(id), "snowflake id {id} came again");
        }
        // The number of ids exceeds a segment, so calls return both saved ids and newly reserved ids.
        let insert = "insert into orders select segment_nextval('orders') from generate_series(1, 1700)";
        client.batch_execute(insert).context("an id of a tag came again")
    }

    fn go_through(&mut self, mix: Mix) -> Result<()> {
        self.live()?;
        let mut kept = None;
        if mix.base_backup {
            kept = Some(self.server.keep_backup()?);
        }
        self.server.stop(Shutdown::Fast)?;
        let kept = kept.map_or_else(|| self.server.keep(), Ok)?;
        self.server.start_again()?;
        self.live()?;
        self.server.stop(Shutdown::Fast)?;
        if mix.elsewhere {
            self.server = self.server.copy()?;
            self.server.set_clock(CLOCK)?;
        }
        self.server.put_back(&kept, mix.postgres, |part| match part {
            Part::State => mix.state,
            Part::Marker => mix.marker,
            Part::SavedRanges => mix.saved_ranges,
        })?;
        self.server.start_again()?;
        if mix.state == Missing && mix.marker == Missing {
            // No file is left that shows the loss. The test does what the documentation tells an operator to do.
            let mut client = self.server.connect("postgres")?;
            client.run("select snowflake_ids.state_reset()")?;
        }
        self.live()
    }
}

/// Functions that an error's hint may name.
const WAYS_OUT: [&str; 2] = ["snowflake_ids.state_adopt()", "snowflake_ids.state_reset()"];

/// Follows the hints of errors until an id is issued.
fn follow_errors(client: &mut Client) -> Result<()> {
    let mut followed = HashSet::new();
    wait::until(wait::LONG, "ids to be issued, after what the errors say was done", || {
        let Err(error) = client.simple_query("select snowflake_nextval()") else { return Ok(Some(())) };
        let error = error.as_db_error().with_context(|| error.to_string())?;
        let hint = error.hint().with_context(|| format!("no hint: {error:?}"))?;
        if let Some(function) = WAYS_OUT.iter().find(|function| hint.contains(**function)) {
            if !followed.insert(function) {
                bail!("{function} was no help: {error:?}");
            }
            client.run(&format!("select {function}"))?;
        }
        Ok(None)
    })
}

fn go_through(builder: Builder, mixes: &[Mix]) -> Result<()> {
    let mut course = Course::begin(builder)?;
    for mix in mixes {
        course.go_through(*mix).with_context(|| format!("{mix:?}"))?;
    }
    Ok(())
}

fn number() -> Builder {
    Server::builder()
}

fn auto() -> Builder {
    number().set("snowflake_ids.worker_id", "auto")
}

#[test]
fn chosen_mixes_with_a_number_repeat_no_id() -> Result<()> {
    go_through(number(), &CHOSEN)
}

#[test]
fn chosen_mixes_under_auto_repeat_no_id() -> Result<()> {
    go_through(auto(), &CHOSEN[..3])
}

/// Runs each mix alone, so that no mix depends on another.
fn go_through_all(builder: &dyn Fn() -> Builder) -> Result<()> {
    let failed: Vec<String> = all()
        .into_iter()
        .filter_map(|mix| go_through(builder(), &[mix]).err())
        .map(|error| format!("{error:#}"))
        .collect();
    ensure!(failed.is_empty(), "{} mixes fail:\n{}", failed.len(), failed.join("\n"));
    Ok(())
}

#[test]
#[ignore = "takes minutes: make restores"]
fn all_mixes_with_a_number_repeat_no_id() -> Result<()> {
    go_through_all(&number)
}

#[test]
#[ignore = "takes minutes: make restores"]
fn all_mixes_under_auto_repeat_no_id() -> Result<()> {
    go_through_all(&auto)
}
