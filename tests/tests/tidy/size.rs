//! Files and functions that a reader can take in, each with a word on top.

use crate::house::{File, House};

/// The most lines of code in a file; tests inside it, comments and blank lines
/// are not counted.
const FILE_MAX: usize = 300;

/// The most lines of a function, all told.
const FUNCTION_MAX: usize = 70;

/// Files that are longer, and why. One that no longer is has to leave the list.
const LONGER_FILES: &[(&str, &str)] = &[
    ("limiter/src/wire/generated.rs", "written by a program"),
    (
        "limiter/src/ruleset/tests.rs",
        "one promise after the other; no part of it needs another",
    ),
];

/// Functions that are longer, as file and name, and why.
const LONGER_FUNCTIONS: &[(&str, &str, &str)] = &[];

/// Files without a word on top, and why.
const NO_HEADER: &[(&str, &str)] = &[("limiter/src/wire/generated.rs", "written by a program")];

fn headers(house: &House) -> Vec<String> {
    let bare = house.rust().filter(|file| !file.text.starts_with("//! "));
    let bare: Vec<&str> = bare.map(|file| file.path.as_str()).collect();
    let mut wrong: Vec<String> = bare
        .iter()
        .filter(|path| !NO_HEADER.iter().any(|(known, _)| known == *path))
        .map(|path| format!("{path} does not open with `//! ` and what it owns"))
        .collect();
    let stale = NO_HEADER.iter().filter(|(path, _)| !bare.contains(path));
    wrong.extend(stale.map(|(path, _)| format!("{path} no longer needs its exception")));
    wrong
}

fn files(house: &House) -> Vec<String> {
    let long: Vec<(&str, usize)> = house
        .rust()
        .map(|file| (file.path.as_str(), file.code().count()))
        .filter(|(_, lines)| *lines > FILE_MAX)
        .collect();
    let mut wrong: Vec<String> = long
        .iter()
        .filter(|(path, _)| !LONGER_FILES.iter().any(|(known, _)| known == path))
        .map(|(path, lines)| format!("{path} has {lines} lines of code, {FILE_MAX} at most"))
        .collect();
    let stale = LONGER_FILES
        .iter()
        .filter(|(known, _)| !long.iter().any(|(path, _)| path == known));
    wrong.extend(stale.map(|(path, _)| format!("{path} no longer needs its exception")));
    wrong
}

/// The same of JavaScript: a word on top, and not too long.
fn scripts(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in house.ending(".js") {
        let path = &file.path;
        if !file.text.starts_with("// ") {
            wrong.push(format!("{path} does not open with `// ` and what it owns"));
        }
        let lines = file.code().count();
        if lines > FILE_MAX {
            wrong.push(format!(
                "{path} has {lines} lines of code, {FILE_MAX} at most"
            ));
        }
    }
    wrong
}

fn functions(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut long = Vec::new();
    for file in house.rust() {
        for (name, lines) in functions_of(file) {
            if lines > FUNCTION_MAX {
                long.push((file.path.as_str(), name, lines));
            }
        }
    }
    for (path, name, lines) in &long {
        if !LONGER_FUNCTIONS
            .iter()
            .any(|(known, function, _)| known == path && function == name)
        {
            wrong.push(format!(
                "{path}: `{name}` has {lines} lines, {FUNCTION_MAX} at most"
            ));
        }
    }
    let stale = LONGER_FUNCTIONS.iter().filter(|(known, function, _)| {
        !long
            .iter()
            .any(|(path, name, _)| path == known && name == function)
    });
    wrong.extend(stale.map(|(path, name, _)| format!("{path}: `{name}` needs no exception")));
    wrong
}

/// Every function's name and length. The formatter puts the end of each at the
/// column where it began.
fn functions_of(file: &File) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let end = lines.iter().skip(start).position(|line| {
            let (margin, rest) = line.split_at(indent.min(line.len()));
            let ends = rest == "}" || rest.ends_with(" {}") || rest.ends_with(';');
            margin.trim().is_empty() && !rest.starts_with(' ') && ends
        });
        found.extend(end.map(|end| (name, end + 1)));
    }
    found
}

/// The name of the function that begins on this line.
fn function(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    for word in ["pub", "const", "async", "unsafe", "extern \"C\""] {
        let Some(after) = rest.strip_prefix(word) else {
            continue;
        };
        let after = match after.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => after,
        };
        rest = after.strip_prefix(' ')?;
    }
    rest.strip_prefix("fn ")?.split(['(', '<']).next()
}

#[test]
fn every_file_says_first_what_it_owns() {
    crate::hold(headers);
    crate::finds(
        headers,
        &[("a/src/b.rs", "use c;\n")],
        "a/src/b.rs does not open",
    );
}

#[test]
fn no_file_is_too_long_to_take_in() {
    crate::hold(files);
    let long = "let a = 1;\n".repeat(FILE_MAX + 1);
    crate::finds(files, &[("a/src/b.rs", &long)], "has 301 lines");
    let tested = format!("{}#[cfg(test)]\n{long}", "// comment\n".repeat(FILE_MAX));
    let house = House::of(&[("a/src/b.rs", &tested)]);
    assert!(!files(&house).iter().any(|text| text.contains("a/src/b.rs")));
}

#[test]
fn a_script_says_what_it_owns_and_can_be_taken_in() {
    crate::hold(scripts);
    crate::finds(
        scripts,
        &[("a/b.js", "let a = 1;\n")],
        "a/b.js does not open",
    );
    let long = format!("// A.\n{}", "let a = 1;\n".repeat(FILE_MAX + 1));
    crate::finds(scripts, &[("a/b.js", &long)], "has 301 lines");
}

#[test]
fn no_function_is_too_long_to_take_in() {
    crate::hold(functions);
    let body = "        x();\n".repeat(FUNCTION_MAX);
    let long = format!("impl A {{\n    pub(crate) const fn long<T>(\n{body}    }}\n}}\n");
    crate::finds(functions, &[("a/src/b.rs", &long)], "`long` has 72 lines");
}

#[test]
fn an_exception_that_is_no_longer_needed_is_found() {
    crate::finds(
        files,
        &[("a/src/b.rs", "")],
        "no longer needs its exception",
    );
    crate::finds(
        headers,
        &[("a/src/b.rs", "")],
        "no longer needs its exception",
    );
}
