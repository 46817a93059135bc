"""A client that starts its servers in one of the ways real clients do, says who they are, and waits."""
import contextlib
import ctypes
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import threading

FOLDER = os.path.dirname(os.path.abspath(__file__))
KEPT = []
SERVER = ["python3", os.path.join(FOLDER, "server.py"), "--stdio"]


def say(*words):
    print(*words, flush=True)


def ready(stream):
    assert stream.readline().strip() == b"ready"


def pipes(argv=SERVER, **more):
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
    ready(child.stdout)
    return child


def pipes_kept():
    KEPT.append(pipes())
    return KEPT[-1]


def socketpair(argv=SERVER):
    # As Node does: one pair for each direction, and no pipe at all.
    in_ours, in_theirs = socket.socketpair()
    out_ours, out_theirs = socket.socketpair()
    child = subprocess.Popen(argv, stdin=in_theirs, stdout=out_theirs)
    in_theirs.close()
    out_theirs.close()
    ready(out_ours.makefile("rb"))
    child.keep = (in_ours, out_ours)
    return child


def named(style):
    """A server whose input is a named pipe, which it also holds itself if it is `fifo-kept`."""
    name = os.path.join(FOLDER, "fifo-%d" % os.getpid())
    os.mkfifo(name)
    theirs = os.open(name, os.O_RDWR if style == "fifo-kept" else os.O_RDONLY | os.O_NONBLOCK)
    ours = os.open(name, os.O_WRONLY)
    os.set_blocking(theirs, True)
    argv = ["sh", "-c", " ".join(SERVER) + "; true"] if style == "fifo-wrapped" else SERVER
    child = subprocess.Popen(argv, stdin=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    ready(child.stdout)
    if style == "fifo-wrapped":
        say("inner", *below(child.pid))
    if style == "fifo-unlinked":
        os.unlink(name)
    if style == "fifo-let-go":
        os.close(ours)
        child.stdout.close()
    KEPT.append(child)
    return child


def below(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
        return [int(child) for child in children.read().split()]


def fake(name, *words):
    """Starts a program of this name from the folder; the second line it says is the pid of what it left."""
    child = pipes(["python3", os.path.join(FOLDER, name), *words])
    say("helper", child.stdout.readline().decode().strip())
    return child


def from_a_thread(stays, guard=None):
    """Starts a server from a thread of its own, which ends once it has, or stays."""
    started = []
    told = threading.Event()

    def run():
        started.append(pipes(preexec_fn=guard))
        told.set()
        if stays:
            threading.Event().wait()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    told.wait()
    if not stays:
        thread.join()
    KEPT.append(started[0])
    return started[0]


def die_with_parent():
    # To the kernel the parent is the thread that forked, not its process (PR_SET_PDEATHSIG(2const)).
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def below_a_lost_shell(style):
    """The same client below a process whose input is at its end, whose output nobody takes, and whose parent is gone."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    for each in (in_read, out_write):
        os.set_inheritable(each, True)
    if os.fork():
        os._exit(0)
    os.setsid()
    os.close(in_write)
    os.close(out_read)
    say("shell", os.getpid())
    told, leash = os.dup(1), os.dup(0)
    os.dup2(in_read, 0)
    os.dup2(out_write, 1)
    os.close(in_read)
    os.close(out_write)
    client = subprocess.Popen([sys.executable, os.path.abspath(__file__), style], stdin=leash, stdout=told)
    os.close(told)
    os.close(leash)
    client.wait()


def main(style):
    if style.startswith("lost:"):
        return below_a_lost_shell(style[5:])
    helpers = []
    if style == "pipes":
        server = pipes()
    elif style.startswith("flag:"):
        server = pipes(SERVER + [style[5:]])
    elif style in ("two", "generations"):
        server = pipes(SERVER + ["--old"] if style == "generations" else SERVER)
        say("other", pipes_kept().pid)
        if style == "two":
            server.stdin.close()
            server.stdout.close()
    elif style == "siblings":
        # One client, two threads of work, the same line twice.
        server = pipes_kept()
        say("other", pipes_kept().pid)
    elif style.startswith("fifo"):
        server = named(style)
    elif style == "stale-pid-file":
        # Whoever the file named is gone, and its number has another holder, who is nobody's server.
        line = "setsid python3 %s/helper.py </dev/null >/dev/null 2>&1 & echo $!" % FOLDER
        innocent = subprocess.check_output(["sh", "-c", line]).decode().strip()
        say("innocent", innocent)
        with contextlib.suppress(FileExistsError), open(os.path.join(FOLDER, "server.pid"), "x") as place:
            place.write(innocent)
        server = pipes(SERVER + ["--pid-file-once"])
    elif style == "wrapper-killed":
        wrapper = pipes(["sh", "-c", " ".join(SERVER) + "; true"])
        (inner,) = below(wrapper.pid)
        wrapper.kill()
        wrapper.wait()
        wrapper.stdin.close()
        wrapper.stdout.close()
        say("server", inner)
        say("other", pipes_kept().pid)
        server = None
    elif style == "probe":
        # Gone before its server has said a word.
        server = subprocess.Popen(SERVER + ["--mute"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        say("server", server.pid)
        say("client", os.getpid())
        say("done")
        os._exit(0)
    elif style == "mute":
        server = subprocess.Popen(SERVER + ["--mute"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    elif style == "loop":
        server = pipes(["sh", "-c", "while :; do " + " ".join(SERVER) + "; sleep 2; done"])
        say("inner", *below(server.pid))
    elif style in ("browser", "worker"):
        server = pipes(SERVER + ["--" + style])
        say("helper", server.stdout.readline().decode().strip())
    elif style == "docker":
        server = fake("docker", "run", "-i", "--rm", "mcp/fixture")
    elif style == "ssh":
        server = fake("ssh", "-M", "host", "server")
        user = socket.socket(socket.AF_UNIX)
        user.connect(os.path.join(FOLDER, "master.%d" % server.pid))
        KEPT.append(user)
    elif style in ("names", "names-on-a-wire"):
        # Words that servers have, too, in the path and the arguments of what is none.
        job = os.path.join(FOLDER, "mcp-server-claude")
        os.makedirs(job, exist_ok=True)
        with open(os.path.join(job, "pytest.py"), "w") as text:
            text.write("import signal\nsignal.pause()\n")
        end = subprocess.DEVNULL if style == "names" else subprocess.PIPE
        server = subprocess.Popen(["python3", os.path.join(job, "pytest.py"), "node", "mcp"],
                                  stdin=end, stdout=end, start_new_session=True)
    elif style == "token":
        server = pipes(SERVER + ["--token=hunter2"])
    elif style == "gateway":
        server = pipes(SERVER + ["--gateway"])
        say("inner", server.stdout.readline().decode().strip())
    elif style == "zombie":
        server = pipes(SERVER + ["--end"])
        server.stdout.read()
        helpers.append(pipes())
    elif style == "service":
        server = subprocess.Popen(SERVER, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        ready(server.stdout)
    elif style == "other-arguments":
        server = pipes(SERVER + ["--old"])
    elif style == "socketpair":
        server = socketpair()
    elif style == "own-session":
        server = pipes(start_new_session=True)
    elif style == "wrapped":
        server = pipes(["sh", "-c", " ".join(SERVER) + "; true"])
        say("inner", *below(server.pid))
    elif style == "terminal":
        # The terminal is ours: with us it goes, and its device with it.
        pid, end = pty.fork()
        if pid == 0:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.execvp(SERVER[0], SERVER)
        os.read(end, 64)
        KEPT.append(end)
        say("server", pid)
        server = None
    elif style == "forked":
        # As workers of a Python program do it: no other program, so every end stays open.
        server = pipes()
        helper = os.fork()
        if helper == 0:
            while True:
                signal.pause()
        say("helper", helper)
    elif style == "pipeline":
        wires = ["sh", "-c", "echo '{}' | %s | (read line; echo $line; exec sleep 1000)" % " ".join(SERVER)]
        shell = pipes(wires)
        commands = {pid: open("/proc/%d/cmdline" % pid, "rb").read() for pid in below(shell.pid)}
        (server,) = [pid for pid, command in commands.items() if command.startswith(b"python3")]
        say("server", server)
        for pid in below(shell.pid):
            say("helper", pid)
        server = None
    elif style == "thread":
        server = from_a_thread(stays=False)
    elif style == "guarded-thread":
        say("other", from_a_thread(stays=True, guard=die_with_parent).pid)
        server = from_a_thread(stays=False, guard=die_with_parent)
        os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)
    elif style == "replaced":
        # As an update does it: the program that runs is not there any more.
        place = os.path.join(FOLDER, "copy-%d" % os.getpid())
        os.mkdir(place)
        shutil.copy(os.path.realpath(shutil.which("sh")), os.path.join(place, "srv"))
        server = pipes(["./srv", os.path.join(FOLDER, "server.sh"), "--stdio"], cwd=place)
        os.unlink(os.path.join(place, "srv"))
    elif style == "upgraded" and len(sys.argv) > 2:
        say("server", sys.argv[2])
        server = None
    elif style == "upgraded":
        # As a client does that replaces itself by its next version: one process, two programs.
        server = pipes()
        for end in (server.stdin, server.stdout):
            os.set_inheritable(end.fileno(), True)
        os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), style, str(server.pid)])
    elif style == "leak":
        server = pipes()
        end = server.stdin.fileno()
        helpers.append(subprocess.Popen(["python3", os.path.join(FOLDER, "helper.py")],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, pass_fds=[end]))
        ready(helpers[0].stdout)
    elif style == "let-go":
        server = pipes()
        server.stdin.close()
        server.stdout.close()
    elif style == "moved":
        server = pipes(SERVER + ["--moved"])
    elif style == "unread":
        server = pipes(SERVER + ["--deaf"])
        server.stdin.write(b"{}" * 10)
        server.stdin.flush()
    elif style == "listener":
        server = pipes(SERVER + ["--listen"])
        say("port", server.stdout.readline().decode().strip())
    elif style == "nohup":
        # Ignores its input, writes to a file, belongs to nobody: and is as it should be.
        server = subprocess.Popen(["sh", "-c", "echo x | nohup python3 %s/job.py > %s/out 2>&1 &"
                                   % (FOLDER, FOLDER)])
        server.wait()
        with open(os.path.join(FOLDER, "fifo")) as told:
            server.pid = int(told.read())
    else:
        raise SystemExit("no such style: " + style)
    if server:
        say("server", server.pid)
    for helper in helpers:
        say("helper", helper.pid)
    say("client", os.getpid())
    say("done")
    sys.stdin.readline()


main(sys.argv[1])
