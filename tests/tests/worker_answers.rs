//! What clients of a Worker are answered, and what responses change of what they have
//! spent.

use limiter::rule::{Cost, HeaderForm, QuotaHeaders, Rule, StatusMatch, TellWhen};
use weir_tests::http::{self, Response};
use weir_tests::rules::per_header;
use weir_tests::upstream::{self, Upstream};
use weir_tests::wait::wait_until;
use weir_tests::workerd::{Setup, Workerd, compiled};

/// A window that no test sees the end of, in seconds.
const LONG: u64 = 24 * 3_600;

/// A Worker before a service that answers with the status and the cost that its path
/// says, as in `/503/7`.
struct World {
    workerd: Workerd,
    _service: Upstream,
}

impl World {
    fn new(limit: u64, change: impl Fn(&mut Rule)) -> Self {
        let mut rule = per_header("per-key", "x-api-key", limit, LONG);
        change(&mut rule);
        let service = Upstream::answering(|request| {
            let path = request.line.split(' ').nth(1).unwrap_or_default();
            let mut parts = path.split('/').skip(1);
            let status = parts.next().and_then(|status| status.parse().ok());
            let cost = parts.next().unwrap_or_default();
            upstream::response(status.unwrap_or(200), &[("x-cost", cost)], b"body")
        });
        let setup = Setup::new(&compiled(1, vec![rule]), service.address());
        Self {
            workerd: Workerd::start(setup.variable("WEIR_EXPLAIN_HEADER", "x-why")),
            _service: service,
        }
    }

    fn get(&self, path: &str) -> Response {
        self.workerd.get(path, &[("x-api-key", "a")])
    }
}

#[test]
fn what_a_response_costs_is_spent_when_it_is_there() {
    let world = World::new(100, |rule| {
        rule.cost = Cost::ResponseHeader {
            name: "x-cost".into(),
            max: 60,
            upfront: 10,
            default: 10,
        };
    });
    let told = ["/200/3", "/200/77", "/200/60", "/200/1"].map(|path| world.get(path).status);
    // 7 are given back; 60 at the most; then it is overspent.
    assert_eq!(told, [200, 200, 200, 429]);
    wait_until("the books say so", || {
        let sum = |number| world.workerd.books(number).unwrap_or_default();
        sum("hits") - sum("returned") == 3 + 60 + 60
    });
}

#[test]
fn a_request_that_fails_is_given_back() {
    let world = World::new(2, |rule| rule.refund = vec![StatusMatch::Class(5)]);
    let told = ["/503", "/200", "/500", "/200", "/503", "/200"].map(|path| world.get(path).status);
    assert_eq!(told, [503, 200, 500, 200, 429, 429]);
}

#[test]
fn a_response_that_never_comes_is_forgotten_and_counted() {
    const ENTRY: &str = r#"
import worker, { Region } from "./main.js";
import { Isolate } from "./isolate.js";
Isolate.answerMs = 100;
const WEIR_METRICS = { writeDataPoint: ({ blobs, doubles }) => console.log(blobs.join("|"), doubles[0]) };
export { Region };
export default { fetch: (request, env, ctx) => worker.fetch(request, { ...env, WEIR_METRICS }, ctx) };
"#;
    let mut rule = per_header("per-key", "x-api-key", 1, LONG);
    rule.refund = vec![StatusMatch::Class(5)];
    let (told, silence) = std::sync::mpsc::channel::<()>();
    let silence = std::sync::Mutex::new(silence);
    let service = Upstream::answering(move |_| {
        // Until the test is over.
        let _ = silence.lock().map(|silence| silence.recv());
        Vec::new()
    });
    let setup = Setup::new(&compiled(1, vec![rule]), service.address());
    let workerd = Workerd::start(setup.entry("entry.js", ENTRY));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let request = http::get("/", &[("x-api-key", "a")]);
            let _ = http::send(workerd.address(), &request);
        });
        wait_until("it is on its way", || service.seen() == 1);
        wait_until("it is counted", || {
            // An isolate has no life of its own: requests bring it to look.
            let denied = workerd.get("/", &[("x-api-key", "a")]).status == 429;
            denied
                && workerd
                    .process()
                    .log()
                    .contains("weir_responses_unseen_total")
        });
        drop(told);
    });
}

#[test]
fn an_allowed_client_is_told_what_is_left_where_its_rule_says_so() {
    let world = World::new(5, |rule| {
        rule.quota_headers = QuotaHeaders {
            form: HeaderForm::Draft,
            when: TellWhen::Always,
        };
    });
    let answer = world.get("/201");
    assert_eq!((answer.status, answer.text()), (201, "body".to_owned()));
    assert!(answer.header("ratelimit").is_some(), "{answer:?}");
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some("\"per-key\";q=5;w=86400")
    );
    let why = answer.header("x-why").unwrap_or_default();
    assert!(why.starts_with("\"per-key\";verdict=allow"), "{answer:?}");
}

#[test]
fn a_denied_call_of_grpc_is_told_in_its_own_words() {
    let world = World::new(1, |_| {});
    assert_eq!(world.get("/200").status, 200);
    let headers = [
        ("x-api-key", "a"),
        ("content-type", "application/grpc+proto"),
    ];
    let call = http::request("POST", "/pkg.Service/Method", &headers, b"call");
    let answer = http::send(world.workerd.address(), &call).expect("an answer");
    assert_eq!(answer.status, 200, "HTTP's status says nothing");
    assert_eq!(answer.header("grpc-status"), Some("8"));
    assert!(answer.header("grpc-message").is_some(), "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/grpc"));
    assert!(
        answer.header("retry-after").is_some() && answer.body.is_empty(),
        "{answer:?}"
    );
    assert_eq!(
        world.get("/200").header("content-type"),
        Some("application/problem+json")
    );
}
