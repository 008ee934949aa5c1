"""JUnit XML of a decision: one test case a gate, so that a CI shows which one stands in the way."""

from collections.abc import Sequence
from typing import Final, Literal

from harness_cli.evaluation.junit import attribute, text_node
from harness_cli.records.canonical import canonical_json
from harness_cli.records.gates import GateResult, Outcome

Tag = Literal["failure", "error", "skipped"]
TAGS: Final[dict[Outcome, Tag | None]] = {
    "PASS": None,
    "FAIL": "failure",
    "INCONCLUSIVE": "failure",  # it never promotes, so it is not shown as if it were left out
    "ERROR": "error",
    "DRIFT": "error",
    "PENDING": "skipped",
}


def gates_junit(gates: Sequence[GateResult], known: dict[str, str]) -> str:
    """The document. `known` says what was judged: the properties of the one suite.

    A gate that only watches (`mode: dry_run`) decides nothing: it passes or is skipped.
    """
    tags = [_tag(gate) for gate in gates]
    numbers = (
        f'tests="{len(gates)}" failures="{tags.count("failure")}" '
        f'errors="{tags.count("error")}" skipped="{tags.count("skipped")}"'
    )
    properties = "".join(
        f"<property name={attribute(name)} value={attribute(value)}/>\n"
        for name, value in known.items()
        if value
    )
    cases = "".join(_case(gate, tag) for gate, tag in zip(gates, tags, strict=True))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites {numbers}>\n<testsuite name="gates" {numbers}>\n'
        f"<properties>\n{properties}</properties>\n{cases}</testsuite>\n</testsuites>\n"
    )


def _tag(gate: GateResult) -> Tag | None:
    found = TAGS[gate.outcome]
    return "skipped" if found is not None and gate.mode != "enforce" else found


def _case(gate: GateResult, tag: Tag | None) -> str:
    start = f"<testcase classname={attribute(gate.kind)} name={attribute(gate.name)}"
    if tag is None:
        return f"{start}/>\n"
    said = f"{gate.outcome}: {gate.summary}"
    if gate.mode != "enforce":
        said = f"{gate.mode}, {said}"
    if gate.needs:
        said += f"; needs {gate.needs}"
    kind = "" if tag == "skipped" else f" type={attribute(gate.outcome)}"
    body = text_node(canonical_json(gate.numbers).decode())
    return f"{start}><{tag}{kind} message={attribute(said)}>{body}</{tag}></testcase>\n"
