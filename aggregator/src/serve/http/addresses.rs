//! How many connections each address has open.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Connections by address. Cheap to clone.
#[derive(Clone)]
pub(super) struct Addresses {
    most: u32,
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
}

/// One connection's place with its address. Dropping it gives the place back.
pub(super) struct Visitor {
    address: IpAddr,
    addresses: Addresses,
}

impl Addresses {
    pub(super) fn new(most: u32) -> Self {
        let open = Arc::default();
        Self { most, open }
    }

    /// A place for one more from this address; none if it has its fill.
    pub(super) fn enter(&self, address: IpAddr) -> Option<Visitor> {
        let address = whole(address);
        let mut open = self.lock();
        let count = open.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        drop(open);
        let addresses = self.clone();
        Some(Visitor { address, addresses })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let mut open = self.addresses.lock();
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// What counts as one address: of IPv6 the 64 bits that a network has, for the
/// rest is the client's to choose.
fn whole(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_that_has_its_fill_gets_no_more_until_one_ends() {
        let addresses = Addresses::new(2);
        let enter = |text| addresses.enter(address(text));
        let (one, _two) = (enter("192.0.2.1").unwrap(), enter("192.0.2.1").unwrap());
        assert!(enter("192.0.2.1").is_none());
        assert!(enter("::ffff:192.0.2.1").is_none());
        assert!(enter("192.0.2.2").is_some());
        drop(one);
        assert!(enter("192.0.2.1").is_some());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let addresses = Addresses::new(1);
        let _one = addresses.enter(address("2001:db8::1")).unwrap();
        assert!(addresses.enter(address("2001:db8::ffff:1")).is_none());
        assert!(addresses.enter(address("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let addresses = Addresses::new(1);
        drop(addresses.enter(address("192.0.2.1")));
        assert!(addresses.lock().is_empty());
    }
}
