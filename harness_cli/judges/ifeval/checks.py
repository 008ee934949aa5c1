"""The 25 verifiable instructions of IFEval (Zhou et al. 2023, arXiv:2311.07911), as their official
evaluator decides them, its quirks included: a result here is a result there.

Every check takes the answer and the instruction's arguments under the data set's own names.
"""

import json
import re
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from harness_cli.judges.ifeval.language_tools import language_of, sentence_count, word_tokens

_STOPS = frozenset(".,?!'\"")
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")


def compared(count: int, relation: str, bound: int) -> bool:
    """`less than` or `at least`, the two relations the data set has."""
    return count < bound if relation == "less than" else count >= bound


def existence(text: str, *, keywords: list[str]) -> bool:
    """Every keyword occurs, also within a longer word; a keyword is a pattern."""
    return all(re.search(word, text, re.IGNORECASE) for word in keywords)


def frequency(text: str, *, keyword: str, frequency: int, relation: str) -> bool:
    """A keyword occurs so often."""
    return compared(len(re.findall(keyword, text, re.IGNORECASE)), relation, frequency)


def forbidden_words(text: str, *, forbidden_words: list[str]) -> bool:
    """None of the words occurs as a word of its own."""
    return not any(re.search(rf"\b{word}\b", text, re.IGNORECASE) for word in forbidden_words)


def letter_frequency(text: str, *, letter: str, let_frequency: int, let_relation: str) -> bool:
    """A letter occurs so often, in either case."""
    return compared(text.lower().count(letter.lower()), let_relation, let_frequency)


def response_language(text: str, *, language: str) -> bool:
    """The answer is in one language; text without any counts as followed."""
    return language_of(text) in (None, language)


def number_sentences(text: str, *, num_sentences: int, relation: str) -> bool:
    """So many sentences."""
    return compared(sentence_count(text), relation, num_sentences)


def number_paragraphs(text: str, *, num_paragraphs: int) -> bool:
    """So many paragraphs with `***` between them; only the first and last piece may be blank."""
    pieces = re.split(r"\s?\*\*\*\s?", text)
    blank = [n for n, piece in enumerate(pieces) if not piece.strip()]
    if any(0 < n < len(pieces) - 1 for n in blank):
        return False
    return len(pieces) - len(blank) == num_paragraphs


def number_words(text: str, *, num_words: int, relation: str) -> bool:
    r"""So many words, where a word is a run of `\w`."""
    return compared(len(re.findall(r"\w+", text)), relation, num_words)


def nth_paragraph_first_word(
    text: str, *, num_paragraphs: int, nth_paragraph: int, first_word: str
) -> bool:
    """So many paragraphs with a blank line between them, and one begins with the word."""
    pieces = text.split("\n\n")
    count = sum(bool(piece.strip()) for piece in pieces)
    if nth_paragraph > count:
        return False
    # The official evaluator counts without blank pieces but takes the nth of all pieces.
    paragraph = pieces[nth_paragraph - 1].strip()
    if not paragraph:
        return False
    opening = paragraph.split()[0].lstrip("'").lstrip('"')
    word = "".join(takewhile(lambda letter: letter not in _STOPS, opening)).lower()
    return count == num_paragraphs and word == first_word.lower()


def number_placeholders(text: str, *, num_placeholders: int) -> bool:
    """At least so many `[placeholders]`."""
    return len(re.findall(r"\[.*?\]", text)) >= num_placeholders


def postscript(text: str, *, postscript_marker: str) -> bool:
    """A postscript under its marker; blanks within `P.S.` and `P.P.S` do not matter."""
    known = {"P.P.S": r"\s*p\.\s?p\.\s?s.*$", "P.S.": r"\s*p\.\s?s\..*$"}
    pattern = known.get(postscript_marker, rf"\s*{postscript_marker.lower()}.*$")
    return re.search(pattern, text.lower(), re.MULTILINE) is not None


def number_bullet_lists(text: str, *, num_bullets: int) -> bool:
    """Exactly so many lines that begin with `*` or `-`."""
    stars = re.findall(r"^\s*\*[^\*].*$", text, re.MULTILINE)
    return len(stars) + len(re.findall(r"^\s*-.*$", text, re.MULTILINE)) == num_bullets


def constrained_response(text: str) -> bool:
    """One of the three answers the prompt allows stands in it."""
    return any(answer in text.strip() for answer in _ANSWERS)


def number_highlighted_sections(text: str, *, num_highlights: int) -> bool:
    """At least so many passages in `*single*` or `**double**` stars."""
    single = [found.strip("*") for found in re.findall(r"\*[^\n\*]*\*", text)]
    double = re.findall(r"\*\*([^\n\*]*)\*\*", text)
    return sum(bool(found.strip()) for found in (*single, *double)) >= num_highlights


def multiple_sections(text: str, *, section_spliter: str, num_sections: int) -> bool:
    """At least so many sections, each under its word and a number."""
    return len(re.split(rf"\s?{section_spliter}\s?\d+\s?", text)) - 1 >= num_sections


def json_format(text: str) -> bool:
    """The whole answer is JSON, a code fence around it allowed."""
    text = text.strip()
    for fence in _FENCES:
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def title(text: str) -> bool:
    """A title in `<<double angular brackets>>`."""
    return any(t.lstrip("<").rstrip(">").strip() for t in re.findall(r"<<[^\n]+>>", text))


def two_responses(text: str) -> bool:
    """Two different answers with `******` between them."""
    pieces = text.split("******")
    blank = [n for n, piece in enumerate(pieces) if not piece.strip()]
    if any(0 < n < len(pieces) - 1 for n in blank):
        return False
    given = [piece.strip() for piece in pieces if piece.strip()]
    return len(given) == 2 and given[0] != given[1]


def repeat_prompt(text: str, *, prompt_to_repeat: str) -> bool:
    """The answer begins with the prompt, case aside."""
    return text.strip().lower().startswith(prompt_to_repeat.strip().lower())


def end_checker(text: str, *, end_phrase: str) -> bool:
    """The answer ends with the phrase, case and quotation marks aside."""
    return text.strip().strip('"').lower().endswith(end_phrase.strip().lower())


def quotation(text: str) -> bool:
    """The whole answer stands in double quotation marks."""
    text = text.strip()
    return len(text) > 1 and text.startswith('"') and text.endswith('"')


def capital_word_frequency(text: str, *, capital_frequency: int, capital_relation: str) -> bool:
    """So many words in capital letters alone."""
    capital = sum(word.isupper() for word in word_tokens(text))
    return compared(capital, capital_relation, capital_frequency)


def english_capital(text: str) -> bool:
    """English, and all of it in capital letters."""
    return text.isupper() and language_of(text) in (None, "en")


def english_lowercase(text: str) -> bool:
    """English, and all of it in lower-case letters."""
    return text.islower() and language_of(text) in (None, "en")


def no_comma(text: str) -> bool:
    """No comma."""
    return "," not in text


CHECKS: Mapping[str, Callable[..., bool]] = {
    "keywords:existence": existence,
    "keywords:frequency": frequency,
    "keywords:forbidden_words": forbidden_words,
    "keywords:letter_frequency": letter_frequency,
    "language:response_language": response_language,
    "length_constraints:number_sentences": number_sentences,
    "length_constraints:number_paragraphs": number_paragraphs,
    "length_constraints:number_words": number_words,
    "length_constraints:nth_paragraph_first_word": nth_paragraph_first_word,
    "detectable_content:number_placeholders": number_placeholders,
    "detectable_content:postscript": postscript,
    "detectable_format:number_bullet_lists": number_bullet_lists,
    "detectable_format:constrained_response": constrained_response,
    "detectable_format:number_highlighted_sections": number_highlighted_sections,
    "detectable_format:multiple_sections": multiple_sections,
    "detectable_format:json_format": json_format,
    "detectable_format:title": title,
    "combination:two_responses": two_responses,
    "combination:repeat_prompt": repeat_prompt,
    "startend:end_checker": end_checker,
    "startend:quotation": quotation,
    "change_case:capital_word_frequency": capital_word_frequency,
    "change_case:english_capital": english_capital,
    "change_case:english_lowercase": english_lowercase,
    "punctuation:no_comma": no_comma,
}
"""Instruction id of the data set → its check."""


def arguments_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an instruction, without those that are null in some mirrors."""
    return {k: v for k, v in value.items() if v is not None}
