"""Golden files of schema 1 keep loading; old kinds move, unknown numbers are refused."""

import json
import subprocess
from pathlib import Path

import msgspec
import pytest

from harness_cli.errors import BadFile, UsageError
from harness_cli.loop.scaffold import make_project
from harness_cli.records.reader import load_yaml, parse_json, parse_yaml
from harness_cli.records.schemas import FILES
from harness_cli.store.migrate import (
    KINDS,
    SETTINGS,
    Kind,
    examine,
    move,
    on_data,
    refuse_unknown,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "schema1"


def golden(kind: str) -> Path:
    (found,) = [p for p in GOLDEN.iterdir() if p.name.rpartition(".")[0] == kind]
    return found


def lost(was, now, path="$") -> list[str]:
    """Every place of `was` that `now` has not, or has with another value."""
    if isinstance(was, dict) and isinstance(now, dict):
        return [p for k in was for p in lost(was[k], now.get(k, "nothing"), f"{path}.{k}")]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [p for i, w in enumerate(was) for p in lost(w, now[i], f"{path}[{i}]")]
    return [] if was == now else [f"{path}: {was!r} became {now!r}"]


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_schema_1_keeps_loading_and_loses_nothing(kind):
    path = golden(kind)
    text = path.read_text()
    is_json = path.suffix == ".json"
    read = parse_json if is_json else parse_yaml
    record = read(text, FILES[kind], name=path.name)
    plain = json.loads(msgspec.json.encode(record))
    was = json.loads(text) if is_json else load_yaml(text, name=path.name)
    assert lost(was, plain) == []
    assert msgspec.convert(plain, FILES[kind]) == record


def test_a_golden_file_that_no_kind_claims_is_a_mistake():
    assert {p.name.rpartition(".")[0] for p in GOLDEN.iterdir()} == set(FILES)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A shipped project, with one golden file of every kind that a project gets later on."""
    root = tmp_path_factory.mktemp("migrate") / "shop"
    make_project(root)
    for kind, place in {
        "augmentation-map": "evalsets/harness_variant_qa/states/hsa-0001.yaml",
        "channel": "manifests/channels/dev.json",
        "manifest": "manifests/dev-1.json",
        "calibration": "manifests/calibration/final.json",
        "run": ".harness/runs/r1/run.json",
        "report": ".harness/runs/r1/report.json",
        "noise": ".harness/runs/r1/noise.json",
        "blind-sheet": "blind/b1/sheet.json",
        "blind-key": ".harness/blind/b1.key.json",
        "diagnosis": ".harness/runs/r1/diagnosis.json",
        "proposal": "p-1.yaml",
    }.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_bytes(golden(kind).read_bytes())
    return root


@pytest.fixture
def project(made, tmp_path):
    subprocess.run(["cp", "-r", str(made), str(tmp_path / "shop")], check=True)
    return tmp_path / "shop"


def test_every_kind_of_a_project_is_found_and_current(project):
    found = examine(project)
    assert {f.kind for f in found} == {k.name for k in (*KINDS, SETTINGS)}
    assert {f.state for f in found} == {"current"}
    assert move(project, found) == []


def test_every_numbered_file_of_a_project_is_looked_at(project):
    """What carries `schema:` at its top and is no item, run journal or settings of a tool."""
    looked = {f.path for f in examine(project)}
    for path in project.rglob("*.yaml"):
        if path.read_text().startswith("schema:") or "\nschema:" in path.read_text():
            assert path.relative_to(project).as_posix() in looked, path


NUMBERED = (
    "gates.yaml",
    "harness.yaml",
    "p-1.yaml",
    "manifests/dev-1.json",
    "manifests/channels/dev.json",
    ".harness/runs/r1/run.json",
    "harness_repo/prompts/pipeline.yaml",
)


@pytest.mark.parametrize("place", NUMBERED)
@pytest.mark.parametrize("number", [0, 2, -1, 99])
def test_an_unknown_number_is_refused_by_name_and_nothing_is_written(place, number, project):
    path = project / place
    text = path.read_text()
    path.write_text(
        text.replace("schema: 1", f"schema: {number}")
        .replace('"schema": 1', f'"schema": {number}')
        .replace("/manifest/v1", f"/manifest/v{number}")
    )
    before = path.read_bytes()
    with pytest.raises(BadFile) as refused:
        refuse_unknown(examine(project))
    assert place in str(refused.value)
    assert "was changed" in refused.value.hint
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["schema: one\n", "schema: true\n", "- 1\n", "", "a: [\n", "{"])
def test_a_file_that_has_no_readable_number_is_named(text, project):
    (project / "gates.yaml").write_text(text)
    (wrong,) = [f for f in examine(project) if f.state == "unreadable"]
    assert wrong.path == "gates.yaml"
    assert wrong.problem.startswith("gates.yaml")


def test_every_unknown_file_stands_in_one_error(project):
    for name in ("gates.yaml", "evalsets/frozen.yaml"):
        path = project / name
        path.write_text(path.read_text().replace("schema: 1", "schema: 5"))
    with pytest.raises(BadFile, match=r"evalsets/frozen\.yaml: schema 5 .*; gates\.yaml: schema 5"):
        refuse_unknown(examine(project))


class Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind that had two earlier schemas: `text` was called `body`, then `words`."""

    schema: int
    text: str


def named(old: str, new: str, number: int):
    """Text to text: a comment that a person wrote survives."""
    return lambda text: text.replace(f"{old}:", f"{new}:").replace(
        f"schema: {number}", f"schema: {number + 1}"
    )


NOTE = Kind(
    "note", "", ("notes/*.yaml",), Note, current=3,
    steps={1: named("body", "words", 1), 2: named("words", "text", 2)},
)  # fmt: skip
CARD = Kind(
    "card", "runs", ("*/card.json",), Note, current=2,
    steps={1: on_data(lambda d: {"schema": 2, "text": d["body"]})},
)  # fmt: skip


def notes(project: Path, **texts: str) -> list:
    (project / "notes").mkdir()
    for name, text in texts.items():
        (project / "notes" / f"{name}.yaml").write_text(text)
    return [f for f in examine(project, [NOTE]) if f.kind == "note"]


def test_an_old_kind_moves_step_by_step_and_its_comments_survive(project):
    found = notes(
        project,
        one="# why\nschema: 1\nbody: a\n",
        three="schema: 3\ntext: c\n",
        two="schema: 2\nwords: b # so\n",
        zero="schema: 0\n",
    )
    assert [(f.path, f.schema, f.state) for f in found] == [
        ("notes/one.yaml", 1, "old"),
        ("notes/three.yaml", 3, "current"),
        ("notes/two.yaml", 2, "old"),
        ("notes/zero.yaml", 0, "unknown"),
    ]
    assert [f.path for f in move(project, found)] == ["notes/one.yaml", "notes/two.yaml"]
    assert (project / "notes/one.yaml").read_text() == "# why\nschema: 3\ntext: a\n"
    assert (project / "notes/two.yaml").read_text() == "schema: 3\ntext: b # so\n"
    again = [f for f in examine(project, [NOTE]) if f.kind == "note"]
    assert [f.state for f in again] == ["current", "current", "current", "unknown"]


def test_a_file_a_machine_writes_moves_as_data(project):
    card = project / ".harness/runs/r1/card.json"
    card.write_text('{"schema": 1, "body": "a"}')
    move(project, examine(project, [CARD]))
    assert json.loads(card.read_text()) == {"schema": 2, "text": "a"}


def test_an_old_file_that_does_not_become_a_good_one_is_refused_before_anything_is_written(project):
    (project / "notes").mkdir()
    good, bad = project / "notes/a.yaml", project / "notes/b.yaml"
    good.write_text("schema: 2\nwords: b\n")
    bad.write_text("schema: 2\nwords: b\nmore: c\n")
    found = examine(project, [NOTE])
    with pytest.raises(BadFile, match=r"notes/b\.yaml.*unknown field `more`"):
        refuse_unknown(found)
    assert good.read_text() == "schema: 2\nwords: b\n"


def test_steps_that_lead_nowhere_are_a_mistake_of_the_table(project):
    lost_step = Kind("note", "", ("notes/*.yaml",), Note, current=2, steps={1: lambda text: text})
    (project / "notes").mkdir()
    (project / "notes/a.yaml").write_text("schema: 1\ntext: a\n")
    with pytest.raises(UsageError, match="do not lead to schema 2"):
        examine(project, [lost_step])


def test_evidence_is_never_rewritten(project):
    kept = Kind("card", "runs", ("*/card.json",), current=2, steps={1: str}, kept="it is evidence")
    card = project / ".harness/runs/r1/card.json"
    card.write_text('{"schema": 1}')
    found = [f for f in examine(project, [kept]) if f.kind == "card"]
    assert [(f.state, f.problem) for f in found] == [("kept", "it is evidence")]
    refuse_unknown(found)
    assert move(project, found) == []
    assert card.read_text() == '{"schema": 1}'


def test_settings_of_an_old_schema_still_say_where_the_others_lie(project):
    text = (project / "harness.yaml").read_text()
    old = text.replace("schema: 1", "schema: 0").replace("evalsets:", "sets:")
    (project / "harness.yaml").write_text(old)
    settings = Kind(
        "harness", "", ("harness.yaml",), SETTINGS.record,
        steps={0: lambda t: t.replace("schema: 0", "schema: 1").replace("sets:", "evalsets:")},
    )  # fmt: skip
    found = examine(project, KINDS, settings)
    assert next(f for f in found if f.path == "harness.yaml").state == "old"
    assert "evalsets/frozen.yaml" in {f.path for f in found}
    move(project, found)
    assert (project / "harness.yaml").read_text() == text
