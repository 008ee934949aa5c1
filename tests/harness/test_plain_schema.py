"""What is said to fit without a validator does fit under one; what is not is left to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from harness_cli.harness.plain_schema import plain_check
from harness_cli.harness.tools import value_errors

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.sampled_from("abc"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abq"), inner),
    max_leaves=4,
)
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": KINDS | st.lists(KINDS, min_size=1, max_size=2, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "description": st.just("what"),
        "minimum": st.integers(-1, 1),
        "minLength": st.integers(0, 2),
    },
)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object") | KINDS},
    optional={
        "properties": st.dictionaries(st.sampled_from("ab"), PARTS),
        "required": st.lists(st.sampled_from("abq"), max_size=2, unique=True),
        "additionalProperties": st.booleans() | PARTS,
        "minProperties": st.integers(0, 1),
        "title": st.just("t"),
    },
)


@given(SCHEMAS, VALUES)
def test_what_plainly_fits_fits(schema, value):
    check = plain_check(schema)
    if check is not None and check(value):
        assert Draft202012Validator(schema).is_valid(value)


ONE = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["q"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"q": "a"}, True),
        ({"q": "a", "n": 3}, True),
        ({"n": 3}, False),
        ({"q": 1}, False),
        ({"q": "a", "n": True}, False),
        ({"q": "a", "x": 1}, False),
        ([], False),
    ],
)
def test_the_schema_of_a_usual_tool_is_plain(value, fits):
    assert plain_check(ONE)(value) is fits
    assert (value_errors(ONE, value) == []) is fits


@pytest.mark.parametrize(
    "more",
    [
        {"minProperties": 1},
        {"properties": {"q": {"$ref": "#/$defs/x"}}},
        {"additionalProperties": {"type": "string"}},
        {"allOf": []},
        {"properties": {"q": True}},
        {"type": ["object", "null"]},
    ],
)
def test_a_schema_that_says_more_is_not_plain(more):
    assert plain_check({**ONE, **more}) is None


def test_a_whole_float_is_an_integer_still():
    """JSON Schema counts 3.0 as an integer: not plain, and right all the same."""
    assert plain_check(ONE)({"q": "a", "n": 3.0}) is False
    assert value_errors(ONE, {"q": "a", "n": 3.0}) == []
