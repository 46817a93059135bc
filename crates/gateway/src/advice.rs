//! What an agent, or the person behind it, can do about a refusal.

use model::Denial;

/// Says what to do next, in a sentence that an agent can hand on.
pub(crate) fn what_to_do(why: &Denial) -> String {
    match why {
        Denial::Revoked { scope, .. } if scope == "run" => {
            "stop; an operator took this run's authority away, and only a new run can be given one".to_owned()
        }
        Denial::Revoked { scope, .. } => {
            format!("stop using this {scope}; an operator took it away (`lych channels apply` gives it back)")
        }
        Denial::Locked => "ask the operator to run `lych unlock`, then make the call again".to_owned(),
        Denial::Pending => {
            "ask the operator to admit this run: `lych pending`, then `lych allow RUN`; make the call again afterwards"
                .to_owned()
        }
        Denial::ClientLost => "nothing; the client this run belonged to is gone".to_owned(),
        Denial::OwnershipIncomplete => {
            "only reads are possible: it cannot be told which process holds this server's standard input; start \
             `lych mcp` directly from the client"
                .to_owned()
        }
        Denial::UnknownChannel => "list the channels with the tool `channels`".to_owned(),
        Denial::NotAllowed => {
            "use a method and path that the channel lists, or ask the operator to allow this one".to_owned()
        }
        Denial::NotYours { what } => format!("change the call, since this is not the agent's to choose: {what}"),
        Denial::Repeat { of } => format!(
            "do not repeat it; the same write {of} is still open. Ask the operator: `lych reconcile list`, then \
             `lych reconcile resolve {of} --as confirmed|failed --evidence TEXT`; or `lych allow --repeat {of}`, if it \
             may be done twice"
        ),
        Denial::Busy => "wait for an answer to an earlier call, then make this one again".to_owned(),
        Denial::NotRecorded => "stop; nothing can be recorded, so nothing may leave (`lych status` says why)".to_owned(),
        Denial::Secret => {
            "ask the operator: the channel's secret is missing, or is sealed for another destination or header \
             (`lych vault list`)"
                .to_owned()
        }
        Denial::Malformed { what } => format!("correct the call: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use model::CallId;

    use super::*;

    #[test]
    fn every_refusal_says_what_can_be_done_about_it_and_by_whom() {
        let revoked = |scope: &str| Denial::Revoked {
            scope: scope.to_owned(),
            seq: Some(7),
        };
        let what = || "the header host".to_owned();
        let of = CallId::from_bytes([3; 10]);
        for (why, part) in [
            (revoked("run"), "only a new run".to_owned()),
            (revoked("channel"), "stop using this channel".to_owned()),
            (revoked("secret"), "stop using this secret".to_owned()),
            (Denial::Locked, "`lych unlock`".to_owned()),
            (Denial::Pending, "`lych allow RUN`".to_owned()),
            (Denial::ClientLost, "nothing; the client".to_owned()),
            (Denial::OwnershipIncomplete, "only reads".to_owned()),
            (Denial::UnknownChannel, "the tool `channels`".to_owned()),
            (Denial::NotAllowed, "that the channel lists".to_owned()),
            (Denial::NotYours { what: what() }, what()),
            (
                Denial::Repeat { of },
                format!("lych reconcile resolve {of}"),
            ),
            (Denial::Busy, "wait for an answer".to_owned()),
            (Denial::NotRecorded, "`lych status`".to_owned()),
            (Denial::Secret, "`lych vault list`".to_owned()),
            (Denial::Malformed { what: what() }, what()),
        ] {
            let said = what_to_do(&why);
            assert!(said.contains(&part), "{why:?}: {said}");
        }
    }
}
