//! One VM's source and what it takes to run it: which root context is the present
//! one, how often to tick, and carrying out effects.
//!
//! A worker thread of Envoy has one VM, and only that thread enters it. An update
//! of the plugin's configuration keeps the VM and adds a root context; the old
//! one goes on ticking while it drains, and is told to stop.
//!
//! The state is never borrowed across a call to the host that could come back in;
//! and should one ever, what comes in is let through rather than trapped.

use std::cell::RefCell;

use limiter::time::Micros;

use super::abi::{self, Buffer, Call, Level, Map};
use super::answer;
use super::host::{self, Metrics, Request, Response};
use crate::config::Config;
use crate::source::{Effect, Outcome, Source};

/// Ticks in milliseconds: while requests wait, and otherwise.
const TICK_HOLDING: u32 = 1;
const TICK: u32 = 50;

/// Ticks between two reports of the metrics.
const REPORT_EVERY: u32 = 5;

/// The largest answer taken from an aggregator, in bytes.
const ANSWER_MAX: usize = 8 << 20;

/// The most effects carried out at one go, lest a fault be an endless loop.
const EFFECTS_MAX: usize = 10_000;

/// What a request does after the filter saw it.
pub(super) enum Action {
    /// Goes on to the next filter.
    Continue,
    /// Goes no further, for now or for good.
    Stop,
}

struct Worker {
    config: Config,
    source: Source,
    /// The root context whose configuration is in force.
    root: u32,
    /// Every root context there ever was: their ends are not those of requests.
    roots: Vec<u32>,
    tick: u32,
    ticks: u32,
    /// Whether the root's end waits for the last answers.
    ending: bool,
}

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Runs `act` on the worker, if there is one and nobody has it.
fn with<T>(act: impl FnOnce(&mut Worker) -> T) -> Option<T> {
    WORKER.with(|cell| cell.try_borrow_mut().ok()?.as_mut().map(act))
}

/// Takes a configuration, or says no and why.
pub(super) fn configure(root: u32) -> bool {
    let bytes = abi::buffer(Buffer::PluginConfiguration, usize::MAX);
    let config = match Config::parse(&bytes) {
        Ok(config) => config,
        Err(error) => {
            abi::log(Level::Error, &format!("configuration refused: {error}"));
            return false;
        }
    };
    let fresh = |config: Config| {
        let worker = Worker::new(config, root);
        WORKER.with(|cell| {
            cell.try_borrow_mut()
                .map(|mut slot| *slot = Some(worker))
                .is_ok()
        })
    };
    let taken = match with(|worker| worker.reconfigure(config.clone(), root)) {
        Some(()) => true,
        None => fresh(config),
    };
    abi::set_tick_period_ms(TICK_HOLDING);
    taken
}

/// Time has passed.
pub(super) fn tick(root: u32) {
    if with(|worker| worker.root == root) != Some(true) {
        abi::set_tick_period_ms(0);
        return;
    }
    let now = host::now();
    with(|worker| {
        worker.source.handle_tick(now);
        worker.ticks = worker.ticks.wrapping_add(1);
        if worker.ticks % REPORT_EVERY == 0 {
            worker.source.report(&mut Metrics, now);
        }
    });
    carry_out(root);
    set_pace(root);
}

/// A request's headers are there.
pub(super) fn request(context: u32) -> Action {
    let Some((outcome, root)) = with(|worker| {
        let request = Request {
            config: &worker.config,
        };
        (worker.source.handle_request(context, &request), worker.root)
    }) else {
        return Action::Continue;
    };
    if carry_out(root) | set_pace(root) {
        abi::set_context(context);
    }
    match outcome {
        Outcome::Pass => Action::Continue,
        Outcome::Hold => Action::Stop,
        Outcome::Refuse(refusal) => {
            answer::refuse(&refusal);
            Action::Stop
        }
    }
}

/// A response's headers are there.
pub(super) fn response(context: u32) {
    if with(|worker| worker.source.awaits(context)) != Some(true) {
        return;
    }
    let now = host::now();
    let told = with(|worker| {
        let headers = worker.source.handle_response(context, &Response, now);
        (headers, worker.root)
    });
    let Some((headers, root)) = told else {
        return;
    };
    for (name, value) in &headers {
        abi::set_map_value(Map::Response, name, value);
    }
    if carry_out(root) | set_pace(root) {
        abi::set_context(context);
    }
}

/// A call has ended.
pub(super) fn answer(token: u32, body_size: usize) {
    let status = abi::map_value(Map::CallResponse, ":status");
    let good = status.as_deref() == Some(b"200") && body_size <= ANSWER_MAX;
    let body = good.then(|| abi::buffer(Buffer::CallResponse, ANSWER_MAX));
    let now = host::now();
    let Some((root, ended)) = with(|worker| {
        worker.source.handle_answer(token, body.as_deref(), now);
        let ended = worker.ending && !worker.source.is_calling();
        worker.ending &= !ended;
        (worker.root, ended)
    }) else {
        return;
    };
    carry_out(root);
    set_pace(root);
    if ended {
        abi::set_context(root);
        abi::done();
    }
}

/// A context is about to end. The present root asks for time if anything is left
/// to be said.
pub(super) fn done(context: u32) -> bool {
    let now = host::now();
    let last = with(|worker| {
        if !worker.roots.contains(&context) {
            worker.source.forget(context);
            return false;
        }
        if worker.root == context {
            worker.source.finish();
            worker.source.report(&mut Metrics, now);
        }
        worker.root == context
    });
    if last != Some(true) {
        return true;
    }
    carry_out(context);
    with(|worker| {
        worker.ending = worker.source.is_calling();
        !worker.ending
    })
    .unwrap_or(true)
}

impl Worker {
    fn new(config: Config, root: u32) -> Self {
        let mut source = Source::new(host::identity(&config), host::settings(&config));
        source.set_explain(config.explain.clone());
        Self {
            config,
            source,
            root,
            roots: vec![root],
            tick: TICK_HOLDING,
            ticks: 0,
            ending: false,
        }
    }

    /// Keeps what was counted. What bounds the memory stays as it was when the VM
    /// started.
    fn reconfigure(&mut self, config: Config, root: u32) {
        self.source.set_explain(config.explain.clone());
        self.config = config;
        self.root = root;
        self.ending = false;
        self.tick = TICK_HOLDING;
        if !self.roots.contains(&root) {
            self.roots.push(root);
        }
    }

    fn send(&self, body: &[u8]) -> Option<u32> {
        let bearer = self
            .config
            .token
            .as_ref()
            .map(|token| format!("Bearer {}", token.reveal()));
        let mut headers = vec![
            (":method", "POST"),
            (":path", "/v1/sync"),
            (":authority", self.config.authority.as_str()),
            ("content-type", "application/x-protobuf"),
        ];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        abi::call(&Call {
            cluster: &self.config.cluster,
            headers: &headers,
            body,
            timeout_ms: self.config.timeout_ms,
        })
    }
}

/// Carries out what the source wants, calls in the name of `root`; true if any of
/// it was done and another context may now be the present one.
fn carry_out(root: u32) -> bool {
    let mut now = None;
    for done in 0..EFFECTS_MAX {
        let now = *now.get_or_insert_with(host::now);
        match with(|worker| worker.source.poll(now)).flatten() {
            None => return done > 0,
            Some(Effect::Send { id, body }) => {
                abi::set_context(root);
                with(|worker| {
                    let token = worker.send(&body);
                    let timeout = Micros::from_millis(u64::from(worker.config.timeout_ms));
                    worker.source.handle_sent(id, token, timeout, now);
                });
            }
            Some(Effect::Resume { request }) => {
                if abi::set_context(request) {
                    abi::resume_request();
                }
            }
            Some(Effect::Refuse { request, refusal }) => {
                if abi::set_context(request) {
                    answer::refuse(&refusal);
                }
            }
            Some(Effect::Explain { request, line }) => {
                if abi::set_context(request) {
                    answer::explain(&line);
                }
            }
            Some(Effect::Warn(line)) => abi::log(Level::Warn, &line),
            Some(Effect::Inform(line)) => abi::log(Level::Info, &line),
        }
    }
    true
}

/// Ticks fast while requests wait, slowly otherwise; true if that changed.
fn set_pace(root: u32) -> bool {
    let changed = with(|worker| {
        let wanted = if worker.source.is_holding() {
            TICK_HOLDING
        } else {
            TICK
        };
        (core::mem::replace(&mut worker.tick, wanted) != wanted).then_some(wanted)
    });
    if let Some(period) = changed.flatten() {
        abi::set_context(root);
        abi::set_tick_period_ms(period);
        return true;
    }
    false
}
