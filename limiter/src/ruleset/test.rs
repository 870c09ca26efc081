//! A condition, ready to be asked.

use alloc::{string::String, vec::Vec};

use crate::{
    address::Cidr,
    request::{Request, parts},
    rule::{self, Attribute, Condition, Expect, HostPattern, PathPattern, text::TextError},
};

/// A condition, ready to be asked. From the cheapest to the dearest.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Never,
    Method(Vec<String>),
    Address(Vec<Cidr>),
    Host(Vec<HostPattern>),
    Path(Vec<PathPattern>),
    Attribute(Attribute, Expect),
    Header(String, Expect),
    Cookie(String, Expect),
    Query(String, Expect),
    Any(Vec<Vec<Test>>),
    None(Vec<Vec<Test>>),
}

impl Test {
    pub(super) fn new(condition: &Condition) -> Result<Self, TextError> {
        Ok(match condition {
            Condition::Unsupported => Self::Never,
            Condition::Method(methods) => Self::Method(methods.clone()),
            Condition::Address(blocks) => Self::Address(blocks.clone()),
            Condition::Host(hosts) => Self::Host(each(hosts, HostPattern::new)?),
            Condition::Path(paths) => Self::Path(each(paths, PathPattern::new)?),
            Condition::Header { name, expect } => Self::Header(name.clone(), expect.clone()),
            Condition::Attribute { attribute, expect } => {
                Self::Attribute(attribute.clone(), expect.clone())
            }
            Condition::Cookie { name, expect } => Self::Cookie(name.clone(), expect.clone()),
            Condition::Query { name, expect } => Self::Query(name.clone(), expect.clone()),
            Condition::Any(lists) => Self::Any(alternatives(lists)?),
            Condition::None(lists) => Self::None(alternatives(lists)?),
        })
    }

    pub(super) const fn rank(&self) -> u8 {
        match self {
            Self::Never => 0,
            Self::Method(_) => 1,
            Self::Address(_) => 2,
            Self::Host(_) => 3,
            Self::Path(_) => 4,
            Self::Attribute(..) => 5,
            Self::Header(..) => 6,
            Self::Cookie(..) => 7,
            Self::Query(..) => 8,
            Self::Any(_) => 9,
            Self::None(_) => 10,
        }
    }

    pub(super) fn holds(&self, request: &impl Request) -> bool {
        match self {
            Self::Never => false,
            Self::Method(methods) => one_of(methods, request.method()),
            Self::Address(blocks) => request
                .address()
                .is_some_and(|address| blocks.iter().any(|block| block.contains(address))),
            Self::Host(hosts) => {
                let host = parts::host_only(request.host());
                hosts.iter().any(|pattern| pattern.fits(host))
            }
            Self::Path(paths) => {
                let path = request.path();
                paths.iter().any(|pattern| pattern.fits(path))
            }
            Self::Header(name, expect) => met(expect, request.header(name)),
            Self::Attribute(attribute, expect) => met(expect, request.attribute(attribute)),
            Self::Cookie(name, expect) => {
                let cookies = request.header("cookie");
                met(
                    expect,
                    cookies.and_then(|all| parts::cookie(all, name.as_bytes())),
                )
            }
            Self::Query(name, expect) => {
                met_by(expect, parts::query(request.path(), name.as_bytes()))
            }
            Self::Any(lists) => lists.iter().any(|list| all_hold(list, request)),
            Self::None(lists) => !lists.iter().any(|list| all_hold(list, request)),
        }
    }
}

fn all_hold(tests: &[Test], request: &impl Request) -> bool {
    tests.iter().all(|test| test.holds(request))
}

/// Whether a value, or that there is none, is as expected.
fn met(expect: &Expect, value: Option<&[u8]>) -> bool {
    match (expect, value) {
        (Expect::OneOf(values), Some(value)) => one_of(values, value),
        (expect, value) => met_by(expect, value.map(|value| value.iter().copied())),
    }
}

fn met_by(expect: &Expect, value: Option<impl Iterator<Item = u8> + Clone>) -> bool {
    match (expect, value) {
        (Expect::Present, value) => value.is_some(),
        (Expect::Absent, value) => value.is_none(),
        (Expect::OneOf(values), Some(value)) => {
            values.iter().any(|wanted| wanted.bytes().eq(value.clone()))
        }
        (Expect::Like(globs), Some(value)) => globs
            .iter()
            .any(|glob| rule::like(glob.as_bytes(), value.clone())),
        (Expect::OneOf(_) | Expect::Like(_), None) => false,
    }
}

fn one_of(values: &[String], value: &[u8]) -> bool {
    values.iter().any(|wanted| wanted.as_bytes() == value)
}

fn alternatives(lists: &[Vec<Condition>]) -> Result<Vec<Vec<Test>>, TextError> {
    let list = |list: &Vec<Condition>| {
        let tests: Result<Vec<_>, _> = list.iter().map(Test::new).collect();
        tests.map(|mut tests| {
            tests.sort_by_key(Test::rank);
            tests
        })
    };
    lists.iter().map(list).collect()
}

fn each<T>(
    values: &[String],
    read: impl Fn(&str) -> Result<T, TextError>,
) -> Result<Vec<T>, TextError> {
    values.iter().map(|value| read(value)).collect()
}
