//! Every function of the extension that takes text, in databases of several encodings, with long, garbled and nearly valid texts.
//! Each call returns a result or a helpful error; there is no internal error and no crash. The functions come from the catalog.

use snowflake_ids_server_tests::full;
use snowflake_ids_server_tests::functions::{self, Function};
use snowflake_ids_server_tests::prelude::*;

/// Encodings of databases, each with bytes that are letters in it.
const ENCODINGS: [(&str, &[u8]); 4] = [
    ("UTF8", "é\u{1b}漢\u{10ffff}".as_bytes()),
    ("LATIN1", b"\xe9\x80\xff"),
    ("EUC_JP", b"\xa4\xa2\x8e\xb1\x8f\xb0\xa1\xfe\xfe"),
    ("SQL_ASCII", b"\xff\xfe\xc3(\xa4"),
];

/// Valid texts of some functions, to be cut and mixed with other letters.
const SEEDS: [&str; 10] = [
    "41/5/5/12 unit=10ms epoch=2020-01-01",
    "twitter",
    "base62",
    "0S9V1KBXW0W06",
    "invoices",
    "{YYYY}{MM}{DD}-{n:6}",
    "day",
    "Europe/Berlin",
    "id",
    r#"{"version":1,"registry":null,"timeout":{"secs":1,"nanos":0},"ask":"Introduce"}"#,
];

/// The text is passed as bytes, `$1`, so that the driver does not interpret it.
const GIVEN: &str = "convert_from($1::bytea, getdatabaseencoding())";

/// The longest allowed error in bytes. Errors quote a few excerpts.
const MOST_SAID: usize = 4_000;

/// How often each function is called with garbled texts in each database.
fn rounds() -> usize {
    if full() { 500 } else { 5 }
}

/// A fixed sequence of numbers, so that failures are repeatable.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % end.max(1)
    }
}

/// A seed with letters of the encoding, cut, doubled, or with other bytes.
fn garbled(chance: &mut Chance, letters: &[u8]) -> Vec<u8> {
    let mut text = SEEDS[chance.below(SEEDS.len())].as_bytes().to_vec();
    for _ in 0..chance.below(4) {
        let at = chance.below(text.len() + 1);
        match chance.below(5) {
            0 => drop(text.splice(at..at, letters.iter().copied())),
            1 => text.truncate(at),
            2 => drop(text.splice(at..at, SEEDS[chance.below(SEEDS.len())].bytes())),
            3 => text.insert(at, u8::try_from(1 + chance.below(127)).unwrap_or(1)),
            _ => text.extend_from_within(at..),
        }
    }
    text
}

/// Calls a function and rolls back its effects. Returns what is wrong with its error.
fn complaint(client: &mut Client, function: &Function, text: &[u8]) -> Result<Option<String>> {
    let call = function.call(GIVEN);
    // A function that cannot run in a block reports that.
    let answer = client.transaction()?.query(&call, &[&text]);
    let Err(error) = answer else { return Ok(None) };
    let shown = String::from_utf8_lossy(&text[..text.len().min(300)]).into_owned();
    let db = error.as_db_error().with_context(|| format!("{call} of {shown:?}: {error:?}"))?;
    let said = db.message().len() + db.detail().map_or(0, str::len) + db.hint().map_or(0, str::len);
    if db.code().code().starts_with("XX") {
        return Ok(Some(format!("{call} of {shown:?}: {db:?}")));
    }
    // The server quotes the SQL that it cannot parse; the internal functions of attach take pieces of SQL.
    let is_too_long = said > MOST_SAID && db.code() != &SqlState::SYNTAX_ERROR;
    Ok(is_too_long.then(|| format!("{call}: an error of {said} bytes")))
}

fn database(server: &Server, encoding: &str) -> Result<Client> {
    let mut client = server.create_encoded_database(encoding)?;
    client.run(
        "set statement_timeout = '30s'; set snowflake_ids.segment_wait_timeout = '100ms';
         create temp table victim (id bigint)",
    )?;
    Ok(client)
}

/// The length of the longest text in bytes.
const LONG: usize = 2_000_000;

fn any_text_is_an_error_or_an_answer(server: &mut Server) -> Result<()> {
    let started: String = server.session()?.one("select pg_postmaster_start_time()::text")?;
    let mut complaints = Vec::new();
    for (encoding, letters) in ENCODINGS {
        let mut client = database(server, encoding)?;
        let functions = functions::with_texts(&mut client)?;
        ensure!(functions.len() > 30, "the catalog has only {} functions with texts", functions.len());
        let long: Vec<u8> =
            letters.iter().copied().cycle().take(letters.len() * (LONG / letters.len())).collect();
        let mut chance = Chance(1);
        for function in &functions {
            let shorter = long[..letters.len() * (900 / letters.len())].to_vec();
            let others = (0..rounds()).map(|_| garbled(&mut chance, letters)).collect::<Vec<_>>();
            for text in [&long, &shorter].into_iter().chain(&others) {
                complaints.extend(
                    complaint(&mut client, function, text)?.map(|said| format!("{encoding}: {said}")),
                );
            }
        }
    }
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    ensure!(server.logged("terminated by signal") == 0, "a process crashed");
    assert_eq!(server.session()?.one::<String>("select pg_postmaster_start_time()::text")?, started);
    Ok(())
}

/// Requests of other servers, which cannot run in a block that is rolled back.
fn any_question_is_an_error_or_an_answer(server: &mut Server) -> Result<()> {
    for (encoding, letters) in ENCODINGS {
        let mut client = database(server, encoding)?;
        let mut chance = Chance(2);
        for _ in 0..10 * rounds() {
            let text = garbled(&mut chance, letters);
            let answer = client.query(
                "select snowflake_ids.registry_serve(convert_from($1::bytea, getdatabaseencoding()))",
                &[&text],
            );
            if let Some(error) = answer.err() {
                let code = error.code().map_or("no answer", SqlState::code).to_owned();
                ensure!(!code.starts_with("XX") && code != "no answer", "{encoding}: {text:?}: {error:?}");
            }
        }
    }
    ensure!(server.logged("terminated by signal") == 0, "a process crashed");
    Ok(())
}

#[test]
fn texts_of_any_encoding() -> Result<()> {
    Server::builder().cases(cases![any_text_is_an_error_or_an_answer, any_question_is_an_error_or_an_answer])
}
