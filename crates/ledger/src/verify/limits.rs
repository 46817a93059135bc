//! What a verification does not prove, said each time.

use crate::report::Report;

/// Returns what no verification proves.
pub(super) fn always() -> Vec<String> {
    [
        "that an action was allowed, wise or wanted: only that the history is the one that was written",
        "that what was recorded is true, or that nothing happened outside the gate",
        "that the sealed parts say anything in particular: they were not opened",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Adds what this one does not prove.
pub(super) fn of(report: &mut Report, expected_id: bool) {
    let last = report.last_seq.unwrap_or(0);
    let pinned = report.confirmed_from_outside();
    let mut add = |line: String| report.does_not_prove.push(line);
    match (pinned, report.last_seq) {
        (Some(seq), _) if seq < last => add(format!(
            "that records {} to {last} were not replaced by whoever can write the log's folder and held its keys, \
             or that none follow {last}: no pin from outside reaches there",
            seq + 1
        )),
        (Some(_), _) => add(format!("that no records behind {last} existed")),
        (None, Some(_)) => add(
            "that the log was not cut or rolled back as a whole together with HEAD: no pin from outside was given"
                .to_owned(),
        ),
        (None, None) => {}
    }
    if !report.prunes.is_empty() {
        add(
            "what the segments that were given up held, beyond what the certificate carries over"
                .to_owned(),
        );
    }
    if !expected_id {
        add("that this is the log you mean: give its id with --log-id".to_owned());
    }
    if report.root_is_bootstrap {
        add(
            "anything against a program that could read the bootstrap root key from this user's files: \
             no vault has taken over"
                .to_owned(),
        );
    }
    if let Some(last) = report.bootstrap_to {
        add(format!(
            "anything up to record {last} against a program that could read the bootstrap root key from this user's \
             files then: no vault had taken over yet"
        ));
    }
}
