"""Agent Skills `evals.json`: prompts for one skill, and what a good answer does, in words."""

from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.ids import Ids, slug
from harness_cli.evaluation.imports.imported import Imported, ImportOptions
from harness_cli.evaluation.imports.source import Source, decoded, name_of
from harness_cli.records.item import Assertion, EvalsetHeader, Expect, Item
from harness_cli.records.request import Comment, Request

KIND = "evals-json"


class Eval(msgspec.Struct, frozen=True):
    """One test of a skill."""

    prompt: str
    id: str | int | None = None
    name: str | None = None
    expected_output: str | None = None
    files: tuple[str, ...] = ()
    assertions: tuple[Any, ...] = ()
    expectations: tuple[Any, ...] = ()
    """The same under the name that the skill-creator skill uses."""
    should_trigger: bool = True


class File(msgspec.Struct, frozen=True):
    """The whole file."""

    evals: tuple[Eval, ...]
    skill_name: str | None = None


def read(source: Source, options: ImportOptions) -> Imported:
    """The tests as items of the harness: the skill must be loaded, the rest is for a panel."""
    data = source.at(source.start, source.size, "the file")
    found = decoded(data, File, where=source.name)
    if not found.evals:
        raise BadFile(f"{source.name}: `evals` is empty")
    folder = source.path.resolve().parent
    guessed = folder.parent.name if folder.name == "evals" else folder.name
    skill = name_of(found.skill_name or guessed, what="`skill_name`", where=source.name)
    ids = Ids()
    items, files = [], 0
    for number, one in enumerate(found.evals, 1):
        where = f"{source.name}: evals[{number - 1}]"
        if not one.prompt.strip():
            raise BadFile(f"{where}: the prompt is empty")
        files += bool(one.files)
        items.append(_item(ids.of(one.id or one.name, number, where=where), one, skill, where))
    unsupported = (f"{source.name}: `files` of {files} tests: the agent is not given them",)
    return Imported(
        kind=KIND,
        header=EvalsetHeader(
            name=options.name or slug(f"{skill}-evals", KIND),
            provenance=f"Agent Skills evals of `{skill}`",
            metrics=("passed",),
            judge="none",
            catalogue=None,
        ),
        items=tuple(items),
        notes=(
            "what is expected in words is decided by a panel judge; without one it is unscored",
        ),
        unsupported=unsupported if files else (),
    )


def _item(item_id: str, one: Eval, skill: str, where: str) -> Item:
    used = Assertion(type="skill-used" if one.should_trigger else "not-skill-used", value=skill)
    rubrics = [
        Assertion(type="llm-rubric", value=_words(value, f"{where}: assertion {n}"))
        for n, value in enumerate((*one.assertions, *one.expectations), 1)
    ]
    if one.expected_output:
        rubrics.insert(0, Assertion(type="llm-rubric", value=one.expected_output))
    return Item(
        id=item_id,
        category=skill,
        request=Request(channel="private", comments=(Comment(viewer="v1", text=one.prompt),)),
        expect=Expect(skills=(skill,) if one.should_trigger else ()),
        assert_=(used, *rubrics),
        origin={"files": list(one.files)} if one.files else {},
    )


def _words(value: Any, where: str) -> str:
    """An assertion in words, or an object that holds it."""
    if isinstance(value, dict):
        value = value.get("text") or value.get("assertion") or value.get("description")
    if not isinstance(value, str) or not value.strip():
        raise BadFile(f"{where}: a text is needed")
    return value
