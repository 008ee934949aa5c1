"""promptfoo configurations: prompts × tests become items of a bare evalset.

Nothing of the file is run: no JavaScript, no Python, no provider. Templates are filled in the
sandbox of prompt blocks; files are read from the configuration's own folder only.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.imported import Imported, ImportOptions
from harness_cli.evaluation.imports.promptfoo_asserts import Asserts
from harness_cli.evaluation.imports.promptfoo_files import CODE, MARK, Code, Folder
from harness_cli.evaluation.imports.promptfoo_tests import Test, Tests
from harness_cli.evaluation.imports.source import Source
from harness_cli.harness.filling import Filling
from harness_cli.records.item import Assertion, EvalsetHeader, Item
from harness_cli.records.reader import load_yaml
from harness_cli.records.request import Request

KIND = "promptfoo"
MOST = 16 << 20
MOST_ITEMS = 100_000
ELSEWHERE = {
    "description", "prompts", "providers", "targets", "tests", "defaultTest", "scenarios",
    "assertionTemplates", "$schema", "sharing", "outputPath", "evaluateOptions",
    "commandLineOptions", "tags", "writeLatestResults", "env", "metadata",
}  # fmt: skip
"""Keys that are read, or that say how promptfoo runs and nothing about what is asked."""
_MESSAGE = {"system", "user", "assistant", "developer"}


class Prompt(NamedTuple):
    """A prompt template."""

    label: str
    text: str


def read(source: Source, options: ImportOptions) -> Imported:
    """The items of a configuration. Raises `BadFile` with the place of what is wrong."""
    config = load_yaml(source.text(most=MOST), name=source.name)
    if not isinstance(config, dict) or "prompts" not in config:
        raise BadFile(
            f"{source.name}: there are no `prompts`", hint="a promptfoo configuration has them"
        )
    folder, filling = Folder(source.path.parent), Filling()
    asserts = Asserts(folder, filling, config.get("assertionTemplates") or {})
    prompts = list(_prompts(config["prompts"], folder, name=source.name))
    tests = Tests(folder, config.get("defaultTest"), name=source.name)
    found = [
        *tests.all_of(config.get("tests") or [], where=f"{source.name}: tests"),
        *tests.scenarios(config.get("scenarios"), where=f"{source.name}: scenarios"),
    ] or list(tests.all_of([{}], where=f"{source.name}: tests"))
    if len(found) * len(prompts) > MOST_ITEMS:
        raise BadFile(f"{source.name}: {len(found) * len(prompts):,} items, at most {MOST_ITEMS:,}")
    items = tuple(_items(found, prompts, asserts, filling))
    left = [f"{source.name}: `{key}`" for key in config if key not in ELSEWHERE]
    notes = ["providers are not imported: `harness eval --policy` names what answers"]
    if filling.missing:
        notes.append(f"variables without a value are left empty: {_named(filling.missing)}")
    return Imported(
        kind=KIND,
        header=EvalsetHeader(
            name=options.name or _name(source, config),
            provenance=f"promptfoo configuration {source.name}",
            agent="bare",
            metrics=("passed",),
            judge="none",
            catalogue=None,
            notes=str(config.get("description") or ""),
        ),
        items=items,
        notes=tuple(notes),
        unsupported=tuple(dict.fromkeys([*left, *asserts.unsupported])),
    )


def _name(source: Source, config: dict[str, Any]) -> str:
    """From the description, else from the folder: most files are called the same."""
    said = str(config.get("description") or "") or source.path.resolve().parent.name
    slug = re.sub(r"[^a-z0-9]+", "-", said.lower()).strip("-")[:60].strip("-")
    return slug or "promptfoo"


def _prompts(value: Any, folder: Folder, *, name: str) -> Iterator[Prompt]:
    entries = value if isinstance(value, list) else [value]
    for number, entry in enumerate(entries):
        where = f"{name}: prompts[{number}]"
        label = ""
        if isinstance(entry, dict):
            label = str(entry.get("label") or entry.get("id") or "")
            entry = entry.get("raw") or entry.get("id") or entry.get("prompt")
        if not isinstance(entry, str) or not entry.strip():
            raise BadFile(f"{where}: a prompt is a text or a file")
        if not _is_file(entry):
            yield Prompt(label or entry, entry)
            continue
        address = entry if entry.startswith(MARK) else MARK + entry
        for one in folder.glob(address, where=where):
            yield from _of_file(one, label, folder, where)


def _is_file(entry: str) -> bool:
    known = (".txt", ".md", ".json", ".yaml", ".yml", ".jsonl", ".csv", *CODE)
    stem = entry.partition("#")[0].strip()
    one_line = "\n" not in stem and " " not in stem and "{" not in stem
    return entry.startswith(MARK) or (one_line and stem.endswith(known))


def _of_file(address: str, label: str, folder: Folder, where: str) -> Iterator[Prompt]:
    try:
        found = folder.text(address, where=where)
    except Code as exc:
        raise BadFile(str(exc), hint="write the prompt as text or as chat messages") from exc
    name = label or address.removeprefix(MARK)
    if address.endswith((".json", ".yaml", ".yml")):
        yield Prompt(name, found)
        return
    if address.endswith((".csv", ".jsonl")):
        raise BadFile(f"{where}: `{address}` is a table", hint="name its prompts one by one")
    parts = [p.strip() for p in re.split(r"^---[ \t]*$", found, flags=re.MULTILINE)]
    for number, part in enumerate(p for p in parts if p):
        yield Prompt(name if len(parts) == 1 else f"{name}#{number + 1}", part)


def _items(
    tests: list[Test], prompts: list[Prompt], asserts: Asserts, filling: Filling
) -> Iterator[Item]:
    width = len(str(len(tests)))
    for number, test in enumerate(tests, 1):
        _refuse_options(test, asserts)
        for place, prompt in enumerate(prompts, 1):
            if test.prompts is not None and not _chosen(prompt.label, test.prompts):
                continue
            item_id = f"t{number:0{width}}" + (f".p{place}" if len(prompts) > 1 else "")
            yield Item(
                id=item_id,
                category=prompt.label[:60] if len(prompts) > 1 else "test",
                request=_request(prompt, test, filling),
                assert_=tuple(_asserts(test, asserts)),
                tags=(test.description[:100],) if test.description else (),
                origin={"test": test.where, "prompt": prompt.label[:200], "vars": test.values},
            )


def _chosen(label: str, wanted: list[str]) -> bool:
    return any(label == w or (w.endswith("*") and label.startswith(w[:-1])) for w in wanted)


def _refuse_options(test: Test, asserts: Asserts) -> None:
    for key in ("transform", "postprocess", "transformVars"):
        if test.options.get(key) is not None:
            asserts.unsupported.append(
                f"{test.where}: option `{key}` is code: the test is unscored"
            )


def _asserts(test: Test, asserts: Asserts) -> list[Assertion]:
    made = [
        one
        for listed, where in test.asserts
        for one in asserts.all_of(listed, test.values, where=where)
    ]
    made += [asserts.short(text, where=where) for text, where in test.expected]
    if any(test.options.get(k) is not None for k in ("transform", "postprocess")):
        made = [msgspec.structs.replace(one, type=f"{one.type}+transform") for one in made]
    if test.threshold is None or not made:
        return made
    try:
        threshold = float(test.threshold)
    except (TypeError, ValueError):
        raise BadFile(f"{test.where}: `threshold` must be a number") from None
    return [Assertion(type="assert-set", assert_=tuple(made), threshold=threshold)]


def _request(prompt: Prompt, test: Test, filling: Filling) -> Request:
    text = filling.text(prompt.text, test.values, where=f"{test.where}: the prompt")
    prefix, suffix = (str(test.options.get(k) or "") for k in ("prefix", "suffix"))
    messages = _messages(prompt.text, text, test, filling)
    if messages is None:
        return Request(prompt=f"{prefix}{text}{suffix}")
    last = messages[-1]
    return Request(prompt=f"{prefix}{last['content']}{suffix}", history=tuple(messages[:-1]))


def _messages(
    prompt: str, filled: str, test: Test, filling: Filling
) -> list[dict[str, Any]] | None:
    """Chat messages of a prompt that is a JSON or YAML list of them; None for plain text.

    The list is read first and filled afterwards, so that no value can add a message. Only where a
    template makes the list itself (`{% for %}`) is it read from the filled text.
    """
    where = f"{test.where}: the prompt"
    found = _listed(prompt, where)
    if found is None:
        return _ended(_listed(filled, where) if "{%" in prompt else None, where)
    messages = [
        {"role": m["role"], "content": filling.text(m["content"], test.values, where=where)}
        for m in found
    ]
    return _ended(messages, where)


def _listed(text: str, where: str) -> list[dict[str, Any]] | None:
    if not re.match(r"\s*(?:\[|- role:)", text):
        return None
    try:
        found = load_yaml(text, name=where)
    except BadFile:
        return None
    known = isinstance(found, list) and bool(found) and all(_is_message(m) for m in found)
    return found if known else None


def _ended(messages: list[dict[str, Any]] | None, where: str) -> list[dict[str, Any]] | None:
    if messages and messages[-1]["role"] != "user":
        raise BadFile(f"{where}: its last message must be the user's")
    return messages


def _is_message(value: Any) -> bool:
    known = isinstance(value, dict) and value.get("role") in _MESSAGE
    return known and isinstance(value.get("content"), str)


def _named(names: set[str]) -> str:
    return ", ".join(f"`{n}`" for n in sorted(names)[:10])
