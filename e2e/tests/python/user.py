"""A user's client as the official SDK makes it: starts one server, lists its tools, perhaps calls one, and waits."""
import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

command, *arguments = json.loads(sys.argv[1])
call = json.loads(sys.argv[2])


async def main():
    # The folder's name in the environment ties all that comes of it to its test.
    env = dict(os.environ)
    server = StdioServerParameters(command=command, args=arguments, env=env)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        assert tools.tools
        task = asyncio.create_task(session.call_tool(*call)) if call else None
        await asyncio.sleep(0.3 if call else 0)
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        del task


asyncio.run(main())
