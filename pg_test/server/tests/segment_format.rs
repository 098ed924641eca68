//! Formats with letters that are not ASCII: in databases of several encodings, and with a registry in another encoding.

use snowflake_ids_server_tests::cluster::{JOIN, NAME};
use snowflake_ids_server_tests::prelude::*;
use snowflake_ids_server_tests::segments::create;

fn text(client: &mut Client, tag: &str) -> Result<String> {
    client.one(&format!("select segment_nextval_text('{tag}')"))
}

#[test]
fn letters_of_the_database_are_in_its_numbers() -> Result<()> {
    let server = Server::builder().start()?;
    for (encoding, one, other) in [
        ("UTF8", "Ä-{n:4}", "漢-{n:4}"),
        ("LATIN1", "Ä-{n:4}", "Ö-{n:4}"),
        ("EUC_JP", "漢-{n:4}", "字-{n:4}"),
        ("WIN1251", "Ж{{{n:4}", "Ш{{{n:4}"),
        ("SQL_ASCII", "Ä-{n:4}", "漢-{n:4}"),
    ] {
        let mut client = server.create_encoded_database(encoding)?;
        for (number, format) in (0..).zip([one, other]) {
            let tag = format!("t{number}");
            create(&mut client, &tag, &format!("format => '{format}'"))?;
            let expected = |n: &str| format.replace("{n:4}", n).replace("{{", "{");
            assert_eq!(text(&mut client, &tag)?, expected("0001"), "{encoding}");
            // The transaction's private ids have the same format.
            client.run(&format!("begin; select snowflake_ids.segment_set('{tag}', 7)"))?;
            assert_eq!(text(&mut client, &tag)?, expected("0008"), "{encoding}");
            client.run("commit")?;
            assert_eq!(text(&mut client, &tag)?, expected("0009"), "{encoding}");
        }
        // The limit applies to the length in UTF-8.
        let long = format!(
            "{}{{n}}",
            one.chars().next().map_or(String::new(), |letter| letter.to_string().repeat(40))
        );
        let error =
            client.error(&format!("select snowflake_ids.segment_create('long', format => '{long}')"))?;
        assert_eq!(error.message(), "format is too long", "{encoding}");
    }
    let mut client = server.connect("sql_ascii")?;
    let error = client.error(
        "select snowflake_ids.segment_create('bytes', format => convert_from('\\xc42d7b6e7d', 'SQL_ASCII'))",
    )?;
    assert_eq!(
        (error.code(), error.message()),
        (&SqlState::CHARACTER_NOT_IN_REPERTOIRE, "format is not in UTF-8")
    );
    Ok(())
}

#[test]
fn a_registry_in_another_encoding_gives_its_letters_where_they_are_known() -> Result<()> {
    let server = Server::builder().set("snowflake_ids.registry_timeout", "20s").start()?;
    let mut registry = server.create_encoded_database("LATIN1")?;
    for (tag, format) in [("a", "Ä-{n:4}"), ("o", "Ö-{n:4}")] {
        create(&mut registry, tag, &format!("format => '{format}'"))?;
    }
    for encoding in ["UTF8", "LATIN9", "WIN1251"] {
        let mut client = server.create_encoded_database(encoding)?;
        client.run(&format!(
            "create extension postgres_fdw;
             create server {NAME} foreign data wrapper postgres_fdw
                 options (host '127.0.0.1', port '{}', dbname 'latin1');
             create user mapping for postgres server {NAME} options (user 'postgres'); {JOIN}",
            server.port()
        ))?;
        if encoding == "WIN1251" {
            client.fails("select segment_nextval_text('a')", &SqlState::UNTRANSLATABLE_CHARACTER)?;
            client.one::<i64>("select segment_nextval('a')")?;
            continue;
        }
        let (a, o) = (text(&mut client, "a")?, text(&mut client, "o")?);
        assert!(a.starts_with("Ä-") && o.starts_with("Ö-"), "{encoding}: {a} {o}");
    }
    Ok(())
}
