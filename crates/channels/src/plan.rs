//! From what an agent asks to what would be sent: everything is checked here, before anything happens.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use model::{
    ChannelName, Denial, Destination, Digest, Foreign, OperationName, Secret, SecretName, Target,
};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::{
    limits::{ASK_BODY_BYTES, ASK_HEADER_BYTES, ASK_HEADERS, ASK_QUERY_BYTES},
    minted,
    path::{self, CleanPath},
    policy::{Channel, Inject, MintsCredentials, OnClientLost, Operation, Policy, Redact},
};

/// An HTTP action as the agent words it; none of it is trusted.
pub struct HttpAsk {
    /// Which channel.
    pub channel: String,
    /// The method.
    pub method: String,
    /// The path below the channel's base.
    pub path: String,
    /// Query parameters in order, not encoded.
    pub query: Vec<(String, String)>,
    /// Header fields in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

/// A request that the policy allows, without its credential.
pub struct Plan {
    pub(crate) base: Destination,
    pub(crate) method: http::Method,
    pub(crate) path_and_query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) inject: Option<Inject>,
    pub(crate) idempotency: Option<HeaderName>,
    pub(crate) ca: Option<String>,
    pub(crate) job_pointer: Option<String>,
    pub(crate) mints: MintsCredentials,
    pub(crate) redact: Redact,
    secret: Option<SecretName>,
    target: Target,
    arguments: Digest,
    on_client_lost: OnClientLost,
}

/// A secret with its seal, as the vault holds it.
pub struct Seal<'a> {
    /// The value.
    pub value: &'a Secret,
    /// Where it may go.
    pub destinations: &'a [Destination],
    /// The header it may go into.
    pub header: &'a str,
}

/// The value of the injected header for one destination, ready to be sent there and nowhere else.
pub struct Credential {
    pub(crate) base: Destination,
    pub(crate) header: HeaderName,
    pub(crate) value: Secret,
    /// The secret alone, to recognise it in an answer.
    pub(crate) bare: Secret,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl Policy {
    /// Plans a request.
    ///
    /// # Errors
    /// The policy does not allow it, or it tries to choose what is not the agent's to choose.
    pub fn plan(&self, ask: HttpAsk) -> Result<Plan, Denial> {
        let channel = self.channel(&ask.channel).ok_or(Denial::UnknownChannel)?;
        let path = path::read(&ask.path)?;
        let operation = channel
            .operations
            .iter()
            .find(|operation| operation.allows(&ask.method, &path))
            .ok_or(Denial::NotAllowed)?;
        let last = path.segments.last().map_or("", String::as_str);
        let mints = operation.mints_credentials;
        // Without a secret there is nothing that a login could turn into another one.
        if channel.secret.is_some()
            && mints == MintsCredentials::No
            && minted::asks_for_one(last, &ask)
        {
            let what =
                "an endpoint that hands out credentials, of an operation without mints_credentials";
            return Err(Denial::NotYours {
                what: what.to_owned(),
            });
        }
        let idempotency = operation.idempotency_header().and_then(header_of_policy);
        let headers = read_headers(&ask.headers, channel, idempotency.as_ref())?;
        let query = write_query(&ask.query)?;
        let body = ask.body.unwrap_or_default();
        if body.len() > ASK_BODY_BYTES {
            return Err(malformed(format!(
                "the body is longer than {ASK_BODY_BYTES} bytes"
            )));
        }
        let method = http::Method::from_bytes(ask.method.as_bytes())
            .map_err(|_| malformed("the method is none"))?;
        // Of a read it is kept from the agent like of a write, but not sent.
        let idempotency = idempotency.filter(|_| changes_something(&method));
        Ok(Plan {
            path_and_query: format!("{}{}{query}", channel.base.prefix(), path.text),
            arguments: digest(&method, &path.text, &query, &headers, &body),
            target: target(
                channel.name.clone(),
                &operation.name,
                &ask.method,
                path.text,
            ),
            base: channel.base.clone(),
            method,
            headers,
            body: Bytes::from(body),
            inject: channel.inject.clone(),
            idempotency,
            ca: channel.ca.clone(),
            mints,
            redact: operation.redact,
            job_pointer: operation.job.as_ref().map(|job| job.id.as_str().to_owned()),
            secret: channel.secret.clone(),
            on_client_lost: channel.on_client_lost,
        })
    }
}

impl Operation {
    fn allows(&self, method: &str, path: &CleanPath) -> bool {
        self.allow.iter().any(|allow| allow.matches(method, path))
    }
}

impl Plan {
    /// Returns what the record says of it.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Returns where it goes.
    #[must_use]
    pub const fn destination(&self) -> &Destination {
        &self.base
    }

    /// Tells whether it can change anything: everything can but GET, HEAD and OPTIONS (RFC 9110, 9.2.1).
    #[must_use]
    pub fn is_write(&self) -> bool {
        changes_something(&self.method)
    }

    /// Tells whether it may go over a connection that another one went over before, and leave it for the next.
    ///
    /// Not HEAD: a server that sends the body all the same, and late, would have it read as the next answer.
    pub(crate) fn may_share(&self) -> bool {
        !self.is_write() && self.method != http::Method::HEAD && self.body.is_empty()
    }

    /// Returns the secret it needs.
    #[must_use]
    pub const fn secret(&self) -> Option<&SecretName> {
        self.secret.as_ref()
    }

    /// Returns the header its request id goes into: only of a write, and only if the remote side has one.
    #[must_use]
    pub fn idempotency_header(&self) -> Option<&str> {
        self.idempotency.as_ref().map(HeaderName::as_str)
    }

    /// Returns the digest of everything that the agent chose.
    #[must_use]
    pub const fn arguments(&self) -> Digest {
        self.arguments
    }

    /// Returns what becomes of the call when its client is lost.
    #[must_use]
    pub const fn on_client_lost(&self) -> OnClientLost {
        self.on_client_lost
    }

    /// Makes the credential for this plan, if the secret is sealed for its destination and header.
    ///
    /// # Errors
    /// [`Denial::Secret`]: it is not.
    pub fn credential(&self, seal: &Seal<'_>) -> Result<Credential, Denial> {
        let inject = self.inject.as_ref().ok_or(Denial::Secret)?;
        let covered = seal
            .destinations
            .iter()
            .any(|sealed| sealed.covers(&self.base));
        let same_header = seal.header.eq_ignore_ascii_case(inject.header.as_str());
        if !covered || !same_header {
            return Err(Denial::Secret);
        }
        let (before, behind) = inject.format.around();
        let parts = [before.as_bytes(), seal.value.expose(), behind.as_bytes()];
        let value = Secret::new(parts.concat());
        // Checked now, since a header that cannot be built must not be found out behind the gate.
        if HeaderValue::from_bytes(value.expose()).is_err() {
            return Err(Denial::Secret);
        }
        Ok(Credential {
            base: self.base.clone(),
            header: header_of_policy(inject.header.as_str()).ok_or(Denial::Secret)?,
            value,
            bare: Secret::new(seal.value.expose().to_vec()),
        })
    }
}

impl Credential {
    /// Returns the header's value, whose memory is wiped when the HTTP library is done with it.
    pub(crate) fn into_header(self) -> Option<(HeaderName, HeaderValue, Secret)> {
        let owned = Zeroizing::new(self.value.expose().to_vec());
        let mut value = HeaderValue::from_maybe_shared(Bytes::from_owner(owned)).ok()?;
        value.set_sensitive(true);
        Some((self.header, value, self.bare))
    }
}

fn target(channel: ChannelName, operation: &OperationName, method: &str, path: String) -> Target {
    Target {
        channel,
        operation: Some(operation.clone()),
        method: Foreign::new(method),
        path: Foreign::new(path),
    }
}

fn changes_something(method: &http::Method) -> bool {
    !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS")
}

fn read_headers(
    asked: &[(String, String)],
    channel: &Channel,
    idempotency: Option<&HeaderName>,
) -> Result<HeaderMap, Denial> {
    let size: usize = asked
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if asked.len() > ASK_HEADERS || size > ASK_HEADER_BYTES {
        return Err(malformed(format!(
            "there are more than {ASK_HEADERS} headers, or more than {ASK_HEADER_BYTES} bytes of them"
        )));
    }
    let injected = channel.inject_header();
    let mut headers = HeaderMap::new();
    for (name, value) in asked {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| malformed("a header's name is none"))?;
        let ours = injected.is_some_and(|injected| injected.eq_ignore_ascii_case(name.as_str()))
            || idempotency == Some(&name);
        if ours || reserved(name.as_str()) {
            let what = format!("the header {name}");
            return Err(Denial::NotYours { what });
        }
        let value = HeaderValue::from_str(value)
            .map_err(|_| malformed(format!("the header {name} has a value that cannot be sent")))?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Headers that say where a message goes and where it ends, or that hold for one connection only.
pub(crate) fn frames(lower: &str) -> bool {
    FRAMING.contains(&lower) || lower.starts_with("proxy-")
}

/// Headers that are not the agent's: what frames the message, what carries authority, what makes a server take
/// it for another request or another client, and the encoding of the answer, which is kept readable.
fn reserved(lower: &str) -> bool {
    frames(lower)
        || RESERVED.contains(&lower)
        || ["x-forwarded-", "x-http-method", "x-method-"]
            .iter()
            .any(|start| lower.starts_with(start))
}

const FRAMING: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

const RESERVED: [&str; 9] = [
    "accept-encoding",
    "authorization",
    "cookie",
    "cookie2",
    "forwarded",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
    "x-original-host",
];

fn header_of_policy(name: &str) -> Option<HeaderName> {
    HeaderName::from_bytes(name.as_bytes()).ok()
}

fn write_query(query: &[(String, String)]) -> Result<String, Denial> {
    let mut out = String::new();
    for (name, value) in query {
        out.push(if out.is_empty() { '?' } else { '&' });
        encode(name, &mut out);
        out.push('=');
        encode(value, &mut out);
        if out.len() > ASK_QUERY_BYTES {
            return Err(malformed(format!(
                "the query is longer than {ASK_QUERY_BYTES} bytes"
            )));
        }
    }
    Ok(out)
}

fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if path::is_unreserved(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

/// SHA-256 over the parts, each with its length in front, so that no two different asks look alike. Headers
/// are sorted: their order says nothing, the order of equal names does.
fn digest(
    method: &http::Method,
    path: &str,
    query: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Digest {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(ARGUMENTS);
    part(method.as_str().as_bytes());
    part(path.as_bytes());
    part(query.as_bytes());
    let mut sorted: Vec<(&str, &[u8])> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    sorted.sort_by_key(|(name, _)| *name);
    part(&(sorted.len() as u64).to_be_bytes());
    for (name, value) in sorted {
        part(name.as_bytes());
        part(value);
    }
    part(body);
    Digest::from_bytes(hash.finalize().into())
}

fn malformed(what: impl Into<String>) -> Denial {
    Denial::Malformed { what: what.into() }
}

const ARGUMENTS: &[u8] = b"lychgate arguments v1";

/// The beginning of a digest, for a person to compare.
pub(crate) fn short_digest(bytes: &[u8]) -> String {
    let digest = Digest::from_bytes(Sha256::digest(bytes).into()).to_string();
    format!("sha256 {}", digest.get(..16).unwrap_or(&digest))
}
