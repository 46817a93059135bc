"""A user's client as the official SDK makes it: starts one server, lists its tools, perhaps calls one, and waits.

Told to leak, it starts a program that inherits the other end of its server's input and is no client at all."""
import asyncio
import json
import os
import subprocess
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

command, *arguments = json.loads(sys.argv[1])
call = json.loads(sys.argv[2])
leak = sys.argv[3:] == ["leak"]


def the_servers_input():
    """The descriptor of ours that writes to what our only child reads."""
    with open("/proc/self/task/%d/children" % os.getpid()) as children:
        (server,) = children.read().split()
    wire = os.readlink("/proc/%s/fd/0" % server)
    for fd in os.listdir("/proc/self/fd"):
        link = "/proc/self/fd/" + fd
        if os.path.islink(link) and os.readlink(link) == wire and os.lstat(link).st_mode & 0o200:
            return int(fd)
    raise SystemExit("no such descriptor")


async def main():
    # The folder's name in the environment ties all that comes of it to its test.
    env = dict(os.environ)
    server = StdioServerParameters(command=command, args=arguments, env=env)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        assert tools.tools
        if leak:
            fd = the_servers_input()
            subprocess.Popen(["sleep", "600"], pass_fds=[fd], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        task = asyncio.create_task(session.call_tool(*call)) if call else None
        await asyncio.sleep(0.3 if call else 0)
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        del task


asyncio.run(main())
