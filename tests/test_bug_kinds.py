"""`docs/bug_kinds.md` names a test for every kind, and every test it names is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "bug_kinds.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))
ROW = re.compile(r"^\| (\d+) \|", re.MULTILINE)
REPORTS = ROOT.parent / "shared" / "reference" / "bug_reports.md"


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_is_named_exists(file, name):
    tree = ast.parse((ROOT / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_names_a_test():
    rows = [line for line in TEXT.splitlines() if line.startswith("| ")]
    rows = [line for line in rows if not line.startswith(("| n |", "| what |", "| --- |"))]
    assert len(rows) > 30
    assert [row for row in rows if "::test_" not in row] == []


def test_every_kind_of_the_collection_is_listed():
    if not REPORTS.exists():
        pytest.skip("the shared folder is not beside this checkout")
    kinds = {int(n) for n in re.findall(r"^(\d+)\. ", REPORTS.read_text(), re.MULTILINE)}
    assert {int(n) for n in ROW.findall(TEXT)} == kinds
