//! Valid and invalid rows of named generators.

use snowflake_ids_core::generator::named::{GeneratorRow, MAX_CACHE, Named, NamedError, check_name};
use snowflake_ids_core::generator::rules::{Rules, SequenceStart};
use snowflake_ids_core::{Explain, Kind, Layout, PRESETS, Shard};
use std::num::NonZeroU32;

const WEB: GeneratorRow<'_> =
    GeneratorRow { layout: "javascript", modulus: None, remainder: None, sequence_start: None, cache: None };

#[test]
fn a_row_of_a_layout_alone_leaves_the_rest_to_the_settings() {
    let named = Named::new(&WEB).unwrap();
    assert_eq!(named.layout, "javascript".parse::<Layout>().unwrap());
    assert_eq!((named.shard, named.sequence_start, named.cache), (None, None, None));
    let of_session = Rules { max_drift: 7, start: SequenceStart::Rotate };
    assert_eq!(named.rules(of_session), of_session);
}

#[test]
fn a_row_says_its_part_start_and_cache() {
    let row = GeneratorRow {
        modulus: Some(16),
        remainder: Some(3),
        sequence_start: Some("random"),
        cache: Some(50),
        ..WEB
    };
    let named = Named::new(&row).unwrap();
    assert_eq!(named.shard, Some(Shard::new(16, 3).unwrap()));
    assert_eq!(named.cache, NonZeroU32::new(50));
    let rules = named.rules(Rules { max_drift: 7, start: SequenceStart::Zero });
    assert_eq!(rules, Rules { max_drift: 7, start: SequenceStart::Random });
}

#[test]
fn modulus_and_remainder_come_together_and_within_a_tick() {
    let part =
        |modulus, remainder| Named::new(&GeneratorRow { modulus, remainder, ..WEB }).map(|named| named.shard);
    assert_eq!(part(Some(2), None), Err(NamedError::Half { has_modulus: true }));
    assert_eq!(part(None, Some(0)), Err(NamedError::Half { has_modulus: false }));
    // The layout has 9 bits of sequence.
    assert!(matches!(part(Some(512), Some(511)), Ok(Some(_))));
    assert!(matches!(part(Some(513), Some(0)), Err(NamedError::Modulus { room: 512, .. })));
    for modulus in [0, -1, i32::MIN] {
        assert!(matches!(part(Some(modulus), Some(0)), Err(NamedError::Modulus { .. })));
    }
    for remainder in [-1, 16, i32::MAX] {
        assert_eq!(part(Some(16), Some(remainder)), Err(NamedError::Remainder { remainder, modulus: 16 }));
    }
    assert_eq!(part(Some(1), Some(0)), Ok(Some(Shard::new(1, 0).unwrap())));
}

#[test]
fn cache_and_start_are_what_the_settings_allow() {
    let cache = |cache| Named::new(&GeneratorRow { cache: Some(cache), ..WEB });
    let most = i32::try_from(MAX_CACHE).unwrap();
    assert!(cache(1).is_ok() && cache(most).is_ok());
    for wrong in [0, -1, most + 1] {
        assert_eq!(cache(wrong), Err(NamedError::Cache { cache: wrong }));
    }
    let start = |text| Named::new(&GeneratorRow { sequence_start: Some(text), ..WEB });
    assert!(start("zero").is_ok() && start("rotate").is_ok());
    assert!(matches!(start("Zero"), Err(NamedError::Start { .. })));
    assert!(matches!(Named::new(&GeneratorRow { layout: "9/9/9/9/9/9", ..WEB }), Err(NamedError::Layout(_))));
}

#[test]
fn a_name_is_short_and_on_one_line() {
    let check = |name: &str| check_name(name.as_bytes(), name.chars().count());
    assert_eq!(check(""), Err(NamedError::NoName));
    assert_eq!(check(&"ä".repeat(128)), Ok(()));
    assert_eq!(check(&"ä".repeat(129)), Err(NamedError::LongName { bytes: 258 }));
    assert_eq!(check_name(&[b'a'; 513], 1), Err(NamedError::LongName { bytes: 513 }));
    for name in ["a\nb", "\t", "a\u{7f}"] {
        assert_eq!(check(name), Err(NamedError::ControlName));
    }
}

#[test]
fn a_name_says_no_other_layout() {
    let web = Named::new(&WEB).unwrap();
    assert_eq!(web.check_name("web"), Ok(()));
    // `a/b` is no layout; `javascript` is the preset name of this generator's own layout.
    assert_eq!(web.check_name("a/b"), Ok(()));
    assert_eq!(web.check_name("javascript"), Ok(()));
    // These texts are valid layouts. None is the preset name of this generator's layout.
    for name in ["twitter", "Javascript", " javascript", "41/0/3/9 epoch=2019-12-24T16:00:00Z", "41/5/5/12"] {
        assert!(matches!(web.check_name(name), Err(NamedError::Layoutlike { .. })), "{name}");
    }
    for (name, layout) in PRESETS {
        let named = Named::new(&GeneratorRow { layout, ..WEB }).unwrap();
        assert_eq!(named.check_name(name), Ok(()));
        let other = Named::new(&GeneratorRow { layout: "40/1/4/12", ..WEB }).unwrap();
        assert!(other.check_name(name).is_err());
    }
}

#[test]
fn what_is_not_there_is_undefined_and_the_rest_a_bad_argument() {
    let unknown = NamedError::Unknown { name: "web".into() };
    assert_eq!(unknown.kind(), Kind::Undefined);
    assert_eq!(unknown.hint().unwrap(), "Create it with SELECT snowflake_ids.generator_create('web').");
    assert!(!NamedError::Unknown { name: "a'b".into() }.hint().unwrap().contains("a'b"));
    assert_eq!(NamedError::NoName.kind(), Kind::BadArgument);
}
