//! The fuzz targets' checks on seeded mutations of good input: seconds of every day, minutes elsewhere.

use testkit::Proof;

#[path = "../../fuzz/src/lib.rs"]
mod checks;

/// Mutations of each check on an ordinary day.
const EVERYDAY: u64 = 3_000;

/// Bytes that mean something to one of the readers.
const TOKENS: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b"\0",
    b"{",
    b"}",
    b"\"",
    b"\\u0000",
    b"@",
    b"//",
    b"..",
    b"%2e",
    b"[::1]",
    b"::ffff:169.254.169.254",
    b"0x7f000001",
    b"2130706433",
    b"xn--",
    b":99999",
    b"\xff\xfe",
    b"\xe2\x80\xae",
    b"[[channel.x.operation]]\n",
    b"= true\n",
    b"{secret}",
    b"https://",
    b"http://",
    b"LYCHSEG1",
    b"\x00\x00\x00\xba\x01\x02\x00\x00",
    b"\x00\x03\xff\xfc",
];

fn mutated(proof: &mut Proof, good: &[u8]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=proof.below(4) {
        let at = index(proof, bytes.len() + 1);
        match proof.below(5) {
            0 if at < bytes.len() => bytes[at] = byte(proof),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            3 => {
                let token = TOKENS[index(proof, TOKENS.len())];
                bytes.splice(at..at, token.iter().copied());
            }
            _ => bytes.insert(at, byte(proof)),
        }
    }
    bytes
}

fn index(proof: &mut Proof, bound: usize) -> usize {
    usize::try_from(proof.below(bound as u64)).expect("an index")
}

fn byte(proof: &mut Proof) -> u8 {
    u8::try_from(proof.below(256)).expect("a byte")
}

/// The same where each mutation is a folder of files.
const EVERYDAY_ON_DISK: u64 = 1_000;

/// Hands mutations of each good input to the check.
fn hold(check: fn(&[u8]), good: &[&[u8]]) {
    hold_so_many(EVERYDAY, check, good);
}

fn hold_so_many(everyday: u64, check: fn(&[u8]), good: &[&[u8]]) {
    let mut proof = Proof::begin(everyday);
    for input in good {
        check(input);
    }
    for number in 0..proof.n() {
        let good = good[index(&mut proof, good.len())];
        let input = mutated(&mut proof, good);
        let outcome = std::panic::catch_unwind(|| check(&input));
        assert!(
            outcome.is_ok(),
            "mutation {number}: {:?}",
            String::from_utf8_lossy(&input)
        );
    }
}

#[test]
fn lines_hold_under_mutation() {
    let long = [b'x'; 200];
    hold(
        checks::line,
        &[
            b"\x03one\ntwo\r\n\nthree",
            &long,
            b"\x00\n\n\n",
            &[b"\x40", &[b'x'; 64][..], b"\r\n"].concat(),
        ],
    );
}

#[test]
fn hellos_hold_under_mutation() {
    hold(
        checks::hello,
        &[br#"{"min":1,"max":1,"version":"0.1.0","role":"mcp","stdin_inode":7,"stdout_inode":null,"parent":1,"argv0":"lych"}"#],
    );
}

#[test]
fn drafts_hold_under_mutation() {
    hold(
        checks::draft,
        &[
            b"admission = \"ask\"\n[runs]\nttl = \"8h\"\non_lock = \"end\"\n",
            b"[channel.a]\nkind = \"http\"\nbase = \"https://a.example/v1/\"\nsecret = \"t\"\n\
              inject = { header = \"X-Key\", format = \"{secret}\" }\n[[channel.a.operation]]\n\
              name = \"r\"\nallow = [\"GET /x/*\", \"POST /y/**\"]\n",
        ],
    );
}

#[test]
fn sealed_policies_hold_under_mutation() {
    hold(
        checks::policy,
        &[
            br#"{"version":2,"admission":"allow","runs":{"ttl":"8h","on_lock":"end"},"channels":[]}"#,
            br#"{"version":1,"admission":"ask","channels":[]}"#,
        ],
    );
}

#[test]
fn destinations_hold_under_mutation() {
    hold(
        checks::destination,
        &[
            b"https://api.example.com:8443/prefix",
            b"http://127.0.0.1:8080",
            b"https://[2001:db8::1]/x",
            b"http://[::1]:80",
            b"https://10.0.0.1",
        ],
    );
}

#[test]
fn the_redactor_holds_under_mutation() {
    hold(
        checks::redactor,
        &[
            b"\x05abcdefghijklmno{\"body\": \"text\"}",
            b"\x00[removed][removed][removed]",
            b"\x00\x3c\0\0\0\0\0\0\0!!!!!!!!!!!!!!!!!!!!",
        ],
    );
}

/// Returns what stands under a name in one of the logs.
fn part(log: &[(&'static str, &'static [u8])], name: &str) -> &'static [u8] {
    let found = log.iter().find(|(part, _)| *part == name);
    found.expect("a part of that log").1
}

#[test]
fn segments_hold_under_mutation() {
    let whole = part(checks::CLOSED, "seg/0000000000.seg");
    // Where zeros follow, a reader waits for a writer that may be at work.
    let good = [checks::used(whole), whole];
    hold_so_many(EVERYDAY_ON_DISK, checks::segment, &good);
}

#[test]
fn certificates_hold_under_mutation() {
    let good = part(checks::PRUNED, "pruned/0000000001.cert");
    hold_so_many(EVERYDAY_ON_DISK, checks::certificate, &[good]);
}
