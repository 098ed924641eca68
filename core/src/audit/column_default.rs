//! What the default of a column says of its ids.

/// Where a column takes its ids from, in whatever encoding the expression was in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A segment tag.
    Tag(Vec<u8>),
    /// A named generator.
    Generator(Vec<u8>),
}

/// What a name is of.
type Named = fn(Vec<u8>) -> Origin;

/// The functions that take a name, and what it names.
const FUNCTIONS: [(&str, Named); 4] = [
    ("segment_nextval", Origin::Tag),
    ("segment_id", Origin::Tag),
    ("snowflake_nextval", Origin::Generator),
    ("snowflake_id", Origin::Generator),
];

/// What a default such as `segment_nextval('orders'::text)` names, as the server writes expressions with all names qualified
/// and standard strings; None where it is another one.
pub fn origin(expression: &[u8]) -> Option<Origin> {
    FUNCTIONS.iter().find_map(|(function, origin)| {
        let arguments = expression.strip_prefix(function.as_bytes())?;
        unquoted(arguments.strip_prefix(b"('")?.strip_suffix(b"'::text)")?).map(origin)
    })
}

fn unquoted(quoted: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter();
    while let Some(byte) = bytes.next() {
        // Quotes within it are doubled: a single one would end it.
        if *byte == b'\'' && bytes.next() != Some(&b'\'') {
            return None;
        }
        name.push(*byte);
    }
    Some(name)
}
