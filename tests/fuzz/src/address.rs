//! Blocks of addresses, and who the client is behind proxies.

use core::net::IpAddr;

use limiter::address::{Cidr, client_address, prefix};

use crate::split::lines;

/// The first line is the peer, the second a block of trusted proxies, the rest what
/// `X-Forwarded-For` says.
pub fn run(data: &[u8]) {
    let ([peer, block], forwarded) = lines(data);
    let block = str::from_utf8(block).ok().and_then(read_back);
    let Some(peer) = str::from_utf8(peer).ok().and_then(|text| text.parse().ok()) else {
        return;
    };
    let nobody = client_address(peer, forwarded, &[]);
    assert_eq!(nobody, peer.to_canonical(), "nobody is believed");
    let Some(block) = block else { return };
    let client = client_address(peer, forwarded, &[block]);
    assert!(
        block.contains(peer) || client == peer.to_canonical(),
        "a stranger is believed"
    );
    spoof(peer, client, forwarded, block);
    let network = prefix(client, 24, 64);
    assert_eq!(prefix(network, 24, 64), network);
}

/// What a client puts in front of a list changes nothing, unless all that stands
/// behind it was written by trusted proxies about trusted proxies.
fn spoof(peer: IpAddr, client: IpAddr, forwarded: &[u8], block: Cidr) {
    if block.contains(client) {
        return;
    }
    let spoofed = [b"203.0.113.99, ", forwarded].concat();
    assert_eq!(client_address(peer, &spoofed, &[block]), client);
}

/// A block, if it is one: then it reads back from what it is written as.
fn read_back(text: &str) -> Option<Cidr> {
    let block: Cidr = text.parse().ok()?;
    let written = block.to_string();
    assert_eq!(written.parse(), Ok(block), "{written}");
    assert!(block.contains(block.base()), "{written}");
    Some(block)
}
