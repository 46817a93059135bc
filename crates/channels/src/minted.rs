//! Credentials of the remote side that a call would bring: refused before, taken out of the answer after.
//!
//! A login or a token endpoint turns the secret of a channel into one that works anywhere, so an agent that
//! may call it has what the vault keeps from it. An operation that is meant to do this says
//! `mints_credentials`. Beside that, what is looked for are the names under which protocols hand credentials
//! out. A value under another name is not found: this is a net and no wall.

use serde_json::Value;
use zeroize::Zeroizing;

use crate::plan::HttpAsk;

/// Tells whether this looks like an endpoint that mints: by the last segment of its path, or because the
/// request asks for a grant (RFC 6749, section 4).
pub(crate) fn asks_for_one(last_segment: &str, ask: &HttpAsk) -> bool {
    // Custom methods stand behind a colon: `serviceAccounts/x:generateAccessToken`.
    let verb = last_segment.rsplit(':').next().unwrap_or(last_segment);
    let verb = plain(verb);
    let named =
        LOGINS.contains(&verb.as_str()) || verb.ends_with("token") || verb.ends_with("tokens");
    let granted = ask.query.iter().any(|(name, _)| plain(name) == GRANT)
        || ask.body.as_deref().is_some_and(names_a_grant);
    // Taking a credential away is no minting.
    (named && ask.method != "DELETE") || granted
}

fn names_a_grant(body: &[u8]) -> bool {
    match serde_json::from_slice::<Value>(body) {
        Ok(json) => json
            .as_object()
            .is_some_and(|fields| fields.keys().any(|name| plain(name) == GRANT)),
        Err(_) => pairs(body).any(|(name, _)| plain(name) == GRANT),
    }
}

/// Returns the credentials that an answer hands out, each once.
pub(crate) fn in_answer(body: &[u8]) -> Vec<Zeroizing<Vec<u8>>> {
    let mut found = Vec::new();
    match serde_json::from_slice::<Value>(body) {
        Ok(json) => collect(&json, &mut found),
        Err(_) => found.extend(
            pairs(body)
                .filter(|(name, value)| hands_out(name, value))
                .map(|(_, value)| value.to_owned()),
        ),
    }
    found.sort_unstable();
    found.dedup();
    found
        .into_iter()
        .map(|value| Zeroizing::new(value.into_bytes()))
        .collect()
}

fn collect(json: &Value, found: &mut Vec<String>) {
    match json {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if hands_out(name, text) => found.push(text.clone()),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Array(_)
                    | Value::Object(_) => collect(value, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| collect(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Fields of a form (`a=b&c=d`), as some token endpoints answer; none if it is no form.
fn pairs(body: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    let text = std::str::from_utf8(body).unwrap_or_default().trim();
    let form = !text.contains(char::is_whitespace);
    text.split('&')
        .filter(move |_| form)
        .filter_map(|pair| pair.split_once('='))
}

fn hands_out(name: &str, value: &str) -> bool {
    let long = value.len() >= SHORTEST && !value.contains(char::is_whitespace);
    long && NAMES.contains(&plain(name).as_str())
}

/// `access_token`, `accessToken` and `Access-Token` are one name.
fn plain(name: &str) -> String {
    let kept = name.chars().filter(char::is_ascii_alphanumeric);
    kept.map(|c| c.to_ascii_lowercase()).collect()
}

const GRANT: &str = "granttype";

const LOGINS: [&str; 4] = ["login", "signin", "authenticate", "assumerole"];

/// OAuth 2 (RFC 6749, RFC 7591), OpenID Connect, Amazon's STS, and what services call the same thing.
const NAMES: [&str; 11] = [
    "accesstoken",
    "apikey",
    "clientsecret",
    "idtoken",
    "jwt",
    "privatekey",
    "refreshtoken",
    "secretaccesskey",
    "securitytoken",
    "sessiontoken",
    "token",
];

/// Credentials are longer; what is shorter is a word that would be found where it is none.
const SHORTEST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "abcdefghijklmnop";

    fn ask(method: &str, body: &str) -> HttpAsk {
        HttpAsk {
            channel: String::new(),
            method: method.to_owned(),
            path: String::new(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Some(body.as_bytes().to_vec()),
        }
    }

    #[test]
    fn an_endpoint_that_mints_is_known_by_its_name_or_by_the_grant_it_is_asked_for() {
        for (method, segment, body) in [
            ("POST", "token", ""),
            ("GET", "token", ""),
            ("POST", "access_tokens", ""),
            ("POST", "Login", ""),
            ("POST", "sign-in", ""),
            ("POST", "x:generateAccessToken", ""),
            ("POST", "anything", "grant_type=client_credentials"),
            ("POST", "anything", "a=b&grant_type=x"),
            ("POST", "anything", r#"{"grant_type":"x"}"#),
        ] {
            assert!(
                asks_for_one(segment, &ask(method, body)),
                "{segment} {body}"
            );
        }
        for (method, segment, body) in [
            ("DELETE", "token", ""),
            ("GET", "builds", ""),
            ("POST", "tokenize", ""),
            ("POST", "comment", "the grant_type=x of OAuth"),
            ("POST", "comment", r#"{"text":"grant_type"}"#),
        ] {
            assert!(
                !asks_for_one(segment, &ask(method, body)),
                "{segment} {body}"
            );
        }
        let mut asked = ask("GET", "");
        asked.query.push(("grant_type".to_owned(), "x".to_owned()));
        assert!(asks_for_one("anything", &asked));
    }

    #[test]
    fn what_an_answer_hands_out_is_found_by_its_name() {
        for body in [
            format!(r#"{{"access_token":"{VALUE}"}}"#),
            format!(r#"[1,{{"a":{{"Credentials":[{{"SessionToken":"{VALUE}"}}]}}}}]"#),
            format!(r#"{{"token":"{VALUE}","accessToken":"{VALUE}"}}"#),
            format!("scope=x&access_token={VALUE}&token_type=bearer\n"),
        ] {
            let found = in_answer(body.as_bytes());

            assert_eq!(found.len(), 1, "{body}");
            assert_eq!(found[0].as_slice(), VALUE.as_bytes(), "{body}");
        }
        for body in [
            format!(r#"{{"next_page_token":"{VALUE}"}}"#),
            r#"{"token":"short"}"#.to_owned(),
            r#"{"token":"a text with blanks in it"}"#.to_owned(),
            r#"{"token":12345678901234567890}"#.to_owned(),
            format!(r#"{{"{VALUE}":"access_token"}}"#),
            format!("see access_token={VALUE}"),
            "\u{0}".to_owned(),
        ] {
            assert!(in_answer(body.as_bytes()).is_empty(), "{body}");
        }
    }
}
