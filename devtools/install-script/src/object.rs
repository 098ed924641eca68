//! The objects that statements create, as far as their text shows them.

use crate::statement::Statement;

/// A function or procedure.
#[derive(Clone, Debug)]
pub struct Routine {
    /// `function` or `procedure`.
    pub kind: String,
    pub name: String,
    pub arguments: Vec<Argument>,
    pub returns: String,
}

#[derive(Clone, Debug)]
pub struct Argument {
    pub name: Option<String>,
    pub of_type: String,
    pub has_default: bool,
    pub is_out: bool,
}

#[derive(Clone, Debug)]
pub struct View {
    pub name: String,
    pub columns: Vec<Column>,
}

/// A column of a view: an expression without a name counts as its own name.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    /// The type that the expression is cast to.
    pub cast: Option<String>,
}

impl Routine {
    pub fn of(statement: &Statement) -> Option<Self> {
        let tokens = created(statement)?;
        let kind = tokens.first().filter(|kind| *kind == "function" || *kind == "procedure")?;
        let (name, rest) = name(&tokens[1..]);
        let (arguments, rest) = parentheses(rest)?;
        let end = ends(rest, RETURN_ENDS);
        let returns = rest[..end].strip_prefix(&["returns".to_owned()]).unwrap_or_default().join(" ");
        let arguments = arguments.into_iter().map(Argument::of).collect();
        Some(Self { kind: kind.clone(), name, arguments, returns })
    }

    /// The name with the types of the arguments, as `ON FUNCTION` wants it.
    pub fn signature(&self) -> String {
        let types = self.inputs().map(|argument| argument.of_type.as_str()).collect::<Vec<_>>();
        format!("{}({})", self.name, types.join(", "))
    }

    pub fn inputs(&self) -> impl Iterator<Item = &Argument> {
        self.arguments.iter().filter(|argument| !argument.is_out)
    }

    /// What the server compares as the type of the result.
    pub fn result(&self) -> String {
        let out = self.arguments.iter().filter(|argument| argument.is_out);
        let out = out.map(|out| format!("{} {}", out.name.as_deref().unwrap_or_default(), out.of_type));
        [self.returns.clone()].into_iter().chain(out).collect::<Vec<_>>().join(", ")
    }
}

/// The words that may follow the type of a result.
const RETURN_ENDS: &str = "language as begin return immutable stable volatile strict called parallel security external cost rows set \
     support window leakproof not";

/// Types of several words, whose first word is no name.
const TYPES_OF_WORDS: &str = "double timestamp time character bit";

impl Argument {
    fn of(tokens: &[String]) -> Self {
        let is_out = tokens.first().is_some_and(|mode| mode == "out");
        let has_mode = is_out || tokens.first().is_some_and(|mode| mode == "in" || mode == "variadic");
        let tokens = &tokens[usize::from(has_mode)..];
        let end = ends(tokens, "default =");
        let declared = &tokens[..end];
        let is_named =
            declared.len() > 1 && !is_of(&declared[1], ". ( [") && !is_of(&declared[0], TYPES_OF_WORDS);
        Self {
            name: is_named.then(|| declared[0].clone()),
            of_type: type_name(&declared[usize::from(is_named)..]),
            has_default: end < tokens.len(),
            is_out,
        }
    }
}

impl View {
    pub fn of(statement: &Statement) -> Option<Self> {
        let tokens = created(statement)?;
        let (name, rest) = name(tokens.strip_prefix(&["view".to_owned()])?);
        let select = ends(rest, "select");
        let list = rest.get(select + 1..).unwrap_or_default();
        let list = list.strip_prefix(&["distinct".to_owned()]).unwrap_or(list);
        let list = list.strip_prefix(&["on".to_owned()]).and_then(parentheses).map_or(list, |(_, rest)| rest);
        let items = commas(&list[..ends(list, "from where union")]);
        Some(Self { name, columns: items.into_iter().map(Column::of).collect() })
    }
}

impl Column {
    fn of(tokens: &[String]) -> Self {
        let is_alias = |token: &String| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let named = match tokens {
            [.., before, last] if is_alias(last) && before != "::" => Some((last, before)),
            [only] => Some((only, only)),
            _ => None,
        };
        let Some((name, before)) = named else { return Self { name: type_name(tokens), cast: None } };
        let expression = &tokens[..tokens.len() - if before == "as" { 2 } else { 1 }];
        let cast =
            expression.iter().rposition(|token| token == "::").map(|at| type_name(&expression[at + 1..]));
        Self { name: name.clone(), cast: cast.filter(|cast| !cast.contains(['(', ')', '\''])) }
    }
}

/// The tokens after `CREATE` or `CREATE OR REPLACE`.
fn created(statement: &Statement) -> Option<&[String]> {
    statement.after("create or replace").or_else(|| statement.after("create"))
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
pub fn parentheses(tokens: &[String]) -> Option<(Vec<&[String]>, &[String])> {
    let inner = tokens.strip_prefix(&["(".to_owned()])?;
    let end = ends(inner, ")");
    Some((commas(&inner[..end]), inner.get(end + 1..).unwrap_or_default()))
}

/// Splits at the commas that are in no parentheses.
pub fn commas(tokens: &[String]) -> Vec<&[String]> {
    let mut parts = Vec::new();
    let mut rest = tokens;
    while !rest.is_empty() {
        let end = ends(rest, ",");
        parts.push(&rest[..end]);
        rest = rest.get(end + 1..).unwrap_or_default();
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
        if depth == 0 && is_of(token, wanted) {
            return true;
        }
        match token.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            _ => {}
        }
        false
    });
    found.unwrap_or(tokens.len())
}

pub fn type_name(tokens: &[String]) -> String {
    let text = tokens.join(" ");
    [" . ", " [ ", " ( ", " )", " ]", " , "]
        .into_iter()
        .fold(text, |text, spaced| text.replace(spaced, spaced.trim()))
}

/// The name of a routine with the types of its arguments, if they are there; otherwise the name alone.
pub fn signature(tokens: &[String]) -> String {
    let (name, types) = name(tokens);
    match parentheses(types) {
        Some((types, _)) => {
            let types = types.into_iter().map(Argument::of).filter(|argument| !argument.is_out);
            format!("{name}({})", types.map(|argument| argument.of_type).collect::<Vec<_>>().join(", "))
        }
        None => name,
    }
}
