//! Destinations: one reading for each text, and none for what has two.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Destination {
    text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
}

#[test]
fn the_text_is_canonical() {
    for (text, canonical) in [
        ("https://API.Example.com", "https://api.example.com"),
        ("https://api.example.com:443/", "https://api.example.com"),
        (
            "https://h.example:8443/api/v2/",
            "https://h.example:8443/api/v2",
        ),
        ("http://127.0.0.1:80/x", "http://127.0.0.1/x"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("https://[2001:DB8::1]/", "https://[2001:db8::1]"),
        (
            "https://xn--bcher-kva.example",
            "https://xn--bcher-kva.example",
        ),
        (
            "HTTPS+Private://CI.example.lan:443/a/",
            "https+private://ci.example.lan/a",
        ),
    ] {
        assert_eq!(read(text).to_string(), canonical);
    }
}

#[test]
fn what_was_read_tells_its_parts() {
    for (text, tls, private, host, ip, port, prefix, authority) in [
        (
            "https://h.example/a/b",
            true,
            false,
            "h.example",
            None,
            443,
            "/a/b",
            "h.example",
        ),
        (
            "https+private://h.lan:8443",
            true,
            true,
            "h.lan",
            None,
            8443,
            "",
            "h.lan:8443",
        ),
        (
            "http://127.0.0.1:8080/",
            false,
            false,
            "127.0.0.1",
            Some("127.0.0.1"),
            8080,
            "",
            "127.0.0.1:8080",
        ),
        (
            "http://[::1]",
            false,
            false,
            "::1",
            Some("::1"),
            80,
            "",
            "[::1]",
        ),
    ] {
        let read = read(text);

        assert_eq!(
            (read.is_tls(), read.may_be_private()),
            (tls, private),
            "{text}"
        );
        assert_eq!(read.host(), host);
        assert_eq!(read.ip(), ip.map(|ip| ip.parse().unwrap()), "{text}");
        assert_eq!((read.port(), read.prefix()), (port, prefix), "{text}");
        assert_eq!(read.authority(), authority);
        assert_eq!(String::from(read.clone()), read.to_string());
    }
}

#[test]
fn a_text_that_could_be_read_in_two_ways_is_refused() {
    use DestinationError as E;
    for (text, why) in [
        ("api.example.com", E::Scheme),
        ("ftp://api.example.com", E::Scheme),
        ("ssh://u@host", E::Scheme),
        ("//api.example.com", E::Scheme),
        ("https://", E::NoHost),
        ("https:///x", E::NoHost),
        ("https://:443", E::NoHost),
        ("https://user@api.example.com", E::UserInfo),
        ("https://a.example:b@api.example.com", E::UserInfo),
        ("https://api.example.com/x?y", E::QueryOrFragment),
        ("https://api.example.com#y", E::QueryOrFragment),
        ("https://api.example.com\\@evil.example", E::Ambiguous),
        ("https://api.example.com/a b", E::Ambiguous),
        ("https://api.example.com\t", E::Ambiguous),
        ("https://api.example.com./", E::TrailingDot),
        ("https://b\u{fc}cher.example", E::NotAscii),
        ("https://api\u{3002}example.com", E::NotAscii),
        ("https://a..example", E::Host),
        ("https://-a.example", E::Host),
        ("https://a%2e.example", E::Host),
        ("https://a_b.example", E::Host),
        ("https://[::1", E::Host),
        ("https://[::1]x", E::Host),
        ("https://[fe80::1%25eth0]", E::Host),
        ("https://h.example:", E::Port),
        ("https://h.example:0", E::Port),
        ("https://h.example:+80", E::Port),
        ("https://h.example:65536", E::Port),
        ("https://h.example:080", E::Port),
        ("http://api.example.com", E::ClearText),
        ("http://localhost:8080", E::ClearText),
        ("http://10.0.0.1", E::ClearText),
        ("https://h.example/a/../b", E::Prefix),
        ("https://h.example/./b", E::Prefix),
        ("https://h.example/a//b", E::Prefix),
        ("https://h.example/a//", E::Prefix),
        ("https://h.example/%2e%2e/b", E::Prefix),
        ("https://h.example/a;b", E::Prefix),
    ] {
        assert_eq!(text.parse::<Destination>(), Err(why), "{text}");
    }
}

#[test]
fn a_text_longer_than_any_destination_is_refused_and_one_as_long_is_not() {
    let start = "https://h.example/";
    let longest = format!("{start}{}", "a".repeat(LONGEST - start.len()));

    assert_eq!(read(&longest).to_string(), longest);
    assert_eq!(
        format!("{longest}a").parse::<Destination>(),
        Err(DestinationError::TooLong)
    );
}

#[test]
fn every_other_spelling_of_an_address_is_refused() {
    for host in [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "127.0.0.01",
        "0",
        "0x",
        "256.0.0.1",
        "1.2.3.4.5",
        "a.0x10",
        "127.0.0.0x1",
    ] {
        let text = format!("https://{host}");
        assert_eq!(
            text.parse::<Destination>(),
            Err(DestinationError::Ipv4Form),
            "{text}"
        );
    }
    for host in [
        "::ffff:127.0.0.1",
        "::ffff:a9fe:a9fe",
        "::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:a9fe:a9fe::",
        "2001:0:1::1",
        "::ffff:0:a9fe:a9fe",
        "2001:db8::5efe:a9fe:a9fe",
        "2001:db8::200:5efe:a9fe:a9fe",
    ] {
        let text = format!("https://[{host}]");
        assert_eq!(
            text.parse::<Destination>(),
            Err(DestinationError::Ipv4InIpv6),
            "{text}"
        );
    }
}

#[test]
fn metadata_and_link_local_addresses_are_never_called() {
    let name = read("https://api.example.com");
    for ip in [
        "169.254.169.254",
        "169.254.1.1",
        "0.0.0.0",
        "0.1.2.3",
        "255.255.255.255",
        "224.0.0.1",
        "100.100.100.200",
        "192.0.0.192",
        "fe80::1",
        "fd00:ec2::254",
        "ff02::1",
        "::",
    ] {
        let ip: IpAddr = ip.parse().unwrap();
        let text = if ip.is_ipv6() {
            format!("https://[{ip}]")
        } else {
            format!("https://{ip}")
        };
        assert_eq!(
            text.parse::<Destination>(),
            Err(DestinationError::NeverCalled(ip))
        );
        assert!(!name.admits(ip), "{ip}");
    }
}

#[test]
fn a_name_never_leads_to_this_machine_and_an_address_only_to_itself() {
    let name = read("https://api.example.com");
    let literal = read("http://127.0.0.1:8080");
    let loopback: IpAddr = [127, 0, 0, 1].into();

    assert!(!name.admits(loopback));
    assert!(!name.admits("::ffff:127.0.0.1".parse().unwrap()));
    assert!(name.admits([203, 0, 113, 7].into()));
    assert!(name.admits("64:ff9b::c000:201".parse().unwrap()));
    assert!(!name.admits("64:ff9b::7f00:1".parse().unwrap()));
    assert!(!name.admits("64:ff9b::a9fe:a9fe".parse().unwrap()));
    assert!(!name.admits("2002:a9fe:a9fe::".parse().unwrap()));
    assert!(literal.admits(loopback));
    assert!(!literal.admits([127, 0, 0, 2].into()));
}

#[test]
fn a_name_leads_into_a_private_network_only_where_it_is_sealed_so() {
    let public = read("https://api.example.com");
    let private = read("https+private://api.example.com");
    for ip in [
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "100.127.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "64:ff9b::a00:1",
        "fc00::1",
        "fd12::1",
        "fec0::1",
    ] {
        let ip: IpAddr = ip.parse().unwrap();
        assert!(!public.admits(ip), "{ip}");
        assert!(private.admits(ip), "{ip}");
    }
    for ip in [
        "9.255.255.255",
        "11.0.0.1",
        "172.15.0.1",
        "172.32.0.1",
        "192.167.1.1",
        "100.63.0.1",
        "100.128.0.1",
        "198.17.0.1",
        "198.20.0.1",
        "2001:db8::1",
        "2606:4700::1",
    ] {
        let ip: IpAddr = ip.parse().unwrap();
        assert!(public.admits(ip) && private.admits(ip), "{ip}");
    }
    for ip in ["127.0.0.1", "::1", "169.254.169.254", "fd00:ec2::254"] {
        assert!(!private.admits(ip.parse().unwrap()), "{ip}");
    }
    assert_eq!(
        "https+private://10.0.0.1".parse::<Destination>(),
        Err(DestinationError::PrivateAddress)
    );
    assert!(read("https://10.0.0.1").admits([10, 0, 0, 1].into()));
    assert!(private.covers(&public) && private.covers(&private));
    assert!(!public.covers(&private), "a channel never widens");
}

#[test]
fn a_destination_covers_itself_and_what_lies_below_it_only() {
    let sealed = read("https://h.example/api/v2");
    for inside in [
        "https://h.example/api/v2",
        "https://h.example:443/api/v2/builds",
    ] {
        assert!(sealed.covers(&read(inside)), "{inside}");
    }
    for outside in [
        "https://h.example",
        "https://h.example/api",
        "https://h.example/api/v20",
        "https://h.example:8443/api/v2",
        "https://x.h.example/api/v2",
        "https://example/api/v2",
    ] {
        assert!(!sealed.covers(&read(outside)), "{outside}");
    }
    assert!(!read("http://127.0.0.1:443/").covers(&read("https://127.0.0.1/")));
    assert!(read("https://h.example").covers(&sealed));
}

proptest! {
    #[test]
    fn what_is_read_is_read_back_from_its_text(text in "https?(\\+private)?://[a-z0-9.:\\[\\]-]{1,20}(/[a-z.]{0,5}){0,3}") {
        if let Ok(destination) = text.parse::<Destination>() {
            prop_assert_eq!(destination.to_string().parse(), Ok(destination));
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text: String) {
        let _ = text.parse::<Destination>();
        let _ = format!("https://{text}").parse::<Destination>();
    }
}
