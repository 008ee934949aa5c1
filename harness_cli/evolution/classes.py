"""`failure_classes/*.md`: classes that people own. Failures are assigned to them first.

A decision rule in the small language below decides by facts; any other text is for readers, and
the class is then matched by the likeness of its words (`clusters.nearest_class`).

    rule   = term (("and" | "or") term)*      "and" binds closer, "not" and brackets as usual
    term   = fact | category:NAME | tag:NAME | failed:METRIC
    fact   = kind | kind:detail               with * and ? as in shell patterns
"""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from harness_cli.errors import BadFile
from harness_cli.evolution.failure import Failure
from harness_cli.harness.frontmatter import split
from harness_cli.records.diagnosis import FailureClass
from harness_cli.records.reader import decode

FOLDER = "failure_classes"
_TOKEN = re.compile(r"\s*(\(|\)|[\w*?:>.<-]+)")
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
Rule = Callable[[frozenset[str]], bool]


def load_classes(harness: Path) -> tuple[FailureClass, ...]:
    """The known classes of a harness folder, by id. Raises `BadFile` with file and line."""
    folder = harness / FOLDER
    files = sorted(folder.glob("*.md")) if folder.is_dir() else []
    return tuple(parse_class(f.read_bytes(), f"{FOLDER}/{f.name}") for f in files)


def parse_class(data: bytes, path: str) -> FailureClass:
    """One class: frontmatter with id, name, definition, rule, side, examples; then free text."""
    parts = split(data, path)
    fields = {**parts.fields, "body": parts.body}
    made = decode(FailureClass, fields, where=path)
    if made.id != Path(path).stem or not _ID.fullmatch(made.id):
        raise BadFile(f"{path}: the id `{made.id}` is not the file's name", hint="rename one")
    return made


def compile_rule(text: str) -> Rule | None:
    """The rule as a test of a failure's terms; None for prose."""
    tokens = _TOKEN.findall(text)
    if not tokens or "".join(tokens) != re.sub(r"\s+", "", text):
        return None
    try:
        rule, rest = _either(tokens)
    except (IndexError, ValueError):
        return None
    return None if rest else rule


def _either(tokens: Sequence[str]) -> tuple[Rule, Sequence[str]]:
    left, rest = _both(tokens)
    while rest and rest[0] == "or":
        right, rest = _both(rest[1:])
        left = _or(left, right)
    return left, rest


def _both(tokens: Sequence[str]) -> tuple[Rule, Sequence[str]]:
    left, rest = _term(tokens)
    while rest and rest[0] == "and":
        right, rest = _term(rest[1:])
        left = _and(left, right)
    return left, rest


def _term(tokens: Sequence[str]) -> tuple[Rule, Sequence[str]]:
    head = tokens[0]
    if head == "not":
        inner, rest = _term(tokens[1:])
        return (lambda terms: not inner(terms)), rest
    if head == "(":
        inner, rest = _either(tokens[1:])
        if not rest or rest[0] != ")":
            raise ValueError("a bracket is open")
        return inner, rest[1:]
    if head in ("and", "or", ")"):
        raise ValueError(f"`{head}` stands where a fact should")
    return (lambda terms: any(fnmatchcase(t, head) for t in terms)), tokens[1:]


def _or(a: Rule, b: Rule) -> Rule:
    return lambda terms: a(terms) or b(terms)


def _and(a: Rule, b: Rule) -> Rule:
    return lambda terms: a(terms) and b(terms)


def terms_of(failure: Failure) -> frozenset[str]:
    """What a rule may ask about one failure."""
    terms = {f"category:{failure.seen.category}"}
    terms |= {f"tag:{tag}" for tag in failure.seen.tags}
    terms |= {f"failed:{metric}" for metric in failure.failed_metrics}
    for observation in failure.observations:
        terms |= {observation.kind, observation.key}
    return frozenset(terms)


def assign(
    failures: Sequence[Failure], classes: Sequence[FailureClass]
) -> tuple[dict[str, list[Failure]], list[Failure]]:
    """Failures by the first class whose rule holds, in the order of ids, and those left over.

    A class whose rule names more facts goes before one that names fewer, so that a narrow class
    is not swallowed by a broad one.
    """
    rules = [(c, rule) for c in classes if (rule := compile_rule(c.decision_rule)) is not None]
    rules.sort(key=lambda pair: (-len(pair[0].decision_rule.split()), pair[0].id))
    found: dict[str, list[Failure]] = {}
    left = []
    for failure in failures:
        terms = terms_of(failure)
        fit = next((c for c, rule in rules if rule(terms)), None)
        if fit is None:
            left.append(failure)
        else:
            found.setdefault(fit.id, []).append(failure)
    return found, left
