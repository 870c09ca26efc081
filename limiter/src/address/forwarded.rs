//! Who the client is when proxies stand in between.

use core::{
    net::{IpAddr, SocketAddr},
    str,
};

use super::Cidr;

/// The address of the client, given who is at the other end of the connection
/// and what `X-Forwarded-For` says.
///
/// A proxy appends whom it heard from, so the list is read from the right, and
/// each entry is believed only if a trusted proxy wrote it: the walk ends at
/// the first address that is not a trusted proxy's. What a client writes
/// stands to the left of that, and changes nothing. An entry that is no
/// address ends the walk, too, at the proxy that passed it on. Empty entries
/// are skipped, as in any list field (RFC 9110, section 5.6.1.2).
pub fn client_address(peer: IpAddr, x_forwarded_for: &[u8], trusted: &[Cidr]) -> IpAddr {
    let mut client = peer.to_canonical();
    for entry in x_forwarded_for.rsplit(|&byte| byte == b',') {
        if !trusted.iter().any(|block| block.contains(client)) {
            break;
        }
        match entry.trim_ascii() {
            b"" => {}
            entry => match address(entry) {
                Some(address) => client = address,
                None => break,
            },
        }
    }
    client
}

/// An address, with or without brackets and a port.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(entry).ok()?;
    let bare = |text: &str| text.parse::<IpAddr>().ok();
    let bracketed = || bare(text.strip_prefix('[')?.strip_suffix(']')?);
    let with_port = || Some(text.parse::<SocketAddr>().ok()?.ip());
    let address = bare(text).or_else(with_port).or_else(bracketed)?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn client(peer: &str, x_forwarded_for: &str) -> IpAddr {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        client_address(peer.parse().unwrap(), x_forwarded_for.as_bytes(), &trusted)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_peer_that_is_not_trusted_is_the_client_whatever_it_claims() {
        assert_eq!(client("192.0.2.7", "198.51.100.1"), ip("192.0.2.7"));
    }

    #[test]
    fn what_stands_left_of_the_first_stranger_changes_nothing() {
        let honest = client("10.0.0.1", "192.0.2.7, 10.0.0.2");
        assert_eq!(honest, ip("192.0.2.7"));
        for spoofed in ["198.51.100.1", "10.9.9.9", "garbage", "10.0.0.3, 10.0.0.4"] {
            let list = alloc::format!("{spoofed}, 192.0.2.7, 10.0.0.2");
            assert_eq!(client("10.0.0.1", &list), honest, "{spoofed}");
        }
    }

    #[test]
    fn an_entry_that_is_no_address_ends_the_walk_at_who_passed_it_on() {
        assert_eq!(client("10.0.0.1", "192.0.2.7, unknown"), ip("10.0.0.1"));
        assert_eq!(
            client("10.0.0.1", "192.0.2.7, unknown, 10.0.0.2"),
            ip("10.0.0.2")
        );
    }

    #[test]
    fn a_list_of_trusted_proxies_only_ends_at_the_leftmost() {
        assert_eq!(client("10.0.0.1", "10.0.0.3, 10.0.0.2"), ip("10.0.0.3"));
        assert_eq!(client("10.0.0.1", ""), ip("10.0.0.1"));
    }

    #[test]
    fn ports_brackets_and_dressed_up_addresses_are_seen_through() {
        for (entry, address) in [
            ("192.0.2.7:443", "192.0.2.7"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("\t192.0.2.7 ", "192.0.2.7"),
            ("192.0.2.7,,", "192.0.2.7"),
        ] {
            assert_eq!(client("::ffff:10.0.0.1", entry), ip(address), "{entry}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_at_all_make_the_walk_panic(bytes: Vec<u8>, any_peer: u32) {
            let everyone = ["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
            client_address(IpAddr::from(any_peer.to_be_bytes()), &bytes, &everyone);
        }

        #[test]
        fn no_bytes_at_all_move_an_untrusted_peer(bytes: Vec<u8>) {
            let peer = ip("192.0.2.7");
            prop_assert_eq!(client_address(peer, &bytes, &["10.0.0.0/8".parse().unwrap()]), peer);
        }

        #[test]
        fn no_bytes_at_all_left_of_the_client_replace_it(bytes: Vec<u8>) {
            let mut list = bytes;
            list.extend_from_slice(b",192.0.2.7");
            let trusted = ["10.0.0.0/8".parse().unwrap()];
            prop_assert_eq!(client_address(ip("10.0.0.1"), &list, &trusted), ip("192.0.2.7"));
        }
    }
}
