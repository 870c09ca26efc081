//! A rule file as a whole.

use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use limiter::{
    address::Cidr,
    key::HashSeed,
    rule::{Rule, text},
    ruleset::{PROXIES_MAX, RULES_MAX, RuleSet, RuleSetError},
};

use super::{
    at::At,
    conditions,
    diagnostic::{Diagnostic, Notes, Place, Problems},
    fields::Fields,
    lists::Lists,
    rule, tiers,
    tiers::Tier,
    tree,
};

/// The longest rule file, in bytes: room for [`RULES_MAX`] rules.
pub const FILE_LEN_MAX: usize = 4 << 20;

pub(super) const FIELDS: &[&str] = &[
    "version",
    "domain",
    "trusted_proxies",
    "lists",
    "tiers",
    "rules",
];

/// A rule file in which nothing is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleFile {
    /// Whose rules these are.
    pub domain: String,
    /// The proxies whose word on the client's address is taken.
    pub trusted_proxies: Vec<Cidr>,
    /// The rules, in their order.
    pub rules: Vec<Rule>,
}

impl RuleFile {
    /// Reads the file at `path`, and the lists beside it that it names.
    pub fn load(path: &Path) -> Result<Self, Problems> {
        Self::parse_at(path, &bytes(path)?).0
    }

    /// Reads the text of the file at `path`, and the lists beside it that it names.
    /// Says which files these are, whatever else is wrong.
    pub fn parse_at(path: &Path, bytes: &[u8]) -> (Result<Self, Problems>, Vec<PathBuf>) {
        let name = path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse_in(folder, &name, bytes)
    }

    /// Reads the text of a file in this folder, which messages call `name`.
    pub(super) fn parse_in(
        folder: &Path,
        name: &str,
        bytes: &[u8],
    ) -> (Result<Self, Problems>, Vec<PathBuf>) {
        let mut lists = Lists::beside(Some(folder));
        let read = Self::parse_with(name, bytes, &mut lists);
        (read, lists.paths())
    }

    /// Reads the text of a file, which messages call `name`. It can name no list but
    /// its own.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, Problems> {
        Self::parse_with(name, bytes, &mut Lists::beside(None))
    }

    pub(super) fn parse_with(
        name: &str,
        bytes: &[u8],
        lists: &mut Lists,
    ) -> Result<Self, Problems> {
        not_too_long(name, bytes)?;
        let notes = Notes::default();
        let file = text(bytes, &notes).and_then(|text| {
            let root = tree::read(text, &notes)?;
            let at = At::root(&root, &notes);
            if let Some(said) = at.peek("lists") {
                lists.say(&said);
            }
            file(&at.naming(lists))
        });
        match file {
            Some(file) if notes.is_empty() => Ok(file),
            _ => Err(notes.into_problems(name)),
        }
    }

    /// What a file that makes this set says.
    pub fn of(rules: &RuleSet) -> Self {
        Self {
            domain: rules.domain().to_owned(),
            trusted_proxies: rules.trusted_proxies.clone(),
            rules: rules.rules().cloned().collect(),
        }
    }

    /// The rules as a set of this revision.
    pub fn into_rule_set(self, revision: u64, seed: HashSeed) -> Result<RuleSet, RuleSetError> {
        let proxies = self.trusted_proxies;
        RuleSet::new(self.domain, revision, proxies, seed, self.rules)
    }
}

/// Reads the bytes of a file, which may be one more than is allowed.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, Problems> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| {
        let mut file = file.take(FILE_LEN_MAX as u64 + 1);
        file.read_to_end(&mut bytes)
    });
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => {
            let name = path.display().to_string();
            Err(whole(&name, format!("cannot be read: {error}")))
        }
    }
}

/// Refuses more than a file may have.
pub(super) fn not_too_long(name: &str, bytes: &[u8]) -> Result<(), Problems> {
    if bytes.len() <= FILE_LEN_MAX {
        return Ok(());
    }
    let message = format!("longer than {FILE_LEN_MAX} bytes, the most a rule file may have");
    Err(whole(name, message))
}

pub(super) fn whole(file: &str, message: String) -> Problems {
    Problems(vec![Diagnostic {
        file: file.to_owned(),
        place: None,
        path: String::new(),
        message,
    }])
}

/// A file's text, if it is one.
pub(super) fn text<'a>(bytes: &'a [u8], notes: &Notes) -> Option<&'a str> {
    let error = match str::from_utf8(bytes) {
        Ok(text) => return Some(text),
        Err(error) => error,
    };
    let good = bytes.split_at_checked(error.valid_up_to());
    let good = String::from_utf8_lossy(good.map_or(&[], |(good, _)| good));
    let place = Place {
        line: good.matches('\n').count() + 1,
        column: good
            .chars()
            .rev()
            .take_while(|&letter| letter != '\n')
            .count()
            + 1,
    };
    notes.add(place, "", "not UTF-8");
    None
}

fn file(at: &At<'_>) -> Option<RuleFile> {
    let fields = at.fields(FIELDS)?;
    fields.need("version").and_then(|at| version(&at));
    let domain = fields.need("domain").and_then(|at| domain(&at));
    let trusted_proxies = fields.or("trusted_proxies", Vec::new(), proxies);
    let tiers = match fields.get("tiers") {
        Some(at) => tiers::read(&at),
        None => Some(Vec::new()),
    };
    let rules = rules(&fields, tiers.as_deref());
    tiers?;
    let file = RuleFile {
        domain: domain?,
        trusted_proxies,
        rules: rules?,
    };
    // Whatever only shows in the set as a whole.
    match file.clone().into_rule_set(0, HashSeed::default()) {
        Ok(_) => Some(file),
        Err(_) if !at.notes.is_empty() => None,
        Err(error) => at.refuse(error),
    }
}

fn version(at: &At<'_>) -> Option<()> {
    match at.scalar() {
        Some("1") => Some(()),
        _ => at.expected("1, the one version there is"),
    }
}

fn domain(at: &At<'_>) -> Option<String> {
    let domain = at.text("a name, as in api.example.com")?;
    at.checked(text::name(domain))?;
    Some(domain.into())
}

/// Nobody may be said by leaving the list empty.
fn proxies(at: &At<'_>) -> Option<Vec<Cidr>> {
    let what = "a list of address blocks, as in [10.0.0.0/8]";
    match at.items(what)?.len() {
        0 => Some(Vec::new()),
        1..=PROXIES_MAX => conditions::blocks(at),
        count => at.refuse(format_args!("at most {PROXIES_MAX} blocks, got {count}")),
    }
}

fn rules(fields: &Fields<'_>, tiers: Option<&[Tier]>) -> Option<Vec<Rule>> {
    let at = fields.need("rules")?;
    if !at.node.is_list() {
        return at.expected("a list of rules");
    }
    let items = at.items("a list of rules")?;
    if items.len() > RULES_MAX {
        let count = items.len();
        return at.refuse(format_args!(
            "a file holds at most {RULES_MAX} rules, got {count}"
        ));
    }
    note_names_that_come_twice(&items);
    let rules: Vec<_> = items.iter().map(|at| rule::read(at, tiers)).collect();
    let rules: Vec<Vec<Rule>> = rules.into_iter().collect::<Option<_>>()?;
    let rules: Vec<Rule> = rules.into_iter().flatten().collect();
    match rules.len() {
        0..=RULES_MAX => Some(rules),
        count => at.refuse(format_args!(
            "a file holds at most {RULES_MAX} rules, one for each tier that a rule sets \
             apart among them, got {count}"
        )),
    }
}

fn note_names_that_come_twice(rules: &[At<'_>]) {
    let mut seen = HashMap::new();
    for (place, rule) in rules.iter().enumerate() {
        let Some(name) = rule.peek("name") else {
            continue;
        };
        let Some(text) = name.scalar() else { continue };
        if let Some(earlier) = seen.insert(text, place) {
            name.refuse::<()>(format_args!("rules[{earlier}] has this name already"));
        }
    }
}
