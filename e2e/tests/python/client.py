"""A client made of the official SDK alone: starts the server of an .mcp.json entry, lists tools, calls one.

usage: client.py MCP_JSON SERVER MODE TOOL ARGUMENTS

Prints one JSON object: the protocol version, the tools' names, and the tool's result as it came.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main(path, server, mode, tool, arguments):
    with open(path, encoding="utf-8") as file:
        entry = json.load(file)["mcpServers"][server]
    parameters = StdioServerParameters(**entry)
    async with Client(parameters, mode=mode, read_timeout_seconds=15) as client:
        listed = await client.list_tools()
        called = await client.call_tool(tool, json.loads(arguments))
        return {
            "protocol": str(client.protocol_version),
            "server": client.server_info.name if client.server_info else None,
            "tools": [known.name for known in listed.tools],
            "result": called.model_dump(mode="json", by_alias=True),
        }


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
