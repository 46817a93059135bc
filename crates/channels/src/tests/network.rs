//! Which address a name is dialled at.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Mutex,
    time::Duration,
};

use model::Destination;
use tokio::{net::TcpStream, time::Instant};

use super::{
    tls,
    world::{World, ask, credential, patient},
};
use crate::{
    ConnectError, Plan, Policy, Sent,
    connect::connect_by,
    network::{Network, System, dial},
};

/// A network whose resolver gives another answer each time, and in which every address is the test's server.
struct Fickle {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    server: SocketAddr,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl Fickle {
    fn new(server: SocketAddr, answers: &[&[&str]]) -> Self {
        let ips = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        Self {
            answers: Mutex::new(answers.iter().rev().map(ips).collect()),
            server,
            dialled: Mutex::new(Vec::new()),
        }
    }

    fn answers_left(&self) -> usize {
        self.answers.lock().unwrap().len()
    }

    fn dialled(&self) -> Vec<String> {
        let dialled = self.dialled.lock().unwrap();
        dialled.iter().map(ToString::to_string).collect()
    }
}

impl Network for Fickle {
    async fn lookup(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let answer = self.answers.lock().unwrap().pop().unwrap();
        Ok(answer
            .into_iter()
            .map(|ip| SocketAddr::new(ip, port))
            .collect())
    }

    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.dialled.lock().unwrap().push(address);
        TcpStream::connect(self.server).await
    }
}

fn plan(base: &str, ca: &str) -> Plan {
    let draft = format!(
        "[channel.builds]\nkind = \"http\"\nbase = \"{base}\"\nsecret = \"token\"\nca = '''\n{ca}'''\n\
         [[channel.builds.operation]]\nname = \"all\"\nallow = [\"GET /**\"]\n"
    );
    let policy = Policy::parse_draft(&draft).unwrap();
    policy.plan(ask("GET", "/")).unwrap()
}

#[tokio::test]
async fn a_name_is_resolved_once_and_dialled_where_it_was_checked() {
    let ca = tls::authority();
    let server = tls::server(&ca, "api.example.com");
    let plan = plan("https://api.example.com:8443", &ca.pem());
    let network = Fickle::new(server.address, &[&["203.0.113.7"], &["127.0.0.1"]]);
    let world = World::new();
    let permit = world.permit(&plan).await;

    let mut connection = connect_by(&network, &permit, &plan, &patient())
        .await
        .unwrap();
    let cleared = world.clear(permit);
    let sent = connection.send(&cleared, Some(credential(&plan))).await;

    assert!(matches!(sent, Sent::Answered(_)), "{sent:?}");
    assert_eq!(network.dialled(), ["203.0.113.7:8443"]);
    assert_eq!(network.answers_left(), 1, "the second answer was asked for");
    server.end();
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_dialled_anywhere() {
    let ca = tls::authority();
    for (base, answer) in [
        ("https://api.example.com", &["127.0.0.1"][..]),
        ("https://api.example.com", &["::1"]),
        ("https://api.example.com", &["::ffff:127.0.0.1"]),
        ("https://api.example.com", &["169.254.169.254"]),
        ("https://api.example.com", &["::ffff:169.254.169.254"]),
        ("https://api.example.com", &["64:ff9b::a9fe:a9fe"]),
        ("https://api.example.com", &["fd00:ec2::254"]),
        ("https://api.example.com", &["100.100.100.200"]),
        ("https://api.example.com", &["0.0.0.0"]),
        ("https://api.example.com", &["10.0.0.1"]),
        ("https://api.example.com", &["fd12::1"]),
        ("https://api.example.com", &["203.0.113.7", "10.0.0.1"]),
        ("https+private://api.example.com", &["127.0.0.1"]),
        ("https+private://api.example.com", &["169.254.169.254"]),
        (
            "https+private://api.example.com",
            &["10.0.0.1", "127.0.0.1"],
        ),
        ("https://api.example.com", &[]),
    ] {
        let plan = plan(base, &ca.pem());
        let network = Fickle::new("127.0.0.1:1".parse().unwrap(), &[answer]);
        let world = World::new();
        let permit = world.permit(&plan).await;

        let error = connect_by(&network, &permit, &plan, &patient())
            .await
            .unwrap_err();

        let refused = matches!(error, ConnectError::AddressRefused(_));
        assert!(refused, "{base} at {answer:?}: {error}");
        assert!(network.dialled().is_empty(), "{base} at {answer:?}");
    }
}

/// A network in which nobody answers, or the last one does.
struct Silent {
    addresses: Vec<SocketAddr>,
    answers_at: Option<SocketAddr>,
}

impl Network for Silent {
    async fn lookup(&self, _: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(self.addresses.clone())
    }

    async fn dial(&self, address: SocketAddr) -> io::Result<TcpStream> {
        match self.answers_at {
            Some(answers) if address.ip().to_string() == "203.0.113.3" => {
                TcpStream::connect(answers).await
            }
            Some(_) | None => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn silent_addresses_share_the_time_there_is_and_the_last_one_has_its_part() {
    let base: Destination = "https://api.example.com".parse().unwrap();
    let addresses: Vec<SocketAddr> = (1..=3)
        .map(|last| format!("203.0.113.{last}:443").parse().unwrap())
        .collect();
    let within = Duration::from_secs(9);

    let begun = Instant::now();
    let nobody = Silent {
        addresses: addresses.clone(),
        answers_at: None,
    };
    let refused = dial(&base, &nobody, begun + within).await;
    assert!(
        matches!(refused, Err(ConnectError::Tcp { .. })),
        "{refused:?}"
    );
    assert_eq!(begun.elapsed(), within);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let begun = Instant::now();
    let last = Silent {
        addresses,
        answers_at: listener.local_addr().ok(),
    };
    dial(&base, &last, begun + within).await.unwrap();
    assert!(begun.elapsed() < within, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_systems_own_resolver_knows_this_machine() {
    let found = System.lookup("localhost", 7).await.unwrap();

    assert!(
        found
            .iter()
            .any(|address| address.ip().is_loopback() && address.port() == 7),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_name_that_is_sealed_as_private_is_dialled_there() {
    let plan = plan("https+private://ci.example.lan", &tls::authority().pem());
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let network = Fickle::new(address, &[&["10.0.0.1", "fd12::1"]]);
    let world = World::new();
    let permit = world.permit(&plan).await;

    let error = connect_by(&network, &permit, &plan, &patient())
        .await
        .unwrap_err();

    assert!(matches!(error, ConnectError::Tcp { .. }), "{error}");
    assert_eq!(network.dialled(), ["10.0.0.1:443", "[fd12::1]:443"]);
}
