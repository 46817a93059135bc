"""What `docker run -i` looks like from outside: the container hangs below the engine's shim, not below the client."""
import os
import signal
import sys

read, write = os.pipe()
if os.fork() == 0:
    # The shim of the engine.
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    shim = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shim.py")
    os.set_inheritable(write, True)
    os.execv(sys.executable, [sys.executable, shim, str(write)])
os.wait()
os.close(write)
inside = os.read(read, 32)
os.write(1, b"ready\n" + inside)
while os.read(0, 4096):
    pass
signal.pause()
