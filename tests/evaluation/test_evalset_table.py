"""The table of evalsets/README.md says what the headers say."""

import re
from pathlib import Path

import pytest

from harness_cli.records.item import EvalsetHeader
from harness_cli.records.reader import read_yaml

EVALSETS = Path(__file__).parents[2] / "evalsets"
ROWS = {
    m[1]: m[0]
    for m in re.finditer(r"^\| `(\w+)` \|.*$", (EVALSETS / "README.md").read_text(), re.MULTILINE)
}
HEADERS = {p.parent.name: p for p in EVALSETS.glob("*/evalset.yaml")}


def test_every_committed_set_has_its_row():
    assert set(ROWS) == {*HEADERS, "ifeval"}


@pytest.mark.parametrize("name", sorted(HEADERS))
def test_counts_digests_seal_and_metrics_are_those_of_the_header(name):
    header = read_yaml(HEADERS[name], EvalsetHeader)
    cells = [cell.strip() for cell in ROWS[name].strip("|").split("|")]
    _, _, items, role, scored, digests = cells
    counts = [int(n.replace(",", "")) for n in re.findall(r"(?<!\w)\d[\d,]*", items)]
    assert counts == list(header.splits.values())
    assert ("sealed" in role) == (header.states is None and bool(header.seal.splits))
    if header.role == "policy" and "timing" not in scored:
        assert tuple(scored.split(", ")) == header.metrics
    frozen = re.findall(r"`([0-9a-f]{12})`", digests)
    if header.states is None and header.role == "policy":
        assert frozen == [digest[:12] for digest in header.digests.values()]
