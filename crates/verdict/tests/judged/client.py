"""A client that starts its servers in one of the ways real clients do, says who they are, and waits."""
import os
import socket
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
SERVER = ["python3", os.path.join(FOLDER, "server.py"), "--stdio"]


def say(*words):
    print(*words, flush=True)


def ready(stream):
    assert stream.readline().strip() == b"ready"


def pipes(argv=SERVER, **more):
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
    ready(child.stdout)
    return child


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


def main(style):
    helpers = []
    if style == "pipes":
        server = pipes()
    elif style.startswith("flag:"):
        server = pipes(SERVER + [style[5:]])
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
    say("server", server.pid)
    for helper in helpers:
        say("helper", helper.pid)
    say("done")
    sys.stdin.readline()


main(sys.argv[1])
