"""`failure_classes/*.md`: classes that people own. Failures are assigned to them first.

`facts` (or a decision rule written in the same small language) decides; a class with prose alone is
matched by the likeness of its words (`clusters.nearest_class`).

    rule   = term (("and" | "or") term)*      "and" binds closer, "not" and brackets as usual
    term   = fact | category:NAME | tag:NAME | failed:METRIC
    fact   = kind | kind:detail               with * and ? as in shell patterns
"""

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from harness_cli.errors import BadFile
from harness_cli.evolution.failure import Failure
from harness_cli.harness.check_classes import read_class
from harness_cli.harness.findings import bad_file
from harness_cli.records.diagnosis import FailureClass

FOLDER = "failure_classes"
_TOKEN = re.compile(r"\s*(\(|\)|[\w*?:>.<-]+)")
RULES = "facts joined by and, or, not: `tool_not_called:* and not category:chat`"
Rule = Callable[[frozenset[str]], bool]


def load_classes(harness: Path) -> tuple[FailureClass, ...]:
    """The known classes of a harness folder, by id. Raises `BadFile` with file and line."""
    folder = harness / FOLDER
    files = sorted(folder.glob("*.md")) if folder.is_dir() else []
    return tuple(
        parse_class(f.read_bytes(), f"{FOLDER}/{f.name}") for f in files if f.name != "README.md"
    )


def parse_class(data: bytes, path: str) -> FailureClass:
    """One class: frontmatter with id, name, definition, rules, side, examples; then free text."""
    made, findings = read_class(data, path)
    if made is None:
        raise bad_file(findings)
    if made.facts and compile_rule(made.facts) is None:
        raise BadFile(f"{path}: `facts: {made.facts}` is no rule", hint=RULES)
    return made


def rule_of(known: FailureClass) -> Rule | None:
    """The test of a class by facts; None for one that is told in prose only."""
    return compile_rule(_told(known))


def _told(known: FailureClass) -> str:
    return known.facts or known.decision_rule


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


def terms_of(failure: Failure, *, facts: int | None = None) -> frozenset[str]:
    """What a rule may ask about one failure: its `facts` most telling facts, or all."""
    terms = {f"category:{failure.seen.category}"}
    terms |= {f"tag:{tag}" for tag in failure.seen.tags}
    terms |= {f"failed:{metric}" for metric in failure.failed_metrics}
    for observation in failure.observations[:facts]:
        terms |= {observation.kind, observation.key}
    return frozenset(terms)


def _widening(failure: Failure) -> Iterator[frozenset[str]]:
    return (terms_of(failure, facts=n + 1) for n in range(max(len(failure.observations), 1)))


def _breadth(known: FailureClass) -> int:
    """How wide a rule is: alternatives widen it, conditions narrow it."""
    words = (known.facts or known.decision_rule).split()
    return words.count("or") - words.count("and")


def assign(
    failures: Sequence[Failure], classes: Sequence[FailureClass]
) -> tuple[dict[str, list[Failure]], list[Failure]]:
    """Failures by the first class whose rule holds, and those left over.

    Facts are asked about in order of their rank, the most telling alone first: a failure belongs to
    the class of its cause, not of what followed from it. Where several rules hold the narrower one
    decides (more `and`, fewer `or`), then the order of ids.
    """
    rules = [(c, rule) for c in classes if (rule := rule_of(c)) is not None]
    rules.sort(key=lambda pair: (_breadth(pair[0]), pair[0].id))
    found: dict[str, list[Failure]] = {}
    left = []
    for failure in failures:
        fit = next((c for terms in _widening(failure) for c, rule in rules if rule(terms)), None)
        if fit is None:
            left.append(failure)
        else:
            found.setdefault(fit.id, []).append(failure)
    return found, left
