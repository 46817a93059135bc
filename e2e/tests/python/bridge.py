"""A client's stand-in: starts the server named on its command line and hands every line on, both ways."""

import subprocess
import sys
import threading

# A client that is careless with its descriptors: what it was given its server gets too.
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False)


def back():
    for line in server.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


reader = threading.Thread(target=back)
reader.start()
for line in sys.stdin.buffer:
    server.stdin.write(line)
    server.stdin.flush()
server.stdin.close()
reader.join()
server.wait()
