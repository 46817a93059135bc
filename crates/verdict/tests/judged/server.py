"""A server that does not care whether anybody is left."""
import os
import signal
import socket
import sys

if "--moved" in sys.argv:
    wire_in, wire_out = os.dup(0), os.dup(1)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
else:
    wire_in, wire_out = 0, 1

if "--ignore-term" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "--lock" in sys.argv:
    import fcntl
    database = open("%s.%d.db" % (__file__, os.getpid()), "w")
    fcntl.flock(database, fcntl.LOCK_EX)
if "--rename" in sys.argv:
    with open("/proc/self/comm", "w") as comm:
        comm.write("innocent")

if "--pid-file" in sys.argv or "--pid-file-once" in sys.argv:
    # One for all that are started from this folder, as real ones have it: the last to come stands in it, or the first to have come.
    once = os.O_EXCL if "--pid-file-once" in sys.argv else os.O_TRUNC
    try:
        place = os.open(os.path.join(os.path.dirname(__file__), "server.pid"), os.O_WRONLY | os.O_CREAT | once)
        os.write(place, b"%d\n" % os.getpid())
        os.close(place)
    except FileExistsError:
        pass
if "--ticking" in sys.argv:
    import threading
    import time
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()

if "--mute" not in sys.argv:
    os.write(wire_out, b"ready\n")
if "--end" in sys.argv:
    sys.exit(0)
if "--gateway" in sys.argv:
    import subprocess
    inner = subprocess.Popen([sys.executable, __file__, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    inner.stdout.readline()
    os.write(wire_out, b"%d\n" % inner.pid)
if "--listen" in sys.argv:
    listener = socket.create_server(("127.0.0.1", 0))
    os.write(wire_out, b"%d\n" % listener.getsockname()[1])
    accepted, _ = listener.accept()
if "--browser" in sys.argv:
    import subprocess
    # A profile of its own marks the whole tree, as a real browser's does.
    profile = os.path.join(os.path.dirname(__file__), "ms-playwright", "mcp-chrome-profile")
    tree = "import os, signal\nfor _ in range(2):\n    if os.fork() == 0: break\nsignal.pause()\n"
    root = subprocess.Popen([sys.executable, "-c", tree, "--user-data-dir=" + profile],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    os.write(wire_out, b"%d\n" % root.pid)
if "--worker" in sys.argv:
    # The double fork of a daemon: a session of its own, no wire, adopted at once.
    if os.fork() == 0:
        os.setsid()
        worker = os.fork()
        if worker:
            os.write(wire_out, b"%d\n" % worker)
            os._exit(0)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        signal.pause()
    os.wait()
    while os.read(wire_in, 4096):
        pass
    sys.exit(0)
if "--act" in sys.argv:
    acting = socket.create_connection(("127.0.0.1", int(os.environ["FIXTURE_PORT"])))
if "--spin" in sys.argv:
    while True:
        pass
if "--deaf" in sys.argv:
    signal.pause()
try:
    while os.read(wire_in, 4096):
        pass
except OSError:
    # A terminal whose other end is gone says so in this way.
    pass
signal.pause()
