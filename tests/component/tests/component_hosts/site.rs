//! A server of WASI's HTTP 0.3 in the test itself: one instance of the middleware, in
//! front of a handler that answers what it is told to. Its calls to the region are real.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wasmtime::component::{Accessor, AccessorTask, Component, Linker, Resource, ResourceTable};
use wasmtime::error::Context;
use wasmtime::{Config, Engine, OptLevel, RegallocAlgorithm, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::p3::bindings::Service;
use wasmtime_wasi_http::p3::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::p3::{Request, Response};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};
use weir_tests::binaries;

/// A response, its body whole; or why there is none.
pub(crate) type Answer = Result<http::Response<Bytes>, String>;

/// A request on its way, and where its answer goes.
type Job = (http::Request<Full<Bytes>>, mpsc::Sender<Answer>);

/// The middleware and what is behind it, until it is dropped.
pub(crate) struct Site {
    jobs: UnboundedSender<Job>,
    handled: Arc<AtomicU64>,
}

struct Host {
    table: ResourceTable,
    wasi: WasiCtx,
    http: WasiHttpCtx,
    handled: Arc<AtomicU64>,
}

impl WasiView for Host {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for Host {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            ctx: &mut self.http,
            table: &mut self.table,
            hooks: Default::default(),
        }
    }
}

impl Site {
    /// An instance whose region is there.
    pub(crate) fn before(region: SocketAddr, variables: &[(&str, &str)]) -> Self {
        let address = format!("http://{region}");
        let mut all = vec![("WEIR_REGION", address.as_str())];
        all.extend(variables);
        Self::with(&all)
    }

    /// An instance with these variables.
    pub(crate) fn with(variables: &[(&str, &str)]) -> Self {
        // Before anybody waits: it takes longer than all that comes after.
        component();
        let wasi = WasiCtx::builder().envs(variables).build();
        let handled = Arc::new(AtomicU64::new(0));
        let host = Host {
            table: ResourceTable::new(),
            wasi,
            http: WasiHttpCtx::new(),
            handled: Arc::clone(&handled),
        };
        let (jobs, inbox) = unbounded_channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let served = runtime.expect("a runtime").block_on(serve(host, inbox));
            served.expect("the instance goes on");
        });
        Self { jobs, handled }
    }

    /// A request that goes on while others do: where its answer will be.
    pub(crate) fn ask(&self, path: &str, headers: &[(&str, &str)]) -> mpsc::Receiver<Answer> {
        let (answer, answered) = mpsc::channel();
        let mut request = http::Request::get(format!("http://site.example{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::default()).expect("a request");
        assert!(
            self.jobs.send((request, answer)).is_ok(),
            "the site is there"
        );
        answered
    }

    /// The answer to a request.
    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let answer = self.ask(path, headers);
        answer
            .recv_timeout(weir_tests::wait::PATIENCE)
            .expect("an answer")
    }

    /// The status of the answer to a request.
    pub(crate) fn status(&self, path: &str, headers: &[(&str, &str)]) -> u16 {
        self.get(path, headers)
            .expect("a response")
            .status()
            .as_u16()
    }

    /// How many requests the handler behind has seen.
    pub(crate) fn handled(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }
}

/// The component, compiled once for all sites.
pub(crate) fn component() -> &'static (Engine, Component) {
    static COMPONENT: OnceLock<(Engine, Component)> = OnceLock::new();
    COMPONENT.get_or_init(|| {
        let mut config = Config::new();
        config.wasm_component_model_async(true);
        config.cranelift_opt_level(OptLevel::None);
        config.cranelift_regalloc_algorithm(RegallocAlgorithm::SinglePass);
        let engine = Engine::new(&config).expect("an engine");
        let component = Component::from_file(&engine, binaries::middleware_component());
        (engine, component.expect("a component"))
    })
}

async fn serve(host: Host, mut inbox: UnboundedReceiver<Job>) -> wasmtime::Result<()> {
    let (engine, component) = component();
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p3::add_to_linker(&mut linker)?;
    wasmtime_wasi_http::p3::add_to_linker(&mut linker)?;
    let mut handler = linker.instance("wasi:http/handler@0.3.0")?;
    handler.func_wrap_concurrent("handle", |host, (request,): (Resource<Request>,)| {
        Box::pin(async move { Ok((handle(host, request)?,)) })
    })?;
    let mut store = Store::new(engine, host);
    let service = Service::instantiate_async(&mut store, component, &linker).await?;
    let service = Arc::new(service);
    store
        .run_concurrent(async move |host| {
            while let Some((request, answer)) = inbox.recv().await {
                let service = Arc::clone(&service);
                host.spawn(Task {
                    service,
                    request,
                    answer,
                })?;
            }
            wasmtime::error::Ok(())
        })
        .await?
}

struct Task {
    service: Arc<Service>,
    request: http::Request<Full<Bytes>>,
    answer: mpsc::Sender<Answer>,
}

impl AccessorTask<Host> for Task {
    async fn run(self, host: &Accessor<Host>) -> wasmtime::Result<()> {
        let request = host.with(|mut host| {
            let hooks = host.get().http().hooks;
            // Of a fault of its body nobody wants to know.
            Request::from_http(hooks, self.request).0
        });
        let answer = match self.service.handle(host, request).await? {
            Err(error) => Err(format!("{error:?}")),
            Ok(response) => {
                let response = host.with(|host| response.into_http(host, async { Ok(()) }))?;
                let (parts, body) = response.into_parts();
                let body = body.collect().await.context("a body")?;
                Ok(http::Response::from_parts(parts, body.to_bytes()))
            }
        };
        let _ = self.answer.send(answer);
        Ok(())
    }
}

/// The handler behind: answers with the status that the path names.
fn handle(
    host: &Accessor<Host>,
    request: Resource<Request>,
) -> wasmtime::Result<Result<Resource<Response>, ErrorCode>> {
    host.with(|mut host| {
        let host = host.get();
        host.handled.fetch_add(1, Ordering::Relaxed);
        let request = host.table.delete(request)?;
        let path = request
            .path_with_query
            .as_ref()
            .map(|path| path.path().to_owned());
        let status = path
            .as_deref()
            .and_then(|path| path.trim_start_matches('/').parse().ok());
        let response = http::Response::builder()
            .status(status.unwrap_or(200_u16))
            .header("x-inner", "yes")
            .body(Full::new(Bytes::from_static(b"from behind")))
            .expect("a response");
        let (response, _sent) = Response::from_http(host.http().hooks, response);
        Ok(Ok(host.table.push(response)?))
    })
}
