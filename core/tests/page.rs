//! The status page. Browsers never read the page's report as markup or script. The page's Content-Security-Policy allows only the
//! style block and the script block of the page.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use snowflake_ids_core::report::page::{MARK, TEMPLATE, page};

fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    text.split_once(begin).unwrap().1.split_once(end).unwrap().0
}

/// The report of a page, as a browser reads it.
fn report(page: &str) -> String {
    between(page, "id=\"report\">", "</script>").to_owned()
}

#[test]
fn the_policy_names_the_two_blocks_of_the_page() {
    for (begin, end, source) in
        [("<style>", "</style>", "style-src"), ("<script>", "</script>", "script-src")]
    {
        let hash = BASE64_STANDARD.encode(Sha256::digest(between(TEMPLATE, begin, end)));
        let allowed = format!("{source} 'sha256-{hash}'");
        assert!(TEMPLATE.contains(&allowed), "page.html has to say {allowed}");
        assert_eq!(TEMPLATE.matches(begin).count(), 1, "one {begin}");
    }
    assert!(TEMPLATE.is_ascii() && TEMPLATE.matches(MARK).count() == 1);
    for word in ["http://", "https://", "@import", "url("] {
        let outside = TEMPLATE.replace("http://www.w3.org/2000/svg", "");
        assert!(!outside.contains(word), "{word} leads elsewhere");
    }
    assert!(!TEMPLATE.contains("innerHTML"), "what is in a report could be more than text");
}

#[test]
fn a_report_cannot_end_its_block() {
    for name in ["</script><script>alert(1)</script>", "<!-- <script>", "\u{1f600}\u{5d0}\u{e9}"] {
        let told = serde_json::to_string(&serde_json::json!({ "name": name })).unwrap();
        let page = page(&told);
        assert!(page.is_ascii() && page.ends_with("</body></html>\n"));
        assert_eq!(page.matches("<script").count(), 2, "{name}");
        let read: serde_json::Value = serde_json::from_str(&report(&page)).unwrap();
        assert_eq!(read["name"], name);
    }
}

proptest! {
    #[test]
    fn what_is_told_is_what_is_read(name in ".*", number in any::<i64>()) {
        let told = serde_json::json!({ name.clone(): [name, number] });
        let read: serde_json::Value = serde_json::from_str(&report(&page(&told.to_string()))).unwrap();
        prop_assert_eq!(read, told);
    }
}
