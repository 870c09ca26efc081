//! What an Envoy under test is told: the bootstrap and the listener, as JSON.
//!
//! The listener comes from a file of its own that Envoy watches, so that a test
//! can change the plugin's configuration while requests run. Ports are chosen by
//! Envoy and read back from its admin interface.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The cluster the filter flushes to.
pub const AGGREGATOR_CLUSTER: &str = "weir_aggregator";

/// What stands in the filter chain before the router.
#[derive(Debug, Clone)]
pub enum Filter {
    /// Nothing: what Envoy itself costs.
    Bare,
    /// A Wasm module.
    Wasm {
        /// The module.
        module: PathBuf,
        /// The plugin's configuration; empty for none at all.
        config: String,
        /// The only capabilities it gets; empty for no restriction.
        capabilities: Vec<String>,
    },
    /// Envoy's own limiter, with a limit no test reaches: a yardstick.
    LocalRateLimit,
}

/// How an Envoy is to be set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Worker threads.
    pub workers: u32,
    /// What stands before the router.
    pub filter: Filter,
    /// HTTP filters in front of it.
    pub before: Vec<Value>,
    /// Who answers [`AGGREGATOR_CLUSTER`]; none leaves the cluster out.
    pub aggregator: Option<SocketAddr>,
    /// Who answers it as well: others that share a store with that one.
    pub members: Vec<SocketAddr>,
    /// Who answers requests; none lets Envoy answer them itself.
    pub upstream: Option<SocketAddr>,
}

impl Setup {
    /// One worker, this filter, nobody behind.
    #[must_use]
    pub fn new(filter: Filter) -> Self {
        Self {
            workers: 1,
            filter,
            before: Vec::new(),
            aggregator: None,
            members: Vec::new(),
            upstream: None,
        }
    }

    /// With this many worker threads.
    #[must_use]
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = workers;
        self
    }

    /// With these HTTP filters in front of it.
    #[must_use]
    pub fn before(mut self, filters: Vec<Value>) -> Self {
        self.before = filters;
        self
    }

    /// With an aggregator (or what plays one) behind its cluster.
    #[must_use]
    pub fn aggregator(mut self, address: SocketAddr) -> Self {
        self.aggregator = Some(address);
        self
    }

    /// With a service that answers requests.
    #[must_use]
    pub fn upstream(mut self, address: SocketAddr) -> Self {
        self.upstream = Some(address);
        self
    }
}

/// The bootstrap: admin, clusters, and where the listener's file lies.
pub(crate) fn bootstrap(setup: &Setup, folder: &Path) -> Value {
    let clusters: Vec<Value> = [
        (AGGREGATOR_CLUSTER, setup.aggregator, &*setup.members),
        ("upstream", setup.upstream, &[]),
    ]
    .into_iter()
    .filter_map(|(name, address, others)| Some(cluster(name, address?, others)))
    .collect();
    json!({
        "node": { "id": "test", "cluster": "test" },
        "admin": { "address": socket("127.0.0.1", 0) },
        "stats_config": { "stats_tags": [
            { "tag_name": "rule", "regex": "^wasmcustom\\.weir_[a-z_]+(;rule=([^;]+))" },
            { "tag_name": "tier", "regex": "^wasmcustom\\.weir_[a-z_]+.*(;tier=([^;]+))" },
            { "tag_name": "verdict", "regex": "^wasmcustom\\.weir_[a-z_]+.*(;verdict=([^;]+))" },
            { "tag_name": "outcome", "regex": "^wasmcustom\\.weir_[a-z_]+(;outcome=([^;]+))" },
        ]},
        "static_resources": { "clusters": clusters },
        "dynamic_resources": { "lds_config": { "path_config_source": {
            "path": folder.join("listeners.json"),
            "watched_directory": { "path": folder },
        }}},
    })
}

/// The listener's file for one filter.
pub(crate) fn listeners(setup: &Setup, filter: &Filter, folder: &Path) -> Value {
    let mut filters = setup.before.clone();
    filters.extend(http_filter(filter));
    filters.push(json!({
        "name": "envoy.filters.http.router",
        "typed_config": { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
    }));
    json!({ "resources": [{
        "@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
        "name": "main",
        "address": socket("127.0.0.1", 0),
        "filter_chains": [{ "filters": [connection_manager(setup, &filters, folder)] }],
    }]})
}

fn connection_manager(setup: &Setup, filters: &[Value], folder: &Path) -> Value {
    json!({
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "main",
            "use_remote_address": true,
            "skip_xff_append": true,
            "stream_idle_timeout": "5s",
            "request_timeout": "5s",
            "max_request_headers_kb": 96,
            "access_log": access_logs(setup, folder),
            "http_filters": filters,
            "route_config": { "virtual_hosts": [{
                "name": "all", "domains": ["*"], "routes": [route(setup)],
            }]},
        },
    })
}

fn route(setup: &Setup) -> Value {
    match setup.upstream {
        Some(_) => {
            json!({ "match": { "prefix": "/" }, "route": { "cluster": "upstream", "timeout": "5s" } })
        }
        None => {
            json!({ "match": { "prefix": "/" }, "direct_response": { "status": 200, "body": { "inline_string": "envoy\n" } } })
        }
    }
}

/// What is logged of requests: those refused, and where the filter says why requests
/// are decided as they are, each.
fn access_logs(setup: &Setup, folder: &Path) -> Value {
    let explains =
        matches!(&setup.filter, Filter::Wasm { config, .. } if config.contains("explain_log"));
    let logs = [
        Some(access_log(folder)),
        explains.then(|| explain_log(folder)),
    ];
    logs.into_iter().flatten().collect()
}

fn explain_log(folder: &Path) -> Value {
    json!({
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
            "path": folder.join("explain.log"),
            "log_format": { "text_format_source": { "inline_string":
                "%RESPONSE_CODE% %FILTER_STATE(wasm.weir.explain:PLAIN)%\n" } },
        },
    })
}

/// One line a refused request: the status, and what the filter said of it in both
/// ways that it has.
fn access_log(folder: &Path) -> Value {
    json!({
        "name": "envoy.access_loggers.file",
        "filter": { "status_code_filter": { "comparison": {
            "op": "GE", "value": { "default_value": 400, "runtime_key": "none" } } } },
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
            "path": folder.join("access.log"),
            "log_format": { "text_format_source": { "inline_string":
                "%RESPONSE_CODE% %FILTER_STATE(wasm.weir.decision:PLAIN)% %RESPONSE_CODE_DETAILS% %REQ(:PATH)%\n" } },
        },
    })
}

fn http_filter(filter: &Filter) -> Option<Value> {
    match filter {
        Filter::Bare => None,
        Filter::Wasm {
            module,
            config,
            capabilities,
        } => Some(wasm(module, config, capabilities)),
        Filter::LocalRateLimit => Some(local_rate_limit()),
    }
}

fn wasm(module: &Path, config: &str, capabilities: &[String]) -> Value {
    let mut plugin = json!({
        "name": "weir",
        "root_id": "weir",
        "failure_policy": "FAIL_RELOAD",
        "vm_config": {
            "vm_id": "weir",
            "runtime": "envoy.wasm.runtime.v8",
            "code": { "local": { "filename": module } },
        },
    });
    if !config.is_empty() {
        set(
            &mut plugin,
            "configuration",
            json!({
            "@type": "type.googleapis.com/google.protobuf.StringValue", "value": config }),
        );
    }
    if !capabilities.is_empty() {
        let allowed: serde_json::Map<String, Value> = capabilities
            .iter()
            .map(|name| (name.clone(), json!({})))
            .collect();
        set(
            &mut plugin,
            "capability_restriction_config",
            json!({ "allowed_capabilities": allowed }),
        );
    }
    json!({
        "name": "envoy.filters.http.wasm",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
            "config": plugin,
        },
    })
}

fn local_rate_limit() -> Value {
    let always = json!({ "default_value": { "numerator": 100 }, "runtime_key": "none" });
    json!({
        "name": "envoy.filters.http.local_ratelimit",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
            "stat_prefix": "local",
            "token_bucket": { "max_tokens": 1_000_000_000, "tokens_per_fill": 1_000_000_000, "fill_interval": "1s" },
            "filter_enabled": always,
            "filter_enforced": always,
        },
    })
}

fn cluster(name: &str, address: SocketAddr, others: &[SocketAddr]) -> Value {
    let endpoint = |address: &SocketAddr| json!({ "endpoint": { "address": socket(&address.ip().to_string(), address.port()) } });
    let all: Vec<Value> = std::iter::once(&address)
        .chain(others)
        .map(endpoint)
        .collect();
    let mut cluster = json!({
        "name": name,
        "connect_timeout": "0.5s",
        "load_assignment": { "cluster_name": name, "endpoints": [{ "lb_endpoints": all }] },
    });
    if !others.is_empty() {
        // As in deploy/envoy: one that has gone, or is about to, is not asked.
        let checks = json!([{
            "timeout": "0.5s", "interval": "0.5s", "no_traffic_interval": "0.5s",
            "unhealthy_threshold": 1, "healthy_threshold": 1,
            "http_health_check": { "path": "/readyz" },
        }]);
        set(&mut cluster, "health_checks", checks);
    }
    cluster
}

fn socket(address: &str, port: u16) -> Value {
    json!({ "socket_address": { "address": address, "port_value": port } })
}

fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert(name.to_owned(), value);
    }
}
