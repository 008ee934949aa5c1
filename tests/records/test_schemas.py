import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from harness_cli.records.reader import load_yaml
from harness_cli.records.schemas import FILES, schema_of, write_schemas

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "schemas"


def test_the_committed_schemas_are_those_of_the_records(tmp_path):
    write_schemas(tmp_path)
    made = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    kept = {p.name: p.read_bytes() for p in FOLDER.iterdir()}
    stale = sorted(n for n in made.keys() | kept.keys() if made.get(n) != kept.get(n))
    assert not stale, "run `python -m harness_cli.records.schemas docs/schemas`"


def test_a_kind_that_is_no_more_loses_its_file(tmp_path):
    (tmp_path / "old.json").write_text("{}")
    write_schemas(tmp_path)
    assert {p.stem for p in tmp_path.iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_every_schema_is_valid_json_schema_2020_12(name):
    Draft202012Validator.check_schema(schema_of(name))


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        ("pipeline", {"schema": 1, "blocks": [{"name": "base"}]}, True),
        ("pipeline", {"schema": 1, "blocks": [{"nam": "base"}]}, False),
        ("hook", {"name": "x", "event": "request", "checks": [{"check": "a", "with": {}}]}, True),
        ("hook", {"name": "x", "event": "never"}, False),
        ("skill-frontmatter", {"name": "a-b", "description": "x"}, True),
        ("skill-frontmatter", {"name": "a--b", "description": "x"}, False),
        ("skill-frontmatter", {"name": "a", "description": "x", "version": "1"}, False),
        ("item", {"id": "a", "request": {"channel": "private"}}, True),
        ("item", {"id": "a", "request": {"channel": "secret"}}, False),
    ],
)
def test_schemas_take_what_the_decoder_takes(name, value, valid):
    assert Draft202012Validator(schema_of(name)).is_valid(value) is valid


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("hook", "hooks/*.yaml"), ("pipeline", "prompts/pipeline*.yaml"), ("replies", "replies.yaml")],
)
def test_the_shipped_files_fit_their_schemas(name, pattern):
    validator = Draft202012Validator(json.loads((FOLDER / f"{name}.json").read_text()))
    for path in (ROOT / "harness_repo").glob(pattern):
        value = load_yaml(path.read_text(), name=path.name)
        assert [e.message for e in validator.iter_errors(value)] == [], path
