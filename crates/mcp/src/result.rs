//! Endings of calls as results of a tool: text for the model, structure for a program, a receipt for an auditor.
//!
//! A refusal is a result and not a protocol error, since clients show results to the model and hide errors from it.

use base64::{Engine, engine::general_purpose::STANDARD};
use gateway::{Answered, ChannelShown, Ending, Refusal};
use model::{CallId, Denial, Receipt, Unsettled, Withdrawal};
use rmcp::model::{
    CallToolResult, ContentBlock, JsonRpcMessage, MetaObject, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use serde_json::{Map, Value, json};

/// Where a result carries its receipt.
const RECEIPT: &str = "lychgate/receipt";

/// Returns the call that an ending is the ending of.
pub(crate) const fn call_of(ending: &Ending) -> CallId {
    match ending {
        Ending::Answered(answered) => answered.call,
        Ending::Refused(refusal) => refusal.call,
        Ending::Withdrawn { call, .. } | Ending::Unresolved { call, .. } => *call,
    }
}

/// Shows how a call ended.
pub(crate) fn of_ending(ending: Ending) -> CallToolResult {
    match ending {
        Ending::Answered(answered) => of_answer(answered),
        Ending::Refused(refusal) => of_refusal(&refusal),
        Ending::Withdrawn {
            call,
            proof,
            why,
            receipt,
        } => of_withdrawal(call, proof, &why, receipt),
        Ending::Unresolved { call, why, receipt } => of_unresolved(call, why, receipt),
    }
}

fn of_answer(answered: Answered) -> CallToolResult {
    let mut fields = Map::new();
    fields.insert("status".to_owned(), answered.status.into());
    fields.insert("headers".to_owned(), headers(answered.headers));
    let cut = answered.cut;
    let shown = match String::from_utf8(answered.body) {
        Ok(_) if cut.withheld => {
            "[kept back: it came compressed, although that was not asked for]".to_owned()
        }
        Ok(text) => {
            fields.insert("body".to_owned(), text.clone().into());
            text
        }
        Err(error) => {
            let bytes = error.into_bytes();
            let note = format!("[{} bytes that are no text, see body_base64]", bytes.len());
            fields.insert("body_base64".to_owned(), STANDARD.encode(bytes).into());
            note
        }
    };
    fields.insert("call".to_owned(), answered.call.to_string().into());
    // Said, because the text is not what the other side sent.
    if cut.echoed > 0 {
        fields.insert("secret_removed".to_owned(), cut.echoed.into());
    }
    if cut.minted > 0 {
        fields.insert("credentials_removed".to_owned(), cut.minted.into());
    }
    if cut.withheld {
        fields.insert("body_withheld".to_owned(), true.into());
    }
    if let Some(id) = answered.remote_id {
        fields.insert("remote_id".to_owned(), id.raw().into());
    }
    let text = format!("HTTP {}\n\n{shown}", answered.status);
    let result = CallToolResult::success(vec![ContentBlock::text(text)]);
    complete(result, Value::Object(fields), answered.receipt)
}

/// Fields of one name are one list (RFC 9110, section 5.3).
fn headers(fields: Vec<(String, String)>) -> Value {
    let mut all: Map<String, Value> = Map::new();
    for (name, value) in fields {
        let value = match all.get(&name).and_then(Value::as_str) {
            Some(before) => format!("{before}, {value}"),
            None => value,
        };
        all.insert(name, value.into());
    }
    Value::Object(all)
}

fn of_refusal(refusal: &Refusal) -> CallToolResult {
    let mut fields = detail(&refusal.why);
    fields.insert("code".to_owned(), refusal.why.code().into());
    fields.insert("call".to_owned(), refusal.call.to_string().into());
    fields.insert("what_to_do".to_owned(), refusal.what_to_do.clone().into());
    let text = format!(
        "Refused ({}), nothing was sent: {}",
        refusal.why.code(),
        refusal.what_to_do
    );
    failure(text, json!({ "refused": fields }), refusal.receipt)
}

/// Returns what a refusal's code alone does not say.
fn detail(why: &Denial) -> Map<String, Value> {
    let mut fields = Map::new();
    match why {
        Denial::Revoked { scope, seq } => {
            fields.insert("scope".to_owned(), scope.clone().into());
            fields.insert("seq".to_owned(), json!(seq));
        }
        Denial::NotYours { what } | Denial::Malformed { what } => {
            fields.insert("what".to_owned(), what.clone().into());
        }
        Denial::Repeat { of } => {
            fields.insert("of".to_owned(), of.to_string().into());
        }
        Denial::OwnershipIncomplete => why_word(&mut fields, "ownership_incomplete"),
        Denial::UnknownChannel => why_word(&mut fields, "unknown_channel"),
        Denial::NotAllowed => why_word(&mut fields, "not_allowed"),
        Denial::Secret => why_word(&mut fields, "secret"),
        Denial::Locked
        | Denial::Pending
        | Denial::ClientLost
        | Denial::Busy
        | Denial::NotRecorded => {}
    }
    fields
}

/// Tells apart the refusals that share the code `denied`.
fn why_word(fields: &mut Map<String, Value>, word: &str) {
    fields.insert("why".to_owned(), word.into());
}

fn of_withdrawal(
    call: CallId,
    proof: Withdrawal,
    why: &str,
    receipt: Option<Receipt>,
) -> CallToolResult {
    let text = format!("Given up before anything was sent: {why}; it is safe to try again");
    let fields = json!({
        "call": call.to_string(),
        "proof": proof,
        "why": why,
        "nothing_left": true,
        "what_to_do": "it is safe to try again"
    });
    failure(text, json!({ "withdrawn": fields }), receipt)
}

fn of_unresolved(call: CallId, why: Unsettled, receipt: Option<Receipt>) -> CallToolResult {
    let what_to_do = "do not repeat; ask the operator: lych reconcile";
    let text = format!(
        "Not known whether call {call} took effect ({}). Do not repeat it; ask the operator to look: lych reconcile",
        unsettled(why)
    );
    let fields = json!({
        "call": call.to_string(),
        "why": why,
        "what_to_do": what_to_do
    });
    failure(text, json!({ "unresolved": fields }), receipt)
}

const fn unsettled(why: Unsettled) -> &'static str {
    match why {
        Unsettled::ConnectionBroke => "the connection broke after the request may have left",
        Unsettled::TimedOut => "no answer came in time",
        Unsettled::Revoked => "the run was revoked while the request was under way",
        Unsettled::ClientLost => "the client was lost while the request was under way",
        Unsettled::DaemonEnded => "the daemon ended while the request was under way",
        Unsettled::AnswerUnreadable => "the answer could not be read",
    }
}

/// Shows the channels.
pub(crate) fn of_channels(channels: &[ChannelShown]) -> CallToolResult {
    let mut text = String::new();
    for channel in channels {
        text.push_str(&format!(
            "{} ({}) -> {}\n",
            channel.name, channel.kind, channel.base
        ));
        if let Some(why) = &channel.closed {
            text.push_str(&format!("  closed now: {}\n", why.code()));
        }
        for operation in &channel.operations {
            let allow = operation.allow.join(", ");
            text.push_str(&format!("  {}: {allow}\n", operation.name));
        }
    }
    if channels.is_empty() {
        text.push_str("No channel is open to you. The person you work for adds one in Lychgate.");
    }
    let shown: Vec<Value> = channels.iter().map(channel).collect();
    let result = CallToolResult::success(vec![ContentBlock::text(text)]);
    complete(result, json!({ "channels": shown }), None)
}

fn channel(channel: &ChannelShown) -> Value {
    let operation = |operation: &gateway::OperationShown| {
        json!({
            "name": operation.name,
            "allow": operation.allow,
            "idempotent": operation.idempotent
        })
    };
    json!({
        "name": channel.name.as_str(),
        "kind": channel.kind,
        "base": channel.base,
        "closed": channel.closed.as_ref().map(Denial::code),
        "operations": channel.operations.iter().map(operation).collect::<Vec<_>>()
    })
}

/// Shows that a tool's arguments are not as its schema says. There was no call, so there is none to name.
pub(crate) fn malformed(tool: &str, what: &str) -> CallToolResult {
    let what_to_do = format!("correct the arguments of {tool} and try again");
    let text = format!("Refused (malformed), nothing was sent: {what}");
    let fields = json!({
        "code": "malformed",
        "call": null,
        "what": what,
        "what_to_do": what_to_do
    });
    failure(text, json!({ "refused": fields }), None)
}

/// Answers a tool call that finds too many before it.
pub(crate) fn busy(id: RequestId) -> ServerJsonRpcMessage {
    let what_to_do = "wait for the answers of earlier calls, then try again";
    let text = format!("Refused (busy), nothing was sent: {what_to_do}");
    let fields = json!({
        "code": Denial::Busy.code(),
        "call": null,
        "what_to_do": what_to_do
    });
    let result = failure(text, json!({ "refused": fields }), None);
    JsonRpcMessage::response(ServerResult::CallToolResult(result), id)
}

fn failure(text: String, structure: Value, receipt: Option<Receipt>) -> CallToolResult {
    let result = CallToolResult::error(vec![ContentBlock::text(text)]);
    complete(result, structure, receipt)
}

fn complete(
    mut result: CallToolResult,
    structure: Value,
    receipt: Option<Receipt>,
) -> CallToolResult {
    result.structured_content = Some(structure);
    let meta = receipt.and_then(|receipt| serde_json::to_value(receipt).ok());
    result.with_meta(meta.map(|receipt| {
        let mut meta = MetaObject::new();
        meta.0.insert(RECEIPT.to_owned(), receipt);
        meta
    }))
}
