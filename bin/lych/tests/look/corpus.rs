//! Every kind of the corpus of real cases as real processes, with a living twin of the same command, age and
//! processor use: the kind passes only if the leftover is called by its name and the twin is called LIVE.
//!
//! Each is looked at by root, by the user whose processes they are (who must get the same verdict), and by
//! another user, who may see too little and must then be told so and no guess. What ps(1) and lsof(8) lead to is
//! held against that: the same, or less by a rule that is written down, never the contrary.

use std::{collections::BTreeSet, fmt, net::TcpListener, panic::catch_unwind};

use serde_json::Value;
use testkit::{Deadline, Proof, wait_until};

use crate::{
    scene::User,
    stage::{Stage, Troupe},
};

mod kinds;

use kinds::{End, KINDS, Kind, Manager, Twin};

/// Who looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    /// The user whose processes they are.
    Owner,
    Root,
    Stranger,
    /// Root, in the namespace that they are in.
    Inside,
    /// Root, through ps(1) and lsof(8).
    Portable,
}

/// What one observer was told: of the leftover, and of its twin.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    view: View,
    verdict: String,
    confidence: String,
    twin: String,
    /// Whether the descriptors of every process could be read.
    all_seen: bool,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = |text: &str| if text.is_empty() { "no finding" } else { text }.to_owned();
        let (verdict, twin) = (none(&self.verdict), none(&self.twin));
        let of = if self.confidence.is_empty() { "" } else { " " };
        let confidence = &self.confidence;
        write!(f, "{:?}: {verdict}{of}{confidence}, twin {twin}", self.view)
    }
}

/// Who looks at this kind; whoever is not root plays and looks alone.
fn views(kind: &Kind) -> Vec<(View, User)> {
    let mut views = vec![(View::Owner, User::other().unwrap_or(User::Own))];
    if let Some(stranger) = User::stranger() {
        views.extend([(View::Root, User::Own), (View::Stranger, stranger)]);
    }
    if kind.is_in_a_namespace() {
        views.push((View::Inside, User::Own));
    }
    if kind.end != End::Contain {
        views.push((View::Portable, User::Own));
    }
    views
}

impl Kind {
    /// Verdict and confidence.
    fn expected(&self, all_seen: bool) -> (&'static str, &'static str) {
        let less = self.unless_all_seen.filter(|_| !all_seen);
        less.unwrap_or(self.verdict)
    }

    fn is_in_a_namespace(&self) -> bool {
        self.style.starts_with("namespace:")
    }
}

/// A kind on its stage, with its twin.
struct Play<'a> {
    kind: &'a Kind,
    stage: Stage,
    subject: Troupe,
    twin: Option<Troupe>,
}

impl<'a> Play<'a> {
    fn give(kind: &'a Kind, port: u16) -> Self {
        let stage = Stage::open(User::other().unwrap_or(User::Own), port);
        stage.configure(kind.style);
        let mut subject = stage.enter(kind.style);
        let twin = match kind.twin {
            Twin::Again => Some(stage.enter(kind.style)),
            Twin::As(style) => Some(stage.enter(style)),
            Twin::Beside(_) => None,
        };
        // Of K19 nothing is on record: words in arguments are all there is, and they must mean nothing.
        if kind.id != "K19" {
            stage.record(&subject, twin.as_ref(), kind.id == "K18");
        }
        let named = named_in_pid_file(kind, &subject, twin.as_ref());
        assert_eq!(stage.pid_file(), named, "{} ({})", kind.id, kind.what);
        match kind.end {
            End::Crash => subject.crash(),
            End::KillServer => subject.kill_server(),
            End::Nothing => subject.settle(),
            End::Contain => {}
        }
        Self {
            kind,
            stage,
            subject,
            twin,
        }
    }

    fn twin_pid(&self) -> u32 {
        match (self.kind.twin, &self.twin) {
            (Twin::Beside(word), _) => self.subject.pid(word),
            (Twin::Again | Twin::As(_), Some(twin)) => twin.pid(self.kind.subject),
            (Twin::Again | Twin::As(_), None) => panic!("{} has no twin", self.kind.id),
        }
    }

    /// Looks from within the namespaces that subject and twin have each for itself.
    fn told_inside(&self) -> Told {
        let told = |troupe: &Troupe| {
            let report = self.stage.report_inside(troupe);
            let pid = troupe.inside(self.kind.subject);
            let found = finding(&report, pid);
            let confidence = found.map_or("", |one| word(&one["confidence"]));
            (verdict(&report, pid), confidence.to_owned())
        };
        let (verdict, confidence) = told(&self.subject);
        let (twin, _) = told(self.twin.as_ref().unwrap());
        Told {
            view: View::Inside,
            verdict,
            confidence,
            twin,
            all_seen: false,
        }
    }

    fn told(&self, view: View, user: User) -> Told {
        if view == View::Inside {
            return self.told_inside();
        }
        let pid = self.subject.pid(self.kind.subject);
        let report = if view == View::Owner {
            self.look_until_it_shows(user, pid)
        } else {
            self.look(view, user, pid)
        };
        let text = report.to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("value-of-the-token"),
            "{text}"
        );
        let confidence = finding(&report, pid).map_or("", |one| word(&one["confidence"]));
        Told {
            view,
            verdict: verdict(&report, pid),
            confidence: confidence.to_owned(),
            twin: verdict(&report, self.twin_pid()),
            all_seen: all_seen(&report),
        }
    }

    fn look(&self, view: View, user: User, pid: u32) -> Value {
        let all = self.kind.among_all;
        match (view, self.kind.manager) {
            (View::Portable, _) => self.stage.portable(all),
            (_, Manager::Real) => self.stage.report(user, all),
            (_, manager) => self
                .stage
                .report_with(user, pid, manager == Manager::Service),
        }
    }

    /// What takes time to show (a processor used for long, a connection being made) is waited for.
    fn look_until_it_shows(&self, user: User, pid: u32) -> Value {
        let look = || self.look(View::Owner, user, pid);
        let mut report = look();
        if !self.shows(&report, pid) {
            wait_until(self.kind.what, Deadline::usual(), || {
                report = look();
                self.shows(&report, pid)
            });
        }
        report
    }

    fn shows(&self, report: &Value, pid: u32) -> bool {
        let kind = self.kind;
        let found = finding(report, pid);
        let also = |word: &str| {
            let also = found.map(|found| found["also"].as_array().unwrap());
            also.is_some_and(|also| also.iter().any(|one| *one == word))
        };
        let acts = || {
            found.is_some_and(|found| {
                found["authority"]["level"] == "held"
                    && found["authority"]["env_names"][0] == "FIXTURE_API_TOKEN"
                    && found["authority"]["tcp"].as_array().unwrap().len() == 1
            })
        };
        verdict(report, pid) == kind.expected(all_seen(report)).0
            && kind.also.is_none_or(also)
            && (kind.id != "K09" || acts())
    }
}

/// Whom the pid file that all servers of a stage share names once all have entered.
fn named_in_pid_file(kind: &Kind, subject: &Troupe, twin: Option<&Troupe>) -> Option<u32> {
    match kind.style {
        "flag:--pid-file" => twin.map(|twin| twin.pid("server")),
        "flag:--pid-file-once" => Some(subject.pid("server")),
        "stale-pid-file" => Some(subject.pid("innocent")),
        _ => None,
    }
}

/// Returns what observers were told, each in its turn.
fn play(kind: &Kind) -> Vec<Told> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    if kind.end == End::Contain {
        let contain = |(view, user)| contained(&Play::give(kind, port), view, user);
        return views(kind).into_iter().map(contain).collect();
    }
    let play = Play::give(kind, port);
    let connected = (kind.id == "K16").then(|| play.subject.connect());
    let told = views(kind)
        .into_iter()
        .map(|(view, user)| play.told(view, user))
        .collect();
    if kind.id == "K19" {
        let plain = play.stage.report(User::Own, false);
        let pid = play.subject.pid(kind.subject);
        assert!(finding(&plain, pid).is_none(), "{plain:#}");
    }
    drop(connected);
    told
}

/// Contains the subject, which comes back, or is not touched by whoever may not.
fn contained(play: &Play<'_>, view: View, user: User) -> Told {
    let pid = play.subject.pid(play.kind.subject);
    let incident = play.stage.contain(user, pid);
    let report = play.stage.report(user, false);
    let told = Told {
        view,
        verdict: match view {
            View::Stranger => verdict(&report, pid),
            View::Owner | View::Root | View::Inside | View::Portable => {
                word(&incident["state"]).to_owned()
            }
        },
        confidence: String::new(),
        twin: verdict(&report, play.twin_pid()),
        all_seen: all_seen(&report),
    };
    assert_eq!(play.subject.server_lives(), view == View::Stranger);
    told
}

fn finding(report: &Value, pid: u32) -> Option<&Value> {
    let mut findings = report["findings"].as_array().unwrap().iter();
    findings.find(|finding| {
        let members = finding["members"].as_array().unwrap();
        finding["root"]["pid"] == pid || members.iter().any(|member| member["pid"] == pid)
    })
}

fn all_seen(report: &Value) -> bool {
    let gaps = ["descriptors", "process", "other processes"].map(Value::from);
    let mut unreadable = report["unreadable"].as_array().unwrap().iter();
    unreadable.all(|gap| !gaps.contains(&gap["what"]))
}

fn verdict(report: &Value, pid: u32) -> String {
    finding(report, pid).map_or_else(String::new, |found| word(&found["verdict"]).to_owned())
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_right(kind: &Kind, told: &Told) -> bool {
    match told.view {
        View::Stranger => told.verdict == kind.stranger && told.twin == "UNKNOWN",
        View::Portable => {
            let less = kind.portable.unwrap_or(kind.verdict.0);
            // Where it tells less of the one, it may of the other.
            let doubts = ["", "SHARED", "UNKNOWN"];
            let in_doubt = kind.portable.is_some() && doubts.contains(&&*told.twin);
            let same_or_less = [kind.verdict.0, less].contains(&&*told.verdict);
            same_or_less && (told.twin == "LIVE" || in_doubt)
        }
        View::Owner | View::Root | View::Inside => {
            let expected = kind.expected(told.all_seen);
            (&*told.verdict, &*told.confidence) == expected && told.twin == "LIVE"
        }
    }
}

/// Returns what the observers of the last round were told, and what was wrong in any.
fn play_often(kind: &Kind, rounds: u64) -> (String, Vec<String>) {
    if kind.is_in_a_namespace() && User::other().is_none() {
        return ("not played: only root makes such a one".to_owned(), vec![]);
    }
    let (mut cell, mut failures) = (String::new(), Vec::new());
    for _ in 0..rounds {
        let Ok(told) = catch_unwind(|| play(kind)) else {
            failures.push(format!("{} ({}): see above", kind.id, kind.what));
            continue;
        };
        let wrong = told.iter().filter(|told| !is_right(kind, told));
        failures.extend(wrong.map(|told| {
            let (id, what) = (kind.id, kind.what);
            format!("{id} ({what}): {told}, and not {:?}", kind.verdict)
        }));
        let words: Vec<String> = told.iter().map(Told::to_string).collect();
        cell = words.join("; ");
    }
    (cell, failures)
}

#[test]
fn prove_corpus() {
    let mut proof = Proof::begin(1);
    let rounds = proof.n();
    let mut failures = Vec::new();
    let mut rows = Vec::new();
    // Four at a time: most of a play is waiting for interpreters to start.
    for kinds in KINDS.chunks(KINDS.len().div_ceil(4)) {
        let play_all = move || kinds.iter().map(|kind| play_often(kind, rounds)).collect();
        rows.push(std::thread::spawn(play_all));
    }
    let rows = rows
        .into_iter()
        .map(|row| -> Vec<(String, Vec<String>)> { row.join().unwrap() });
    for (kind, (cell, wrong)) in KINDS.iter().zip(rows.flatten()) {
        proof.row(&format!("{} {}", kind.id, kind.what), cell);
        failures.extend(wrong);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    proof.end();
}

#[test]
fn every_kind_of_the_corpus_has_a_row() {
    let played: BTreeSet<String> = KINDS.iter().map(|kind| kind.id.to_owned()).collect();

    let all = (1..=30).map(|number| format!("K{number:02}"));
    assert_eq!(played, all.collect());
}
