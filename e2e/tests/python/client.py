"""A client made of the official SDK alone: starts the server of an .mcp.json entry, lists tools, calls one.

usage: client.py MCP_JSON SERVER MODE TOOL ARGUMENTS [SLOW]

With SLOW, the arguments of a further call, it gives that one up and calls once more. Prints one JSON object: the
protocol version, the tools' names, the tool's result as it came, and what became of the other two calls.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def give_up(client, slow):
    """Leaves a call as a program does whose own time is over."""
    try:
        await asyncio.wait_for(client.call_tool("http_request", slow), 0.5)
    except asyncio.TimeoutError:
        return "cancelled"
    return "answered"


async def main(path, server, mode, tool, arguments, slow=None):
    with open(path, encoding="utf-8") as file:
        entry = json.load(file)["mcpServers"][server]
    parameters = StdioServerParameters(**entry)
    async with Client(parameters, mode=mode, read_timeout_seconds=15) as client:
        listed = await client.list_tools()
        called = await client.call_tool(tool, json.loads(arguments))
        cancelled = await give_up(client, json.loads(slow)) if slow else None
        after = await client.call_tool("channels", {})
        return {
            "protocol": str(client.protocol_version),
            "server": client.server_info.name if client.server_info else None,
            "tools": [known.name for known in listed.tools],
            "result": called.model_dump(mode="json", by_alias=True),
            "cancelled": cancelled,
            "after": "error" if after.is_error else "answered",
        }


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
