"""Thinking is kept in the trajectory and never reaches a viewer, half a tag included."""

import re

_TAG = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)


def split_reasoning(text: str | None) -> tuple[str, str]:
    """The visible text and the reasoning that stood in it, in one pass over the tags.

    A closing tag alone ends reasoning that began before the text (a server that fills the opening
    tag into the prompt); an opening tag alone begins reasoning that was cut off. Inside reasoning
    another opening tag is text, so that one closing tag always ends it.
    """
    if not text:
        return "", ""
    if "<" not in text:
        return text.strip(), ""
    shown: list[str] = []
    thoughts: list[str] = []
    thinking, at = False, 0
    for tag in _TAG.finditer(text):
        closes = bool(tag[1])
        if thinking and not closes:
            continue
        before, at = text[at : tag.start()], tag.end()
        if thinking:
            thoughts.append(before)
        elif closes:
            thoughts += [*shown, before]
            shown = []
        else:
            shown.append(before)
        thinking = not closes
    (thoughts if thinking else shown).append(text[at:])
    kept = [t for t in (_TAG.sub("", thought).strip() for thought in thoughts) if t]
    return "".join(shown).strip(), "\n\n".join(kept)
