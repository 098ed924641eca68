//! Errors that calls of `new_report(code, message)` create, with their details from
//! `.set_detail(...)` and their hints from `.set_hint(...)`.

use super::variants::first_literal;
use super::{Entry, shown, sqlstate};
use anyhow::Result;
use std::collections::BTreeMap;
use syn::visit::{Visit, visit_block, visit_expr_call, visit_expr_method_call, visit_file, visit_local};
use syn::{Block, Expr, ExprCall, ExprMethodCall, File, Lit, Local, Pat};

/// Codes of reports that are not errors.
const NO_ERRORS: [&str; 2] = ["ERRCODE_WARNING", "ERRCODE_SUCCESSFUL_COMPLETION"];

/// Returns the errors that have a literal message and code.
pub fn entries(files: &[File]) -> Result<Vec<Entry>> {
    let mut found = Reports::default();
    for file in files {
        visit_file(&mut found, file);
    }
    found.found.iter().map(entry).collect()
}

/// Returns an error that is still given as the name of its SQLSTATE and as format strings.
fn entry(found: &Entry) -> Result<Entry> {
    Ok(Entry {
        message: shown(&found.message),
        sqlstate: sqlstate(&found.sqlstate)?,
        detail: shown(&found.detail),
        hint: shown(&found.hint),
    })
}

/// The errors; and the codes and texts that `let` binds in the enclosing blocks.
#[derive(Default)]
struct Reports {
    found: Vec<Entry>,
    bound: BTreeMap<String, String>,
}

impl<'ast> Visit<'ast> for Reports {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let report = self.report(call);
        self.found.extend(report);
        visit_expr_call(self, call);
    }

    fn visit_block(&mut self, block: &'ast Block) {
        let around = self.bound.clone();
        visit_block(self, block);
        self.bound = around;
    }

    fn visit_local(&mut self, bound: &'ast Local) {
        if let (Pat::Ident(name), Some(init)) = (&bound.pat, &bound.init) {
            let value = self.text(&init.expr).or_else(|| code(&init.expr));
            self.bound.extend(value.map(|value| (name.ident.to_string(), value)));
        }
        visit_local(self, bound);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let before = self.found.len();
        visit_expr_method_call(self, call);
        let text = call.args.first().and_then(|text| self.text(text));
        if let (Some(text), Some(found)) = (text, self.found.get_mut(before)) {
            match call.method.to_string().as_str() {
                "set_detail" => found.detail = text,
                "set_hint" => found.hint = text,
                _ => {}
            }
        }
    }
}

impl Reports {
    fn report(&self, call: &ExprCall) -> Option<Entry> {
        let names = names(&call.func)?;
        let arguments: Vec<_> = call.args.iter().collect();
        let text = |text: &Expr| self.text(text).unwrap_or_default();
        let error = |code: &str, message: &Expr, detail: String, hint: String| {
            Some(Entry { message: self.text(message)?, sqlstate: code.to_owned(), detail, hint })
        };
        match (names.as_slice(), arguments.as_slice()) {
            ([.., function], [given, message]) if function == "new_report" => {
                let code = code(given).or_else(|| self.bound.get(&names_last(given)?).cloned())?;
                let is_error = code.starts_with("ERRCODE_") && !NO_ERRORS.contains(&code.as_str());
                is_error.then(|| error(&code, message, String::new(), String::new())).flatten()
            }
            ([.., function], [message, detail]) if function == "bad_argument" => {
                error("invalid_parameter_value", message, text(detail), String::new())
            }
            ([.., function], [message, detail, hint]) if function == "not_ready" => {
                error("object_not_in_prerequisite_state", message, text(detail), text(hint))
            }
            ([.., function], [message]) if function == "denied" => {
                error("insufficient_privilege", message, String::new(), String::new())
            }
            _ => None,
        }
    }

    /// Returns the text of a literal, the format string of `format!`, or the text that is bound to a name.
    fn text(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Lit(literal) if let Lit::Str(text) = &literal.lit => Some(text.value()),
            Expr::Macro(found) => first_literal(&found.mac.tokens),
            Expr::Path(_) => {
                let bound = self.bound.get(&names_last(expression)?)?;
                (!bound.starts_with("ERRCODE_")).then(|| bound.clone())
            }
            _ => None,
        }
    }
}

fn names(expression: &Expr) -> Option<Vec<String>> {
    let Expr::Path(path) = expression else { return None };
    Some(path.path.segments.iter().map(|segment| segment.ident.to_string()).collect())
}

fn names_last(expression: &Expr) -> Option<String> {
    names(expression)?.pop()
}

/// Returns the SQLSTATE's name if the expression is such a name.
fn code(expression: &Expr) -> Option<String> {
    names_last(expression).filter(|name| name.starts_with("ERRCODE_"))
}
