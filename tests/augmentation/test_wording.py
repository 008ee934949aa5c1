"""The curated tables: wordings of a group say the same, names are names and nobody's twice."""

import re
from random import Random

import pytest
from hsa import base, files
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.augmentation import speech
from harness_cli.augmentation.draft import Draft
from harness_cli.augmentation.paraphrases import texts_of
from harness_cli.augmentation.rules import essential
from harness_cli.augmentation.speech import Speech, plain
from harness_cli.augmentation.tables import added_table, phrases, skill_table, tool_table
from harness_cli.augmentation.wording import canonical, kept, paraphrased
from harness_cli.harness.skills import NAME
from harness_cli.records.augmentation import AugmentationMap


def lines():
    return texts_of(Draft(files=files(), map=AugmentationMap(state="s")))


def test_every_wording_of_a_group_keeps_numbers_names_and_negations():
    for group in phrases().groups + phrases().starts:
        for member in group[1:]:
            assert kept(group[0], member) == [], (group[0], member)


def test_no_wording_belongs_to_two_groups():
    members = [m.casefold() for group in phrases().groups + phrases().starts for m in group]
    assert len(members) == len(set(members))


def test_a_paraphrase_of_any_shipped_line_has_the_same_canonical_form():
    found = lines()
    assert len(found) > 250
    changed = 0
    for text in found:
        for seed in range(4):
            said = paraphrased(text, Random(seed), 0.9)
            changed += said != text
            assert canonical(said) == canonical(text), (text, said)
            assert kept(text, said) == [], (text, said)
    assert changed > 300


def test_another_meaning_has_another_canonical_form():
    rule = "Do not promise a refund, a compensation or an exception."
    assert canonical(rule) == canonical("Don't promise a refund, a compensation or an exception.")
    assert canonical(rule) != canonical("Promise a refund, a compensation or an exception.")
    assert canonical("At most 2 links.") != canonical("At most 3 links.")


def test_quoted_words_and_slots_are_never_reworded():
    text = 'Say "do not", `so that` and {right_now}, but do not shout.'
    said = paraphrased(text, Random(1), 1.0)
    assert said == 'Say "do not", `so that` and {right_now}, but don\'t shout.'


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("Use `get_faq` for it.", "Use `get_faqs` for it.", "ticked"),
        ("At most 2 sentences.", "At most 3 sentences.", "numbers"),
        ("Say {price} first.", "Say the price first.", "slots"),
        ("Do not promise it.", "Promise it.", "negations"),
        ("Promise it.", "Never promise it.", "negations"),
        ("不要承诺效果。", "承诺效果。", "negations"),
        ("Load item-qa then.", "Load the skill then.", "names"),
        ("Be kind.", "Be kind.\n\n# New heading", "length"),
    ],
)
def test_a_paraphrase_that_loses_something_is_refused(old, new, lost):
    assert lost in kept(old, new, frozenset({"item-qa"}))


def test_new_names_are_valid_distinct_and_no_ordinary_words():
    skills = [n for named in skill_table().values() for n in named.names]
    tools = [n for named in tool_table().tools.values() for n in named.names]
    parameters = [n for names in tool_table().parameters.values() for n in names]
    added = [s.name for kind in ("plausible", "noise") for s in getattr(added_table(), kind)]
    assert all(NAME.fullmatch(n) and not plain(n) for n in skills + added)
    assert all(re.fullmatch("[a-z][a-z_]+", n) and not plain(n) for n in tools + parameters)
    shipped = {s.name for s in base().skills} | {t.name for t in base().all_tools()}
    for names in (skills + added, tools, parameters):
        assert len(names) == len(set(names))
        assert not shipped & set(names)


def test_the_tables_know_every_shipped_skill_tool_and_parameter():
    assert set(skill_table()) == {s.name for s in base().skills}
    assert set(tool_table().tools) == {t.name for t in base().all_tools()}
    parameters = {p for t in base().all_tools() for p in t.input_schema.get("properties", {})}
    assert set(tool_table().parameters) == parameters


def test_no_description_of_the_tables_speaks_of_a_shipped_name():
    names = {s.name for s in base().skills} | {t.name for t in base().all_tools()}
    speech = Speech(dict.fromkeys(names, ""))
    for named in [*skill_table().values(), *tool_table().tools.values()]:
        for text in named.descriptions:
            assert not speech.spoken(text), text
            assert len(text) <= 1024


@pytest.mark.parametrize(
    ("rule", "stays"),
    [
        ("Pass the detail to `get_faq`.", True),
        ("One question only, two at most.", True),
        ("Every price comes from a tool result.", True),
        ("Do not promise an effect.", True),
        ("Answer in the language of the viewer.", True),
        ("Load change-order for the confirmation.", True),
        ("Wave at the camera. <!-- essential -->", True),
        ("Wave at the camera.", False),
        ("Do not use the same words for two viewers in a row.", False),
    ],
)
def test_a_rule_is_essential_when_something_can_be_held_against_it(rule, stays):
    assert essential(rule, frozenset({"change-order"})) is stays


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- For thanks and praise: thanks.", "- For thanks and praise: warm-words."),
        ("use thanks and say so", "use warm-words and say so"),
        ("Viewer: thanks, that helped", "Viewer: thanks, that helped"),
        ("  - en: thanks.", "  - en: thanks."),
        ("small talk, praise or thanks.", "small talk, praise or thanks."),
        ("- **thanks**: the viewer says so", "- **thanks**: the viewer says so"),
        ("call `thanks`, then item-qa.", "call `warm-words`, then goods."),
        ("allowed-tools: thanks item-qa", "allowed-tools: warm-words goods"),
        ("加载item-qa技能", "加载goods技能"),
        ("not-item-qa, item-qa-2", "not-item-qa, item-qa-2"),
    ],
)
def test_a_name_that_is_a_word_is_replaced_only_where_it_is_a_name(text, said):
    assert Speech({"thanks": "warm-words", "item-qa": "goods"}).renamed(text) == said


NAMED = ["thanks", "refuse", "item-qa", "get_faq", "thanks2", "x", "谢谢"]
AROUND = [
    "use ", "load ", "see ", "that is ", "`", ".", ", ", ": ", " and ", "\n", " ", "-", "_",
    "Viewer: ", "- en: ", "allowed-tools: ",
]  # fmt: skip
WORDS = st.sampled_from(NAMED + AROUND)


def one_by_one(names):
    """Names as `Speech` found them at first: every text by one expression of all names."""
    edge, end = speech.EDGE, speech.END
    distinct = sorted((n for n in names if not speech.plain(n)), key=len, reverse=True)
    words = sorted((n for n in names if speech.plain(n)), key=len, reverse=True)
    every = "|".join(map(re.escape, words))

    def renamed(text):
        def put(match):
            start, stop = (at - match.start() for at in match.span("n"))
            return match[0][:start] + names[match["n"]] + match[0][stop:]

        text = re.sub(f"{edge}(?P<n>{'|'.join(map(re.escape, distinct))}){end}", put, text)

        def listed(line):
            head, colon, rest = line[0].partition(":")
            return head + colon + re.sub(f"{edge}(?P<n>{every}){end}", put, rest)

        text = speech._LISTS.sub(listed, text)
        text = re.sub(f"`(?P<n>{every})`", put, text)
        said = [m.span() for m in speech._SAID.finditer(text)]
        return re.sub(
            f"(?P<b>{speech._POINTS})(?P<n>{every}){speech._STOPS}",
            lambda m: m[0] if any(a <= m.start() < b for a, b in said) else put(m),
            text,
        )

    return renamed


@given(st.lists(WORDS, max_size=14).map("".join))
@settings(max_examples=400)
def test_names_are_found_as_by_one_expression_of_all(text):
    names = {"thanks": "welcome", "refuse": "thanks", "item-qa": "get_faq", "get_faq": "x-y"}
    assert Speech(names).renamed(text) == one_by_one(names)(text)
