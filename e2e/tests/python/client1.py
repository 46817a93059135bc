"""A client made of the official Python SDK 1.x alone: lists tools, calls one, gives one up, calls again.

usage: client1.py COMMAND [ARGUMENT...] < '{"tool": ..., "arguments": ..., "slow": ...}'
"""

import asyncio
import datetime
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(wanted, command, args):
    parameters = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    async with stdio_client(parameters) as (reading, writing):
        async with ClientSession(reading, writing) as session:
            await session.initialize()
            listed = await session.list_tools()
            called = await session.call_tool(wanted["tool"], wanted["arguments"])
            cancelled = None
            if wanted.get("slow"):
                # A read timeout is how this SDK gives a request up.
                patience = datetime.timedelta(milliseconds=300)
                try:
                    await session.call_tool("http_request", wanted["slow"], read_timeout_seconds=patience)
                    cancelled = "answered"
                except Exception:
                    cancelled = "cancelled"
            after = await session.call_tool("channels", {})
            return {
                "tools": [known.name for known in listed.tools],
                "result": called.model_dump(mode="json", by_alias=True),
                "cancelled": cancelled,
                "after": "error" if after.isError else "answered",
            }


print(json.dumps(asyncio.run(main(json.load(sys.stdin), sys.argv[1], sys.argv[2:]))))
