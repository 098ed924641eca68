//! Upgrade scripts. Functions, views and comments are code: a script replaces them from the present install script. Tables,
//! types, casts, triggers, rows and rights are state: statements written by hand change them, a file for each step from one
//! release to the next. Rights are given to new objects only, so that GRANT and REVOKE of administrators stay in force.

use crate::object::{Argument, Column, Routine, View, commas, ends, is_of, name, signature};
use crate::statement::{Statement, split};
use std::collections::{BTreeMap, BTreeSet};

/// The first statement of each script. Nothing that others could have put into a schema of theirs is found after it.
pub const FIRST: &str = "SET LOCAL search_path = pg_catalog, pg_temp;";

/// The line of a step at which the code is replaced. The code is replaced after a step without this line.
const CODE: &str = "\n-- code\n";

/// Gives new objects to the roles that administer a part of the extension.
const ADMINISTRATION: &str = include_str!("administration.sql");

/// A statement that gives or takes a right on one object.
#[derive(Debug, PartialEq)]
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
    routines: BTreeMap<String, Routine>,
    views: BTreeMap<String, View>,
    /// The statements that replace routines, views and comments, in their order.
    code: Vec<String>,
    rights: Vec<Right>,
    /// The objects with comments.
    comments: BTreeSet<String>,
    /// All other statements that create or change an object, and the object's name.
    state: BTreeMap<String, String>,
}

impl Script {
    fn of(text: &str) -> Self {
        let mut script = Self::default();
        for statement in split(text) {
            script.add(&statement);
        }
        script
    }

    fn add(&mut self, statement: &Statement) {
        let first = statement.tokens.first().map_or("", String::as_str);
        if let Some(routine) = Routine::of(statement) {
            self.routines.insert(routine.signature(), routine);
            self.code.push(replacing(&statement.text));
        } else if let Some(view) = View::of(statement) {
            self.views.insert(view.name.clone(), view);
            self.code.push(replacing(&statement.text));
        } else if let Some(commented) = statement.after("comment on") {
            self.comments.insert(commented[..ends(commented, "is")].join(" "));
            self.code.push(statement.text.clone());
        } else if first == "alter"
            && is_of(statement.tokens.get(1).map_or("", String::as_str), "function procedure view")
        {
            self.code.push(statement.text.clone());
        } else if is_of(first, "grant revoke") {
            self.rights.extend(Right::of(&statement.tokens));
        } else if !is_of(first, "set select do") {
            self.state.insert(statement.tokens.join(" "), object_of(&statement.tokens));
        }
    }

    /// Removes the objects that a statement of a step drops.
    fn forget(&mut self, statement: &Statement) {
        let Some([kind, objects @ ..]) = statement.after("drop") else { return };
        for object in commas(statement.after(&format!("drop {kind} if exists")).unwrap_or(objects)) {
            let dropped = signature(object);
            if kind == "view" {
                self.views.remove(&name(object).0);
            } else if self.routines.remove(&dropped).is_none() {
                self.routines.retain(|_, routine| routine.name != dropped);
            }
        }
    }

    /// Whether the script creates this relation, type or schema.
    fn creates(&self, name: &str) -> bool {
        let is_created = |(text, object): (&String, &String)| text.starts_with("create ") && object == name;
        self.views.contains_key(name) || self.state.iter().any(is_created)
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
        let is_new = |routine: &&Routine| !old.routines.contains_key(&routine.signature());
        let mut routines = new.routines.values().filter(is_new);
        let statement = |object: String| Self {
            action: self.action.clone(),
            kind: "FUNCTION".to_owned(),
            object,
            roles: self.roles.clone(),
        };
        match self.kind.as_str() {
            "ALL FUNCTIONS IN SCHEMA" => {
                let schema = format!("{}.", self.object);
                routines
                    .filter(|routine| routine.kind == "function" && routine.name.starts_with(&schema))
                    .map(|routine| statement(routine.signature()).statement())
                    .collect()
            }
            "FUNCTION" | "PROCEDURE" | "ROUTINE" => {
                let is_it = |routine: &Routine| [&routine.name, &routine.signature()].contains(&&self.object);
                routines.any(is_it).then(|| self.statement()).into_iter().collect()
            }
            _ => (new.creates(&self.object) && !old.creates(&self.object))
                .then(|| self.statement())
                .into_iter()
                .collect(),
        }
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
    let code = new.code.iter().cloned().chain(rights).map(|statement| statement + ";\n").collect::<String>();
    let routines = new.routines.iter().filter(|(signature, _)| !old.routines.contains_key(*signature));
    let relations = new.views.keys().chain(new.state.values()).filter(|name| !old.creates(name));
    let objects = routines.flat_map(|(signature, routine)| [signature, &routine.name]).chain(relations);
    let objects = objects.map(|name| format!("'{name}'")).collect::<BTreeSet<_>>();
    let objects = objects.into_iter().collect::<Vec<_>>().join(", ");
    let administration = ADMINISTRATION.replace("@NEW@", &objects);
    Ok([FIRST, "\n", &before.concat(), "\n", &code, &administration, &after.concat()].concat())
}

/// What the steps have to do by hand, a sentence for each object that they do not deal with.
fn missing(old: &Script, new: &Script, by_hand: &[Statement]) -> Vec<String> {
    let mut missing = Vec::new();
    for (signature, routine) in &old.routines {
        let kind = &routine.kind;
        match new.routines.get(signature) {
            None => missing.push(format!("{kind} {signature} is gone: drop it")),
            Some(next) => missing.extend(
                of_routine(routine, next)
                    .map(|why| format!("{kind} {signature}: {why}: drop it, and it is created again")),
            ),
        }
    }
    for (name, view) in &old.views {
        match new.views.get(name) {
            None => missing.push(format!("view {name} is gone: drop it")),
            Some(next) => missing.extend(
                of_view(view, next)
                    .map(|why| format!("view {name}: {why}: drop it, and it is created again")),
            ),
        }
    }
    let words =
        by_hand.iter().flat_map(|statement| statement.text.split(|c: char| !c.is_alphanumeric() && c != '_'));
    let words: BTreeSet<&str> = words.collect();
    let is_named = |object: &str| {
        let name = object.split('(').next().unwrap_or(object);
        name.rsplit(['.', ' ']).next().is_some_and(|name| words.contains(name.trim_matches('"')))
    };
    let mut differing = BTreeSet::new();
    for (one, other) in [(old, new), (new, old)] {
        differing.extend(
            one.state
                .iter()
                .filter(|(text, _)| !other.state.contains_key(*text))
                .map(|(_, name)| name.clone()),
        );
        differing.extend(
            one.rights
                .iter()
                .filter(|right| !other.rights.contains(right))
                .filter(|right| right.for_new(old, new).is_empty())
                .map(|right| format!("right {} {} {}", right.action, right.roles, right.object)),
        );
    }
    differing.extend(old.comments.difference(&new.comments).map(|object| format!("comment on {object}")));
    missing.extend(
        differing
            .into_iter()
            .filter(|object| !is_named(object))
            .map(|object| format!("{object} differs: change it")),
    );
    missing
}

/// Why a routine cannot be replaced.
fn of_routine(old: &Routine, new: &Routine) -> Option<String> {
    let renamed = |(old, new): (&Argument, &Argument)| match (&old.name, &new.name) {
        (Some(old), new) if new.as_ref() != Some(old) => Some(format!("argument {old} has another name")),
        _ => None,
    };
    let ended = |(old, new): (&Argument, &Argument)| {
        (old.has_default && !new.has_default)
            .then(|| format!("the default of argument {} is gone", old.name.as_deref().unwrap_or_default()))
    };
    if old.kind != new.kind {
        return Some(format!("it is a {} now", new.kind));
    }
    if old.result() != new.result() {
        return Some(format!("its result was {} and is {}", old.result(), new.result()));
    }
    let pairs = || old.inputs().zip(new.inputs());
    pairs().find_map(renamed).or_else(|| pairs().find_map(ended))
}

/// Why a view cannot be replaced. Only the server sees types that no cast names.
fn of_view(old: &View, new: &View) -> Option<String> {
    let mut columns = old.columns.iter().zip(new.columns.iter().map(Some).chain(std::iter::repeat(None)));
    columns.find_map(|(old, new): (&Column, Option<&Column>)| match new {
        Some(new) if new.name == old.name => {
            (new.cast.is_some() && old.cast.is_some() && new.cast != old.cast)
                .then(|| format!("column {} has another type", old.name))
        }
        _ => Some(format!("column {} is gone or has another place", old.name)),
    })
}

fn replacing(create: &str) -> String {
    let rest = create["create".len()..].trim_start();
    if rest.to_lowercase().starts_with("or replace") {
        create.to_owned()
    } else {
        format!("CREATE OR REPLACE {rest}")
    }
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
        let cases = [
            (
                "(a integer",
                "(z integer",
                "function s.f(integer, text): argument a has another name",
                function,
            ),
            (" DEFAULT 'x'", "", "the default of argument b is gone", function),
            ("OUT c bigint", "OUT d bigint", "its result was", function),
            ("OUT c bigint)", "OUT c bigint) RETURNS bigint", "its result was", function),
            ("a integer, b", "b", "function s.f(integer, text) is gone", function),
            ("t.id, t.id::integer AS number", "t.id", "view s.v: column number is gone", view),
            (
                "t.id, t.id::integer AS number",
                "t.id::integer AS number, t.id",
                "column id is gone or has",
                view,
            ),
            ("::integer AS", "::bigint AS", "view s.v: column number has another type", view),
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
