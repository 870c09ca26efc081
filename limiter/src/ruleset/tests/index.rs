//! What the index promises: it finds all that applies, and asks about little else.

use proptest::prelude::*;

use super::*;

const HOSTS: [&str; 5] = ["a.com", "b.com", "*.com", "x.a.com", "A.com"];
const PATHS: [&str; 9] = [
    "/v1", "/v1/**", "/v2/*", "/**", "/*/x", "/v1/x", "/v1/x/**", "/*/y/z", "/",
];
const ASKED: [&str; 7] = [
    "/v1",
    "/v1/x",
    "/v2/x?y",
    "/",
    "*",
    "/v1/x/z?q=a+b",
    "/v2/y/z?q=c",
];
const VALUES: [&str; 3] = ["a b", "c", ""];

fn any_expect() -> impl Strategy<Value = Expect> {
    prop_oneof![
        Just(Expect::Present),
        Just(Expect::Absent),
        prop::sample::subsequence(&VALUES, 1..=2).prop_map(|values| Expect::OneOf(texts(&values))),
        Just(Expect::Like(vec!["a*".into()])),
    ]
}

prop_compose! {
    fn any_conditions()(
        hosts in prop::option::of(prop::sample::subsequence(&HOSTS, 1..=3)),
        paths in prop::option::of(prop::sample::subsequence(&PATHS, 1..=3)),
        methods in prop::option::of(prop::sample::subsequence(&["GET", "PUT"], 1..=2)),
        header in prop::option::of(any_expect()),
        cookie in prop::option::of(any_expect()),
        query in prop::option::of(any_expect()),
        country in prop::option::of(any_expect()),
    ) -> Vec<Condition> {
        let name = || String::from("x");
        let attribute = Attribute::Jwt(name());
        [
            hosts.map(|hosts| Condition::Host(texts(&hosts))),
            paths.map(|paths| Condition::Path(texts(&paths))),
            methods.map(|methods| Condition::Method(texts(&methods))),
            header.map(|expect| Condition::Header { name: name(), expect }),
            cookie.map(|expect| Condition::Cookie { name: name(), expect }),
            query.map(|expect| Condition::Query { name: "q".into(), expect }),
            country.map(|expect| Condition::Attribute { attribute, expect }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

prop_compose! {
    fn any_request()(
        host in prop::sample::select(&HOSTS),
        path in prop::sample::select(&ASKED),
        method in prop::sample::select(&["GET", "PUT", "POST"]),
        header in prop::option::of(prop::sample::select(&VALUES)),
        cookie in prop::option::of(prop::sample::select(&["x=c", "y=c", "x="])),
        attribute in prop::option::of(prop::sample::select(&VALUES)),
    ) -> Told {
        let header = header.map(|value| ("x", value.as_bytes()));
        let cookie = cookie.map(|value| ("cookie", value.as_bytes()));
        let headers = header.into_iter().chain(cookie).collect();
        Told { method, host, path, headers, attribute, ..Told::default() }
    }
}

proptest! {
    #[test]
    fn the_index_finds_what_asking_every_rule_would(
        rules in prop::collection::vec(any_conditions(), 0..40),
        request in any_request(),
    ) {
        let holds = |conditions: &Vec<Condition>| {
            let tests: Result<Vec<_>, _> = conditions.iter().map(|one| test::Test::new(one, None)).collect();
            tests.unwrap().iter().all(|test| test.holds(&request))
        };
        let places = rules.iter().enumerate();
        let expected: Vec<usize> = places
            .filter(|(_, conditions)| holds(conditions))
            .map(|(place, _)| place)
            .collect();
        let together = rules
            .iter()
            .enumerate()
            .map(|(place, conditions)| when(&place.to_string(), conditions.clone()));
        prop_assert_eq!(matching(&set(together.collect()), &request), expected);
    }
}

/// Places that are asked of a request: all that could match, and few that do not.
fn asked(rules: &Arc<RuleSet>, request: &Told) -> usize {
    let mut asked = 0;
    rules.index.candidates(request, |_| asked += 1);
    asked
}

#[test]
fn a_request_is_asked_about_a_few_rules_however_many_there_are() {
    let header = |value: String| Condition::Header {
        name: "x-api-key".into(),
        expect: Expect::OneOf(vec![value]),
    };
    let under = |path: String| Condition::Path(vec![path]);
    let rule = |n: usize| {
        let conditions = match n % 4 {
            0 => vec![header(format!("key-{n}"))],
            1 => vec![under(format!("/v1/resource-{n}/**"))],
            2 => vec![
                Condition::Host(vec![format!("h{n}.com")]),
                under("/v1/**".into()),
            ],
            _ => vec![under("/v1/**".into()), header(format!("key-{n}"))],
        };
        when(&n.to_string(), conditions)
    };
    let rules = set((0..10_000).map(rule).collect());
    let request = Told {
        host: "h5002.com",
        path: "/v1/resource-5001/x",
        headers: vec![("x-api-key", b"key-5003")],
        ..Told::default()
    };
    assert_eq!(matching(&rules, &request), [5_001, 5_002, 5_003]);
    assert!(asked(&rules, &request) < 20, "{}", asked(&rules, &request));
    assert!(asked(&rules, &Told::default()) < 20);
}
