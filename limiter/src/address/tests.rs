//! What the blocks of addresses promise.

use alloc::string::{String, ToString};

use proptest::prelude::*;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn block(text: &str) -> Cidr {
    text.parse().unwrap()
}

#[test]
fn a_block_holds_its_first_and_its_last_address_and_no_other() {
    let eight = block("10.0.0.0/8");
    for (address, inside) in [
        ("10.0.0.0", true),
        ("10.255.255.255", true),
        ("9.255.255.255", false),
        ("11.0.0.0", false),
    ] {
        assert_eq!(eight.contains(ip(address)), inside, "{address}");
    }
    let v6 = block("2001:db8::/33");
    assert!(v6.contains(ip("2001:db8:7fff:ffff::1")));
    assert!(!v6.contains(ip("2001:db8:8000::")));
}

#[test]
fn an_ipv4_address_dressed_as_ipv6_is_the_ipv4_address() {
    assert!(block("10.0.0.0/8").contains(ip("::ffff:10.1.2.3")));
    assert_eq!(block("::ffff:10.0.0.0/104"), block("10.0.0.0/8"));
    assert_eq!(block("::ffff:10.0.0.1"), block("10.0.0.1/32"));
    assert_eq!(prefix(ip("::ffff:10.1.2.3"), 24, 64), ip("10.1.2.0"));
}

#[test]
fn all_of_ipv6_holds_no_ipv4() {
    assert!(!block("::/0").contains(ip("10.1.2.3")));
    assert!(!block("0.0.0.0/0").contains(ip("2001:db8::1")));
    assert!(block("0.0.0.0/0").contains(ip("255.255.255.255")));
    assert!(block("::/0").contains(ip("ffff::")));
}

#[test]
fn an_address_alone_is_a_block_of_one() {
    assert_eq!(block("192.0.2.7").to_string(), "192.0.2.7/32");
    assert_eq!(block("2001:db8::1").to_string(), "2001:db8::1/128");
}

#[test]
fn a_count_per_network_is_kept_per_its_first_address() {
    assert_eq!(prefix(ip("192.0.2.77"), 24, 64), ip("192.0.2.0"));
    assert_eq!(prefix(ip("192.0.2.77"), 32, 64), ip("192.0.2.77"));
    assert_eq!(prefix(ip("192.0.2.77"), 0, 64), ip("0.0.0.0"));
    assert_eq!(
        prefix(ip("2001:db8:1:2:3::4"), 24, 64),
        ip("2001:db8:1:2::")
    );
    assert_eq!(prefix(ip("2001:db8::1"), 24, 255), ip("2001:db8::1"));
}

#[test]
fn a_block_that_is_none_says_what_was_expected() {
    let wrong = |text: &str| text.parse::<Cidr>().unwrap_err();
    for text in [
        "",
        "/8",
        "10.0.0",
        "10.0.0.0.0/8",
        "example.com",
        " 10.0.0.0",
    ] {
        assert_eq!(wrong(text), CidrError::Address, "{text:?}");
    }
    for text in [
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/+8",
        "10.0.0.0/08",
        "10.0.0.0/8 ",
    ] {
        assert_eq!(wrong(text), CidrError::Bits { max: 32 }, "{text:?}");
    }
    assert_eq!(wrong("::/129"), CidrError::Bits { max: 128 });
    assert_eq!(
        wrong("10.0.0.1/8").to_string(),
        "the address has bits beyond its prefix; the block it lies in is 10.0.0.0/8"
    );
}

proptest! {
    #[test]
    fn no_text_at_all_makes_the_parser_panic(text: String) {
        let _ = text.parse::<Cidr>();
    }

    #[test]
    fn a_block_reads_back_as_it_was_written(address: u128, v4: u32, bits in 0..=128_u8) {
        for address in [IpAddr::from(address.to_be_bytes()), IpAddr::from(v4.to_be_bytes())] {
            if let Some(block) = Cidr::new(address, bits) {
                prop_assert_eq!(block.to_string().parse(), Ok(block));
                prop_assert!(block.contains(address));
            }
        }
    }
}
