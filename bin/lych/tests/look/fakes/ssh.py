"""What `ssh -M` leaves behind: a master with a socket that others may use."""
import os
import signal
import socket

FOLDER = os.path.dirname(os.path.abspath(__file__))
name = os.path.join(FOLDER, "master.%d" % os.getpid())
listener = socket.socket(socket.AF_UNIX)
listener.bind(name)
listener.listen()
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    master = os.fork()
    if master:
        os.write(write, b"%d\n" % master)
        os._exit(0)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    os.close(read)
    os.close(write)
    user, _ = listener.accept()
    signal.pause()
os.wait()
os.close(write)
listener.close()
master = os.read(read, 32)
os.write(1, b"ready\n" + master)
while os.read(0, 4096):
    pass
signal.pause()
