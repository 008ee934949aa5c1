"""The tests of a promptfoo configuration: defaults laid under, lists of values multiplied out."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.promptfoo_files import MARK, Code, Folder

MOST_COMBINATIONS = 10_000
COLUMNS = ("__prefix", "__suffix", "__description", "__threshold", "__metric", "__metadata")
"""Columns of a CSV that say something about the test; others whose names begin with `__` too."""


@dataclass(slots=True)
class Test:
    """One test with its variables."""

    where: str
    description: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    asserts: list[tuple[Any, str]] = field(default_factory=list)
    """Lists of assertions with the place of each."""
    expected: list[tuple[str, str]] = field(default_factory=list)
    """`__expected` texts of a CSV row with their places."""
    threshold: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    prompts: list[str] | None = None
    """Labels of the prompts it is for; None: all."""


class Tests:
    """Reads tests from wherever they stand; `unsupported` says what has no meaning here."""

    def __init__(self, folder: Folder, default: Any, *, name: str) -> None:
        self._folder = folder
        self.unsupported: list[str] = []
        where = f"{name}: defaultTest"
        if isinstance(default, str) and default.startswith(MARK):
            default = folder.read(default, where=where)
        self._default = self._mapping(default or {}, where)
        self._default_where = where

    def all_of(self, value: Any, *, where: str) -> Iterator[Test]:
        """Every test, with its lists of values multiplied out."""
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list):
            raise BadFile(f"{where}: `tests` must be a list or a file")
        for number, entry in enumerate(value):
            yield from self._entry(entry, f"{where}[{number}]")

    def scenarios(self, value: Any, *, where: str) -> Iterator[Test]:
        """Each configuration of a scenario times each of its tests."""
        if value is None:
            return
        if not isinstance(value, list):
            raise BadFile(f"{where}: `scenarios` must be a list")
        for number, entry in enumerate(value):
            place = f"{where}[{number}]"
            scenario = self._mapping(self._loaded(entry, place), place)
            configs = self._listed(scenario.get("config"), f"{place}.config")
            tests = self._listed(scenario.get("tests", [{}]), f"{place}.tests")
            for (c, config), (t, test) in itertools.product(enumerate(configs), enumerate(tests)):
                inner = f"{place}.config[{c}].tests[{t}]"
                yield from self._multiplied(_over(config, test), inner)

    def _listed(self, value: Any, where: str) -> list[dict[str, Any]]:
        value = self._loaded(value, where)
        if not isinstance(value, list) or not value:
            raise BadFile(f"{where}: a list is needed")
        return [self._mapping(self._loaded(v, where), where) for v in value]

    def _entry(self, entry: Any, where: str) -> Iterator[Test]:
        if not isinstance(entry, str):
            yield from self._multiplied(self._mapping(entry, where), where)
            return
        for address in self._folder.glob(entry, where=where):
            try:
                found = self._folder.read(address, where=where)
            except Code as exc:
                raise BadFile(str(exc), hint="write the tests as YAML, JSON or CSV") from exc
            if not isinstance(found, list):
                found = [found]
            place = address.removeprefix(MARK)
            for number, one in enumerate(found):
                inner = f"{place}[{number}]"
                if address.endswith(".csv"):
                    one = _of_row(one, inner)
                yield from self._multiplied(self._mapping(one, inner), inner)

    def _multiplied(self, test: dict[str, Any], where: str) -> Iterator[Test]:
        whole = _over(self._default, test)
        values = self._values(whole.get("vars"), where)
        options = self._mapping(whole.get("options") or {}, where)
        # As promptfoo does: a list of texts is several tests, a list of anything else is a value.
        lists = {
            k: v for k, v in values.items() if isinstance(v, list) and v and isinstance(v[0], str)
        }
        if options.get("disableVarExpansion"):
            lists = {}
        count = 1
        for found in lists.values():
            count *= len(found)
        if not 0 < count <= MOST_COMBINATIONS:
            raise BadFile(f"{where}: its lists of values make {count:,} tests")
        for choice in itertools.product(*lists.values()):
            yield self._test(
                test, whole, options, values | dict(zip(lists, choice, strict=True)), where
            )

    def _test(
        self,
        own: dict[str, Any],
        whole: dict[str, Any],
        options: dict[str, Any],
        values: dict[str, Any],
        where: str,
    ) -> Test:
        shared = self._default.get("assert")
        if options.get("disableDefaultAsserts"):
            shared = None
        prompts = own.get("prompts")
        return Test(
            where=where,
            description=str(own.get("description") or ""),
            values=values,
            asserts=[
                (asserts, place)
                for asserts, place in (
                    (shared, f"{self._default_where}.assert"),
                    (own.get("assert"), f"{where}.assert"),
                )
                if asserts is not None
            ],
            expected=own.get("__expected") or [],
            threshold=whole.get("threshold"),
            options=options,
            prompts=[prompts] if isinstance(prompts, str) else prompts,
        )

    def _values(self, value: Any, where: str) -> dict[str, Any]:
        """Variables; a value may be a file of the folder, a text or data."""
        value = self._loaded(value, where) if isinstance(value, str) else value
        found = self._mapping(value or {}, f"{where}.vars")
        out = {}
        for name, one in found.items():
            if isinstance(one, str) and one.startswith(MARK):
                try:
                    one = self._folder.read(one, where=f"{where}.vars.{name}")
                except Code as exc:
                    raise BadFile(str(exc), hint="write the value out") from exc
            out[str(name)] = one
        return out

    def _loaded(self, value: Any, where: str) -> Any:
        if isinstance(value, str) and value.startswith(MARK):
            return self._folder.read(value, where=where)
        return value

    def _mapping(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise BadFile(f"{where}: a mapping is needed")
        return value


def _over(under: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """The upper mapping over the lower one; `vars` and `options` are merged key by key."""
    merged = {**under, **{k: v for k, v in upper.items() if v is not None}}
    for key in ("vars", "options"):
        both = (under.get(key), upper.get(key))
        if all(isinstance(v, dict) for v in both):
            merged[key] = {**both[0], **both[1]}  # type: ignore[dict-item]
    return merged


def _of_row(row: dict[str, str], where: str) -> dict[str, Any]:
    """A row of a CSV: columns are variables, those with `__` say what is expected."""
    expected = [
        (text, f"{where}.{column}")
        for column, text in row.items()
        if column.startswith("__expected") and text.strip()
    ]
    options = {k: row[f"__{k}"] for k in ("prefix", "suffix") if row.get(f"__{k}")}
    return {
        "vars": {k: v for k, v in row.items() if not k.startswith("__")},
        "description": row.get("__description"),
        "threshold": row.get("__threshold") or None,
        "options": options or None,
        "__expected": expected,
    }
