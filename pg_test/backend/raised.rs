//! The errors that SQL raises: `RAISE EXCEPTION 'message' USING ERRCODE = 'condition', DETAIL = 'detail', HINT = 'hint';`, and
//! `RAISE condition USING MESSAGE = 'message', DETAIL = 'detail', HINT = 'hint';`.

use super::errors::Texts;
use crate::pg::report::sqlstate;
use pgrx::PgSqlErrorCode;

macro_rules! conditions {
    ($($name:ident;)*) => { &[$(PgSqlErrorCode::$name),*] };
}

/// The conditions that SQL names.
const CONDITIONS: &[PgSqlErrorCode] = conditions![
    ERRCODE_ACTIVE_SQL_TRANSACTION; ERRCODE_CONFIGURATION_LIMIT_EXCEEDED; ERRCODE_DATATYPE_MISMATCH;
    ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST; ERRCODE_DUPLICATE_OBJECT; ERRCODE_FEATURE_NOT_SUPPORTED;
    ERRCODE_INSUFFICIENT_PRIVILEGE; ERRCODE_INVALID_PARAMETER_VALUE; ERRCODE_NULL_VALUE_NOT_ALLOWED;
    ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE; ERRCODE_OBJECT_IN_USE; ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
    ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED; ERRCODE_T_R_SERIALIZATION_FAILURE; ERRCODE_UNDEFINED_COLUMN;
    ERRCODE_UNDEFINED_FUNCTION; ERRCODE_UNDEFINED_OBJECT; ERRCODE_UNDEFINED_TABLE; ERRCODE_WRONG_OBJECT_TYPE;
];

/// Returns the SQLSTATE and the texts of each error. Leaves out statements without a message or a condition of their own, which raise
/// a caught error again.
pub fn errors(sql: &str) -> impl Iterator<Item = (String, Texts)> {
    sql.split("RAISE ").skip(1).filter_map(|after| {
        let statement = split(after, ';')[0];
        let (head, options) = statement.split_once("USING").unwrap_or((statement, ""));
        let (level, message) = head.trim().split_once(char::is_whitespace).unwrap_or((head.trim(), ""));
        let options = split(options, ',');
        let option = |name: &str| {
            let value =
                options.iter().find_map(|option| option.strip_prefix(name)?.trim_start().strip_prefix('='));
            value.map_or_else(String::new, |value| text(value.trim()))
        };
        let message = Some(filled(&split(message, ','))).filter(|message| !message.is_empty());
        let condition = if level == "EXCEPTION" { option("ERRCODE") } else { level.to_owned() };
        let known = CONDITIONS.iter().find(|code| {
            format!("{code:?}").replace("T_R_", "") == format!("ERRCODE_{}", condition.to_uppercase())
        });
        let is_error = !["NOTICE", "WARNING", "INFO", "LOG", "DEBUG", ""].contains(&condition.as_str());
        assert!(known.is_some() || !is_error, "CONDITIONS lacks {condition}");
        let texts = [message.unwrap_or_else(|| option("MESSAGE")), option("DETAIL"), option("HINT")];
        Some((sqlstate(*known? as i32), texts))
    })
}

/// Splits a text at the mark, outside literals and parentheses, up to the end of the parentheses around the text.
fn split(text: &str, mark: char) -> Vec<&str> {
    let (mut pieces, mut begin, mut depth, mut in_literal) = (Vec::new(), 0, 0, false);
    for (at, letter) in text.char_indices() {
        in_literal ^= letter == '\'';
        depth += match letter {
            '(' if !in_literal => 1,
            ')' if !in_literal => -1,
            _ => 0,
        };
        if depth < 0 || depth == 0 && !in_literal && letter == mark {
            pieces.push(text[begin..at].trim());
            begin = at + 1;
        }
        if depth < 0 {
            return pieces;
        }
    }
    pieces.push(text[begin..].trim());
    pieces
}

/// Returns the text of a literal, or of a call of `format`; for another expression, nothing.
fn text(expression: &str) -> String {
    expression.strip_prefix("format(").map_or_else(|| filled(&[expression]), |call| filled(&split(call, ',')))
}

/// Returns the literal before the arguments, with the name of an argument for each placeholder.
fn filled(arguments: &[&str]) -> String {
    let Some(literal) = arguments[0].strip_prefix('\'') else { return String::new() };
    // A pair of quotes is a quote, and literals with a line break between them are one.
    let pieces = literal.split('\'').enumerate();
    let literal = pieces.map(|(at, piece)| match (at % 2, piece) {
        (0, _) => piece,
        (_, "") => "'",
        _ => "",
    });
    let literal = literal.collect::<String>();
    let literal = literal.strip_suffix('\'').unwrap_or(&literal);
    let mut pieces = literal.split('%');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.zip(arguments[1..].iter().chain(std::iter::repeat(&""))).fold(first, |text, (piece, argument)| {
        let name = argument.strip_prefix("left(").and_then(|cut| cut.split(',').next()).unwrap_or(argument);
        let name = name.rsplit('.').next().unwrap_or_default().trim_matches('"');
        let is_name =
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
        let shown = if is_name { format!("*{}*", name.replace('_', " ")) } else { "...".to_owned() };
        text + &shown + piece.strip_prefix(['s', 'I', 'L']).unwrap_or(piece)
    })
}
