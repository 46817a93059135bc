"""A server as FastMCP's users write them."""
import time

from fastmcp import FastMCP

mcp = FastMCP("fast")


@mcp.tool
def slow(seconds: int) -> str:
    time.sleep(seconds)
    return "done"


if __name__ == "__main__":
    mcp.run()
