//! A server that runs the library of the last release while the present one is installed under it, and the way back. `make
//! test-upgrade` builds that release and runs these tests.

use anyhow::{Context, Result, ensure};
use postgres::error::SqlState;
use snowflake_ids_server_tests::installation::{Installation, Version, last_release};
use snowflake_ids_server_tests::load::{Load, Taken};
use snowflake_ids_server_tests::registry::{auto, wait_for_id};
use snowflake_ids_server_tests::upgrades::{self, Drawn, SOURCES};
use snowflake_ids_server_tests::{Server, Shutdown, sql, sql::Session};
use std::fs;

const UPDATE: &str = "alter extension snowflake_ids update";
/// The number of sessions of each load.
const SESSIONS: usize = 2;

/// Calls that sessions repeat without a pause. The flag is true if a call gives all numbers from 1 on without gaps.
const LOADS: [(&str, bool); 6] = [
    ("select snowflake_nextval()", false),
    ("select segment_nextval('busy')", true),
    ("select series_nextval('busy dense', 7)", false),
    ("select series_nextval('busy gapless', 7)", true),
    ("select series_nextval('busy monotonic', 7)", false),
    ("select nextval('busy_sequence')", false),
];

/// Starts a server on the last release, with all sources of ids.
fn old() -> Result<(Installation, Server)> {
    let installation = Installation::with(&last_release()?)?;
    let (server, mut client) = auto().installation(&installation).with_session()?;
    upgrades::create(&mut client)?;
    client.run(
        "select snowflake_ids.segment_create('busy', step => 100);
         select snowflake_ids.series_create('busy dense', 'dense');
         select snowflake_ids.series_create('busy gapless');
         select snowflake_ids.series_create('busy monotonic', 'monotonic');
         create sequence busy_sequence;
         select snowflake_ids.generator_create('busy', '41/5/5/12 epoch=2021-01-01');
         select snowflake_ids.bind_sequence('busy_sequence', generator => 'busy')",
    )?;
    ensure!(version(&server)? != env!("CARGO_PKG_VERSION"), "the release is no other version");
    Ok((installation, server))
}

/// The version of the extension's SQL.
fn version(server: &Server) -> Result<String> {
    server.connect("postgres")?.one("select extversion from pg_extension where extname = 'snowflake_ids'")
}

/// The release that wrote the state file, and the file's form.
fn written_by(server: &Server) -> Result<(String, String)> {
    let text = fs::read_to_string(server.state_file())?;
    let field = |name: &str| {
        let value = text.split_once(&format!("\"{name}\":"))?.1;
        Some(value.split([',', '}']).next()?.trim_matches('"').to_owned())
    };
    Ok((field("release").context("no release")?, field("version").context("no form")?))
}

fn loads(server: &Server) -> Result<Vec<Load>> {
    LOADS.iter().map(|(call, _)| server.load_of(call, SESSIONS)).collect()
}

/// The ids of each load in all runs.
#[derive(Default)]
struct AllTaken(Vec<Taken>);

impl AllTaken {
    /// Adds the ids of loads that the server has ended, or that `end` ends now.
    fn add(&mut self, loads: Vec<Load>, end: impl Fn(Load) -> Taken) -> Result<()> {
        self.0.resize_with(LOADS.len(), Taken::default);
        for ((load, all), (call, _)) in loads.into_iter().zip(&mut self.0).zip(LOADS) {
            let taken = end(load);
            ensure!(taken.refusals.is_empty(), "{call}: {:?}", taken.refusals);
            all.add(taken);
        }
        Ok(())
    }

    /// Checks that no id repeats. Dense ids have no gaps, except ids that sessions were receiving when a stop ended the sessions.
    fn check(&self, stops: usize) -> Result<()> {
        for (taken, (call, is_dense)) in self.0.iter().zip(LOADS) {
            eprintln!("{call}: {} ids", taken.ids.len());
            taken.unique().context(call)?;
            let highest = taken.ids.iter().copied().max().context("no ids")?;
            let missing = usize::try_from(highest)?.saturating_sub(taken.ids.len());
            ensure!(
                !is_dense || missing <= stops * SESSIONS,
                "{call}: {missing} numbers up to {highest} are missing"
            );
        }
        Ok(())
    }
}

/// Checks that the log names no unreadable file, except the file of dense series, which versions after 0.2 do not write.
fn ensure_files_were_read(server: &Server) -> Result<()> {
    let of_dense_series = server.logged("does without \"snowflake_ids.series.json\"");
    ensure!(server.logged("does without") == of_dense_series, "the log says: does without");
    for words in ["could not read", "leaves \"snowflake_ids", "was terminated by signal", "PANIC"] {
        ensure!(server.logged(words) == 0, "the log says: {words}");
    }
    Ok(())
}

#[test]
#[ignore = "make test-upgrade builds the release that it begins with"]
fn nothing_fails_and_no_id_comes_twice_while_the_present_version_takes_over() -> Result<()> {
    let (installation, mut server) = old()?;
    let (mut drawn, mut taken) = (Drawn::default(), AllTaken::default());
    let mut client = server.connect("postgres")?;
    drawn.go_on(&mut client, true)?;
    let running = loads(&server)?;
    Load::all_go_on(&running)?;

    installation.put(&Version::Present)?;
    Load::all_go_on(&running)?;
    // Numbers also continue in a session that connects after the installation.
    drawn.go_on(&mut client, true)?;
    drawn.go_on(&mut server.connect("postgres")?, true)?;
    // The update comes too early. If it needs functions that the running library lacks, it changes nothing.
    if let Err(error) = client.batch_execute(UPDATE) {
        ensure!(error.code() == Some(&SqlState::UNDEFINED_FUNCTION), "{error:?}");
        ensure!(version(&server)? != env!("CARGO_PKG_VERSION"), "half of an update");
    }
    Load::all_go_on(&running)?;
    drawn.go_on(&mut client, true)?;

    server.stop(Shutdown::Fast)?;
    taken.add(running, Load::until_ended)?;
    let old_release = written_by(&server)?;
    server.start_again()?;
    let mut client = server.connect("postgres")?;
    drawn.go_on(&mut client, true)?;
    let running = loads(&server)?;
    Load::all_go_on(&running)?;
    client.run(UPDATE)?;
    assert_eq!(version(&server)?, env!("CARGO_PKG_VERSION"));
    Load::all_go_on(&running)?;
    drawn.go_on(&mut client, true)?;
    drawn.go_on(&mut server.connect("postgres")?, true)?;
    taken.add(running, Load::end)?;

    server.restart()?;
    drawn.go_on(&mut server.connect("postgres")?, true)?;
    let running = loads(&server)?;
    Load::all_go_on(&running)?;
    taken.add(running, Load::end)?;
    let release = written_by(&server)?;
    ensure!(
        old_release.0 != release.0 && release.0 == env!("CARGO_PKG_VERSION"),
        "{old_release:?}, {release:?}"
    );
    ensure_files_were_read(&server)?;
    taken.check(1)
}

/// A crash of the old version has the usual effect: gaps, but no repeated id.
#[test]
#[ignore = "make test-upgrade builds the release that it begins with"]
fn after_a_crash_of_the_former_version_no_id_comes_twice() -> Result<()> {
    let (installation, mut server) = old()?;
    let (mut drawn, mut taken) = (Drawn::default(), AllTaken::default());
    drawn.go_on(&mut server.connect("postgres")?, true)?;
    let running = loads(&server)?;
    Load::all_go_on(&running)?;
    installation.put(&Version::Present)?;
    server.kill9()?;
    taken.add(running, Load::until_ended)?;
    server.start_again()?;
    let mut client = server.connect("postgres")?;
    wait_for_id(&mut client)?;
    drawn.go_on(&mut client, false)?;
    client.run(UPDATE)?;
    let running = loads(&server)?;
    Load::all_go_on(&running)?;
    drawn.go_on(&mut client, true)?;
    taken.add(running, Load::end)?;
    taken.0.iter().try_for_each(Taken::unique)
}

/// The former release is installed again, before any UPDATE. The former release reads files whose form is unchanged. For other files
/// it raises an error that names the version to install.
#[test]
#[ignore = "make test-upgrade builds the release that it begins with"]
fn the_former_version_goes_on_or_names_the_version_that_it_takes() -> Result<()> {
    let (installation, mut server) = old()?;
    let mut drawn = Drawn::default();
    drawn.go_on(&mut server.connect("postgres")?, true)?;
    server.stop(Shutdown::Fast)?;
    let (release, form) = written_by(&server)?;
    installation.put(&Version::Present)?;
    server.start_again()?;
    drawn.go_on(&mut server.connect("postgres")?, true)?;
    server.stop(Shutdown::Fast)?;
    let is_readable = written_by(&server)?.1 == form;
    installation.put(&last_release()?)?;
    server.start_again()?;
    let mut client = server.connect("postgres")?;
    if is_readable {
        drawn.go_on(&mut client, true)?;
        server.restart()?;
        drawn.go_on(&mut server.connect("postgres")?, true)?;
        assert_eq!(written_by(&server)?.0, release);
        return ensure_files_were_read(&server);
    }
    let error = client.fails(SOURCES[0].call, sql::NOT_IN_STATE)?;
    ensure!(error.hint().is_some_and(|hint| hint.contains(env!("CARGO_PKG_VERSION"))), "{error:?}");
    installation.put(&Version::Present)?;
    server.restart()?;
    drawn.go_on(&mut server.connect("postgres")?, true)
}

/// After UPDATE the SQL cannot return to the former version. With the former library, the SQL gives correct ids or an error. The
/// present library then continues.
#[test]
#[ignore = "make test-upgrade builds the release that it begins with"]
fn under_the_sql_of_the_present_version_the_former_library_gives_no_id_twice() -> Result<()> {
    let (installation, mut server) = old()?;
    let mut drawn = Drawn::default();
    drawn.go_on(&mut server.connect("postgres")?, true)?;
    server.stop(Shutdown::Fast)?;
    installation.put(&Version::Present)?;
    server.start_again()?;
    let mut client = server.connect("postgres")?;
    client.run(UPDATE)?;
    drawn.go_on(&mut client, true)?;
    server.stop(Shutdown::Fast)?;
    installation.put(&last_release()?)?;
    server.start_again()?;
    let mut client = server.connect("postgres")?;
    let mut between = Vec::new();
    for source in SOURCES {
        let mut taken = Vec::new();
        for _ in 0..10 {
            match client.query_one(source.call, &[]) {
                Ok(row) => taken.push(row.get::<_, i64>(0)),
                Err(error) => {
                    let code =
                        error.code().with_context(|| format!("the session is lost: {}", source.call))?;
                    // Causes: a function that the library lacks, a file in a newer form, or newly added columns.
                    let may_be = [
                        SqlState::UNDEFINED_FUNCTION,
                        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                        SqlState::UNDEFINED_COLUMN,
                    ];
                    ensure!(may_be.contains(code), "{}: {error:?}", source.call);
                }
            }
        }
        between.push(taken);
    }
    server.stop(Shutdown::Fast)?;
    installation.put(&Version::Present)?;
    server.start_again()?;
    drawn.add(between)?;
    drawn.go_on(&mut server.connect("postgres")?, false)
}
