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
    database = open(__file__ + ".db", "w")
    fcntl.flock(database, fcntl.LOCK_EX)
if "--rename" in sys.argv:
    with open("/proc/self/comm", "w") as comm:
        comm.write("innocent")

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
if "--deaf" in sys.argv:
    signal.pause()
while os.read(wire_in, 4096):
    pass
signal.pause()
