//! Classes of addresses: which are never called, which belong to a private network, which hide another one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv6 forms that lead to an IPv4 address: compatible and mapped (RFC 4291), NAT64 (RFC 6052, RFC 8215),
/// 6to4 (RFC 3056), Teredo (RFC 4380) and ISATAP (RFC 5214). A check of the outer address would say nothing
/// about the inner one.
pub(super) fn carries_ipv4(ip: IpAddr) -> bool {
    let IpAddr::V6(ip) = ip else { return false };
    let first_four = |net: [u16; 4]| ip.segments().starts_with(&net);
    let compatible =
        ip.segments().starts_with(&[0; 6]) && !ip.is_loopback() && !ip.is_unspecified();
    compatible
        || ip.to_ipv4_mapped().is_some()
        || first_four([0, 0, 0, 0]) && ip.segments().get(4) == Some(&0xffff)
        || first_four([0x64, 0xff9b, 0, 0])
        || ip.segments().starts_with(&[0x64, 0xff9b, 1])
        || ip.segments().starts_with(&[0x2002])
        || ip.segments().starts_with(&[0x2001, 0])
        || matches!(ip.segments(), [_, _, _, _, 0 | 0x200, 0x5efe, ..])
}

/// The IPv4 address inside the well-known prefix `64:ff9b::/96` (RFC 6052).
pub(super) fn nat64(ip: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(ip) = ip else { return None };
    match ip.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            let low = u32::try_from(ip.to_bits() & u128::from(u32::MAX)).ok()?;
            Some(IpAddr::V4(Ipv4Addr::from(low)))
        }
        _ => None,
    }
}

pub(super) fn never_called(ip: IpAddr) -> bool {
    if METADATA.contains(&ip) {
        return true;
    }
    match ip {
        IpAddr::V4(ip) => {
            let this_network = ip.octets().starts_with(&[0]);
            ip.is_link_local() || ip.is_multicast() || ip.is_broadcast() || this_network
        }
        IpAddr::V6(ip) => ip.is_unicast_link_local() || ip.is_multicast() || ip.is_unspecified(),
    }
}

/// Addresses of networks that are somebody's own: RFC 1918, shared address space (RFC 6598), benchmarking
/// (RFC 2544), unique local (RFC 4193) and the retired site-local addresses (RFC 3879).
pub(super) fn private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let octets = ip.octets();
            let shared = matches!(octets, [100, 64..=127, ..]);
            let benchmarking = matches!(octets, [198, 18 | 19, ..]);
            ip.is_private() || shared || benchmarking
        }
        IpAddr::V6(ip) => {
            let site_local = matches!(ip.segments(), [0xfec0..=0xfeff, ..]);
            ip.is_unique_local() || site_local
        }
    }
}

/// Metadata services outside the link-local range: Amazon (IPv6), Alibaba, Oracle.
const METADATA: [IpAddr; 3] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
];
