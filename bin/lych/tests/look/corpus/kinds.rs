//! The kinds: what is played, what it must be called, and which twin must be called LIVE.

/// What becomes of the client or the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The client is killed.
    Crash,
    /// The server is killed, its client lives.
    KillServer,
    /// The fixture did it itself, or there is nothing to do.
    Nothing,
    /// The observer contains it; what is told is the state of the incident.
    Contain,
}

/// Where the twin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twin {
    /// The same once more, with nothing done to it.
    Again,
    /// A client of this other style, with nothing done to it.
    As(&'static str),
    /// Another process of the same client, by this word.
    Beside(&'static str),
}

/// What is said of a process's control group: there is no service manager that tests could ask for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manager {
    /// What the kernel says.
    Real,
    /// It is the subject's own, and a service's.
    Service,
    /// It cannot be read.
    Silent,
}

/// One kind, and all that must be said of it.
pub(super) struct Kind {
    pub(super) id: &'static str,
    pub(super) what: &'static str,
    pub(super) style: &'static str,
    pub(super) subject: &'static str,
    pub(super) end: End,
    /// Verdict and confidence.
    pub(super) verdict: (&'static str, &'static str),
    /// What is told to whoever may not read the descriptors of every process, if it is less.
    pub(super) unless_all_seen: Option<(&'static str, &'static str)>,
    pub(super) also: Option<&'static str>,
    pub(super) twin: Twin,
    /// What another user is told: unknown, but for what the kernel tells everybody.
    pub(super) stranger: &'static str,
    /// What follows from ps(1) and lsof(8), if it is less; `docs/decisions` has the rules.
    pub(super) portable: Option<&'static str>,
    /// Whether it is looked for among all processes, since a plain look tells nothing of it or of its twin.
    pub(super) among_all: bool,
    pub(super) manager: Manager,
}

const PLAIN: Kind = Kind {
    id: "K01",
    what: "ignores the end of its pipe",
    style: "pipes",
    subject: "server",
    end: End::Crash,
    verdict: ("OS_ORPHAN", "proven"),
    unless_all_seen: None,
    also: None,
    twin: Twin::Again,
    stranger: "UNKNOWN",
    portable: None,
    among_all: false,
    manager: Manager::Real,
};

/// A named pipe cannot be asked who writes, so every process must be seen.
const NOT_TOLD: Option<(&str, &str)> = Some(("UNKNOWN", "unknown"));

pub(super) const KINDS: &[Kind] = &[
    PLAIN,
    Kind {
        what: "on a socketpair, as Node gives it",
        style: "socketpair",
        ..PLAIN
    },
    Kind {
        what: "in a session of its own",
        style: "own-session",
        ..PLAIN
    },
    Kind {
        what: "its terminal is gone",
        style: "terminal",
        verdict: ("OS_ORPHAN", "inferred"),
        ..PLAIN
    },
    Kind {
        what: "its input is a named pipe",
        style: "fifo",
        verdict: ("OS_ORPHAN", "inferred"),
        unless_all_seen: NOT_TOLD,
        ..PLAIN
    },
    Kind {
        what: "its input is a named pipe that has no name any more",
        style: "fifo-unlinked",
        verdict: ("OS_ORPHAN", "inferred"),
        unless_all_seen: NOT_TOLD,
        ..PLAIN
    },
    Kind {
        what: "its input is a named pipe that it holds itself",
        style: "fifo-kept",
        verdict: ("ORPHAN_HELD_OPEN", "inferred"),
        unless_all_seen: NOT_TOLD,
        ..PLAIN
    },
    Kind {
        what: "a fork of its client holds both ends",
        style: "forked",
        verdict: ("LOGICAL_ORPHAN_SUSPECT", "suspected"),
        ..PLAIN
    },
    Kind {
        id: "K02",
        what: "its wrapper lives",
        style: "wrapped",
        subject: "inner",
        ..PLAIN
    },
    Kind {
        id: "K02",
        what: "its wrapper lives, and both read a named pipe",
        style: "fifo-wrapped",
        subject: "inner",
        verdict: ("OS_ORPHAN", "inferred"),
        unless_all_seen: NOT_TOLD,
        ..PLAIN
    },
    Kind {
        id: "K03",
        what: "only the wrapper was killed",
        style: "wrapper-killed",
        end: End::Nothing,
        twin: Twin::Beside("other"),
        ..PLAIN
    },
    Kind {
        id: "K04",
        what: "adopted by a subreaper",
        style: "subreaper:pipes",
        portable: Some("DETACHED"),
        ..PLAIN
    },
    Kind {
        id: "K05",
        what: "parent lives and has let go",
        style: "two",
        end: End::Nothing,
        verdict: ("DETACHED", "inferred"),
        twin: Twin::Beside("other"),
        ..PLAIN
    },
    Kind {
        id: "K05",
        what: "parent lives and may open its named pipe again",
        style: "fifo-let-go",
        end: End::Nothing,
        verdict: ("UNKNOWN", "unknown"),
        twin: Twin::As("fifo"),
        ..PLAIN
    },
    Kind {
        id: "K06",
        what: "forgotten generation",
        style: "generations",
        end: End::Nothing,
        verdict: ("LOGICAL_ORPHAN_SUSPECT", "suspected"),
        portable: Some("LIVE"),
        twin: Twin::Beside("other"),
        ..PLAIN
    },
    Kind {
        id: "K07",
        what: "a sibling inherited the write end",
        style: "leak",
        verdict: ("ORPHAN_HELD_OPEN", "inferred"),
        ..PLAIN
    },
    Kind {
        id: "K08",
        what: "spins on a dead pipe",
        style: "flag:--spin",
        also: Some("SPINNING"),
        ..PLAIN
    },
    Kind {
        id: "K09",
        what: "holds a token and a connection",
        style: "flag:--act",
        ..PLAIN
    },
    Kind {
        id: "K10",
        what: "holds a lock",
        style: "flag:--lock",
        also: Some("HOLDS"),
        ..PLAIN
    },
    Kind {
        id: "K11",
        what: "browser outlives its server",
        style: "browser",
        subject: "helper",
        end: End::KillServer,
        verdict: ("LEFTOVER_CHILD", "suspected"),
        ..PLAIN
    },
    Kind {
        id: "K12",
        what: "container outlives its client (fake engine)",
        style: "docker",
        subject: "helper",
        end: End::KillServer,
        verdict: ("LEFTOVER_CHILD", "suspected"),
        portable: Some(""),
        ..PLAIN
    },
    Kind {
        id: "K13",
        what: "control master with users (fake ssh)",
        style: "ssh",
        subject: "helper",
        end: End::KillServer,
        verdict: ("SHARED", "inferred"),
        portable: Some("SHARED"),
        ..PLAIN
    },
    Kind {
        id: "K14",
        what: "detached worker, seen by the census",
        style: "worker",
        subject: "helper",
        verdict: ("LEFTOVER_CHILD", "inferred"),
        portable: Some("UNKNOWN"),
        ..PLAIN
    },
    Kind {
        id: "K15",
        what: "its service manager runs it (fake unit)",
        style: "service",
        verdict: ("MANAGED", "inferred"),
        twin: Twin::As("pipes"),
        portable: Some("UNKNOWN"),
        manager: Manager::Service,
        ..PLAIN
    },
    Kind {
        id: "K15",
        what: "the same, and nobody says whose it is",
        style: "service",
        verdict: ("UNKNOWN", "unknown"),
        twin: Twin::As("pipes"),
        manager: Manager::Silent,
        ..PLAIN
    },
    Kind {
        id: "K15",
        what: "a stray of the same line",
        ..PLAIN
    },
    Kind {
        id: "K16",
        what: "others are connected to it",
        style: "listener",
        verdict: ("SHARED", "inferred"),
        ..PLAIN
    },
    Kind {
        id: "K17",
        what: "its client is number 1 of a namespace",
        style: "namespace:pipes",
        end: End::Nothing,
        verdict: ("LIVE", "proven"),
        ..PLAIN
    },
    Kind {
        id: "K17",
        what: "left to number 1 of a namespace",
        style: "namespace:subreaper:pipes",
        portable: Some("DETACHED"),
        ..PLAIN
    },
    Kind {
        id: "K18",
        what: "the number has another holder",
        style: "names-on-a-wire",
        end: End::Nothing,
        verdict: ("RECYCLED", "proven"),
        stranger: "RECYCLED",
        portable: Some("LIVE"),
        among_all: true,
        ..PLAIN
    },
    Kind {
        id: "K19",
        what: "only words in its path and arguments",
        style: "names",
        verdict: ("UNKNOWN", "unknown"),
        twin: Twin::As("names-on-a-wire"),
        among_all: true,
        ..PLAIN
    },
    Kind {
        id: "K20",
        what: "shares its group with client and sibling",
        style: "two",
        end: End::Nothing,
        verdict: ("DETACHED", "inferred"),
        twin: Twin::Beside("other"),
        ..PLAIN
    },
    Kind {
        id: "K21",
        what: "two clients, one command line",
        style: "pipes",
        end: End::Nothing,
        verdict: ("LIVE", "proven"),
        ..PLAIN
    },
    Kind {
        id: "K21",
        what: "one client, one command line twice",
        style: "siblings",
        end: End::Nothing,
        verdict: ("LIVE", "proven"),
        twin: Twin::Beside("other"),
        ..PLAIN
    },
    Kind {
        id: "K21",
        what: "two clients, one pid file, which names the other's server",
        style: "flag:--pid-file",
        end: End::Nothing,
        verdict: ("LIVE", "proven"),
        ..PLAIN
    },
    Kind {
        id: "K21",
        what: "left over, and the pid file names its living twin",
        style: "flag:--pid-file",
        ..PLAIN
    },
    Kind {
        id: "K21",
        what: "left over, and the pid file names it, not its living twin",
        style: "flag:--pid-file-once",
        ..PLAIN
    },
    Kind {
        id: "K21",
        what: "left over, and the number in the pid file has another holder",
        style: "stale-pid-file",
        ..PLAIN
    },
    Kind {
        id: "K21",
        what: "the other holder of the number in a pid file",
        style: "stale-pid-file",
        subject: "innocent",
        end: End::Nothing,
        verdict: ("", ""),
        twin: Twin::Beside("server"),
        stranger: "",
        ..PLAIN
    },
    Kind {
        id: "K22",
        what: "client gone before the first word",
        style: "probe",
        end: End::Nothing,
        twin: Twin::As("mute"),
        ..PLAIN
    },
    Kind {
        id: "K23",
        what: "ended, not collected",
        style: "zombie",
        end: End::Nothing,
        verdict: ("ZOMBIE", "proven"),
        twin: Twin::Beside("helper"),
        stranger: "ZOMBIE",
        ..PLAIN
    },
    Kind {
        id: "K24",
        what: "below a loop that starts it again",
        style: "loop",
        subject: "inner",
        ..PLAIN
    },
    Kind {
        id: "K24",
        what: "brought back by its supervisor while it is contained",
        style: "keeper",
        end: End::Contain,
        verdict: ("respawned", ""),
        twin: Twin::As("pipes"),
        portable: Some("DETACHED"),
        ..PLAIN
    },
    Kind {
        id: "K25",
        what: "idle and in use",
        style: "socketpair",
        end: End::Nothing,
        verdict: ("LIVE", "proven"),
        ..PLAIN
    },
    Kind {
        id: "K26",
        what: "requests delivered and never read",
        style: "unread",
        also: Some("BUSY"),
        ..PLAIN
    },
    Kind {
        id: "K27",
        what: "the thread that started it has ended",
        style: "thread",
        end: End::Nothing,
        verdict: ("LIVE", "proven"),
        twin: Twin::As("pipes"),
        ..PLAIN
    },
    Kind {
        id: "K27",
        what: "killed with the thread that started it, by a guard",
        style: "guarded-thread",
        end: End::Nothing,
        verdict: ("ZOMBIE", "proven"),
        twin: Twin::Beside("other"),
        stranger: "ZOMBIE",
        ..PLAIN
    },
    Kind {
        id: "K28",
        what: "wire moved away from 0 and 1",
        style: "moved",
        verdict: ("OS_ORPHAN", "inferred"),
        ..PLAIN
    },
    Kind {
        id: "K28",
        what: "renamed itself",
        style: "flag:--rename",
        ..PLAIN
    },
    Kind {
        id: "K28",
        what: "its program was deleted",
        style: "replaced",
        ..PLAIN
    },
    Kind {
        id: "K28",
        what: "its client had become another program",
        style: "upgraded",
        ..PLAIN
    },
    Kind {
        id: "K29",
        what: "a token in its arguments",
        style: "token",
        ..PLAIN
    },
    Kind {
        id: "K30",
        what: "gateway",
        style: "gateway",
        ..PLAIN
    },
    Kind {
        id: "K30",
        what: "behind a gateway",
        style: "gateway",
        subject: "inner",
        verdict: ("LOGICAL_ORPHAN_SUSPECT", "inferred"),
        ..PLAIN
    },
];
