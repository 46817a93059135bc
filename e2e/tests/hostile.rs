//! A client that loads a library into what it starts, and says that everything lies somewhere else.

use std::{fs, path::PathBuf, process::Command};

use testkit::{Target, World};

use crate::{
    agent::{Agent, BRIDGE, refused, shim},
    both_ends::daemons,
    gate::Gate,
};

/// Variables that say where a program of ours, or the loader, looks for files.
const FOLDERS: [&str; 6] = [
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CACHE_HOME",
    "TMPDIR",
];

/// A library that any program can load, as the client's own.
fn library(world: &World) -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps
        .lines()
        .find(|line| line.contains("libm.so") || line.contains("libgcc_s.so"))?;
    let path = world.folder().join("preloaded.so");
    fs::copy(line.split_whitespace().last()?, &path).ok()?;
    Some(path)
}

fn hostile(world: &World, library: &PathBuf) -> (Command, PathBuf) {
    let elsewhere = world.folder().join("elsewhere");
    fs::create_dir_all(elsewhere.join("lychgate")).expect("a folder of the client");
    fs::write(
        elsewhere.join("lychgate/config.toml"),
        "admission = \"allow\"\n",
    )
    .expect("a file of the client");
    let mut command = world.command("python3");
    command.arg(BRIDGE).args(shim(world));
    command
        .env("LD_PRELOAD", library)
        .env("LD_LIBRARY_PATH", &elsewhere);
    for name in FOLDERS {
        command.env(name, &elsewhere);
    }
    (command, elsewhere)
}

fn maps(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default()
}

#[test]
fn a_library_and_folders_that_a_client_names_reach_the_shim_and_not_the_daemon() {
    let gate = Gate::before(Target::start());
    let world = &gate.world;
    let Some(library) = library(world) else {
        use std::io::Write;
        drop(writeln!(
            std::io::stdout(),
            "NOT RUN: there is no library to preload"
        ));
        return;
    };
    // So that this client is the one that starts the daemon.
    drop(world.run(["down"]).expect_code(0));
    let (command, elsewhere) = hostile(world, &library);

    let mut agent = Agent::over(world, command);

    let [daemon] = daemons(world)[..] else {
        panic!("{:?}", daemons(world));
    };
    let loaded = |pid: u32| maps(pid).contains("preloaded.so");
    let shims = world.processes();
    let mut shims = shims.iter().filter(|one| one.pid != daemon);
    assert!(
        shims.any(|one| loaded(one.pid)),
        "nobody loaded it, so nothing is shown"
    );
    assert!(!loaded(daemon), "{}", maps(daemon));
    let environ = fs::read(format!("/proc/{daemon}/environ")).unwrap_or_default();
    let environ = String::from_utf8_lossy(&environ).into_owned();
    assert!(
        !environ.contains("elsewhere") && !environ.contains("LD_"),
        "{environ}"
    );
    assert_eq!(refused(&agent.call("GET", "/r/x")), Some("locked"));
    drop(gate.unlock().expect_code(0));
    assert_eq!(refused(&agent.call("GET", "/r/x")), None);
    assert_eq!(gate.target.count(), 1);
    let left: Vec<_> = fs::read_dir(elsewhere.join("lychgate"))
        .expect("its folder")
        .flatten()
        .collect();
    assert_eq!(
        left.len(),
        1,
        "something of ours was written there: {left:?}"
    );
    drop(agent);
    gate.close();
}
