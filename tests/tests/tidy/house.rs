//! The files that rules look at.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold what was made or fetched.
const NOT_OURS: [&str; 4] = ["target", ".cache", ".git", "node_modules"];

/// A text file.
pub(crate) struct File {
    /// From the workspace's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// Whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it is there to test: nothing of it is shipped.
    pub(crate) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name == "tests.rs"
            || self.path.starts_with("tests/")
            || ["/tests/", "/benches/", "/examples/"]
                .iter()
                .any(|part| self.path.contains(part))
    }

    /// Its lines up to the tests inside it, with their numbers from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().take_while(|line| *line != "#[cfg(test)]");
        lines.enumerate().map(|(n, line)| (n + 1, line))
    }

    /// The same without comments and blank lines.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.lines()
            .map(|(n, line)| (n, line.split(" // ").next().unwrap_or(line)))
            .filter(|(_, line)| !line.trim().is_empty() && !line.trim().starts_with("//"))
    }
}

/// A tree of files.
pub(crate) struct House {
    pub(crate) files: Vec<File>,
    paths: Vec<String>,
}

impl House {
    /// The workspace.
    pub(crate) fn ours() -> Self {
        let root = weir_tests::binaries::workspace();
        let mut house = Self {
            files: Vec::new(),
            paths: Vec::new(),
        };
        house.walk(&root, &root);
        assert!(house.files.len() > 100, "this is not the whole house");
        house
    }

    /// A made-up one.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut house = Self {
            files: Vec::new(),
            paths: Vec::new(),
        };
        for (path, text) in files {
            let folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
            house.paths.extend(folders.map(ToOwned::to_owned));
            house.add((*path).to_owned(), (*text).to_owned());
        }
        house
    }

    /// The files whose path ends so.
    pub(crate) fn ending(&self, end: &str) -> impl Iterator<Item = &File> {
        self.files
            .iter()
            .filter(move |file| file.path.ends_with(end))
    }

    /// The Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// The text of one file; empty if there is none.
    pub(crate) fn text(&self, path: &str) -> &str {
        let found = self.files.iter().find(|file| file.path == path);
        found.map_or("", |file| &file.text)
    }

    /// Whether there is such a file or folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.iter().any(|known| known == path)
    }

    fn add(&mut self, path: String, text: String) {
        self.paths.push(path.clone());
        self.files.push(File { path, text });
    }

    fn walk(&mut self, root: &Path, folder: &Path) {
        let entries = fs::read_dir(folder).expect("a folder of the workspace");
        let mut paths: Vec<PathBuf> = entries
            .filter_map(Result::ok)
            .filter(|entry| {
                let kind = entry.file_type().ok();
                kind.is_some_and(|kind| !kind.is_symlink())
                    && !NOT_OURS.iter().any(|name| entry.file_name() == *name)
            })
            .map(|entry| entry.path())
            .collect();
        paths.sort();
        for path in paths {
            let name = path.strip_prefix(root).expect("below the root");
            let name = name.to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                self.paths.push(name);
                self.walk(root, &path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                self.add(name, text);
            } else {
                self.paths.push(name);
            }
        }
    }
}

/// Where `word` stands in `text` by itself.
pub(crate) fn places(text: &str, word: &str) -> Vec<usize> {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(|at| {
            let (before, rest) = text.split_at(*at);
            let after = rest.strip_prefix(word).unwrap_or_default();
            !before.ends_with(part_of_name) && !after.starts_with(part_of_name)
        })
        .collect()
}

/// Whether a line of code names this crate or module: `name::` or `use name`.
pub(crate) fn names(line: &str, name: &str) -> bool {
    places(line, name).into_iter().any(|at| {
        let (before, rest) = line.split_at(at);
        let after = rest.strip_prefix(name).unwrap_or_default();
        let outer = before.strip_suffix("::").filter(|outer| *outer != "crate");
        let inside = outer.is_some_and(|outer| outer.ends_with(|c: char| c.is_alphanumeric()));
        let used = before.ends_with("use ") || before.ends_with("extern crate ");
        used || (after.starts_with("::") && !inside && !before.ends_with('"'))
    })
}
