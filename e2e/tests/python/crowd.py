"""A client that has a server of its own beside the one named on its command line, which it passes every line."""

import os
import runpy
import subprocess
import sys

FOLDER = sys.argv.pop(1)
SERVER = """
import os, sys
worker = os.fork()
if worker == 0:
    # A helper as browsers are: a session of its own, nothing of its parent's open.
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    open(os.path.join(sys.argv[1], "worker.pid"), "w").write(str(os.getpid()))
else:
    open(os.path.join(sys.argv[1], "server.pid"), "w").write(str(os.getpid()))
    while os.read(0, 4096):
        pass
import signal
signal.pause()
"""

# Not wrapped and not configured: nothing but what was seen of it ties it to this client.
own = subprocess.Popen([sys.executable, "-c", SERVER, FOLDER],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "bridge.py"))
