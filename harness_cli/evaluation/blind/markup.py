"""The HTML of the annotation page: every text escaped; the policy allows one style, no script."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

from harness_cli.records.blind import TAGS, Annotation, BlindPair, BlindReply, BlindSheet

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 72rem; margin: 0 auto; padding: 1rem; }
header { display: flex; gap: 1rem; justify-content: space-between; flex-wrap: wrap; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 0 .5rem; }
.request { border-left: .25rem solid; padding-left: 1rem; margin: 1rem 0; }
.said { font-size: 1.15rem; }
.replies { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.replies section { border: 1px solid; border-radius: .5rem; padding: .5rem 1rem; }
@media (max-width: 45rem) { .replies { grid-template-columns: 1fr; } }
fieldset { border: 0; padding: 0; margin: 1rem 0; display: flex; gap: 1.5rem; flex-wrap: wrap; }
textarea { width: 100%; box-sizing: border-box; font: inherit; min-height: 4rem; }
select, button { font: inherit; padding: .3rem .8rem; }
.fault { border: 2px solid #b00020; padding: .5rem 1rem; }
.quiet { opacity: .8; font-size: .9rem; }
"""
CSP = (
    "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; style-src "
    f"'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'"
)
CHOICES = {"A": "A is better", "B": "B is better", "tie": "a tie"}


@dataclass(frozen=True, slots=True)
class Typed:
    """What stands in the form."""

    choice: str = ""
    reason: str = ""
    tag: str = ""
    fault: str = ""


def page_of(
    sheet: BlindSheet,
    pair: BlindPair,
    latest: Mapping[str, Annotation],
    waiting: int,
    typed: Typed,
) -> str:
    """One pair with its form."""
    fault = f'<p class="fault" role="alert">{escape(typed.fault)}</p>' if typed.fault else ""
    request = [
        *_block("Products", pair.products),
        *_block("Earlier", pair.history),
        *_block("The host said", pair.anchor),
        *_texts(pair.comments, "text said"),
    ]
    return _page(
        f"{pair.id} · {sheet.title or sheet.id}",
        f"<header><strong>{escape(sheet.title or sheet.id)}</strong>"
        f"<span>pair {escape(pair.id)} · {escape(pair.stratum)} · {waiting} open</span></header>"
        f'<div class="request">{"".join(request)}</div>'
        f'<div class="replies">{_reply("A", pair.a)}{_reply("B", pair.b)}</div>'
        f"{fault}{_form(pair, typed)}{_decided(sheet, latest)}",
    )


def page_done(sheet: BlindSheet, latest: Mapping[str, Annotation]) -> str:
    """Nothing waits any more."""
    same = sum(p.identical and p.id not in latest for p in sheet.pairs)
    note = f" {same} pairs with equal replies count as ties." if same else ""
    return _page(
        "done",
        f"<h1>Everything is decided</h1><p>{len(latest)} pairs are kept.{note} "
        f"You may close this page.</p>{_decided(sheet, latest)}",
    )


def page_problem(message: str, hint: str | None) -> str:
    """What stands in the way, and what to do."""
    more = f"<p>{escape(hint)}</p>" if hint else ""
    return _page("problem", f'<p class="fault" role="alert">{escape(message)}</p>{more}')


def _form(pair: BlindPair, typed: Typed) -> str:
    radios = "".join(
        f'<label><input type="radio" name="choice" value="{value}" accesskey="{value[0].lower()}" '
        f"required{' checked' if typed.choice == value else ''}> {label}</label>"
        for value, label in CHOICES.items()
    )
    options = "".join(
        f'<option value="{tag}"{" selected" if typed.tag == tag else ""}>{escape(meaning)}</option>'
        for tag, meaning in TAGS.items()
    )
    return (
        f'<form method="post" action="./"><input type="hidden" name="pair" '
        f'value="{escape(pair.id)}"><fieldset><legend>Which is better?</legend>{radios}</fieldset>'
        '<label>Why? (needed unless it is a tie)<textarea name="reason" maxlength="4000">'
        f"{escape(typed.reason)}</textarea></label>"
        f'<p><label>Kind of reason <select name="tag"><option value="">none</option>{options}'
        '</select></label> <button accesskey="s">Keep and go on</button></p></form>'
    )


def _decided(sheet: BlindSheet, latest: Mapping[str, Annotation]) -> str:
    """Links back to what is decided."""
    links = [
        f'<a href="?pair={escape(p.id)}">{escape(p.id)}</a> {escape(latest[p.id].choice)}'
        for p in sheet.pairs
        if p.id in latest
    ]
    if not links:
        return ""
    summary = f"<summary>{len(links)} decided</summary>"
    return f'<details class="quiet">{summary}{" · ".join(links)}</details>'


def _reply(side: str, reply: BlindReply) -> str:
    text = reply.text or "(says nothing)"
    trace = "".join(_texts(reply.trace, "text quiet"))
    steps = f"<details><summary>steps</summary>{trace}</details>" if trace else ""
    return f'<section><h2>{side}</h2><p class="text" dir="auto">{escape(text)}</p>{steps}</section>'


def _block(title: str, texts: Iterable[str]) -> list[str]:
    lines = _texts(texts, "text quiet")
    return [f'<p class="quiet">{title}</p>', *lines] if lines else []


def _texts(texts: Iterable[str], kind: str) -> list[str]:
    return [f'<p class="{kind}" dir="auto">{escape(text)}</p>' for text in texts]


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{body}</body></html>\n"
    )
