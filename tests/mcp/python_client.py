"""The official Python MCP client against `nightloop mcp`. By hand, because it needs `pip install mcp`:

    cargo build --example mcp_shelf --bin nightloop
    target/debug/examples/mcp_shelf target/debug/nightloop python tests/mcp/python_client.py

It lists the tools of the example's shelf, calls them, and checks what comes back. See docs/mcp.md.
"""

import asyncio
import os

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def get(thing, *names):
    """A field by the first of its names: releases of the library spell them differently."""
    for name in names:
        if hasattr(thing, name):
            return getattr(thing, name)
    raise AttributeError(names)


async def main():
    variables = {name: os.environ[name] for name in ("NIGHTLOOP_TOOLS", "NIGHTLOOP_TOOLS_TOKEN")}
    server = StdioServerParameters(command=os.environ["NIGHTLOOP_BIN"], args=["mcp"], env=variables)
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
        hello = await session.initialize()
        info = get(hello, "server_info", "serverInfo")
        print("server:", info.name, info.version, "protocol", get(hello, "protocol_version", "protocolVersion"))
        tools = (await session.list_tools()).tools
        print("tools:", [(tool.name, tool.description) for tool in tools])
        assert [tool.name for tool in tools] == ["echo", "fail"]
        assert get(tools[0], "input_schema", "inputSchema")["required"] == ["text"]
        for name, expected in (("echo", False), ("fail", True)):
            result = await session.call_tool(name, {"text": f"hé from {name}"})
            failed = get(result, "is_error", "isError")
            print(f"{name}:", repr(result.content[0].text), "error" if failed else "fine")
            assert result.content[0].text == f"hé from {name}" and bool(failed) == expected
        result = await session.call_tool("nothing", {})
        print("nothing:", repr(result.content[0].text))
        assert get(result, "is_error", "isError")
    print("all as expected")


asyncio.run(main())
