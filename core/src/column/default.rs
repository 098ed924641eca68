//! Defaults of columns in the form in which Postgres prints them.

use crate::named_enum::named_enum;

named_enum! {
    /// The kind of a column's ids.
    pub enum IdKind {
        /// Ids that are ordered by time.
        Snowflake = "snowflake",
        /// Dense ids of a tag.
        Segment = "segment",
    }
}

/// Returns a text as an SQL literal with `standard_conforming_strings`.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns a text as an SQL literal that means the same with any `standard_conforming_strings`.
pub fn quoted(text: &str) -> String {
    let escape = if text.contains('\\') { "E" } else { "" };
    format!("{escape}{}", literal(&text.replace('\\', "\\\\")))
}

/// Returns a call of a function with a text, as Postgres prints it. The text may be in any encoding of a server.
pub fn call(function: &[u8], argument: &[u8]) -> Vec<u8> {
    let mut written = [function, b"('"].concat();
    for byte in argument {
        written.extend((*byte == b'\'').then_some(b'\''));
        written.push(*byte);
    }
    written.extend(b"'::text)");
    written
}

/// Returns a default in the form that attach writes. `name` is the tag's name, or a generator's.
pub fn of(kind: IdKind, name: Option<&str>) -> String {
    String::from_utf8_lossy(&written(kind, name.map(str::as_bytes))).into_owned()
}

/// Does the same as [`of`] for a name in any encoding of a server.
pub fn written(kind: IdKind, name: Option<&[u8]>) -> Vec<u8> {
    let function = format!("{kind}_nextval");
    name.map_or_else(|| format!("{function}()").into_bytes(), |name| call(function.as_bytes(), name))
}

/// Returns the tag that a default names, which is in the form that attach writes.
pub fn tag_of(written: &str) -> Option<String> {
    let quoted = written.strip_prefix("segment_nextval('")?.strip_suffix("'::text)")?;
    Some(quoted.replace("''", "'"))
}

/// Returns whether a default is nothing but `nextval` of this sequence.
pub fn is_nextval_of(expression: &str, sequence: &str) -> bool {
    expression == format!("nextval({}::regclass)", literal(sequence))
}

/// Returns the kind of a default of this extension, and the default in the form that attach writes. A call by a synonym, such
/// as `snowflake_id`, is replaced. Returns None for any other default: one with more than one call, or a call of a function
/// of the same name in another schema or with other arguments.
pub fn own(expression: &str) -> Option<(IdKind, String)> {
    let (kind, arguments) = IdKind::ALL.into_iter().find_map(|kind| {
        let name = expression.strip_prefix(kind.name())?;
        let arguments = name.strip_prefix("_nextval(").or_else(|| name.strip_prefix("_id("))?;
        Some((kind, arguments.strip_suffix(')')?))
    })?;
    if arguments.is_empty() {
        return (kind == IdKind::Snowflake).then(|| (kind, "snowflake_nextval()".to_owned()));
    }
    let typed = arguments.strip_suffix("::text");
    let quoted = typed.or_else(|| Some(arguments).filter(|_| kind == IdKind::Snowflake))?;
    let text = quoted.strip_prefix('\'')?.strip_suffix('\'')?;
    // The argument is one literal: all quotes within it are doubled.
    let is_one = text.split("''").all(|part| !part.contains('\''));
    is_one.then(|| (kind, format!("{kind}_nextval({quoted}::text)")))
}
