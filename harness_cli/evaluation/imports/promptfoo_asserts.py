"""promptfoo's assertions as ours: the same names; what has no meaning here is kept, unscored."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.promptfoo_files import MARK, Code, Folder
from harness_cli.harness.filling import Filling
from harness_cli.judges.assertions import ASSERTION_TYPES
from harness_cli.records.item import Assertion

IGNORED = {"description", "id", "metadata", "enabled"}
CHANGES = ("transform", "contextTransform", "rubricPrompt", "config")
"""Settings of an assertion without which it would mean something else."""
_SHORT = re.compile(
    r"^(?P<type>(?:not-)?[a-z][a-z0-9:_-]*?)(?:\((?P<threshold>[0-9.]+)\))?(?::(?P<value>.*))?$",
    re.DOTALL,
)
_CODE = re.compile(r"^(?:javascript|fn|eval|python|file):")
_GRADE = re.compile(r"^(?:grade|llm-rubric):\s*")


@dataclass(slots=True)
class Asserts:
    """Makes assertions of one file; `unsupported` says what stays unscored, each with its place."""

    folder: Folder
    filling: Filling
    templates: Mapping[str, Any] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)

    def all_of(self, value: Any, values: Mapping[str, Any], *, where: str) -> list[Assertion]:
        """The assertions of a test, in order."""
        if value is None:
            return []
        if not isinstance(value, list):
            raise BadFile(f"{where}: `assert` must be a list")
        made = [self.one(a, values, where=f"{where}[{n}]") for n, a in enumerate(value)]
        return [one for one in made if one is not None]

    def one(self, value: Any, values: Mapping[str, Any], *, where: str) -> Assertion | None:
        """One assertion; None for one that promptfoo itself only measures (weight 0)."""
        value = self._referred(value, where)
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            raise BadFile(f"{where}: an assertion needs a `type`")
        kind = value["type"]
        weight = _number(value.get("weight", 1), "weight", where)
        if weight == 0:
            self.unsupported.append(f"{where}: `{kind}` with weight 0 decides nothing: left out")
            return None
        if kind == "assert-set":
            members = self.all_of(value.get("assert"), values, where=f"{where}.assert")
            if not members:
                raise BadFile(f"{where}: an assert-set needs members under `assert`")
        else:
            members = []
        threshold = value.get("threshold")
        made = Assertion(
            type=kind,
            value=self.filling.value(self._value(value, where), values, where=where),
            threshold=None if threshold is None else _number(threshold, "threshold", where),
            weight=weight,
            metric=self._metric(value, values, where),
            assert_=tuple(members),
        )
        return self._understood(made, value, where)

    def short(self, text: str, *, where: str) -> Assertion:
        """`__expected` of a CSV: `type(threshold):value`, a grade, or the exact answer."""
        if _CODE.match(text):
            kind = text.partition(":")[0]
            self.unsupported.append(f"{where}: `{kind}` is code, which is not run: unscored")
            return Assertion(type=kind, value=text)
        if _GRADE.match(text):
            return Assertion(type="llm-rubric", value=_GRADE.sub("", text))
        found = _SHORT.match(text)
        kind = found["type"] if found else ""
        known = kind.removeprefix("not-") in {*ASSERTION_TYPES, "starts-with"}
        if found is None or not known or kind.endswith("assert-set"):
            return Assertion(type="equals", value=text)
        value = None if found["value"] is None else found["value"].strip()
        threshold = None
        if found["threshold"]:
            threshold = _number(found["threshold"], "threshold", where)
        made = Assertion(type=kind, value=value, threshold=threshold)
        return self._understood(made, {}, where)

    def _value(self, value: Mapping[str, Any], where: str) -> Any:
        found = value.get("value")
        if not (isinstance(found, str) and found.startswith(MARK)):
            return found
        try:
            return self.folder.read(found, where=where)
        except Code:
            return found  # named as unsupported by `_understood`

    def _metric(
        self, value: Mapping[str, Any], values: Mapping[str, Any], where: str
    ) -> str | None:
        metric = value.get("metric")
        return None if metric is None else self.filling.text(str(metric), values, where=where)

    def _understood(self, made: Assertion, value: Mapping[str, Any], where: str) -> Assertion:
        base = made.type.removeprefix("not-")
        changed = [key for key in CHANGES if value.get(key) is not None]
        code = isinstance(made.value, str) and made.value.startswith(MARK)
        if base == "starts-with" and isinstance(made.value, str) and not changed and not code:
            negated = made.type.removesuffix("starts-with")
            return msgspec.structs.replace(
                made, type=f"{negated}regex", value=r"\A" + re.escape(made.value)
            )
        if changed or code:
            what = ", ".join(f"`{key}`" for key in changed) or "code as its value"
            self.unsupported.append(f"{where}: `{made.type}` with {what}: unscored")
            return msgspec.structs.replace(made, type=f"{made.type}+{(changed or ['code'])[0]}")
        if base not in ASSERTION_TYPES:
            self.unsupported.append(f"{where}: the assertion `{made.type}`: unscored")
        if value.get("provider") is not None:
            self.unsupported.append(
                f"{where}: the provider of `{made.type}`: the panel of the project decides instead"
            )
        return made

    def _referred(self, value: Any, where: str) -> Any:
        """`$ref: '#/assertionTemplates/NAME'`."""
        if not isinstance(value, dict) or "$ref" not in value:
            return value
        name = str(value["$ref"]).removeprefix("#/assertionTemplates/")
        if name not in self.templates:
            raise BadFile(f"{where}: no assertion template `{value['$ref']}`")
        found = self.templates[name]
        return {**found, **{k: v for k, v in value.items() if k != "$ref"}}


def _number(value: Any, what: str, where: str) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not 0 <= number < 1e12:
        raise BadFile(f"{where}: `{what}` must be a number from 0 up")
    return number


Make = Callable[[str], Assertion]
