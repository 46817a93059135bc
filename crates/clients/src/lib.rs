//! MCP client configurations in, expected servers out.
