"""A leased computer for MCP clients: `manage.py sandbox mcp`. Needs the `mcp` package."""
