//! Sending, once, and saying what came of it without guessing.

use authz::Cleared;
use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::Full;
use hyper::body::Incoming;
use model::{Foreign, RequestKey, Unsettled};
use tokio::time::{Instant, timeout_at};

use crate::{
    Connection, Credential, Plan, answer, minted,
    policy::{MintsCredentials, Redact},
    scrub::Scrub,
};

/// What came of a sending.
#[derive(Debug)]
pub enum Sent {
    /// An answer came, whatever its status.
    Answered(Answer),
    /// Provably nothing of the request left.
    HandedBack(NotSent),
    /// It may have had an effect, and nobody here knows.
    Broke {
        /// Why not.
        why: Unsettled,
        /// The status, if at least that much of an answer came.
        status: Option<u16>,
    },
}

/// An answer, as the agent may see it.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Header fields, names in small letters.
    pub headers: Vec<(String, Foreign)>,
    /// The body, as it came: nothing is decompressed here.
    pub body: Vec<u8>,
    /// What the remote side sent and is not in it.
    pub cut: Cut,
    /// The remote side's own id for what was done, if the operation says where it stands.
    pub remote_id: Option<Foreign>,
}

/// What was taken out of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cut {
    /// How often the channel's secret stood in it.
    pub echoed: usize,
    /// How often a credential that it hands out stood in it.
    pub minted: usize,
    /// Whether the whole body is kept back: it came compressed, although that was not asked for, and cannot be
    /// searched. Nothing is decompressed here, so a small answer cannot become a large one.
    pub withheld: bool,
}

/// Why nothing left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// The other side closed the connection before anything was written to it.
    #[error("the connection was closed before anything was sent")]
    ConnectionClosed,
    /// The call's authority was taken away before anything was written.
    #[error("the call was cancelled before anything was sent")]
    Cancelled,
    /// The clearance is another call's.
    #[error("the clearance belongs to another call")]
    OtherCall,
    /// The credential is missing, or is for another destination.
    #[error("the credential is not the one for this request")]
    OtherCredential,
    /// The remote side asks for a request id, and the call has none that can be sent.
    #[error("the write has no request id to send")]
    NoKey,
    /// The request cannot be put together.
    #[error("the request cannot be put together")]
    Unbuildable,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Bodies and headers are the remote side's business and never in a log.
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl Connection<'_> {
    /// Sends the request, once, and waits for its answer.
    ///
    /// Once the future is dropped nothing is moved any more; what is known then is only that bytes may have left.
    pub async fn send(&mut self, cleared: &Cleared, credential: Option<Credential>) -> Sent {
        if cleared.call() != self.call {
            return Sent::HandedBack(NotSent::OtherCall);
        }
        let request = match build(self.plan, cleared.key(), credential) {
            Ok(request) => request,
            Err(why) => return Sent::HandedBack(why),
        };
        if cleared.cancelled().is_cancelled() {
            return Sent::HandedBack(NotSent::Cancelled);
        }
        let mut status = None;
        let exchanged = tokio::select! {
            biased;
            () = cleared.cancelled().cancelled() => Err(Broken::Unsettled(Unsettled::Revoked)),
            exchanged = self.exchange(request, &mut status) => exchanged,
        };
        match exchanged {
            Ok(answer) => Sent::Answered(answer),
            Err(Broken::HandedBack) => Sent::HandedBack(NotSent::ConnectionClosed),
            Err(Broken::Unsettled(why)) => Sent::Broke { why, status },
        }
    }

    async fn exchange(
        &mut self,
        request: Outgoing,
        status: &mut Option<u16>,
    ) -> Result<Answer, Broken> {
        let begun = Instant::now();
        let sending = self.line.sender.try_send_request(request.message);
        let head = timeout_at(
            begun + self.limits.head,
            self.line.driver.alongside(sending),
        );
        let response = match head
            .await
            .map_err(|_| Broken::Unsettled(Unsettled::TimedOut))?
        {
            Ok(response) => response,
            // Given back whole: not one byte of it was written.
            Err(error) if error.message().is_some() => return Err(Broken::HandedBack),
            Err(error) => return Err(Broken::Unsettled(answer::why(error.error()))),
        };
        *status = Some(response.status().as_u16());
        let whole = begun + self.limits.whole;
        let reading = self.read(response, &request.scrub);
        timeout_at(whole, reading)
            .await
            .map_err(|_| Broken::Unsettled(Unsettled::TimedOut))?
            .map_err(Broken::Unsettled)
    }

    async fn read(
        &mut self,
        response: http::Response<Incoming>,
        scrub: &Scrub,
    ) -> Result<Answer, Unsettled> {
        let (head, body) = response.into_parts();
        let reading = answer::read_body(body, self.limits.answer_bytes);
        let mut body = self.line.driver.alongside(reading).await?;
        let mut cut = Cut::default();
        let mints = self.plan.mints == MintsCredentials::Yes;
        // What a channel without a secret hands out was not bought with one of ours.
        let guarded = self.plan.inject.is_some() && !mints;
        if (guarded || scrub.looks()) && answer::is_encoded(&head.headers) {
            body.clear();
            cut.withheld = true;
        }
        let minted = if guarded {
            Scrub::of_minted(minted::in_answer(&body))
        } else {
            Scrub::nothing()
        };
        let mut clean = |bytes| {
            let bytes = scrub.clean(bytes, &mut cut.echoed);
            minted.clean(bytes, &mut cut.minted)
        };
        let body = clean(body);
        let headers = answer::visible(&head.headers, mints)
            .into_iter()
            .map(|(name, value)| (name, Foreign::from_bytes(&clean(value))))
            .collect();
        let pointer = self.plan.job_pointer.as_deref();
        Ok(Answer {
            status: head.status.as_u16(),
            remote_id: pointer.and_then(|pointer| answer::remote_id(&body, pointer)),
            headers,
            body,
            cut,
        })
    }
}

enum Broken {
    HandedBack,
    Unsettled(Unsettled),
}

struct Outgoing {
    message: Request<Full<Bytes>>,
    /// The secret that went out, to be found in an answer that repeats it.
    scrub: Scrub,
}

fn build(
    plan: &Plan,
    key: Option<&RequestKey>,
    credential: Option<Credential>,
) -> Result<Outgoing, NotSent> {
    let mut message = Request::builder()
        .method(plan.method.clone())
        .uri(&plan.path_and_query)
        .body(Full::new(plan.body.clone()))
        .map_err(|_| NotSent::Unbuildable)?;
    let headers = message.headers_mut();
    *headers = plan.headers.clone();
    let host = HeaderValue::from_str(&plan.base.authority()).map_err(|_| NotSent::Unbuildable)?;
    headers.insert(header::HOST, host);
    // What cannot be read cannot be searched for the credential either.
    headers.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
    if !plan.may_share() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if !headers.contains_key(header::USER_AGENT) {
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    }
    if let Some(name) = plan.idempotency.clone() {
        let key = key.and_then(|key| HeaderValue::from_str(&key.0).ok());
        headers.insert(name, key.ok_or(NotSent::NoKey)?);
    }
    let scrub = match (plan.inject.is_some(), credential) {
        (false, None) => Scrub::nothing(),
        (true, Some(credential)) if credential.base == plan.base => {
            let (name, value, bare) = credential.into_header().ok_or(NotSent::Unbuildable)?;
            headers.insert(name, value);
            match plan.redact {
                Redact::Yes => Scrub::of(&bare),
                Redact::No => Scrub::nothing(),
            }
        }
        (true, Some(_) | None) | (false, Some(_)) => return Err(NotSent::OtherCredential),
    };
    Ok(Outgoing { message, scrub })
}

const USER_AGENT: &str = concat!("lychgate/", env!("CARGO_PKG_VERSION"));
