//! The draft, its errors, and the canonical form.

use proptest::prelude::*;

use crate::{Admission, OnClientLost, Policy, PolicyError, ResultKept};

const EXAMPLE: &str = r#"
admission = "allow"                 # allow | ask: may a new run start
[channel.builds]
kind = "http"                       # http | ssh
base = "https://ci.example.com/api/v2/"
secret = "ci-token"                 # a name in the vault, sealed for this destination
inject = { header = "Authorization", format = "Bearer {secret}" }
on_client_lost = "finish"           # finish | cancel
[[channel.builds.operation]]
name = "force"                      # methods and path patterns; what is not listed is refused
allow = ["POST /forceschedulers/*"]
approve = "never"                   # never | session | call
idempotency = { header = "Idempotency-Key", window = "24h" }        # or "none"
job = { id = "/result/0", status = "GET /builds/{id}", cancel = "POST /builds/{id}" }
result_kept = "remote"
"#;

/// The stored form of the example. It must be readable for ever: a change of it is a new version.
const CANONICAL: &str = concat!(
    r#"{"version":1,"admission":"allow","channels":[{"name":"builds","kind":"http","#,
    r#""base":"https://ci.example.com/api/v2","secret":"ci-token","#,
    r#""inject":{"header":"Authorization","format":"Bearer {secret}"},"ca":null,"on_client_lost":"finish","#,
    r#""operations":[{"name":"force","allow":["POST /forceschedulers/*"],"approve":"never","#,
    r#""idempotency":{"header":"Idempotency-Key","window":"1day"},"#,
    r#""job":{"id":"/result/0","status":"GET /builds/{id}","cancel":"POST /builds/{id}"},"#,
    r#""result_kept":"remote"}]}]}"#
);

fn example() -> Policy {
    Policy::parse_draft(EXAMPLE).unwrap()
}

#[test]
fn a_channel_tells_its_kind_its_secret_and_what_it_allows() {
    let policy = example();
    let channel = policy.channel("builds").unwrap();
    let allow: Vec<String> = channel.operations()[0]
        .allow()
        .iter()
        .map(ToString::to_string)
        .collect();

    assert_eq!(channel.kind(), "http");
    assert_eq!(channel.secret().map(|name| name.as_str()), Some("ci-token"));
    assert_eq!(allow, ["POST /forceschedulers/*"]);
}

#[test]
fn the_documented_example_is_read() {
    let policy = example();

    assert_eq!(policy.admission(), Admission::Allow);
    let channel = policy.channel("builds").unwrap();
    assert_eq!(channel.base().to_string(), "https://ci.example.com/api/v2");
    assert_eq!(channel.inject_header(), Some("Authorization"));
    assert_eq!(channel.on_client_lost(), OnClientLost::Finish);
    let operation = &channel.operations()[0];
    assert_eq!(operation.idempotency_header(), Some("Idempotency-Key"));
    assert_eq!(operation.result_kept(), Some(ResultKept::Remote));
    let job = operation.job().unwrap();
    assert_eq!(job.cancel().unwrap().to_string(), "POST /builds/{id}");
}

#[test]
fn an_empty_draft_allows_nothing_and_asks_for_every_run() {
    let policy = Policy::parse_draft("").unwrap();

    assert_eq!(policy, Policy::nothing());
    assert_eq!(
        policy.describe(),
        ["a new run waits until a person allows it"]
    );
}

#[test]
fn what_is_left_out_has_its_documented_default() {
    let text = "[channel.a]\nkind = \"http\"\nbase = \"https://h.example\"\nsecret = \"s\"\n\
                [channel.b]\nkind = \"http\"\nbase = \"https://h.example\"\nsecret = \"s\"\n\
                inject = { header = \"X-Api-Key\" }\n";
    let canonical = String::from_utf8(Policy::parse_draft(text).unwrap().canonical()).unwrap();

    assert!(
        canonical.contains(r#""inject":{"header":"Authorization","format":"Bearer {secret}"}"#)
    );
    assert!(canonical.contains(r#""inject":{"header":"X-Api-Key","format":"{secret}"}"#));
    assert!(canonical.contains(r#""on_client_lost":"finish""#));
}

#[test]
fn a_mistake_is_told_with_its_line() {
    let replaced = |from: &str, to: &str| {
        assert!(EXAMPLE.contains(from), "{from}");
        EXAMPLE.replacen(from, to, 1)
    };
    for (text, line, part) in [
        (
            replaced("admission = \"allow\"", "admission = \"yes\""),
            2,
            "admission = \"yes\" is not known",
        ),
        (
            replaced("admission", "admision"),
            2,
            "unknown field `admision`",
        ),
        (
            replaced("kind = \"http\"", "kind = \"smtp\""),
            4,
            "kind = \"smtp\" is not known",
        ),
        (
            replaced("kind = \"http\"", "kind = \"ssh\"\nhost = \"h\""),
            4,
            "not available yet",
        ),
        (replaced("kind = \"http\"", "#"), 3, "has no kind"),
        (replaced("base = ", "# "), 3, "has no base"),
        (replaced("https://ci", "http://ci"), 5, "base cannot be"),
        (
            replaced("secret = \"ci-token\"", "secret = \"a b\""),
            6,
            "secret cannot be",
        ),
        (replaced("secret = \"ci-token\"", "#"), 3, "has no secret"),
        (
            replaced("\"Authorization\"", "\"Host\""),
            7,
            "header to inject cannot be",
        ),
        (
            replaced("Bearer {secret}", "Bearer"),
            7,
            "format of the injected header cannot be",
        ),
        (
            replaced("Bearer {secret}", "{secret}{secret}"),
            7,
            "format of the injected header cannot be",
        ),
        (
            replaced("\"finish\"", "\"wait\""),
            8,
            "on_client_lost = \"wait\" is not known",
        ),
        (
            replaced("name = \"force\"", "name = \"for ce\""),
            10,
            "operation's name cannot be",
        ),
        (
            replaced("name = \"force\"", "label = \"force\""),
            10,
            "unknown field `label`",
        ),
        (
            replaced("POST /force", "FORCE /force"),
            11,
            "allow cannot be",
        ),
        (
            replaced("\"never\"", "\"call\""),
            12,
            "approve = \"call\" is not available yet",
        ),
        (
            replaced("\"never\"", "\"maybe\""),
            12,
            "approve = \"maybe\" is not known",
        ),
        (
            replaced("window = \"24h\"", "window = \"soon\""),
            13,
            "idempotency cannot be read",
        ),
        (
            replaced("window = \"24h\"", "windows = \"24h\""),
            13,
            "idempotency cannot be read",
        ),
        (
            replaced("\"Idempotency-Key\"", "\"authorization\""),
            13,
            "idempotency cannot be read",
        ),
        (
            replaced("\"/result/0\"", "\"result\""),
            14,
            "job's id cannot be",
        ),
        (
            replaced("GET /builds/{id}", "GET /builds"),
            14,
            "job's status cannot be",
        ),
        (
            replaced("\"remote\"", "\"here\""),
            15,
            "result_kept = \"here\" is not known",
        ),
        (format!("{EXAMPLE}ca = 1\n"), 16, "unknown field `ca`"),
        (replaced("[channel.builds]", "[channel.builds"), 3, ""),
        (
            replaced("on_client_lost", "ca = \"-----BEGIN\"\non_client_lost"),
            8,
            "no certificate",
        ),
    ] {
        let error = Policy::parse_draft(&text).unwrap_err();

        assert_eq!(error.line, Some(line), "{error}");
        assert!(error.to_string().contains(part), "{error}");
        assert!(
            error.to_string().starts_with(&format!("line {line}: ")),
            "{error}"
        );
        assert!(!error.next.is_empty());
    }
}

#[test]
fn two_operations_of_one_name_are_refused() {
    let text = format!("{EXAMPLE}[[channel.builds.operation]]\nname = \"force\"\n");

    let error = Policy::parse_draft(&text).unwrap_err();

    assert_eq!(
        (error.line, error.what.as_str()),
        (Some(17), "there are two operations named force")
    );
}

#[test]
fn the_canonical_form_is_that_of_version_one() {
    let policy = example();

    assert_eq!(String::from_utf8(policy.canonical()).unwrap(), CANONICAL);
    assert_eq!(Policy::from_canonical(CANONICAL.as_bytes()), Ok(policy));
}

#[test]
fn comments_order_and_spelling_do_not_change_the_canonical_form() {
    let other = "[channel.z]\nkind='http'\nbase='https://Z.example:443/'\n[channel.a]\nbase='https://a.example'\nkind='http'\n";
    let same = "# x\n[channel.a]\nkind='http'\nbase='https://a.example/'\n[channel.z]\nbase='https://z.example'\nkind='http'\non_client_lost='finish'\n";

    let (other, same) = (
        Policy::parse_draft(other).unwrap(),
        Policy::parse_draft(same).unwrap(),
    );

    assert_eq!(other.digest(), same.digest());
    assert_ne!(other.digest(), example().digest());
}

#[test]
fn stored_bytes_that_are_not_canonical_are_refused() {
    let newer = CANONICAL.replacen("\"version\":1", "\"version\":5,\"more\":[]", 1);
    assert_eq!(
        Policy::from_canonical(newer.as_bytes()),
        Err(PolicyError::Newer(5))
    );
    for (from, to) in [
        ("\"allow\",\"channels\"", "\"all\",\"channels\""),
        ("https://ci", "http://ci"),
        ("https://ci.", "https://CI."),
        ("{\"version\"", "{ \"version\""),
        ("\"Authorization\"", "\"Host\""),
        ("POST /force", "POST force"),
        ("\"version\":1", "\"version\":2"),
        ("\"version\":1", "\"version\":3"),
        ("\"version\":1", "\"version\":4"),
        (
            "\"result_kept\":\"remote\"",
            "\"result_kept\":\"remote\",\"redact\":\"yes\"",
        ),
        (
            "\"allow\",\"channels\"",
            "\"allow\",\"runs\":{},\"channels\"",
        ),
        ("\"ca\":null,", ""),
        ("\"ca\":null", "\"ca\":null,\"cb\":null"),
    ] {
        let text = CANONICAL.replacen(from, to, 1);
        assert_ne!(text, CANONICAL, "{from}");
        assert_eq!(
            Policy::from_canonical(text.as_bytes()),
            Err(PolicyError::Corrupt),
            "{to}"
        );
    }
}

#[test]
fn a_policy_is_told_in_words() {
    assert_eq!(
        example().describe(),
        [
            "a new run may start by itself",
            "channel builds: calls https://ci.example.com/api/v2",
            "channel builds: sends the secret ci-token in the header Authorization as \"Bearer {secret}\"",
            "channel builds: running calls may finish when their client is lost",
            "channel builds, operation force: allows POST /forceschedulers/* without asking",
            "channel builds, operation force: a repeated write is recognised by the header Idempotency-Key for 1day",
            "channel builds, operation force: its job is named at /result/0 of the answer; looked up by GET /builds/{id}, cancelled by POST /builds/{id}",
            "channel builds, operation force: the other side keeps the result",
        ]
    );
}

#[test]
fn a_change_is_told_by_what_goes_and_what_comes() {
    let wider = EXAMPLE
        .replace(
            "[\"POST /forceschedulers/*\"]",
            "[\"POST /forceschedulers/*\", \"DELETE /builds/**\"]",
        )
        .replace("ci.example.com", "other.example.com");
    let wider = Policy::parse_draft(&wider).unwrap();

    assert_eq!(
        wider.diff(Some(&example())),
        [
            "- channel builds: calls https://ci.example.com/api/v2",
            "+ channel builds: calls https://other.example.com/api/v2",
            "+ channel builds, operation force: allows DELETE /builds/** without asking",
        ]
    );
    assert!(example().diff(Some(&example())).is_empty());
    assert_eq!(example().diff(None).len(), example().describe().len());
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_of_drafts_panic(text: String, at in 0..EXAMPLE.len()) {
        let _ = Policy::parse_draft(&text);
        let mut spoiled = EXAMPLE.to_owned();
        if spoiled.is_char_boundary(at) {
            spoiled.insert_str(at, &text);
        }
        let _ = Policy::parse_draft(&spoiled);
    }

    #[test]
    fn no_changed_byte_leaves_the_stored_policy_as_it_was(at in 0..CANONICAL.len(), bit in 0..8u8) {
        let mut bytes = CANONICAL.as_bytes().to_vec();
        bytes[at] ^= 1 << bit;

        prop_assert_ne!(Policy::from_canonical(&bytes), Ok(example()));
    }
}

#[test]
fn bounds_on_runs_are_version_two_and_read_back() {
    let text = "admission = \"allow\"\n[runs]\nttl = \"8h\"\non_lock = \"end\"\n";
    let policy = Policy::parse_draft(text).unwrap();

    let canonical = policy.canonical();

    assert_eq!(
        String::from_utf8_lossy(&canonical),
        r#"{"version":2,"admission":"allow","runs":{"ttl":"8h","on_lock":"end"},"channels":[]}"#
    );
    let again = Policy::from_canonical(&canonical).unwrap();
    assert_eq!(again.runs().ttl().map(|ttl| ttl.as_secs()), Some(8 * 3600));
    assert_eq!(again.runs().on_lock(), crate::OnLock::End);
    let told = again.describe().join("\n");
    for words in [
        "a run ends after 8h",
        "locking the vault ends every run for good",
    ] {
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn how_much_of_the_log_is_kept_is_version_four_and_reads_back() {
    let policy = Policy::parse_draft("[log]\nkeep_days = 30\nkeep_bytes = 67108864\n").unwrap();

    let canonical = policy.canonical();

    assert_eq!(
        String::from_utf8_lossy(&canonical),
        r#"{"version":4,"admission":"ask","log":{"keep_days":30,"keep_bytes":67108864},"channels":[]}"#
    );
    let again = Policy::from_canonical(&canonical).unwrap();
    assert_eq!((again.log().days(), again.log().bytes()), (30, 64 << 20));
    let told = again.describe().join("\n");
    assert!(
        told.contains("30 days and at most 67108864 bytes"),
        "{told}"
    );
}

#[test]
fn ninety_days_and_a_gibibyte_of_the_log_are_kept_if_nothing_is_said() {
    let nothing = Policy::nothing().log();
    let only_days = Policy::parse_draft("[log]\nkeep_days = 7\n").unwrap().log();

    assert_eq!((nothing.days(), nothing.bytes()), (90, 1 << 30));
    assert_eq!((only_days.days(), only_days.bytes()), (7, 1 << 30));
}

#[test]
fn so_little_of_the_log_as_cannot_be_kept_is_refused_with_its_line() {
    for bad in [
        "keep_days = 0",
        "keep_days = -3",
        "keep_days = \"90\"",
        "keep_bytes = 16777215",
        "keep_bytes = 1.5",
        "keep = 3",
    ] {
        let error = Policy::parse_draft(&format!("[log]\n{bad}\n")).unwrap_err();
        assert_eq!(error.line, Some(2), "{bad}: {error:?}");
    }
}

#[test]
fn a_time_for_runs_that_cannot_be_kept_is_refused_with_its_line() {
    for bad in ["\"soon\"", "\"0s\"", "\"10ms\"", "\"-1h\""] {
        let error = Policy::parse_draft(&format!("[runs]\nttl = {bad}\n")).unwrap_err();
        assert_eq!(error.line, Some(2), "{bad}: {error:?}");
    }
}

#[test]
fn what_version_three_added_reads_back_and_is_told_in_words() {
    let draft = |base: &str, lines: &str| {
        format!(
            "[channel.a]\nkind = \"http\"\nbase = \"{base}\"\n\
             [[channel.a.operation]]\nname = \"o\"\nallow = [\"GET /x\"]\n{lines}\n"
        )
    };
    for (base, lines, field, words) in [
        (
            "https+private://ci.lan",
            "",
            r#""base":"https+private://ci.lan""#,
            "channel a: may lead into a private network",
        ),
        (
            "https://h.example",
            "mints_credentials = true",
            r#""result_kept":null,"mints_credentials":"yes"}"#,
            "channel a, operation o: may hand out credentials of the other side, and the agent gets them",
        ),
        (
            "https://h.example",
            "redact = false",
            r#""result_kept":null,"redact":"no"}"#,
            "channel a, operation o: an answer that repeats the secret hands it to the agent",
        ),
    ] {
        let policy = Policy::parse_draft(&draft(base, lines)).unwrap();

        let canonical = policy.canonical();

        let text = String::from_utf8_lossy(&canonical);
        assert!(text.starts_with(r#"{"version":3,"#), "{text}");
        assert!(text.contains(field), "{text}");
        assert_eq!(Policy::from_canonical(&canonical).unwrap(), policy);
        assert!(policy.describe().contains(&words.to_owned()), "{words}");
    }
    let defaults = draft(
        "https://h.example",
        "mints_credentials = false\nredact = true",
    );
    let plain = Policy::parse_draft(&defaults).unwrap().canonical();
    assert!(plain.starts_with(br#"{"version":1,"#));
}
