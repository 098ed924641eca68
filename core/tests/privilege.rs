//! Rights on a tag.

use proptest::prelude::*;
use snowflake_ids_core::Explain;
use snowflake_ids_core::tag::privilege::{Access, Privilege, PrivilegeError, Privileges};

#[test]
fn lists_are_read_in_any_case_and_written_in_one_order() -> Result<(), PrivilegeError> {
    for (list, written) in [
        ("USAGE", "USAGE"),
        ("update , usage", "USAGE, UPDATE"),
        ("Select,SELECT", "SELECT"),
        ("all", "USAGE, SELECT, UPDATE"),
        ("ALL PRIVILEGES", "USAGE, SELECT, UPDATE"),
    ] {
        assert_eq!(Privileges::parse(list)?.to_string(), written, "{list}");
    }
    assert_eq!(Privileges::NONE.to_string(), "");
    assert_eq!(Privileges::stored(""), Privileges::NONE);
    Ok(())
}

#[test]
fn what_is_no_privilege_is_refused() {
    for list in [
        "",
        " ",
        "USAGE,",
        "EXECUTE",
        "OWNER",
        "USAGE, OWNER",
        "USAGE UPDATE",
        "USAGE;UPDATE",
        "ALL  PRIVILEGES",
    ] {
        let error = Privileges::parse(list).err();
        assert!(error.is_some_and(|error| error.detail().is_some() && error.hint().is_some()), "{list}");
    }
    let long = Privileges::parse(&"x\u{7}".repeat(100_000)).err().map(|error| error.to_string());
    assert!(long.is_some_and(|long| long.len() < 200 && !long.contains('\u{7}')));
}

/// The documentation of GRANT states these rules for sequences.
#[test]
fn each_privilege_allows_what_it_allows_on_a_sequence() {
    use Access::{Look, Move, Own, Take};
    for (held, allowed) in [
        ("USAGE", vec![Take, Look]),
        ("SELECT", vec![Look]),
        ("UPDATE", vec![Take, Look, Move]),
        ("USAGE, SELECT, UPDATE", vec![Take, Look, Move]),
        ("OWNER", vec![Take, Look, Move, Own]),
    ] {
        for action in [Take, Look, Move, Own] {
            assert_eq!(
                Privileges::stored(held).allow(action),
                allowed.contains(&action),
                "{held}, {action:?}"
            );
        }
    }
    assert!([Take, Look, Move, Own].into_iter().all(|action| !Privileges::NONE.allow(action)));
}

fn any() -> impl Strategy<Value = Privileges> {
    proptest::sample::subsequence(Privilege::ALL.to_vec(), 0..=4)
        .prop_map(|some| some.into_iter().fold(Privileges::NONE, |all, one| all.with(one.into())))
}

proptest! {
    #[test]
    fn what_is_stored_is_read_back(some in any()) {
        prop_assert_eq!(Privileges::stored(&some.to_string()), some);
    }

    #[test]
    fn granting_and_revoking_are_sets(held in any(), more in any()) {
        prop_assert_eq!(held.with(more).without(more), held.without(more));
        prop_assert_eq!(held.with(more).with(more), held.with(more));
        for one in Privilege::ALL {
            prop_assert_eq!(held.with(more).has(one), held.has(one) || more.has(one));
            prop_assert_eq!(held.without(more).has(one), held.has(one) && !more.has(one));
        }
    }

    #[test]
    fn nothing_written_by_hand_grants_more_than_it_names(text in ".{0,40}") {
        let read = Privileges::stored(&text);
        for one in Privilege::ALL {
            let named = text.to_uppercase().contains(one.name());
            prop_assert!(!read.has(one) || named, "{:?}", text);
        }
    }
}
