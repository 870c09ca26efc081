//! Which requests a policy is for.

use limiter::rule::KeyPart;

use super::{kind_of, name_of, selector};
use crate::rules::{
    at::At,
    import::{
        expr::Expr,
        report::Draft,
        subject::{Op, test},
    },
};

/// What a policy targets.
#[derive(Clone, Debug)]
pub(in crate::rules::import) struct Target {
    /// Which requests; else why that cannot be said.
    pub(in crate::rules::import) when: Result<Expr, String>,
    /// Whether it is one route, as the proxy has them: each has counts of its own.
    pub(super) one_route: bool,
}

pub(in crate::rules::import) fn target(
    spec: &At<'_>,
    routes: &[At<'_>],
    draft: &mut Draft,
) -> Target {
    let mut targets: Vec<At<'_>> = spec.peek("targetRef").into_iter().collect();
    if let Some(list) = spec.peek("targetRefs") {
        targets.extend(list.items("a list of targets").unwrap_or_default());
    }
    if targets.is_empty() {
        draft.approximate("which requests it is for stands elsewhere; it applies to all");
    }
    let mut all = Vec::new();
    let mut one_route = targets.len() == 1;
    for target in &targets {
        let name = target
            .peek("name")
            .and_then(|name| name.scalar())
            .unwrap_or("?");
        let kind = kind_of(target).unwrap_or("?");
        let same = |route: &&At<'_>| name_of(route) == Some(name);
        match (kind, routes.iter().find(same)) {
            ("Gateway", _) => {
                all.push(Ok(Expr::True));
                one_route = false;
            }
            ("HTTPRoute", Some(route)) => {
                let (when, count) = route_when(route, target);
                one_route &= count == 1;
                all.push(when);
            }
            _ => {
                draft.approximate(format!(
                    "{kind} {name} stands elsewhere: the rule applies to all requests"
                ));
                all.push(Ok(Expr::True));
            }
        }
    }
    let when: Result<Vec<_>, String> = all.into_iter().collect();
    let when = when.map(|all| {
        if all.is_empty() {
            Expr::True
        } else {
            Expr::Any(all)
        }
    });
    Target { when, one_route }
}

/// Which requests a route takes, and how many routes it is to the proxy.
fn route_when(route: &At<'_>, target: &At<'_>) -> (Result<Expr, String>, usize) {
    let spec = route.peek("spec");
    let list = |name: &str| {
        let list = spec.as_ref().and_then(|spec| spec.peek(name));
        list.and_then(|list| list.items("a list"))
            .unwrap_or_default()
    };
    let hosts = list("hostnames");
    let hosts: Vec<_> = hosts
        .iter()
        .filter_map(|host| host.scalar())
        .map(str::to_owned)
        .collect();
    let section = target.peek("sectionName").and_then(|name| name.scalar());
    let wanted = |rule: &&At<'_>| {
        section.is_none() || rule.peek("name").and_then(|name| name.scalar()) == section
    };
    let rules = list("rules");
    let mut matches = Vec::new();
    for rule in rules.iter().filter(wanted) {
        match rule.peek("matches").and_then(|list| list.items("a list")) {
            Some(list) => matches.extend(list.iter().map(one_match)),
            None => matches.push(Ok(Expr::True)),
        }
    }
    let count = matches.len();
    let matches: Result<Vec<_>, _> = matches.into_iter().collect();
    let when = matches.and_then(|matches| {
        let matches = if matches.is_empty() {
            Expr::True
        } else {
            Expr::Any(matches)
        };
        Ok(match hosts.is_empty() {
            true => matches,
            false => Expr::All(vec![hosts_expr(&hosts)?, matches]),
        })
    });
    (when.map_err(|why| format!("its route: {why}")), count)
}

fn hosts_expr(hosts: &[String]) -> Result<Expr, String> {
    let one = |host: &String| match host.starts_with("*.") {
        true => test(&KeyPart::Host, Op::Like(host.clone())),
        false => test(&KeyPart::Host, Op::OneOf(vec![host.clone()])),
    };
    let each: Result<Vec<_>, _> = hosts.iter().map(one).collect();
    each.map(Expr::Any)
}

/// One of a route's matches: all in it must hold.
fn one_match(at: &At<'_>) -> Result<Expr, String> {
    let mut parts = Vec::new();
    if let Some(path) = at.peek("path") {
        parts.push(selector::path(&path)?);
    }
    if let Some(method) = at.peek("method").and_then(|method| method.scalar()) {
        parts.push(test(&KeyPart::Method, Op::OneOf(vec![method.to_owned()]))?);
    }
    for (name, part) in selector::NAMED {
        let list = at.peek(name).and_then(|list| list.items("a list"));
        for one in list.unwrap_or_default() {
            parts.push(selector::named(&one, *part)?.0);
        }
    }
    Ok(Expr::All(parts))
}
