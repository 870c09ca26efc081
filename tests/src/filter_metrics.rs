//! What the filter tells Envoy, by name. A real Envoy is asked for all of them
//! (`envoy_alerts`), so that what alerts ask for is not taken from a list alone.

/// The names, as `/stats/prometheus` has them.
pub const NAMES: &[&str] = &[
    "weir_asks_total",
    "weir_deltas_total",
    "weir_held_total",
    "weir_keys",
    "weir_leaked_total",
    "weir_reply_age_ms",
    "weir_requests_total",
    "weir_sources",
    "weir_sources_away",
    "weir_sync_total",
];
