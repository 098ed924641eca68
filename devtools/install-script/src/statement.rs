//! The statements of a script, and their tokens.

use crate::object::is_of;

/// A statement without its semicolon and without comments.
#[derive(Clone, Debug)]
pub struct Statement {
    pub text: String,
    /// Words in lower case, names without the quotes that they do not need, strings with their quotes, punctuation.
    pub tokens: Vec<String>,
}

impl Statement {
    /// Returns the tokens after these first ones, if the statement begins with them.
    pub fn after(&self, first: &str) -> Option<&[String]> {
        let count = first.split(' ').count();
        let begins = self.tokens.iter().map(String::as_str).take(count).eq(first.split(' '));
        begins.then(|| &self.tokens[count..])
    }
}

pub fn split(script: &str) -> Vec<Statement> {
    let mut statements = Vec::new();
    let (mut text, mut tokens) = (String::new(), Vec::new());
    let mut rest = script;
    while !rest.is_empty() {
        let (token, after) = rest.split_at(length(rest));
        rest = after;
        if token == ";" {
            statements.push(Statement { text: text.trim().to_owned(), tokens: std::mem::take(&mut tokens) });
            text.clear();
        } else if token.starts_with("--") || token.starts_with("/*") {
            text.push(' ');
        } else {
            text.push_str(token);
            tokens.extend(Some(plain(token)).filter(|token| !token.is_empty()));
        }
    }
    statements
}

/// Quoted names that are something else without their quotes.
const WORDS: &str = "as char default from in out select table variadic";

fn plain(token: &str) -> String {
    let is_name = |name: &&str| name.chars().all(|c| is_of_word(c) && !c.is_uppercase());
    match token.strip_prefix('"').and_then(|token| token.strip_suffix('"')).filter(is_name) {
        Some(name) if !is_of(name, WORDS) => name.to_owned(),
        _ if token.starts_with(['"', '\'', '$']) => token.to_owned(),
        _ => token.trim().to_lowercase(),
    }
}

/// The length of the first token, blank or comment. A text that does not end reaches to the end of the script.
fn length(script: &str) -> usize {
    let until = |from: usize, end: &str| {
        script[from..].find(end).map_or(script.len(), |found| from + found + end.len())
    };
    let run = |part: fn(char) -> bool| script.find(|c| !part(c)).unwrap_or(script.len());
    let first = script.chars().next().unwrap_or(' ');
    match first {
        '-' if script.starts_with("--") => script.find('\n').unwrap_or(script.len()),
        '/' if script.starts_with("/*") => comment(script),
        ':' if script.starts_with("::") => 2,
        // A doubled quote ends one part of the string and begins the next.
        '\'' | '"' => until(1, &first.to_string()),
        '$' => match script[1..].find(|c: char| !is_of_word(c)) {
            Some(end) if script[1 + end..].starts_with('$') => until(end + 2, &script[..end + 2]),
            _ => 1,
        },
        _ if first.is_whitespace() => run(char::is_whitespace),
        _ if is_of_word(first) => run(is_of_word),
        _ => first.len_utf8(),
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of a comment. Comments nest.
fn comment(script: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < script.len() {
        let mark = [("/*", 1), ("*/", -1)].into_iter().find(|(mark, _)| script[at..].starts_with(mark));
        at += mark.map_or(script[at..].chars().next().map_or(1, char::len_utf8), |_| 2);
        depth += mark.map_or(0, |(_, step)| step);
        if depth == 0 {
            break;
        }
    }
    at
}
