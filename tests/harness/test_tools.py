import msgspec
import pytest
from small_harness import LOAD, SKILL, changed_files

from harness_cli.harness.load import state_from_files
from harness_cli.harness.tools import argument_errors, offered, tool_digest, value_errors
from harness_cli.records.harness import LockedTool, McpLock, Tool


def state(**changed):
    return state_from_files(changed_files(changed))


def functions(made, **extra):
    return {d["function"]["name"]: d["function"] for d in offered(made, **extra)}


def test_tools_are_offered_in_openai_form_by_name():
    made = offered(state())
    assert [d["function"]["name"] for d in made] == ["get_price", "load_skill"]
    assert {d["type"] for d in made} == {"function"}
    assert made[0]["function"]["parameters"]["required"] == ["link_id"]


def test_load_skill_lists_the_skills_there_are_and_the_file_stays_as_it_is():
    more = {"skills/other/SKILL.md": SKILL.replace("name: item-qa", "name: other")}
    made = state(**more)
    schema = functions(made)["load_skill"]["parameters"]
    assert schema["properties"]["skill"]["enum"] == ["item-qa", "other"]
    [tool] = [t for t in made.tools if t.name == "load_skill"]
    assert "enum" not in tool.input_schema["properties"]["skill"]


def test_a_renamed_loader_with_a_renamed_argument_is_still_the_loader():
    renamed = (
        LOAD.replace("load_skill", "open_module")
        .replace("skill:", "module:")
        .replace("[skill]", "[module]")
        .replace("builtin}", "builtin, harness.operation: load_skill, MAP}")
        .replace("MAP", "harness.arguments: {module: name}")
    )
    files = {"tools/load_skill.yaml": None, "tools/open_module.yaml": renamed}
    schema = functions(state(**files))["open_module"]["parameters"]
    assert schema["properties"]["module"]["enum"] == ["item-qa"]


def test_locked_tools_are_offered_with_the_text_that_was_locked():
    tool = Tool(name="add", description="Adds.", input_schema={"type": "object"})
    lock = McpLock(servers={"calc": {"add": LockedTool(sha256=tool_digest(tool), tool=tool)}})
    made = msgspec.structs.replace(state(), lock=lock)
    assert functions(made)["add"]["description"] == "Adds."


def test_an_overlay_adds_and_replaces_in_either_form():
    mcp = {"name": "get_price", "description": "Mine.", "inputSchema": {"type": "object"}}
    openai = {"type": "function", "function": {"name": "extra", "parameters": {"type": "object"}}}
    made = functions(state(), overlay=[mcp, openai])
    assert made["get_price"]["description"] == "Mine."
    assert set(made) == {"get_price", "load_skill", "extra"}


def test_the_same_state_gives_the_same_objects_and_an_edited_one_gives_others():
    made = state()
    assert offered(made) is offered(made)
    edited = msgspec.structs.replace(made, tools=made.tools[:1])
    assert [d["function"]["name"] for d in offered(edited)] == ["get_price"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"link_id": 3}, None),
        ({"link_id": "3"}, "`link_id`: '3' is not of type 'integer'"),
        ({"link_id": 0}, "`link_id`: 0 is less than the minimum of 1"),
        ({}, "'link_id' is a required property"),
        ({"link_id": 3, "x": 1}, "'x' was unexpected"),
        ([1], "is not of type 'object'"),
        (None, "is not of type 'object'"),
    ],
)
def test_arguments_are_checked_by_the_schema(arguments, says):
    found = argument_errors(state().tools[0], arguments)
    assert (found == []) if says is None else (says in found[0])


def test_all_wrong_arguments_are_listed_in_a_fixed_order():
    schema = {
        "type": "object",
        "properties": {"b": {"type": "integer"}, "a": {"type": "integer"}},
    }
    assert value_errors(schema, {"b": "x", "a": "y"}) == [
        "`a`: 'y' is not of type 'integer'",
        "`b`: 'x' is not of type 'integer'",
    ]


def test_a_schema_never_fetches_what_it_refers_to():
    schema = {"type": "object", "properties": {"a": {"$ref": "https://example.invalid/a.json"}}}
    [error] = value_errors(schema, {"a": 1})
    assert "does not hold" in error


def test_the_digest_of_a_tool_is_the_documented_one():
    tool = Tool(name="t", description="d", input_schema={"type": "object"})
    assert tool_digest(tool) == tool_digest(msgspec.structs.replace(tool, meta={"x": 1}))
    assert tool_digest(tool) != tool_digest(msgspec.structs.replace(tool, title="T"))
    assert tool_digest(tool) == ("a2920bdb134d45e595f2f80c46843ac0f7b7086f967cda82a07fb7f975bbec04")
