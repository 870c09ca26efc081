//! Weir at the edge: what every host shares, and an adapter for each host.
