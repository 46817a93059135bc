//! An agent that may write every file of its user except the vault, and wants the secret at its own server.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use testkit::{Deadline, Target, wait_until};

use crate::{
    agent::{Agent, refused},
    gate::{Gate, SECRET},
};

/// What only the vault's owner writes: everything else is the adversary's.
const VAULT: [&str; 3] = ["vault.age", "vault.age.prev", "identity.age"];

/// Names under which programs of this kind keep what would send a secret elsewhere.
const PLANTED: [&str; 8] = [
    "policy.json",
    "channels.toml",
    "channels.json",
    "trust.json",
    "trusted",
    "pins.json",
    "secrets.toml",
    ".env",
];

struct Adversary {
    gate: Gate,
    server: Target,
}

impl Adversary {
    fn new() -> Self {
        Self {
            gate: Gate::before(Target::start()),
            server: Target::start(),
        }
    }

    fn folder(&self) -> &Path {
        self.gate.world.folder()
    }

    /// Every file below the home that is not the vault, nor the test's own key file.
    fn files(&self) -> Vec<PathBuf> {
        let mut all = Vec::new();
        let mut folders = vec![self.folder().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder of ours").flatten() {
                let kind = entry.file_type().expect("a kind of file");
                let name = entry.file_name();
                let spared = VAULT.iter().any(|spared| name == *spared) || name == "opener.key";
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() && !spared {
                    all.push(entry.path());
                }
            }
        }
        all
    }

    /// Puts the adversary's server wherever ours is named, in every file.
    fn redirect(&self, files: &[PathBuf]) {
        let (ours, theirs) = (
            self.gate.target.address().to_string(),
            self.server.address().to_string(),
        );
        for path in files {
            let bytes = fs::read(path).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            if text.contains(&ours) {
                fs::write(path, text.replace(&ours, &theirs)).expect("a file of the user");
            }
        }
    }

    /// Leaves files that a careless program would read.
    fn plant(&self) {
        let config = fs::read_to_string(self.gate.world.home().config_file()).expect("the draft");
        for name in PLANTED {
            self.gate.world.write(name, &config);
        }
        for folder in ["channels", "policy", "conf.d", ".config/lychgate"] {
            let folder = self.folder().join(folder);
            fs::create_dir_all(&folder).expect("a folder of the user");
            fs::write(folder.join("api.toml"), &config).expect("a file of the user");
            fs::write(folder.join("config.toml"), &config).expect("a file of the user");
        }
    }

    /// Calls as an agent does, with every trick that an agent has; most of it is refused.
    fn call(&self) {
        let mut agent = Agent::open(&self.gate.world);
        let theirs = self.server.url();
        for path in [
            "/r/x".to_owned(),
            format!("{theirs}/r/x"),
            format!("//{}/r/x", self.server.address()),
            format!("/r/../..@{}/", self.server.address()),
        ] {
            let said = agent.call("GET", &path).to_string();
            assert!(!said.contains(SECRET), "{said}");
        }
    }

    /// The claim: their server has not seen the secret, in no header and no body.
    fn assert_nothing_arrived(&self) {
        for request in self.server.requests() {
            let headers = format!("{:?}", request.headers);
            let body = String::from_utf8_lossy(&request.body).into_owned();
            let all = format!("{} {headers} {body}", request.path);
            assert!(!all.contains(SECRET), "{all}");
        }
        assert_eq!(self.server.count(), 0, "somebody called the adversary");
    }
}

#[test]
fn whoever_rewrites_every_file_but_the_vault_gets_the_secret_nowhere_else() {
    let adversary = Adversary::new();
    let gate = &adversary.gate;
    let files = adversary.files();
    assert!(files.iter().any(|path| path.ends_with("config.toml")));
    assert!(files.iter().any(|path| path.ends_with("LOG")), "{files:?}");

    // While the daemon runs.
    adversary.redirect(&files);
    adversary.plant();
    adversary.call();
    assert_eq!(gate.target.count(), 1, "the applied policy still holds");

    // Over a restart, which reads everything anew.
    drop(gate.world.run(["down"]).expect_code(0));
    adversary.redirect(&adversary.files());
    let daemon = gate.open_daemon();
    adversary.call();
    assert_eq!(gate.target.count(), 2, "the sealed policy still holds");

    // Even if the operator applies the adversary's draft: the secret is sealed for another place.
    drop(gate.world.run(["channels", "apply"]).expect_code(0));
    let mut agent = Agent::open(&gate.world);
    let result = agent.call("GET", "/r/x");
    assert_eq!(refused(&result), Some("denied"), "{result:#}");
    assert_eq!(result["structuredContent"]["refused"]["why"], "secret");
    adversary.assert_nothing_arrived();
    drop(agent);
    gate.close();
    drop(daemon);
}

#[test]
fn whoever_damages_the_log_or_removes_every_file_but_the_vault_gets_the_secret_nowhere_else() {
    for removed in [false, true] {
        let adversary = Adversary::new();
        let gate = &adversary.gate;
        drop(gate.world.run(["down"]).expect_code(0));
        for path in adversary.files() {
            if removed {
                fs::remove_file(&path).expect("a file of the user");
            } else {
                let theirs = adversary.server.url();
                fs::write(&path, theirs.as_bytes()).expect("a file of the user");
            }
        }
        let url = adversary.server.url();
        gate.world.write(
            "config.toml",
            format!(
                "admission = \"allow\"\n[channel.api]\nkind = \"http\"\nbase = \"{url}/\"\nsecret = \"token\"\n\
                 [[channel.api.operation]]\nname = \"all\"\nallow = [\"GET /**\"]\n"
            ),
        );

        // Whether the daemon still starts and opens its vault is another question, and either will do.
        let mut daemon = gate.world.lychd([""; 0]);
        daemon.stdin(std::process::Stdio::null());
        daemon.stdout(std::process::Stdio::null());
        daemon.stderr(std::process::Stdio::null());
        let mut held = testkit::Held::start(&mut daemon);
        wait_until("the daemon to serve or to end", Deadline::usual(), || {
            held.ended().is_some() || gate.world.run(["status"]).code() == Some(0)
        });
        drop(gate.unlock());
        drop(gate.world.run(["channels", "apply"]));
        if gate.world.run(["status"]).code() == Some(0) {
            adversary.call();
        }

        adversary.assert_nothing_arrived();
        drop(gate.world.run(["down"]));
        drop(held);
    }
}

#[test]
fn a_secret_is_not_told_to_another_program_that_listens_on_the_operators_socket() {
    let gate = Gate::before(Target::start());
    drop(gate.world.run(["down"]).expect_code(0));
    let socket = gate.world.home().operator_socket();
    drop(fs::remove_file(&socket));
    let heard = gate.world.folder().join("heard");
    // It says what a daemon says, and writes down what it hears.
    let mut squatter = gate.world.command("python3");
    squatter.args([
        "-c",
        "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen(8)\n\
         f=open(sys.argv[2],'ab',0)\nwhile True:\n  c,_=s.accept()\n  while True:\n    b=c.recv(65536)\n\
         \x20   if not b: break\n    f.write(b)\n    c.sendall(b'{\"done\":{}}\\n')",
    ]);
    squatter.arg(&socket).arg(&heard);
    let squatter = testkit::Held::start(&mut squatter);
    wait_until("the squatter", Deadline::usual(), || socket.exists());
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).expect("our socket");

    let add = [
        "vault",
        "add",
        "new",
        "--for",
        "https://a.example",
        "--from-stdin",
    ];
    let added = gate.world.run_with(add, SECRET.as_bytes());
    let unlocked = gate.unlock();

    for said in [added, unlocked] {
        let said = said.expect_code(6);
        assert!(
            said.stderr.contains("it was told nothing"),
            "{}",
            said.stderr
        );
    }
    let heard = fs::read_to_string(heard).expect("what it heard");
    assert!(
        !heard.contains("vault_add") && !heard.contains("unlock"),
        "{heard}"
    );
    drop(squatter);
    drop(fs::remove_file(&socket));
}
