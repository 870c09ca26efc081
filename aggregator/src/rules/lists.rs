//! Lists of values: a file beside the rule file, a value a line, or said in the rule
//! file itself.
//!
//! In a list's file a line that begins with `#` is a comment, and a blank one nothing.
//! What a list is for says how it is read: hosts in lower case, addresses as blocks,
//! anything else to the byte. It is read once for each, and shared by all who name it.
//! Text that does not come from a file names none: who puts rules over the network
//! must not have the service's files read.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

use limiter::{
    address::Cidr,
    key::HashSeed,
    list::{LISTED_MAX, List},
    rule::{KeyPart, text},
};

use super::{at::At, diagnostic::Place};

/// The longest file of a list, in bytes.
const LIST_LEN_MAX: u64 = 128 << 20;

/// The most values of a list that are said to be wrong.
const WRONG_MAX: usize = 20;

/// The lists that a rule file may name.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Where files are; none if none may be read.
    folder: Option<PathBuf>,
    said: HashMap<String, Rc<Raw>>,
    /// By the name in the rule file; none if it cannot be read, which has been noted.
    files: RefCell<HashMap<String, Option<Rc<Raw>>>>,
    made: RefCell<HashMap<(String, Kind), Made>>,
    /// Values of all of them.
    count: Cell<usize>,
}

/// A list as it is looked up; none if something is wrong with it, which has been noted.
type Made = Option<Arc<List>>;

/// What a list is looked up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Values,
    Hosts,
    Blocks,
}

/// A list as it was written.
#[derive(Debug)]
enum Raw {
    File {
        name: String,
        text: String,
    },
    /// With where they stand, and the path to there.
    Said(Vec<(Place, String, String)>),
}

/// A value, and where it stands: a file if it is not the rule file, and the path.
type Value<'a> = (Option<&'a str>, Place, &'a str, &'a str);

impl Kind {
    /// What a list of keys is for that are like this.
    pub(super) const fn of(part: &KeyPart) -> Self {
        match part {
            KeyPart::Address { .. } => Self::Blocks,
            KeyPart::Host => Self::Hosts,
            _ => Self::Values,
        }
    }
}

impl Lists {
    /// Those of a rule file in this folder, or of one that is in none.
    pub(super) fn beside(folder: Option<&Path>) -> Self {
        Self {
            folder: folder.map(Path::to_owned),
            ..Self::default()
        }
    }

    /// The files that were asked for, whether they are there or not.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let (files, folder) = (self.files.borrow(), self.folder.as_deref());
        let paths = folder.map(|folder| files.keys().map(|name| folder.join(name)));
        let mut paths: Vec<PathBuf> = paths.into_iter().flatten().collect();
        paths.sort();
        paths
    }

    /// The values of those that were read from files, by the name in the rule file.
    pub(super) fn in_files(&self) -> BTreeMap<String, Vec<String>> {
        let values = |raw: &Option<Rc<Raw>>| {
            let raw = raw.as_deref()?;
            Some(raw.values().map(|(.., value)| value.to_owned()).collect())
        };
        let files = self.files.borrow();
        let lists = files.iter().map(|(name, raw)| (name.clone(), values(raw)));
        lists
            .map(|(name, values)| (name, values.unwrap_or_default()))
            .collect()
    }

    /// Reads the lists that the rule file says itself.
    pub(super) fn say(&mut self, at: &At<'_>) -> Option<()> {
        let what = "a mapping of lists' names to their values";
        for entry in at.entries(what)? {
            let list = at.entry(entry);
            let what = "a list of values";
            if !list.node.is_list() {
                list.expected::<()>(what);
                continue;
            }
            let value = |at: &At<'_>| {
                let text = at.text("a value")?;
                Some((at.node.place, at.path.clone(), text.to_owned()))
            };
            let values = list.items(what)?.iter().filter_map(value).collect();
            let raw = Rc::new(Raw::Said(values));
            self.add_up(at, &raw)?;
            self.said.insert(entry.key.clone(), raw);
        }
        Some(())
    }

    /// The list of this name, which stands at this place. That it is not there, or
    /// what is wrong with it, has been noted.
    pub(super) fn get(&self, at: &At<'_>, name: &str, kind: Kind) -> Option<Arc<List>> {
        let known = (name.to_owned(), kind);
        if let Some(made) = self.made.borrow().get(&known) {
            return made.clone();
        }
        let made = self
            .raw(at, name)
            .and_then(|raw| make(at, name, kind, &raw));
        self.made.borrow_mut().insert(known, made.clone());
        made
    }

    fn raw(&self, at: &At<'_>, name: &str) -> Option<Rc<Raw>> {
        if let Some(said) = self.said.get(name) {
            return Some(Rc::clone(said));
        }
        let Some(folder) = &self.folder else {
            return at.refuse(format_args!(
                "there is no list {name} under lists; no file is read for rules that come without one"
            ));
        };
        if let Some(read) = self.files.borrow().get(name) {
            return read.clone();
        }
        let read = read(&folder.join(name));
        let raw = match read {
            Ok((name, text)) => Some(Rc::new(Raw::File { name, text })),
            Err(why) => at.refuse(format_args!("the list {name} cannot be read: {why}")),
        };
        let raw = raw.filter(|raw| self.add_up(at, raw).is_some());
        self.files.borrow_mut().insert(name.to_owned(), raw.clone());
        raw
    }

    /// Notes the first value that is more than all lists may have.
    fn add_up(&self, at: &At<'_>, raw: &Raw) -> Option<()> {
        let room = LISTED_MAX.saturating_sub(self.count.get());
        if let Some((file, place, path, _)) = raw.values().nth(room) {
            let message = format!("at most {LISTED_MAX} values in all lists together");
            at.notes.add_in(file, place, path, message);
            return None;
        }
        self.count.set(self.count.get() + raw.values().count());
        Some(())
    }
}

impl Raw {
    fn values(&self) -> Box<dyn Iterator<Item = Value<'_>> + '_> {
        match self {
            Self::File { name, text } => Box::new(lines(text).map(|(line, value)| {
                let place = Place { line, column: 1 };
                (Some(&**name), place, "", value)
            })),
            Self::Said(values) => Box::new(values.iter().map(|one| {
                let (place, path, value) = one;
                (None, *place, &**path, &**value)
            })),
        }
    }
}

/// The lines that say something, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> + Clone {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(place, line)| (place + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// What a file is called and holds, or why that cannot be said.
fn read(path: &Path) -> Result<(String, String), String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut file = file.take(LIST_LEN_MAX + 1);
    file.read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LIST_LEN_MAX {
        return Err(format!("it is longer than {LIST_LEN_MAX} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    let text = text
        .strip_prefix('\u{feff}')
        .map(str::to_owned)
        .unwrap_or(text);
    Ok((path.display().to_string(), text))
}

fn make(at: &At<'_>, name: &str, kind: Kind, raw: &Raw) -> Option<Arc<List>> {
    let seed = HashSeed::default();
    let list = match kind {
        Kind::Values => {
            let values = each(at, raw, |value| text::value(value).map(|()| value))?;
            let bytes = values.iter().map(|value| value.as_bytes());
            List::of_values(name, seed, bytes)
        }
        Kind::Hosts => {
            let host = |value| text::value(value).map(|()| value.to_ascii_lowercase());
            let values = each(at, raw, host)?;
            List::of_values(name, seed, values.iter().map(|value| value.as_bytes()))
        }
        Kind::Blocks => {
            let blocks = each(at, raw, str::parse::<Cidr>)?;
            List::of_blocks(name, seed, &blocks)
        }
    };
    Some(Arc::new(list))
}

/// Every value, read; none if any is wrong, which is noted.
fn each<'a, T, E: std::fmt::Display>(
    at: &At<'_>,
    raw: &'a Raw,
    read: impl Fn(&'a str) -> Result<T, E>,
) -> Option<Vec<T>> {
    let (mut values, mut wrong) = (Vec::new(), 0);
    for (file, place, path, value) in raw.values() {
        match read(value) {
            Ok(value) => values.push(value),
            Err(error) if wrong < WRONG_MAX => {
                wrong += 1;
                let message = format!("{error}, got {}", super::at::quoted(value));
                at.notes.add_in(file, place, path, message);
            }
            Err(_) => break,
        }
    }
    (wrong == 0).then_some(values)
}
