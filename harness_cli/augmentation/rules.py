"""Which rules of a skill are essential: those that something in the system can be held against.

A rule is essential when it

- names a tool, a skill, a parameter or a slot,
- carries a figure, or a limit that the pipeline counts (sentences, characters, rounds, questions),
- says what a fact rests on: a tool's result, the card, the policy, an entry, a calculation,
- speaks of what a hook or a judge decides on: prices, stock, days, promises, guarantees, refunds,
  private data, human or AI, health advice, the viewer's language, asking back, staying silent, or
- is marked `<!-- essential -->`.

What is left is manner: what to say first, how warmly, in whose words, to whom. No hook, judge or
assertion turns on it, so with such rules left out a gold trajectory is as right as before, and
still the one that the harness asks for.
"""

import re
from functools import lru_cache

MARK = "<!-- essential -->"
_COUNTED = re.compile(
    r"\b(?:sentences?|characters|rounds?|questions?|calls?)\b"
    r"|\b(?:one|two|once)\b.{0,30}\bat most\b",
    re.IGNORECASE,
)
_EVIDENCE = re.compile(
    r"\b(?:tools?|results?|cards?|polic(?:y|ies)|entry|entries|FAQ|calculat\w*|look\w* .{0,20}\bup|"
    r"order page|status|shows?)\b",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"\b(?:prices?|yuan|stock|sold out|discounts?|offers?|coupons?|campaigns?|days|promis\w+|"
    r"guarante\w+|refunds?|compensation|private|phone|address|accounts?|human|AI|health|medical|"
    r"doctor|language|Chinese|English|links?|silent|prompt|instructions?|invent|make \w+ up|"
    r"claims?|other shops)\b"
    r"|元|号",
    re.IGNORECASE,
)


@lru_cache(maxsize=8192)
def essential(rule: str, names: frozenset[str]) -> bool:
    """Whether a rule, as one line, must stay. `names` are all of the harness's."""
    if MARK in rule or "`" in rule or "{" in rule or any(c.isdigit() for c in rule):
        return True
    if names and _any(names).search(rule):
        return True
    return bool(_COUNTED.search(rule) or _EVIDENCE.search(rule) or _DECIDED.search(rule))


@lru_cache(maxsize=32)
def _any(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(names)))})(?![\w-])")
