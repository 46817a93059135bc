//! What else can be put between a client and its server, called by the same client on the same machine.
//!
//! None of them records or decides anything; they are what people use at this place today. Each stands before
//! the same server, and is compared with that server called over the same leg without it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{Deadline, World, wait_until};

use crate::{
    client::{Client, Times},
    echo, kilobytes, web,
};

/// Calls one behind the other; the slow ones take a tenth of a second each.
const CALLS: usize = 150;

/// Calls with 32 on the way.
const MANY: (usize, usize) = (320, 32);

/// Where `cargo xtask bench gateway` has put them.
const FOLDER: &str = "LYCH_BENCH_PEERS";

/// How a peer is started before a server at this address, or before this command.
struct Peer {
    name: &'static str,
    command: fn(&World, &Path, &str) -> Option<Command>,
}

const PEERS: &[Peer] = &[
    Peer {
        name: "the same server over its own lines, nothing between",
        command: |world, _, _| Some(behind(world)),
    },
    Peer {
        name: "npm `mcp-remote`, lines to HTTP",
        command: |world, folder, url| {
            let mut command = node(world, folder, "mcp-remote/dist/proxy.js")?;
            command.args([url, "--allow-http", "--transport", "http-only"]);
            Some(command)
        },
    },
    Peer {
        name: "npm `supergateway`, lines to HTTP",
        command: |world, folder, url| {
            let mut command = node(world, folder, "supergateway/dist/index.js")?;
            command.args(["--streamableHttp", url, "--logLevel", "none"]);
            Some(command)
        },
    },
    Peer {
        name: "PyPI `mcp-proxy`, lines to HTTP",
        command: |world, folder, url| {
            let mut command = there(world, &folder.join("../venv-mcp-proxy/bin/mcp-proxy"))?;
            command.args(["--transport", "streamablehttp", url]);
            Some(command)
        },
    },
    Peer {
        name: "PyPI `fastmcp` proxy, lines to HTTP",
        command: |world, folder, url| {
            let mut command = there(world, &folder.join("../venv-fastmcp/bin/python"))?;
            command.arg("-c").arg(format!(
                "from fastmcp.server import create_proxy\ncreate_proxy('{url}').run(show_banner=False)"
            ));
            Some(command)
        },
    },
    Peer {
        name: "PyPI `fastmcp` proxy, lines to lines",
        command: |world, folder, _| {
            let mut command = there(world, &folder.join("../venv-fastmcp/bin/python"))?;
            let server = env::current_exe().ok()?;
            command.arg("-c").arg(format!(
                "from fastmcp.server import create_proxy\n\
                 create_proxy({{'mcpServers': {{'e': {{'command': '{}', 'args': ['--serve-lines']}}}}}}).run(show_banner=False)",
                server.display()
            ));
            Some(command)
        },
    },
];

/// The server as a program of its own.
fn behind(world: &World) -> Command {
    let mut command = world.command(env::current_exe().expect("a program knows its path"));
    command.arg("--serve-lines");
    command
}

fn node(world: &World, folder: &Path, script: &str) -> Option<Command> {
    let script = folder.join("node_modules").join(script);
    script.exists().then(|| {
        let mut command = world.command("node");
        command.arg(script);
        command
    })
}

fn there(world: &World, program: &Path) -> Option<Command> {
    program.exists().then(|| world.command(program))
}

/// Measures each and returns the table.
pub fn table() -> String {
    let folder = env::var_os(FOLDER).map(PathBuf::from).unwrap_or_default();
    let url = format!("http://{}/mcp", echo::over_http());
    let mut table = String::from(
        "| what stands between | start to first reply, ms | a call, p50 µs | p99 µs | calls a second, 32 on the way | memory, MB |\n|---|---|---|---|---|---|\n",
    );
    for peer in PEERS {
        let world = World::new();
        let row = measure(peer, &world, &folder, &url);
        table.push_str(&row.unwrap_or_else(|| {
            format!(
                "| {} | not run: it is not installed, or gave no answer | | | | |\n",
                peer.name
            )
        }));
        clear(&world);
    }
    table.push_str(&web::direct());
    table.push_str(&web::proxy(&folder).unwrap_or_else(|| {
        "| npm `mcp-proxy`, HTTP to lines | not run: it is not installed, or gave no answer | | | | |\n"
            .to_owned()
    }));
    table
}

fn measure(peer: &Peer, world: &World, folder: &Path, url: &str) -> Option<String> {
    let arguments = json!({"text": "0123456789abcdefghijklmnopqrstuvwxyz"});
    let begun = Instant::now();
    let mut client = Client::start(&mut (peer.command)(world, folder, url)?)?;
    let started = begun.elapsed();
    client.ready();
    // The first call may open the way to the server.
    client.ask(1, "echo", &arguments);
    echoed(&client.receive(1)?)?;
    let mut id = 1;
    let times = Times::of(CALLS, || {
        id += 1;
        let begun = Instant::now();
        client.ask(id, "echo", &arguments);
        match client.receive(id) {
            Some(_) => begun.elapsed(),
            None => Duration::MAX,
        }
    });
    let rate = client.calls_a_second(MANY, "echo", &arguments)?;
    let memory: u64 = world
        .processes()
        .iter()
        .map(|process| kilobytes(u64::from(process.pid), "VmRSS"))
        .sum();
    Some(format!(
        "| {} | {} | {:.0} | {:.0} | {rate:.0} | {} |\n",
        peer.name,
        started.as_millis(),
        times.at(50) * 1e3,
        times.at(99) * 1e3,
        memory / 1024
    ))
}

fn echoed(answer: &Value) -> Option<()> {
    let text = answer["result"]["content"][0]["text"].as_str()?;
    (text.len() == 36).then_some(())
}

/// Ends what a peer has left behind: that it does so is no reason to lose the table.
pub fn clear(world: &World) {
    for process in world.processes() {
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    wait_until("the peer to be gone", Deadline::usual(), || {
        world.processes().is_empty()
    });
}
