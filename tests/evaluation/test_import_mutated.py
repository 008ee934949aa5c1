"""Every reader on files that were changed anywhere: it understands them, or says what is wrong."""

import copy
import json
import textwrap

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imported_files import DID, tau2_file, tau2_simulation, tau_record, write
from test_import_chats import CHATS, FIRST, LOG, SECOND, otlp
from test_import_promptfoo import CONFIG

from harness_cli.errors import HarnessError
from harness_cli.evaluation.imports.imported import ImportOptions
from harness_cli.evaluation.imports.keep_run import as_recorded, result_of
from harness_cli.evaluation.imports.kinds import reader
from harness_cli.evaluation.imports.source import opened
from harness_cli.records.reader import dump_yaml, load_yaml

WHOLE = {
    "tau-bench": [tau_record(0, calls=[DID])],
    "tau2": tau2_file([tau2_simulation()]),
    "openai-chat": CHATS,
    "otel": otlp(FIRST, SECOND),
    "inspect": LOG,
    "evals-json": {
        "skill_name": "a",
        "evals": [{"id": 1, "prompt": "x", "assertions": ["a", {"text": "b"}], "files": ["f"]}],
    },
    "promptfoo": load_yaml(
        textwrap.dedent(CONFIG).replace("  - file://chat.json\n", "").replace(
            "  - file://more.csv\n", ""
        ),
        name="x",
    ),
    "jsonl": {"id": "1", "prompt": "hi", "reply": "x", "score": 1, "__expected": "contains: x"},
}  # fmt: skip
GONE = object()
ODD = st.sampled_from(
    [GONE, None, 0, -1, 1.5, True, "", "x", "\0", [], {}, [1], {"a": 1}, 10**30, "file://../x",
     [[]], "{{ a.b }}", "{% for %}", {"role": "user"}, [None], "../..", {"$ref": "#/x"}]
)  # fmt: skip


def places(value, at=()):
    """Every place of a document but its root."""
    if at:
        yield at
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    for key, one in inner:
        yield from places(one, (*at, key))


@pytest.mark.parametrize("kind", WHOLE)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_changed_file_is_understood_or_refused_in_words(kind, tmp_path_factory, data):
    value = copy.deepcopy(WHOLE[kind])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.sampled_from(list(places(value)) or [()]))
        if not at:
            continue
        inside = value
        for key in at[:-1]:
            inside = inside[key]
        odd = data.draw(ODD)
        if odd is GONE:
            del inside[at[-1]]
        else:
            inside[at[-1]] = copy.deepcopy(odd)
    folder = tmp_path_factory.getbasetemp()
    text = dump_yaml(value) if kind == "promptfoo" else json.dumps(value)
    try:
        with opened(write(folder, f"{kind}.json", text)) as source:
            made = reader(kind)(source, ImportOptions())
            items = {item.id: item for item in made.items}
            for one in made.recorded():
                result_of(items[one.item_id], one, as_recorded(one, made.judge_id))
    except HarnessError:
        return  # anything else would be a bug report
    for item in made.items:
        again = msgspec.json.decode(msgspec.json.encode(item), type=type(item))
        assert again.id == item.id
