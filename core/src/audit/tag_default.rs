//! The tag that the default of a column names.

/// The functions whose ids are numbers.
const FUNCTIONS: [&str; 2] = ["segment_nextval", "segment_id"];

/// The tag of a default such as `segment_nextval('orders'::text)`, as the server writes expressions with all names
/// qualified and standard strings; None where it is another one.
pub fn tag_of_default(expression: &[u8]) -> Option<Vec<u8>> {
    let argument = FUNCTIONS.iter().find_map(|function| expression.strip_prefix(function.as_bytes()))?;
    let quoted = argument.strip_prefix(b"('")?.strip_suffix(b"'::text)")?;
    let mut tag = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter();
    while let Some(byte) = bytes.next() {
        // Quotes within it are doubled: a single one would end it.
        if *byte == b'\'' && bytes.next() != Some(&b'\'') {
            return None;
        }
        tag.push(*byte);
    }
    Some(tag)
}
