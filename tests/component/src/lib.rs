//! The component in a Rust host: loaded, called, and carried messages for.
//!
//! A package of its own, so that nothing else waits for the compiler of components
//! that a host brings along.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::sync::OnceLock;

use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, OptLevel, RegallocAlgorithm, Store};

pub mod books;
pub mod rules;

/// What `wit/limiter.wit` is in Rust.
#[allow(missing_docs, unreachable_pub, reason = "written by a macro")]
pub mod wit {
    wasmtime::component::bindgen!({
        path: "../../wit/limiter.wit",
        world: "limiter",
        additional_derives: [PartialEq],
    });
}

pub use wit::weir::limiter::types::{
    Answer, Attempt, Counter, Decision, KeyCheck, Request, Settings, Verdict,
};

/// A time that tests begin at, in microseconds: the first instant of an hour.
pub const START_US: u64 = 1_700_002_800_000_000;

/// One instance of the component: one source.
pub struct Instance {
    store: Store<()>,
    bindings: wit::Limiter,
}

/// The component, compiled once for all instances; quickly, since a test calls it little.
///
/// # Panics
/// If it is not there.
#[must_use]
pub fn component() -> &'static (Engine, Component) {
    static COMPONENT: OnceLock<(Engine, Component)> = OnceLock::new();
    COMPONENT.get_or_init(|| {
        let mut config = Config::new();
        config.cranelift_opt_level(OptLevel::None);
        config.cranelift_regalloc_algorithm(RegallocAlgorithm::SinglePass);
        let engine = Engine::new(&config).expect("an engine");
        let path = weir_tests::binaries::limiter_component();
        let component = Component::from_file(&engine, path).expect("a component");
        (engine, component)
    })
}

impl Default for Instance {
    fn default() -> Self {
        Self::new()
    }
}

impl Instance {
    /// An instance that is not configured yet.
    ///
    /// # Panics
    /// If the component wants anything of its host.
    #[must_use]
    pub fn new() -> Self {
        let (engine, component) = component();
        Self::of(engine, component)
    }

    fn of(engine: &Engine, component: &Component) -> Self {
        let mut store = Store::new(engine, ());
        let linker = Linker::new(engine);
        let bindings = wit::Limiter::instantiate(&mut store, component, &linker);
        Self {
            bindings: bindings.expect("an instance"),
            store,
        }
    }

    /// An instance of a component that was compiled otherwise.
    ///
    /// # Panics
    /// If the settings are refused.
    #[must_use]
    pub fn on(engine: &Engine, component: &Component, settings: &Settings) -> Self {
        Self::of(engine, component).configured(settings)
    }

    /// An instance with these settings.
    ///
    /// # Panics
    /// If they are refused.
    #[must_use]
    pub fn with(settings: &Settings) -> Self {
        Self::new().configured(settings)
    }

    fn configured(mut self, settings: &Settings) -> Self {
        let taken = self.call(|source, store| source.call_configure(store, settings));
        taken.expect("settings that are taken");
        self
    }

    /// An instance of this number, with all defaults.
    #[must_use]
    pub fn start(number: u64) -> Self {
        Self::with(&settings(number))
    }

    /// Calls a function of the component.
    ///
    /// # Panics
    /// If it traps.
    pub fn call<T>(
        &mut self,
        act: impl FnOnce(
            &wit::exports::weir::limiter::source::Guest,
            &mut Store<()>,
        ) -> wasmtime::Result<T>,
    ) -> T {
        let source = self.bindings.weir_limiter_source();
        act(source, &mut self.store).expect("no trap")
    }

    /// Puts rules in force.
    ///
    /// # Errors
    /// As the component says.
    pub fn set_rules(&mut self, compiled: &[u8]) -> Result<u64, String> {
        self.call(|source, store| source.call_set_rules(store, compiled))
    }

    /// The counter of these values.
    ///
    /// # Errors
    /// As the component says.
    pub fn counter_of(&mut self, rule: &str, values: &[&str]) -> Result<Counter, String> {
        let values: Vec<Vec<u8>> = values
            .iter()
            .map(|value| value.as_bytes().to_vec())
            .collect();
        self.call(|source, store| source.call_counter_of(store, rule, &values))
    }

    /// Checks a counter: what became of it, and the wait in microseconds.
    pub fn check_key(
        &mut self,
        counter: Counter,
        cost: u64,
        attempt: Attempt,
        now: u64,
    ) -> (Verdict, Option<u64>) {
        let Counter { rule, high, low } = counter;
        let packed = self.call(|source, store| {
            source.call_check_key(store, rule, high, low, cost, attempt, now)
        });
        unpacked(packed)
    }

    /// Checks a request.
    pub fn check(&mut self, request: &Request, attempt: Attempt, now: u64) -> Decision {
        self.call(|source, store| source.call_check(store, request, attempt, now))
    }

    /// Sends what is due through `carry`, and takes in what comes back.
    pub fn exchange(
        &mut self,
        now: u64,
        last: bool,
        mut carry: impl FnMut(Vec<u8>) -> Option<Vec<u8>>,
    ) {
        let due = self.call(|source, store| source.call_drain(store, now, last));
        let answer = |message: wit::weir::limiter::types::Outgoing| Answer {
            id: message.id,
            body: carry(message.body),
        };
        let answers: Vec<Answer> = due.into_iter().map(answer).collect();
        let troubles = self.call(|source, store| source.call_apply(store, &answers, now));
        assert_eq!(troubles, []);
    }

    /// A metric's sum over all its labels.
    pub fn metric(&mut self, name: &str, now: u64) -> i64 {
        let metrics = self.call(|source, store| source.call_metrics(store, now));
        let named = metrics.iter().filter(|metric| metric.name == name);
        named.map(|metric| metric.value).sum()
    }
}

/// Settings of the source of this number.
#[must_use]
pub fn settings(number: u64) -> Settings {
    Settings {
        source: number,
        epoch: START_US,
        hash_seeds: (number, 2, 3, 4),
        pop: None,
        keys_max: None,
        flush_interval_ms: None,
    }
}

/// A packed answer: the verdict, and the wait in microseconds.
#[must_use]
pub fn unpacked(packed: u64) -> (Verdict, Option<u64>) {
    let verdict = match packed & 3 {
        0 => Verdict::Pass,
        1 => Verdict::Allow,
        2 => Verdict::Deny,
        _ => Verdict::Hold,
    };
    let wait = packed >> 2;
    (verdict, Some(wait).filter(|wait| *wait != u64::MAX >> 2))
}

/// A request for `/` with one header.
#[must_use]
pub fn request(header: &str, value: &str) -> Request {
    Request {
        method: b"GET".to_vec(),
        host: b"a.example".to_vec(),
        path: b"/".to_vec(),
        headers: vec![(header.to_owned(), value.as_bytes().to_vec())],
        peer: Some("192.0.2.7:4711".to_owned()),
        attributes: Vec::new(),
    }
}
