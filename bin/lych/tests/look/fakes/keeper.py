"""Starts the server again a moment after it ended, and holds no end of its wires."""
import os
import subprocess
import sys
import time

while True:
    server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.stdout.readline()
    server.stdin.close()
    server.stdout.close()
    # Whoever reads it does so once.
    told = "%s.%d" % (__file__, os.getpid())
    if not os.path.exists(told):
        print("server %d\nclient %d\ndone" % (server.pid, os.getpid()), flush=True)
    open(told, "w").close()
    server.wait()
    time.sleep(0.2)
