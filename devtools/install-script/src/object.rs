//! The objects that statements create, as far as their text shows them.

use crate::statement::Statement;

/// A function, a procedure or a view. `CREATE OR REPLACE` can replace one by another that it [becomes](Self::becomes).
#[derive(Debug)]
pub struct Code {
    /// `function`, `procedure` or `view`.
    pub kind: String,
    pub name: String,
    /// The arguments that a call gives, or the view's columns.
    parts: Vec<Part>,
    /// What the server compares as the type of a routine's result.
    result: String,
}

/// An argument, or a column of a view.
#[derive(Debug)]
struct Part {
    name: Option<String>,
    /// The type; for a column, the type that its expression is cast to.
    of_type: Option<String>,
    has_default: bool,
    is_out: bool,
}

/// The words that may follow the type of a result.
const RETURN_ENDS: &str = "language as begin return immutable stable volatile strict called parallel security external cost rows set \
     support window leakproof not";

/// Types of several words, whose first word is no name.
const TYPES_OF_WORDS: &str = "double timestamp time character bit";

impl Code {
    pub fn of(statement: &Statement) -> Option<Self> {
        let created = statement.after("create or replace").or_else(|| statement.after("create"))?;
        let kind = created.first().filter(|kind| is_of(kind, "function procedure view"))?.clone();
        let (name, rest) = name(&created[1..]);
        if kind == "view" {
            let list = rest.get(ends(rest, "select") + 1..).unwrap_or_default();
            let list = list.strip_prefix(&["distinct".to_owned()]).unwrap_or(list);
            let list =
                list.strip_prefix(&["on".to_owned()]).and_then(parentheses).map_or(list, |(_, rest)| rest);
            let columns = commas(&list[..ends(list, "from where union")]);
            let parts = columns.into_iter().map(Part::column).collect();
            return Some(Self { kind, name, parts, result: String::new() });
        }
        let (arguments, rest) = parentheses(rest)?;
        let (out, parts): (Vec<_>, _) =
            arguments.into_iter().map(Part::argument).partition(|part| part.is_out);
        let result = format!("{:?} {out:?}", &rest[..ends(rest, RETURN_ENDS)]);
        Some(Self { kind, name, parts, result })
    }

    /// The name, for routines with the types of the arguments, as `ON FUNCTION` wants it.
    pub fn signature(&self) -> String {
        if self.kind == "view" { self.name.clone() } else { with_types(&self.name, &self.parts) }
    }

    /// Whether `CREATE OR REPLACE` makes the other one of this one. Only the server sees the types of columns that no cast names.
    pub fn becomes(&self, other: &Self) -> bool {
        let pairs = self.parts.iter().zip(&other.parts);
        let is_kept = |(old, new): (&Part, &Part)| {
            (old.name.is_none() || old.name == new.name)
                && (old.of_type.is_none() || new.of_type.is_none() || old.of_type == new.of_type)
                && (!old.has_default || new.has_default)
        };
        let is_same = self.kind == other.kind && self.result == other.result;
        is_same && self.parts.len() <= other.parts.len() && pairs.into_iter().all(is_kept)
    }
}

impl Part {
    fn argument(tokens: &[String]) -> Self {
        let is_out = tokens.first().is_some_and(|mode| mode == "out");
        let has_mode = tokens.first().is_some_and(|mode| is_of(mode, "in out variadic"));
        let tokens = &tokens[usize::from(has_mode)..];
        let declared = &tokens[..ends(tokens, "default =")];
        let is_named =
            declared.len() > 1 && !is_of(&declared[1], ". ( [") && !is_of(&declared[0], TYPES_OF_WORDS);
        Self {
            name: is_named.then(|| declared[0].clone()),
            of_type: Some(type_name(&declared[usize::from(is_named)..])),
            has_default: declared.len() < tokens.len(),
            is_out,
        }
    }

    /// An expression without a name counts as its own name.
    fn column(tokens: &[String]) -> Self {
        let is_alias = |token: &String| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let (name, expression) = match tokens {
            [expression @ .., before, last] if before == "as" => (last.clone(), expression),
            [expression @ .., last] if is_alias(last) && !expression.ends_with(&["::".to_owned()]) => {
                (last.clone(), expression)
            }
            _ => (type_name(tokens), &tokens[..0]),
        };
        let cast = expression.iter().rposition(|token| token == "::");
        let cast = cast.map(|at| type_name(&expression[at + 1..]));
        let of_type = cast.filter(|cast| !cast.contains(['(', ')', '\'']));
        Self { name: Some(name), of_type, has_default: false, is_out: false }
    }
}

fn with_types(name: &str, arguments: &[Part]) -> String {
    let types = arguments.iter().filter(|argument| !argument.is_out);
    let types = types.filter_map(|argument| argument.of_type.as_deref()).collect::<Vec<_>>();
    format!("{name}({})", types.join(", "))
}

/// The name of an object, with the types of its arguments if they are there.
pub fn signature(tokens: &[String]) -> String {
    let (name, types) = name(tokens);
    let types =
        parentheses(types).map(|(types, _)| types.into_iter().map(Part::argument).collect::<Vec<_>>());
    types.map_or_else(|| name.clone(), |types| with_types(&name, &types))
}

/// Reads a name, with its schema if it has one.
pub fn name(tokens: &[String]) -> (String, &[String]) {
    match tokens {
        [schema, dot, name, rest @ ..] if dot == "." => (format!("{schema}.{name}"), rest),
        [name, rest @ ..] => (name.clone(), rest),
        [] => (String::new(), tokens),
    }
}

/// Reads a list in parentheses.
fn parentheses(tokens: &[String]) -> Option<(Vec<&[String]>, &[String])> {
    let inner = tokens.strip_prefix(&["(".to_owned()])?;
    let end = ends(inner, ")");
    Some((commas(&inner[..end]), inner.get(end + 1..).unwrap_or_default()))
}

/// Splits at the commas that are in no parentheses.
pub fn commas(mut tokens: &[String]) -> Vec<&[String]> {
    let mut parts = Vec::new();
    while !tokens.is_empty() {
        let end = ends(tokens, ",");
        parts.push(&tokens[..end]);
        tokens = tokens.get(end + 1..).unwrap_or_default();
    }
    parts
}

/// Whether a token is one of these words.
pub fn is_of(token: &str, words: &str) -> bool {
    words.split_whitespace().any(|word| word == token)
}

/// The place of the first of these tokens that is in no parentheses, or the end.
pub fn ends(tokens: &[String], wanted: &str) -> usize {
    let mut depth = 0;
    let found = tokens.iter().position(|token| {
        let is_end = depth == 0 && is_of(token, wanted);
        depth += i32::from(is_of(token, "( [")) - i32::from(is_of(token, ") ]"));
        is_end
    });
    found.unwrap_or(tokens.len())
}

fn type_name(tokens: &[String]) -> String {
    let spaced = [" . ", " [ ", " ( ", " )", " ]", " , "];
    spaced.into_iter().fold(tokens.join(" "), |text, spaced| text.replace(spaced, spaced.trim()))
}
