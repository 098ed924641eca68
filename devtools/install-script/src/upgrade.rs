//! Upgrade scripts. Functions, views and comments are code: a script replaces them from the present install script. Tables,
//! types, casts, triggers, rows and rights are state: statements written by hand change them, a file for each step from one
//! release to the next. Rights are given to new objects only, so that GRANT and REVOKE of administrators stay in force.

use crate::object::{Code, commas, ends, is_of, name, signature};
use crate::statement::{Statement, split};
use std::collections::{BTreeMap, BTreeSet};

/// The first statement of each script. Nothing that others could have put into a schema of theirs is found after it.
pub const FIRST: &str = "SET LOCAL search_path = pg_catalog, pg_temp;";

/// The line of a step at which the code is replaced. The code is replaced after a step without this line.
const CODE: &str = "\n-- code\n";

/// Gives new objects to the roles that administer a part of the extension.
const ADMINISTRATION: &str = include_str!("administration.sql");

/// A statement that gives or takes a right on one object.
struct Right {
    /// Such as `GRANT SELECT`.
    action: String,
    /// Such as `FUNCTION`, `ALL FUNCTIONS IN SCHEMA`, or `TABLE`, which includes views.
    kind: String,
    object: String,
    /// Such as `to public`.
    roles: String,
}

#[derive(Default)]
struct Script {
    /// Functions, procedures and views by their signatures.
    code: BTreeMap<String, Code>,
    /// The statements that replace code and comments, in their order.
    replacing: Vec<String>,
    rights: Vec<Right>,
    /// What only steps change: the text of a statement, of a right, or of the beginning of a comment, and the name of its object.
    state: BTreeMap<String, String>,
}

impl Script {
    fn of(text: &str) -> Self {
        split(text).into_iter().fold(Self::default(), Self::with)
    }

    fn with(mut self, statement: Statement) -> Self {
        let word = |at: usize| statement.tokens.get(at).map_or("", String::as_str);
        if let Some(code) = Code::of(&statement) {
            let created = statement.after("create or replace").is_some();
            let text = &statement.text;
            let rest = || format!("CREATE OR REPLACE{}", &text["create".len()..]);
            self.replacing.push(if created { text.clone() } else { rest() });
            self.code.insert(code.signature(), code);
        } else if let Some(commented) = statement.after("comment on") {
            let object = format!("comment on {}", commented[..ends(commented, "is")].join(" "));
            self.state.insert(object.clone(), object);
            self.replacing.push(statement.text);
        } else if word(0) == "alter" && is_of(word(1), "function procedure view") {
            self.replacing.push(statement.text);
        } else if is_of(word(0), "grant revoke") {
            let rights = Right::of(&statement.tokens);
            let named = |right: &Right| format!("right {} {} {}", right.action, right.roles, right.object);
            self.state.extend(rights.iter().map(|right| (right.statement(), named(right))));
            self.rights.extend(rights);
        } else if !is_of(word(0), "set select do") {
            self.state.insert(statement.tokens.join(" "), object_of(&statement.tokens));
        }
        self
    }

    /// Removes the objects that a statement of a step drops.
    fn forget(&mut self, statement: &Statement) {
        let Some([kind, objects @ ..]) = statement.after("drop") else { return };
        for object in commas(statement.after(&format!("drop {kind} if exists")).unwrap_or(objects)) {
            let dropped = signature(object);
            if self.code.remove(&dropped).is_none() {
                self.code.retain(|_, code| code.name != dropped);
            }
        }
    }

    /// Whether the script creates this object, which has its signature or only its name.
    fn creates(&self, object: &str) -> bool {
        let is_created = |(text, name): (&String, &String)| text.starts_with("create ") && name == object;
        self.code.contains_key(object)
            || self.code.values().any(|code| code.name == object)
            || self.state.iter().any(is_created)
    }
}

impl Right {
    /// Splits a statement into one for each object.
    fn of(tokens: &[String]) -> Vec<Self> {
        let words = |tokens: &[String]| tokens.join(" ").to_uppercase();
        let on = ends(tokens, "on");
        let roles = on + ends(&tokens[on..], "to from");
        let objects = tokens.get(on + 1..roles).unwrap_or_default();
        let kinds = "all functions in schema function procedure routine table type domain";
        let kind = objects.iter().take_while(|token| is_of(token, kinds)).count();
        let of_object = |object: &[String]| Self {
            action: words(&tokens[..on]),
            kind: if kind == 0 { "TABLE".to_owned() } else { words(&objects[..kind]) },
            object: signature(object),
            roles: tokens[roles..].join(" "),
        };
        commas(&objects[kind..]).into_iter().map(of_object).collect()
    }

    fn statement(&self) -> String {
        format!("{} ON {} {} {}", self.action, self.kind, self.object, self.roles)
    }

    /// The statements that a new object needs. Former objects keep their rights.
    fn for_new(&self, old: &Script, new: &Script) -> Vec<String> {
        if self.kind != "ALL FUNCTIONS IN SCHEMA" {
            let is_new = new.creates(&self.object) && !old.creates(&self.object);
            return is_new.then(|| self.statement()).into_iter().collect();
        }
        let schema = format!("{}.", self.object);
        let functions = new.code.iter().filter(|(signature, code)| {
            code.kind == "function" && code.name.starts_with(&schema) && !old.code.contains_key(*signature)
        });
        functions
            .map(|(signature, _)| format!("{} ON FUNCTION {signature} {}", self.action, self.roles))
            .collect()
    }
}

/// Makes the script from one install script to another, with the steps between them. If `CREATE OR REPLACE` does not lead there,
/// returns what the steps have to do.
pub fn script(former: &str, next: &str, steps: &[String]) -> Result<String, Vec<String>> {
    let by_hand = steps.iter().flat_map(|step| split(step)).collect::<Vec<_>>();
    let (mut old, new) = (Script::of(former), Script::of(next));
    for statement in &by_hand {
        old.forget(statement);
    }
    let missing = missing(&old, &new, &by_hand);
    if !missing.is_empty() {
        return Err(missing);
    }
    let (before, after): (Vec<_>, Vec<_>) =
        steps.iter().map(|step| step.split_once(CODE).unwrap_or((step, ""))).unzip();
    let rights = new.rights.iter().flat_map(|right| right.for_new(&old, &new));
    let code =
        new.replacing.iter().cloned().chain(rights).map(|statement| statement + ";\n").collect::<String>();
    let names =
        new.code.iter().flat_map(|(signature, code)| [signature, &code.name]).chain(new.state.values());
    let objects =
        names.filter(|name| new.creates(name) && !old.creates(name)).map(|name| format!("'{name}'"));
    let objects = objects.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
    let administration = ADMINISTRATION.replace("@NEW@", &objects);
    Ok([FIRST, "\n", &before.concat(), "\n", &code, &administration, &after.concat()].concat())
}

/// What the steps have to do by hand, a sentence for each object that they do not deal with.
fn missing(old: &Script, new: &Script, by_hand: &[Statement]) -> Vec<String> {
    let mut missing = Vec::new();
    for (signature, Code { kind, .. }) in &old.code {
        match new.code.get(signature) {
            None => missing.push(format!("{kind} {signature} is gone: drop it")),
            Some(next) if !old.code[signature].becomes(next) => missing.push(format!(
                "{kind} {signature} has another result, or another name, default, type or place of an argument or column: drop \
                 it, and it is created again"
            )),
            Some(_) => {}
        }
    }
    let words =
        by_hand.iter().flat_map(|statement| statement.text.split(|c: char| !c.is_alphanumeric() && c != '_'));
    let words: BTreeSet<&str> = words.collect();
    let is_named = |object: &str| {
        let name = object.split('(').next().unwrap_or(object);
        name.rsplit(['.', ' ']).next().is_some_and(|name| words.contains(name.trim_matches('"')))
    };
    // The script gives new objects their rights, and replaces comments.
    let given = new.rights.iter().filter(|right| !right.for_new(old, new).is_empty());
    let given = given.map(Right::statement).collect::<BTreeSet<_>>();
    let gone = old.state.iter().filter(|(text, _)| !new.state.contains_key(*text));
    let added = new.state.iter().filter(|(text, _)| !old.state.contains_key(*text));
    let added = added.filter(|(text, _)| !text.starts_with("comment on ") && !given.contains(*text));
    let differing = gone.chain(added).map(|(_, object)| object).filter(|object| !is_named(object));
    let differing = differing.collect::<BTreeSet<_>>().into_iter();
    missing.extend(differing.map(|object| format!("{object} differs: change it")));
    missing
}

/// The name of the object that a statement creates or changes.
fn object_of(tokens: &[String]) -> String {
    let other = "create or replace alter insert into if not exists only unique constraint event table type domain cast ( trigger \
        index schema sequence operator class";
    name(&tokens[tokens.iter().take_while(|token| is_of(token, other)).count()..]).0
}

/// The C symbols that a script names and a library lacks.
pub fn lacking(script: &str, library: &[u8]) -> Vec<String> {
    let strings = library.split(|byte| *byte == 0).collect::<Vec<_>>();
    let named = split(script).into_iter().filter_map(|statement| {
        let library = statement.tokens.iter().position(|token| token == "'MODULE_PATHNAME'")?;
        Some(statement.tokens.get(library + 2)?.trim_matches('\'').to_owned())
    });
    let lacks = |symbol: &String| !strings.iter().any(|string| string.ends_with(symbol.as_bytes()));
    named.filter(lacks).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::{FIRST, script};

    const FORMER: &str = "
        CREATE TABLE s.t (id bigint);
        CREATE FUNCTION s.f(a integer, b text DEFAULT 'x', OUT c bigint) LANGUAGE sql AS $$ SELECT 1; $$;
        CREATE VIEW s.v AS SELECT t.id, t.id::integer AS number FROM s.t AS t;
        COMMENT ON FUNCTION s.f IS 'former';
        GRANT EXECUTE ON FUNCTION s.f(integer, text) TO PUBLIC;";

    /// Changes a part of the former script, and makes the upgrade script with this step.
    fn upgrade(changed: (&str, &str), step: &str) -> Result<String, String> {
        assert!(FORMER.contains(changed.0), "{}", changed.0);
        script(FORMER, &FORMER.replace(changed.0, changed.1), &[step.to_owned()])
            .map_err(|missing| missing.join("; "))
    }

    #[test]
    fn code_is_replaced_and_rights_stay() -> Result<(), String> {
        let made = upgrade(("SELECT 1;", "SELECT 2;"), "")?;
        assert!(made.starts_with(FIRST), "{made}");
        assert!(made.contains("CREATE OR REPLACE FUNCTION s.f(a integer, b text DEFAULT 'x', OUT c bigint)"));
        assert!(made.contains("SELECT 2;") && made.contains("IS 'former'"), "{made}");
        assert!(!made.contains("TABLE s.t") && !made.contains("TO PUBLIC"), "{made}");
        Ok(())
    }

    #[test]
    fn what_is_new_gets_its_rights() -> Result<(), String> {
        let new = "CREATE FUNCTION s.g() RETURNS text AS 'x'; GRANT EXECUTE ON FUNCTION s.f(integer, text), s.g() TO PUBLIC;";
        let made = upgrade(("GRANT EXECUTE ON FUNCTION s.f(integer, text) TO PUBLIC;", new), "")?;
        assert!(made.contains("GRANT EXECUTE ON FUNCTION s.g() to public;"), "{made}");
        assert!(!made.contains("FUNCTION s.f(integer, text) TO"), "{made}");
        Ok(())
    }

    #[test]
    fn what_cannot_be_replaced_is_named_unless_the_step_deals_with_it() -> Result<(), String> {
        let (function, view) = ("DROP FUNCTION s.f(integer, text);", "DROP VIEW s.v;");
        let (differs, columns) = ("function s.f(integer, text) has another", "t.id, t.id::integer AS number");
        let cases = [
            ("(a integer", "(z integer", differs, function),
            (" DEFAULT 'x'", "", differs, function),
            ("OUT c bigint", "OUT d bigint", differs, function),
            ("OUT c bigint)", "OUT c bigint) RETURNS bigint", differs, function),
            ("a integer, b", "b", "function s.f(integer, text) is gone", function),
            (columns, "t.id", "view s.v has another", view),
            (columns, "t.id::integer AS number, t.id", "view s.v has another", view),
            ("::integer AS", "::bigint AS", "view s.v has another", view),
            ("(id bigint)", "(id bigint, note text)", "s.t differs", "ALTER TABLE s.t ADD COLUMN note text;"),
        ];
        for (former, next, why, step) in cases {
            let refused = upgrade((former, next), "-- s.f, s.v and s.t").err().ok_or(why)?;
            assert!(refused.contains(why), "{refused}");
            upgrade((former, next), step)?;
        }
        upgrade(("AS number FROM", "AS number, 1 AS one FROM"), "").map(drop)
    }

    #[test]
    fn a_step_may_go_on_after_the_code() -> Result<(), String> {
        let made = upgrade(("SELECT 1;", "SELECT 2;"), "SELECT 'before';\n-- code\nSELECT 'after';")?;
        let place = |text: &str| made.find(text).ok_or_else(|| format!("{text} is missing"));
        assert!(place("'before'")? < place("SELECT 2;")? && place("SELECT 2;")? < place("'after'")?);
        Ok(())
    }
}
