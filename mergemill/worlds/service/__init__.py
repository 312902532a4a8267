"""Worlds over HTTP and MCP: `mergemill worlds serve`."""
