//! What Envoy hands to the filter: its settings, lists of headers, tokens' payloads.

use edge_filter::claims::claim;
use edge_filter::config::Config;
use edge_filter::pairs::Pairs;

/// The bytes are each of them.
pub fn run(data: &[u8]) {
    let taken = Config::parse(data);
    assert_eq!(taken, Config::parse(data));
    let _ = claim(data, "sub");
    let pairs = Pairs::new(data.to_vec());
    let bytes: usize = pairs
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    assert!(bytes <= data.len(), "bytes out of nothing");
    if let Some((name, value)) = pairs.iter().next() {
        let name = str::from_utf8(name).ok();
        let first = name.and_then(|name| pairs.first(name));
        assert!(name.is_none() || first == Some(value));
    }
}
