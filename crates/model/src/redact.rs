//! Command lines without the secrets in them: flags stay, values that look like secrets become their length.
//!
//! Works by names (`--token=…`, `API_KEY=…`, `Authorization: …`) and by shapes (`ghp_…`, `sk-…`, a JWT).
//! A secret with a plain name and a plain shape passes, so redacted text is still shown to its owner only.
//! No digest of the value is kept: a short one could be guessed from it.

use crate::Foreign;

/// Returns the arguments of a command line with what looks like a secret replaced by its length.
///
/// Redacting twice changes nothing more, so both sides of a comparison can be redacted.
#[must_use]
pub fn arguments<T: AsRef<[u8]>>(arguments: impl IntoIterator<Item = T>) -> Vec<Foreign> {
    let mut flag_before = false;
    arguments
        .into_iter()
        .map(|argument| {
            let whole = Foreign::from_bytes(argument.as_ref());
            let text = whole.raw();
            let value_of_flag = flag_before && !text.starts_with('-');
            flag_before = is_secret_flag(text);
            let shown = if value_of_flag {
                hidden(text)
            } else {
                redact(text)
            };
            // Bytes that are not UTF-8 are kept only where nothing was hidden.
            if shown == text {
                whole
            } else {
                Foreign::new(shown)
            }
        })
        .collect()
}

/// Returns one text (a shell command, a title that a process gave itself) redacted word by word.
#[must_use]
pub fn text(text: &str) -> String {
    redact(text)
}

/// Tells whether something of this name (a flag, a variable, a header) is likely to hold a secret.
#[must_use]
pub fn names_a_secret(name: &str) -> bool {
    is_secret_name(name)
}

fn redact(text: &str) -> String {
    // A flag's value reaches to the end of its argument, spaces and all.
    let whole_flag = text.starts_with('-')
        && assignment(text)
            .is_some_and(|(name, _)| is_secret_name(name) && !name.contains(char::is_whitespace));
    if whole_flag || !text.contains(char::is_whitespace) {
        return word(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut hide_next = false;
    for piece in text.split_inclusive(char::is_whitespace) {
        let bare = piece.trim_end();
        let space = piece.get(bare.len()..).unwrap_or("");
        if bare.is_empty() || is_scheme(bare) {
            out.push_str(piece);
            continue;
        }
        if hide_next && !bare.starts_with('-') {
            out.push_str(&hidden(bare));
        } else {
            out.push_str(&word(bare));
        }
        hide_next = is_secret_flag(bare) || is_secret_label(bare);
        out.push_str(space);
    }
    out
}

/// Words between a header's name and its secret.
fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "token"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// `--token`, `-password`: the secret is the next word.
fn is_secret_flag(word: &str) -> bool {
    word.starts_with('-') && !word.contains('=') && is_secret_name(word)
}

/// `Authorization:`, `"x-api-key":`: the secret is the next word.
fn is_secret_label(word: &str) -> bool {
    word.trim_end_matches(['"', '\''])
        .strip_suffix(':')
        .is_some_and(is_secret_name)
}

fn word(word: &str) -> String {
    if already_hidden(word) {
        return word.to_owned();
    }
    if let Some((name, value)) = assignment(word)
        && is_secret_name(name)
    {
        let kept = word.len() - value.len();
        return format!("{}{}", word.get(..kept).unwrap_or(""), hidden(value));
    }
    if let Some(url) = url(word) {
        return url;
    }
    if let Some((name, value)) = word.split_once('=') {
        return format!("{name}={}", shape(value));
    }
    shape(word)
}

/// Splits `name=value`, `Name:value` and `"name":"value"`, but no URL.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let at = word.find(['=', ':'])?;
    let (name, value) = (word.get(..at)?, word.get(at + 1..)?);
    let is_url = word.as_bytes().get(at) == Some(&b':') && value.starts_with("//");
    if name.is_empty() || value.is_empty() || is_url {
        return None;
    }
    Some((name, value))
}

/// The parts of a URL that carry secrets: the password of its authority, and named query values.
fn url(word: &str) -> Option<String> {
    let at = word.find("://")? + 3;
    let (scheme, rest) = (word.get(..at)?, word.get(at..)?);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = (rest.get(..end)?, rest.get(end..)?);
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, password)) => format!("{name}:{}@{host}", hidden(password)),
            None => format!("{}@{host}", shape(user)),
        },
        None => authority.to_owned(),
    };
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
    let mut out = format!("{scheme}{authority}{path}");
    for (n, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        out.push(if n == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, value)) if is_secret_name(name) => {
                out.push_str(name);
                out.push('=');
                out.push_str(&hidden(value));
            }
            Some(_) | None => out.push_str(pair),
        }
    }
    Some(out)
}

/// Hides a word that has the shape of a secret, whatever it is called.
fn shape(word: &str) -> String {
    let bare = word.trim_matches(['"', '\'', ',', ';', '(', ')', '{', '}', '[', ']']);
    let known = PREFIXES
        .iter()
        .any(|prefix| bare.starts_with(prefix) && bare.len() >= prefix.len() + 8);
    let jwt = bare.starts_with("eyJ") && bare.matches('.').count() == 2;
    if known || jwt || looks_random(bare) {
        hidden(word)
    } else {
        word.to_owned()
    }
}

/// Long, of one alphabet, with capitals, small letters and digits: what base64 of a key looks like.
fn looks_random(word: &str) -> bool {
    let has = |test: fn(&char) -> bool| word.chars().any(|c| test(&c));
    word.len() >= 32
        && !word.starts_with(['/', '.', '~', '-', '@'])
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+/=_-".contains(c))
        && has(char::is_ascii_uppercase)
        && has(char::is_ascii_lowercase)
        && has(char::is_ascii_digit)
}

fn is_secret_name(name: &str) -> bool {
    // Folders that every shell sets (POSIX, cd). A flag `--pwd` is still taken for a password.
    if matches!(name, "PWD" | "OLDPWD") {
        return false;
    }
    let name: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    // These only name where the secret lies.
    if ["file", "path", "fd", "command", "helper"]
        .iter()
        .any(|end| name.ends_with(end))
    {
        return false;
    }
    SECRET_ENDINGS.iter().any(|end| name.ends_with(end))
        || SECRET_WORDS.iter().any(|word| name.contains(word))
}

fn hidden(value: &str) -> String {
    if already_hidden(value) || value.is_empty() {
        value.to_owned()
    } else {
        format!("[redacted:{}]", value.len())
    }
}

/// Only the exact form counts, or a secret could hide behind the word.
fn already_hidden(value: &str) -> bool {
    value
        .strip_prefix("[redacted:")
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

const SECRET_WORDS: [&str; 12] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "bearer",
    "cookie",
];

/// Words that mean a secret at the end of a name but not inside one (`--keyboard`, `--author`).
const SECRET_ENDINGS: [&str; 6] = ["key", "auth", "pwd", "pass", "pat", "dsn"];

const PREFIXES: [&str; 24] = [
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "npm_",
    "pypi-",
    "hf_",
    "AGE-SECRET-KEY-",
    "ntn_",
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(argv: &[&str]) -> String {
        let redacted = arguments(argv);
        let words: Vec<&str> = redacted.iter().map(Foreign::raw).collect();
        words.join(" ")
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_where_nothing_was_hidden_and_nowhere_else() {
        let shown = arguments([&b"caf\xe9"[..], b"--token=s\xe9cret", b"--key", b"s\xe9"]);

        assert_eq!(shown[0].bytes(), b"caf\xe9");
        for hidden in [&shown[1], &shown[3]] {
            assert_eq!(hidden.bytes(), hidden.raw().as_bytes());
            assert!(hidden.raw().contains("[redacted:"), "{hidden}");
        }
    }

    #[test]
    fn a_value_is_hidden_wherever_its_name_says_that_it_is_secret() {
        for (argv, expected) in [
            (vec!["s", "--token=abc"], "s --token=[redacted:3]"),
            (vec!["s", "--api-key", "abcd"], "s --api-key [redacted:4]"),
            (vec!["-e", "GITHUB_TOKEN=x"], "-e GITHUB_TOKEN=[redacted:1]"),
            (
                vec!["-H", "Authorization: Bearer abc"],
                "-H Authorization: Bearer [redacted:3]",
            ),
            (vec!["X-Api-Key:abc"], "X-Api-Key:[redacted:3]"),
            (
                vec!["sh", "-c", "PASSWORD=hunter2 srv --key k1"],
                "sh -c PASSWORD=[redacted:7] srv --key [redacted:2]",
            ),
            (
                vec!["postgres://u:pw@db/x?sslmode=on&password=p"],
                "postgres://u:[redacted:2]@db/x?sslmode=on&password=[redacted:1]",
            ),
        ] {
            assert_eq!(shown(&argv), expected);
        }
    }

    #[test]
    fn the_working_folder_is_no_password() {
        for name in ["PWD", "OLDPWD"] {
            assert!(!names_a_secret(name), "{name}");
        }
        for name in ["MYSQL_PWD", "DB_PWD", "PASSWORD", "--pwd"] {
            assert!(names_a_secret(name), "{name}");
        }
    }

    #[test]
    fn a_value_is_hidden_by_its_shape_when_its_name_says_nothing() {
        for secret in [
            "ghp_0123456789abcdef",
            "sk-proj-0123456789",
            "eyJhbGciOiJI.eyJzdWIiOi.SflKxwRJ",
            "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE",
        ] {
            assert!(!shown(&["srv", secret]).contains(secret), "{secret}");
            let assigned = format!("--x={secret}");
            assert!(!shown(&["srv", &assigned]).contains(secret), "{secret}");
        }
    }

    #[test]
    fn what_tells_one_server_from_another_stays() {
        for argv in [
            vec![
                "npx",
                "-y",
                "@modelcontextprotocol/server-everything",
                "stdio",
            ],
            vec![
                "node",
                "/home/U5er/.npm/_npx/5b2dd62b9d0bddd4/node_modules/.bin/x",
            ],
            vec!["uv", "run", "--directory", "/srv/Project1", "server.py"],
            vec![
                "srv",
                "--author",
                "me",
                "--keyboard",
                "us",
                "--token-file",
                "/run/t",
            ],
            vec!["PWD=/srv", "http://127.0.0.1:8080/v2/"],
        ] {
            assert_eq!(shown(&argv), argv.join(" "));
        }
    }

    proptest! {
        #[test]
        fn redacting_twice_changes_nothing_more(argv: Vec<String>) {
            let once = arguments(&argv);
            let again = arguments(once.iter().map(Foreign::raw));

            prop_assert_eq!(once, again);
        }

        #[test]
        fn a_named_secret_never_passes(secret in "[A-Za-z0-9+/_][A-Za-z0-9+/_ ]{6,40}[a-z]") {
            let line = shown(&["srv", &format!("--token={secret}"), "--secret", &secret]);

            prop_assert!(!line.contains(&secret), "{}", line);
        }
    }
}
