//! Objects under an aggregator above them that are killed, evicted and woken: what they
//! have said is on their disk, and what they have not said is said by the next life.

use std::time::Duration;

use weir_tests::http::get;
use weir_tests::light::{Light, Traffic};
use weir_tests::objects::{admit, below, global_rule, probe, upstream, wait_for_rules};
use weir_tests::process::free_address;
use weir_tests::region::{Manner, Region};
use weir_tests::spray::Spray;
use weir_tests::upstream::Upstream;
use weir_tests::wait::{wait_until, wait_within};
use weir_tests::workerd::Workerd;

/// An object that is due to speak does so within this.
const WITHIN: Duration = Duration::from_secs(2);

/// Objects that are evicted when a test says so, and hear no source any more if it says
/// that.
const FORGETFUL: &str = r#"
import worker, { Region as Base } from "./main.js";
Base.passOnMs = 500;
let deaf = false;
export class Region extends Base {
  sync(message) {
    if (deaf) throw new Error("deaf");
    return super.sync(message);
  }
  forget() {
    this.ctx.abort("forgotten");
  }
  silence() {
    deaf = true;
    this.forget();
  }
}
export default {
  async fetch(request, env, ctx) {
    const act = /\/(forget|silence)$/.exec(request.url)?.[1];
    if (act === undefined) return worker.fetch(request, env, ctx);
    const objects = [0, 1, 2, 3].map((n) => env.WEIR_OBJECTS.get(env.WEIR_OBJECTS.idFromName(`weir-${n}`)));
    await Promise.allSettled(objects.map((object) => object[act]()));
    return new Response("forgotten");
  },
};
"#;

#[test]
fn what_has_left_an_object_is_on_its_disk_and_is_said_once_by_all_of_its_lives() {
    let region = Region::start(vec![probe(), global_rule(1_000_000)]);
    let origin = Upstream::start();
    let mut workerd = Workerd::start(below(region.address(), "cloud", origin.address()));
    wait_for_rules(&workerd);
    let request = get("/", &[("x-api-key", "one")]);
    for life in 0..4 {
        let before = region.hits();
        let spray = Spray::start(workerd.addresses().to_vec(), 2, 100, request.clone());
        wait_until("some of it is above", || region.hits() > before);
        workerd.kill();
        drop(spray.stop());
        workerd.restart();
        // One more, of the probe, is nobody else's.
        assert!(workerd.books("hits") > Some(region.hits()), "life {life}");
    }
    admit(&workerd, "one", 1);
    wait_until("all of it is above", || {
        workerd.books("hits") == Some(region.hits() + 1) && upstream(&workerd, "waiting") == Some(0)
    });
    assert_eq!(workerd.books("hits"), Some(region.hits() + 1));
}

#[test]
fn an_object_whose_memory_is_gone_is_woken_for_what_it_has_to_pass_on_and_sleeps_then() {
    let region = Region::start(vec![probe(), global_rule(1_000)]);
    let origin = Upstream::start();
    // Nobody answers at the first address, ever.
    let urls = format!("http://{}, http://{}", free_address(), region.address());
    let setup = below(region.address(), "cloud", origin.address())
        .variable("WEIR_UPSTREAM_URL", &urls)
        .variable("WEIR_UPSTREAM_TOKEN", "weir_secret")
        .entry("forget.js", FORGETFUL);
    let workerd = Workerd::start(setup);
    wait_for_rules(&workerd);
    admit(&workerd, "one", 1);
    wait_until("it is above", || region.hits() == 1);
    region.set_manner(Manner::Hangup);
    admit(&workerd, "one", 5);
    wait_until("they are in the books here", || {
        workerd.books("hits") == Some(1 + 6)
    });
    assert_eq!(workerd.get("/silence", &[]).text(), "forgotten");
    region.set_manner(Manner::Good);
    // Only their alarms wake the objects from now on.
    wait_until("they are above", || region.hits() == 6);
    wait_until("the objects are silent", || {
        let calls = region.call_count();
        wait_within(WITHIN, || (region.call_count() > calls).then_some(())).is_none()
    });
    let calls = region.calls();
    let bearer = ("authorization".to_owned(), "Bearer weir_secret".to_owned());
    assert!(calls.iter().all(|(call, _)| call.headers.contains(&bearer)));
    let mut names: Vec<&str> = calls.iter().map(|(_, sync)| &*sync.pop).collect();
    names.sort_unstable();
    names.dedup();
    assert!(
        names
            .iter()
            .all(|name| name.starts_with("cloud-") && name.len() == 7),
        "{names:?}"
    );
    assert_eq!(workerd.books("hits"), Some(7));
    assert_eq!(region.hits(), 6);
}

#[test]
fn an_object_that_wakes_lends_nothing_that_others_have_spent_meanwhile() {
    const LIMIT: u64 = 20;
    let region = Region::start(vec![probe(), global_rule(LIMIT)]);
    let origin = Upstream::start();
    let setup = below(region.address(), "cloud", origin.address())
        .variable("WEIR_SHARDS", "1")
        .entry("forget.js", FORGETFUL);
    let workerd = Workerd::start(setup);
    wait_for_rules(&workerd);
    let traffic = Traffic {
        keys: vec!["one".to_owned()],
        per_second: 100,
    };
    let other = Light::start(region.address(), traffic);
    wait_until("another source has spent it", || region.hits() == LIMIT);
    other.rest();
    assert_eq!(workerd.get("/forget", &[]).text(), "forgotten");
    assert_eq!(workerd.statuses("one", 8), [429; 8]);
    // Where it cannot ask it keeps to its part: there are two of them, as it knows of an
    // earlier life.
    assert_eq!(upstream(&workerd, "regions"), Some(2));
    region.set_manner(Manner::Hangup);
    assert_eq!(workerd.get("/forget", &[]).text(), "forgotten");
    let told = workerd.statuses("two", 30);
    let admitted = told.iter().filter(|status| **status == 200).count() as u64;
    assert!((LIMIT / 4..=LIMIT / 2 + 2).contains(&admitted), "{told:?}");
}
