//! The SQL blocks in a document, statement by statement.

/// A statement, with the output that the document shows.
#[derive(Debug)]
pub struct Step {
    /// The line of its beginning in the document, counted from 1.
    pub line: usize,
    /// The database for the statement; None: the document's own.
    pub database: Option<String>,
    /// The statement, with the comments before it.
    pub code: Vec<String>,
    /// The expected output; empty: the document shows none.
    pub shown: Vec<String>,
    /// Whether numbers may differ from those shown.
    pub varies: bool,
}

/// The attributes of a block, from the line that opens it.
struct Opening {
    end: &'static str,
    indent: usize,
    words: Vec<String>,
}

/// Parses the first line of an SQL block, unless the block is skipped.
fn opening(line: &str) -> Option<Opening> {
    let indent = line.len() - line.trim_start().len();
    let (words, end) = match line.trim_start() {
        text if text.starts_with("```") => (text.trim_start_matches('`'), "```"),
        text => (text.strip_prefix("<!--")?, "-->"),
    };
    let mut words = words.split_whitespace().map(String::from);
    (words.next()? == "sql").then(|| Opening { end, indent, words: words.collect() })
}

/// All statements of the blocks to run.
pub fn steps(text: &str) -> Vec<Step> {
    let lines: Vec<&str> = text.lines().collect();
    let mut steps = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(opening) = opening(lines[at]) else {
            at += 1;
            continue;
        };
        let start = at + 1;
        let length = lines[start..].iter().take_while(|line| line.trim() != opening.end).count();
        at = start + length + 1;
        if !opening.words.iter().any(|word| word == "ignore") {
            let block: Vec<&str> = lines[start..start + length]
                .iter()
                .map(|line| line.get(opening.indent..).unwrap_or_default())
                .collect();
            split(&block, start + 1, &opening.words, &mut steps);
        }
    }
    steps
}

fn split(block: &[&str], first: usize, words: &[String], steps: &mut Vec<Step>) {
    let database = words.iter().find_map(|word| word.strip_prefix("database=")).map(String::from);
    let varies = words.iter().any(|word| word == "varies");
    let mut lines = block.iter().zip(first..).peekable();
    let mut code: Vec<String> = Vec::new();
    while let Some((text, line)) = lines.next() {
        code.push((*text).to_owned());
        if !is_end(text) {
            continue;
        }
        let mut shown = Vec::new();
        while let Some((output, _)) = lines.next_if(|(next, _)| next.starts_with("--")) {
            let output = output.trim_start_matches("--");
            shown.push(output.strip_prefix(' ').unwrap_or(output).to_owned());
        }
        let line = line + 1 - code.len();
        steps.push(Step { line, database: database.clone(), code: std::mem::take(&mut code), shown, varies });
    }
}

/// Whether a statement ends with this line, or is one of psql's commands.
fn is_end(line: &str) -> bool {
    let code = line.split(" --").next().unwrap_or_default().trim_end();
    (code.ends_with(';') && !code.starts_with("--")) || code.starts_with('\\')
}
