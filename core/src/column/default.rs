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

/// Returns the default of a tag, in the form that attach writes.
pub fn of_tag(tag: &str) -> String {
    format!("segment_nextval({}::text)", literal(tag))
}

/// Returns the default of a named generator, or of the server's own layout, in the form that attach writes.
pub fn of_generator(generator: Option<&str>) -> String {
    let argument = generator.map(|name| format!("{}::text", literal(name)));
    format!("snowflake_nextval({})", argument.unwrap_or_default())
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
