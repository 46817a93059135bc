"""Takes in what a client leaves behind, as a user's service manager does: the number of the adopter is not 1."""
import ctypes
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
client = subprocess.Popen(sys.argv[1:], start_new_session=True)
client.wait()
sys.stdin.read()
