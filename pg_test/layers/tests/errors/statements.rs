//! Errors that SQL raises: `RAISE EXCEPTION 'message' USING ERRCODE = 'condition', DETAIL = 'detail', HINT = 'hint';`,
//! and `RAISE condition USING MESSAGE = 'message', DETAIL = 'detail', HINT = 'hint';`. The condition is a name or an SQLSTATE.

use super::{Entry, placeholder, sqlstate};
use anyhow::Result;

/// Levels of RAISE that are not errors.
const NO_ERRORS: [&str; 5] = ["NOTICE", "WARNING", "INFO", "LOG", "DEBUG"];

/// Returns the errors of an SQL file. Leaves out statements that have no message of their own, because they raise a caught error
/// again.
pub fn entries(sql: &str) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for after in sql.split("RAISE ").skip(1) {
        let (level, rest) = after.split_once(char::is_whitespace).unwrap_or((after, ""));
        let rest = statement(rest);
        if NO_ERRORS.contains(&level) || level.ends_with(';') {
            continue;
        }
        let message =
            literal(rest).map(|(text, after)| shown(&text, after)).or_else(|| option(rest, "MESSAGE"));
        let code = if level == "EXCEPTION" { option(rest, "ERRCODE") } else { Some(level.to_owned()) };
        if let (Some(message), Some(code)) = (message.filter(|message| message != "..."), code) {
            let [detail, hint] = ["DETAIL", "HINT"].map(|name| option(rest, name).unwrap_or_default());
            entries.push(Entry { message, sqlstate: sqlstate(&code)?, detail, hint });
        }
    }
    Ok(entries)
}

/// Replaces the placeholders of RAISE and `format` by the names of the arguments, which follow the text.
fn shown(text: &str, after: &str) -> String {
    let mut arguments = arguments(after).into_iter();
    let mut pieces = text.split('%');
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        shown += &arguments.next().map_or("...".into(), |argument| placeholder(&argument));
        shown += piece.strip_prefix(['s', 'I', 'L']).unwrap_or(piece);
    }
    shown
}

/// Returns the arguments after a first one, up to the end of the call or of the statement's list. An argument that is cut to
/// a length is the text that is cut.
fn arguments(after: &str) -> Vec<String> {
    let (mut found, mut depth, mut in_literal) = (vec![String::new()], 0, false);
    for letter in after.trim_start().strip_prefix(',').unwrap_or_default().chars() {
        in_literal ^= letter == '\'';
        match letter {
            '(' if !in_literal => depth += 1,
            ')' if !in_literal => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            break;
        } else if letter == ',' && depth == 0 && !in_literal {
            found.push(String::new());
        } else if let Some(argument) = found.last_mut() {
            argument.push(letter);
        }
    }
    let cut = |argument: &str| Some(argument.strip_prefix("left(")?.split_once(',')?.0.to_owned());
    found
        .iter()
        .map(|argument| argument.trim())
        .map(|argument| cut(argument).unwrap_or(argument.into()))
        .collect()
}

/// Returns the literal at the beginning of a text, and the rest of the text.
fn literal(text: &str) -> Option<(String, &str)> {
    let mut rest = text.trim_start().strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let (before, after) = rest.split_once('\'')?;
        value.push_str(before);
        rest = match after.strip_prefix('\'') {
            Some(more) => more,
            None => return Some((value, after)),
        };
        value.push('\'');
    }
}

/// Returns the text up to the end of its statement, which is a semicolon outside literals.
fn statement(text: &str) -> &str {
    let mut in_literal = false;
    let end = text.find(|letter| {
        in_literal ^= letter == '\'';
        letter == ';' && !in_literal
    });
    end.map_or(text, |end| &text[..end])
}

/// Returns the literal after `NAME =`, also if the literal is the first argument of `format`.
fn option(statement: &str, name: &str) -> Option<String> {
    let (_, after) = statement.split_once(&format!("{name} = "))?;
    let arguments = after.strip_prefix("format(");
    let (mut value, mut rest) = literal(arguments.unwrap_or(after))?;
    // Literals with only whitespace between them are one literal.
    while let Some((more, after)) = literal(rest.trim_start()) {
        (value, rest) = (value + &more, after);
    }
    Some(if arguments.is_some() { shown(&value, rest) } else { value })
}
