"""One room's tools over MCP, asked by the client of the SDK in a real process."""

import asyncio
import json
import sys

from live_rooms import ROOT, STATE
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from harness_cli.simulator.mcp_server import main


def asked(work, *words):
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "harness_cli.simulator.mcp_server", "-C", str(ROOT), "--seed", "3", *words],
    )

    async def go():
        async with stdio_client(server) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            return await work(client)

    return asyncio.run(asyncio.wait_for(go(), 60))


def test_a_client_lists_and_calls_the_tools_of_the_room():
    async def work(client):
        names = {t.name for t in (await client.list_tools()).tools}
        request = await client.call_tool("room_request", {})
        room = request.structured_content["room"]
        card = await client.call_tool("get_product_info_by_link_id", {"link_id": 2})
        offers = await client.call_tool("get_campaign_conditions", {})
        wrong = await client.call_tool("get_inventory", {"link_id": 99})
        unknown = await client.call_tool("load_skill", {"skill": "greet"})
        return names, room, request, card, offers, wrong, unknown

    names, room, request, card, offers, wrong, unknown = asked(work)
    assert names == {t.name for t in STATE.all_tools() if t.executor != "builtin"} | {
        "room_request"
    }
    assert request.structured_content["comments"]
    assert card.structured_content["product_id"] == room["products"][1]
    assert json.loads(card.content[0].text) == card.structured_content
    assert "campaigns" in offers.structured_content
    assert (wrong.is_error, wrong.structured_content["error"]) == (True, "not_found")
    assert unknown.is_error


def test_a_project_that_is_none_ends_with_2(tmp_path, capsys):
    assert main(["-C", str(tmp_path)]) == 2
    assert "no `harness.yaml`" in capsys.readouterr().err
