//! What a server calls, and the order of things in one request. Names `wit_bindgen`,
//! which makes Rust of `wit/middleware/`.

#![expect(unsafe_code, reason = "the boundary to the host, written by a macro")]

use limiter::time::{Micros, Timestamp};

use super::state::{self, Fate};
use super::{answer, asked, region};
use crate::refusal::{Refusal, is_grpc};

wit_bindgen::generate!({ path: "../wit/middleware", world: "middleware", generate_all });

pub(super) use wasi::cli::environment;
pub(super) use wasi::http::{client, types};

use wasi::clocks::{monotonic_clock, system_clock};
use wasi::http::handler;

/// How often a request that waits looks whether it still has to.
const GLANCE: Micros = Micros::from_millis(1);

struct Middleware;

export!(Middleware);

impl exports::wasi::http::handler::Guest for Middleware {
    async fn handle(request: types::Request) -> Result<types::Response, types::ErrorCode> {
        if let Err(why) = state::start() {
            let why = format!("weir: {why}");
            return Err(types::ErrorCode::InternalError(Some(why)));
        }
        while state::waits_for_rules(now()) {
            send();
            nap(GLANCE).await;
        }
        let headers = request.get_headers();
        let (id, fate) = state::request(&request, &headers, now());
        let open = Ended(id);
        send();
        carry();
        let refusal = match fate {
            Fate::Pass => None,
            Fate::Refuse(refusal) => Some(refusal),
            Fate::Hold => held(id).await,
        };
        if let Some(refusal) = refusal {
            let grpc = asked::first(&headers, "content-type").is_some_and(|of| is_grpc(&of));
            return Ok(answer::refused(&refusal, grpc));
        }
        drop(headers);
        let response = handler::handle(request).await?;
        if !state::awaits(id) {
            return Ok(response);
        }
        let told = state::response(id, &asked::Answer::of(&response), now());
        drop(open);
        Ok(answer::with_headers(response, &told))
    }
}

/// A request that is forgotten when it ends, however it does.
struct Ended(u32);

impl Drop for Ended {
    fn drop(&mut self) {
        state::forget(self.0);
    }
}

/// Waits until a held request is decided.
async fn held(id: u32) -> Option<Refusal> {
    loop {
        if let Some(decided) = state::decided(id, now()) {
            return decided;
        }
        send();
        nap(GLANCE).await;
    }
}

/// Sends what is to be sent. Answers are taken in as they come.
fn send() {
    while let Some((token, message, variables)) = state::unsent() {
        spawn(async move {
            let reply = region::post(message, &variables).await;
            state::answered(token, reply.as_deref(), now());
            send();
        });
    }
}

/// Carries messages in the background, unless somebody does.
fn carry() {
    if !state::carry(now()) {
        return;
    }
    spawn(async {
        while let Some(time) = state::nap(now()) {
            send();
            nap(time).await;
        }
    });
}

/// Runs beside the request at hand, and on after it.
pub(super) fn spawn(work: impl Future<Output = ()> + 'static) {
    drop(wit_bindgen::spawn_local(work));
}

async fn nap(time: Micros) {
    monotonic_clock::wait_for(time.get().saturating_mul(1_000)).await;
}

/// A body that is written while it is read.
pub(super) fn stream() -> (wit_bindgen::StreamWriter<u8>, wit_bindgen::StreamReader<u8>) {
    wit_stream::new()
}

/// Whether nothing more comes after what was read.
pub(super) const fn is_over(read: &wit_bindgen::StreamResult) -> bool {
    !matches!(read, wit_bindgen::StreamResult::Complete(_))
}

/// The end of a body that has no trailers.
pub(super) fn no_trailers()
-> wit_bindgen::FutureReader<Result<Option<types::Fields>, types::ErrorCode>> {
    // A writer that is dropped has written what it was made with.
    wit_future::new(|| Ok(None)).1
}

/// That a body was read without a fault.
pub(super) fn no_fault() -> wit_bindgen::FutureReader<Result<(), types::ErrorCode>> {
    wit_future::new(|| Ok(())).1
}

/// The wall clock.
pub(super) fn now() -> Timestamp {
    let now = system_clock::now();
    let seconds = u64::try_from(now.seconds).unwrap_or(0);
    let micros = seconds.saturating_mul(1_000_000);
    Timestamp::from_micros(micros.saturating_add(u64::from(now.nanoseconds / 1_000)))
}

/// A random number.
pub(super) fn random() -> u64 {
    wasi::random::random::get_random_u64()
}
