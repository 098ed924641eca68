//! Properties that must hold for any bytes from other processes or files. cargo-fuzz (`make fuzz`) checks the properties;
//! core/tests/fuzz.rs checks them with stable Rust. A target panics only if its property does not hold.

use snowflake_ids_core::error::EXCERPT_CHARS;
use snowflake_ids_core::registry::hosts;
use snowflake_ids_core::registry::wire::{Request, Response};
use snowflake_ids_core::server::saved_ranges;
use snowflake_ids_core::server::state::State;
use snowflake_ids_core::tag::directory::Tag;
use snowflake_ids_core::tag::serial::{self, Reset};
use snowflake_ids_core::{Explain, Format, Layout, PrefixedFormat};

/// A parser of foreign bytes.
pub struct Target {
    /// The target's name.
    pub name: &'static str,
    /// Checks the properties for any bytes.
    pub check: fn(&[u8]),
    /// Valid inputs, as seeds.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Whether the target accepts these bytes.
    pub understands: fn(&[u8]) -> bool,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "layout",
        check: layout,
        seeds: || texts(LAYOUTS),
        understands: |b| text(b).parse::<Layout>().is_ok(),
    },
    Target {
        name: "id_text",
        check: id_text,
        seeds: || texts(IDS),
        understands: |b| Format::ALL.into_iter().any(|f| f.decode(&text(b)).is_ok()),
    },
    Target {
        name: "serial",
        check: serial_format,
        seeds: || texts(FORMATS),
        understands: |b| resets().any(|r| serial::NumberFormat::parse(&text(b), r).is_ok()),
    },
    Target {
        name: "tag",
        check: tag,
        seeds: || texts(&["invoices", "x", "łódź"]),
        understands: |b| Tag::new(b).is_some(),
    },
    Target {
        name: "hosts",
        check: host_list,
        seeds: || texts(&["a,b,::1\n5432", "/tmp,@x\n1,2"]),
        understands: |_| true,
    },
    Target {
        name: "question",
        check: question,
        seeds: || texts(QUESTIONS),
        understands: |b| matches!(Request::from_text(&text(b)), Ok(Some(_))),
    },
    Target {
        name: "answer",
        check: answer,
        seeds: || texts(ANSWERS),
        understands: |b| Response::from_text(&text(b)).is_ok(),
    },
    Target {
        name: "state",
        check: state,
        seeds: || vec![STATE.as_bytes().to_vec()],
        understands: |b| State::from_text(b).is_ok(),
    },
    Target {
        name: "saved_ranges",
        check: saved_ranges,
        seeds: || texts(SAVED_RANGES),
        understands: |b| saved_ranges::from_text(b).is_ok(),
    },
];

/// The target with this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

const LAYOUTS: &[&str] = &[
    "41/5/5/12 epoch=2020-01-01",
    "twitter",
    "39/8s/0/16 unit=10ms epoch=2025-01-01",
    "41/5/3/2r/12 epoch=2010-11-04T01:42:54.657Z",
    "Sonyflake unit=100us",
];
const IDS: &[&str] = &["7zzzzzzzzzzzz", "0S9V-1KBX-W0W06", "ff", "AzL8n0Y58m7", "zzz9"];
const FORMATS: &[&str] =
    &["{YYYY}{MM}{DD}-{n:6}", "no. {n}", "{{{n:19}}}", "{YY}{MM}/{n:3}", "INV-{YYYY}-{n:5}"];
const QUESTIONS: &[&str] = &[
    r#"{"version":1,"registry":{"identity":"7/5/16400","timeline":2},"timeout":{"secs":4,"nanos":0},"ask":"Introduce"}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":0,"nanos":1},"ask":{"Tags":{"after":null}}}"#,
    r#"{"version":1,"registry":null,"timeout":{"secs":4,"nanos":0},"ask":{"Release":{"datacenter":0,"worker_id":3,"token":-5,"from":"2026-11-20T00:00:00Z"}}}"#,
];
const ANSWERS: &[&str] = &[
    r#"{"registry":{"identity":"7/5/16400","timeline":2},"clock":"2026-11-20T00:00:00Z","said":"Released"}"#,
    r#"{"registry":{"identity":"7/5/16400","timeline":2},"clock":"2026-11-20T00:00:00Z","said":{"Introduced":{"version":"1.0.0","layout":"41/5/5/12"}}}"#,
    r#"{"registry":{"identity":"","timeline":0},"clock":"2026-11-20T00:00:00Z","said":{"Stranger":{"Former":{"timeline":1,"seen":2}}}}"#,
];
const STATE: &str = concat!(
    r#"{"version":1,"release":"1.0.0","checksum":0,"state":{"system_identifier":7,"timeline":1,"home":{"identity":"a","host":"h","#,
    r#""machine":{"id":"m","container":"c"},"directory":"/d"},"copy_of":null,"copied":null,"has_reserved":false,"#,
    r#""layout":"41/5/5/12 epoch=2020-01-01","clock":{"wall":"2026-11-20T00:00:00Z","boot":"b","#,
    r#""since_boot":1},"seen":"2026-11-20T00:00:00Z","node":null,"own":{"high_water_marks":[],"minimum":0},"told":0,"#,
    r#""others":{"layouts":[],"minimum":"1970-01-01T00:00:00Z"},"lease":null,"pending_token":null,"source":"Unknown","is_installed":false}}"#
);
const SAVED_RANGES: &[&str] = &[
    "{\"version\":1,\"release\":\"1.0.0\"}\n",
    concat!(
        "{\"version\":1,\"release\":\"1.0.0\"}\n",
        r#"4b8d381c {"high_water_mark":{"of":{"database":5,"source":16400,"tag":"t\u00fc"},"stops":1,"what":{"tag_generation":-7,"day":0,"id":700}}}"#,
        "\n",
        r#"ed261ab3 {"left":{"of":{"database":5,"source":16400,"tag":"t\u00fc"},"stops":0,"what":{"version":4,"day":null,"first":91,"count":10,"increment":1}}}"#,
        "\n\n",
        r#"7cf81be7 {"taken":{"of":{"database":5,"source":16400,"tag":"t\u00fc"},"version":4}}"#,
        "\n"
    ),
];

fn texts(all: &[&str]) -> Vec<Vec<u8>> {
    all.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Decodes bytes as a text argument.
fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn resets() -> impl Iterator<Item = Option<Reset>> {
    Reset::ALL.into_iter().map(Some).chain([None])
}

/// Checks that an error's texts are short and have no control characters.
fn is_fit(error: &impl Explain) {
    let parts = [error.to_string(), error.detail().unwrap_or_default(), error.hint().unwrap_or_default()];
    for said in parts {
        assert!(said.len() <= 2 * 4 * EXCERPT_CHARS + 256, "{} bytes: {said}", said.len());
        assert!(!said.chars().any(char::is_control), "{said:?}");
    }
}

/// Checks that a layout reads back from its text, and that its ids decode to their parts.
fn layout(bytes: &[u8]) {
    match text(bytes).parse::<Layout>() {
        Ok(layout) => {
            assert_eq!(layout.to_string().parse::<Layout>().as_ref(), Ok(&layout));
            for id in [0, 1, layout.largest_id().cast_signed()] {
                let parts = layout.decode(id).expect("an id of the layout");
                let node = snowflake_ids_core::Node {
                    datacenter: parts.datacenter_id,
                    worker_id: parts.worker_id,
                    rollback: parts.rollback,
                };
                assert_eq!(
                    layout.compose(parts.timestamp, node, parts.sequence).ok(),
                    Some(id.cast_unsigned())
                );
            }
        }
        Err(error) => is_fit(&error),
    }
}

/// Checks that an id read from text can be written and read again.
fn id_text(bytes: &[u8]) {
    let text = text(bytes);
    for format in Format::ALL {
        match format.decode(&text) {
            Ok(id) => {
                assert!(id >= 0);
                for fixed in [true, false] {
                    assert_eq!(format.encode(id, fixed).and_then(|text| format.decode(&text)), Ok(id));
                }
            }
            Err(error) => is_fit(&error),
        }
    }
    PrefixedFormat::new(Format::Hex, &text).map_or_else(|error| is_fit(&error), drop);
}

/// Checks that a format reads back from its text, and that two numbers or two periods give different keys.
fn serial_format(bytes: &[u8]) {
    let text = text(bytes);
    text.parse::<Reset>().map_or_else(|error| is_fit(&error), drop);
    for reset in resets() {
        match serial::NumberFormat::parse(&text, reset) {
            Ok(format) => {
                assert_eq!(serial::NumberFormat::parse(&format.to_string(), reset).as_ref(), Ok(&format));
                assert_ne!(format.render(20_000, 1), format.render(20_000, 2));
                assert_ne!(format.render(i32::MIN, i64::MAX), format.render(i32::MAX, 0));
            }
            Err(error) => is_fit(&error),
        }
    }
}

/// Checks that a tag keeps its bytes.
fn tag(bytes: &[u8]) {
    match Tag::new(bytes) {
        Some(tag) => assert_eq!(tag.as_bytes(), bytes),
        None => assert!(bytes.len() > snowflake_ids_core::tag::definition::MAX_TAG_BYTES),
    }
    let _ = format!("{:?}", Tag::new(bytes));
}

/// Checks that a host list splits into no more options than it has elements.
fn host_list(bytes: &[u8]) {
    let text = text(bytes);
    let (hosts, ports) = text.split_once('\n').unwrap_or((&text, ""));
    let options = [("host", hosts), ("port", ports), ("user", "u")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let each = hosts::each(&options);
    assert!(!each.is_empty() && each.len() <= text.matches(',').count() + 1);
    for one in &each {
        let _ = hosts::name(one).map(|name| hosts::with_addresses(one, name, &["::1".to_owned()]));
    }
}

/// Checks that an accepted request reads back from its text. The text is ASCII and fits any encoding.
fn question(bytes: &[u8]) {
    // A refusal is explained in few words.
    if let Err(bad) = Request::accept(&text(bytes)) {
        assert!(bad.to_string().len() < 1_000 && bad.detail().is_none_or(|detail| detail.len() < 1_000));
    }
    if let Ok(Some(question)) = Request::from_text(&text(bytes)) {
        let said = question.to_text().expect("plain data");
        assert!(said.is_ascii());
        let again = Request::from_text(&said).expect("what was written").expect("of this version");
        assert_eq!(again.to_text().expect("plain data"), said);
    }
}

/// Checks that an accepted response reads back from its text. The text is ASCII and fits any encoding.
fn answer(bytes: &[u8]) {
    if let Ok(answer) = Response::from_text(&text(bytes)) {
        let said = answer.to_text().expect("plain data");
        assert!(said.is_ascii());
        assert_eq!(
            Response::from_text(&said).and_then(|again| again.to_text()).expect("what was written"),
            said
        );
    }
}

/// Checks that an accepted state can be written and read again, even after its checksum was corrected.
fn state(bytes: &[u8]) {
    let read = |bytes: &[u8]| match State::from_text(bytes) {
        Ok(state) => {
            let said = state.to_text().expect("plain data");
            assert_eq!(State::from_text(said.as_bytes()), Ok(state));
        }
        Err(error) => is_fit(&error),
    };
    read(bytes);
    read(&sealed(bytes));
}

/// Corrects the checksum in the bytes, so that the content behind it is fuzzed too.
pub fn sealed(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let Err(error) = State::from_text(text.as_bytes()) else { return bytes.to_vec() };
    let detail = error.detail().unwrap_or_default();
    let numbers: Vec<_> =
        detail.split(|letter: char| !letter.is_ascii_digit()).filter(|n| !n.is_empty()).collect();
    match numbers[..] {
        [found, right] if detail.starts_with("Its checksum is") => {
            text.replacen(&format!("\"checksum\":{found}"), &format!("\"checksum\":{right}"), 1).into_bytes()
        }
        _ => text.into_bytes(),
    }
}

/// Checks that saved ranges can be written and read again, even after their checksums were corrected.
fn saved_ranges(bytes: &[u8]) {
    for text in [bytes, &summed(bytes)] {
        if let Ok(read) = saved_ranges::from_text(text) {
            assert!(read.damage.is_none() || read.left.is_empty());
            let records = saved_ranges::SavedRecords { damage: None, ..read };
            let said = saved_ranges::to_text(records.clone()).expect("plain data");
            assert_eq!(saved_ranges::from_text(&said), Ok(records));
        }
    }
}

/// Corrects the checksum of each line after the first.
fn summed(bytes: &[u8]) -> Vec<u8> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let mut text = lines.next().unwrap_or_default().to_vec();
    for line in lines {
        match line.split_at_checked("01234567 ".len()) {
            Some((_, json)) => {
                text.extend(format!("{:08x} ", crc32fast::hash(json.trim_ascii())).into_bytes());
                text.extend(json);
            }
            None => text.extend(line),
        }
    }
    text
}
