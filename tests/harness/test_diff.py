import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_harness import FILES, HOOK, SKILL, TOOL, changed_files

from harness_cli.harness.diff import diff_states
from harness_cli.harness.diff_text import diff_text
from harness_cli.harness.load import state_from_files

H, T, P, S = (
    "hooks/reply-length.yaml",
    "tools/get_price.yaml",
    "prompts/pipeline.yaml",
    "skills/item-qa/SKILL.md",
)


def changes(after, before=None):
    a = state_from_files(changed_files(before or {}))
    b = state_from_files(changed_files(after))
    found = diff_states(a, b)
    assert found.same == (a.id == b.id)
    return [(c.title, c.before, c.after) for c in found.changes]


def edited(path, old, new):
    assert old in FILES[path]
    return changes({path: FILES[path].replace(old, new)})


def test_a_state_does_not_differ_from_itself():
    assert changes({}) == []


@pytest.mark.parametrize(
    ("path", "old", "new", "title", "before", "after"),
    [
        (S, "Answers questions about a product.", "Answers about prices.",
         "skill item-qa · description changed", "Answers questions about a product.",
         "Answers about prices."),
        (S, "- Name the link number once.", "- Name the link number twice.",
         "skill item-qa · Rules: rule changed", "Name the link number once.",
         "Name the link number twice."),
        (S, "- Name the link number once.\n", "", "skill item-qa · Rules: rule removed",
         "Name the link number once.", None),
        (S, "- Name the link number once.\n", "- Name the link number once.\n- Be short.\n",
         "skill item-qa · Rules: rule added", None, "Be short."),
        (S, 'version: "1.0"', 'version: "1.1"', "skill item-qa · metadata harness.version changed",
         "1.0", "1.1"),
        (S, "allowed-tools: get_price\n", "", "skill item-qa · allowed-tools changed",
         ["get_price"], []),
        (T, "The price of a link.", "What it costs.", "tool get_price · description changed",
         "The price of a link.", "What it costs."),
        (T, "minimum: 1", "minimum: 2", "tool get_price · parameter link_id: minimum changed",
         1, 2),
        (T, "type: integer", "type: number", "tool get_price · parameter link_id: type changed",
         "integer", "number"),
        (T, "  required: [link_id]\n", "", "tool get_price · parameter link_id: required changed",
         True, False),
        (T, "readOnlyHint: true", "readOnlyHint: false",
         "tool get_price · annotation readOnlyHint changed", True, False),
        (H, '["(?i)guarantee"]', '["(?i)guarantee", cure]',
         "hook reply-length · check forbid_pattern: patterns added", None, "cure"),
        (H, "on: reply", "on: comment", "hook reply-length · check forbid_pattern: on changed",
         "reply", "comment"),
        (H, "action: retry", "action: deny", "hook reply-length · action changed", "retry", "deny"),
        (H, "event: before_reply", "event: after_reply", "hook reply-length · event changed",
         "before_reply", "after_reply"),
        (P, "value: 80", "value: 120",
         "prompt pipeline default · constraint reply_length: value changed", 80, 120),
        (P, "range: [40, 200]", "range: [40, 220]",
         "prompt pipeline default · constraint reply_length: range changed", (40, 200), (40, 220)),
        (P, "when: faq", "when: faq or history",
         "prompt pipeline default · block faq: when changed", "faq", "faq or history"),
        ("prompts/blocks/ended.md", "has ended", "is closed", "prompt block ended · text changed",
         "The room has ended.", "The room is closed."),
        ("replies.yaml", "请稍等。", "稍等。", "reply conservative · zh changed",
         "请稍等。", "稍等。"),
        ("fallback.md", "short", "brief", "prompt fallback · text changed",
         "Answer in one short sentence.", "Answer in one brief sentence."),
    ],
)  # fmt: skip
def test_one_edit_is_one_change_in_the_words_of_the_harness(path, old, new, title, before, after):
    assert edited(path, old, new) == [(title, before, after)]


def test_a_renamed_parameter_is_one_change():
    text = TOOL.replace("link_id:", "link:").replace("[link_id]", "[link]")
    assert changes({T: text}) == [("tool get_price · parameter link_id renamed", "link_id", "link")]


def test_a_parameter_renamed_and_reworded_is_a_rename_and_a_change():
    text = TOOL.replace("link_id:", "link:").replace("[link_id]", "[link]")
    text = text.replace("The link number.", "Which link.")
    assert [row[0] for row in changes({T: text})] == [
        "tool get_price · parameter link_id renamed",
        "tool get_price · parameter link: description changed",
    ]


def test_a_renamed_tool_keeps_its_history():
    files = {T: None, "tools/price_of.yaml": TOOL.replace("get_price", "price_of"),
             S: SKILL.replace("get_price", "price_of")}  # fmt: skip
    titles = [row[0] for row in changes(files)]
    assert "tool price_of renamed" in titles
    assert not [t for t in titles if "added" in t and t.startswith("tool")]


def test_a_renamed_skill_is_no_new_one():
    files = {S: None, "skills/goods-qa/SKILL.md": SKILL.replace("name: item-qa", "name: goods-qa")}
    assert changes(files) == [("skill item-qa renamed", "item-qa", "goods-qa")]


def test_moved_blocks_and_moved_rules_are_moves():
    text = FILES[P].replace("  - {name: base}\n  - {name: products}\n",
                            "  - {name: products}\n  - {name: base}\n")  # fmt: skip
    assert [row[0] for row in changes({P: text})] == [
        "prompt pipeline default · order of blocks moved"
    ]
    rules = "- Look a fact up before you say it.\n- Name the link number once.\n"
    swapped = "- Name the link number once.\n- Look a fact up before you say it.\n"
    assert [row[0] for row in changes({S: SKILL.replace(rules, swapped)})] == [
        "skill item-qa · Rules: rule moved"
    ]


def test_whole_modules_come_and_go():
    other = {
        "skills/other/SKILL.md": "---\nname: other\ndescription: x\n---\nbody\n",
        "tools/other.yaml": "name: other\ndescription: Something else.\n",
        "hooks/other.yaml": HOOK.replace("reply-length", "other"),
    }
    came = [row[0] for row in changes(other)]
    assert came == ["skill other added", "tool other added", "hook other added"]
    gone = [row[0] for row in changes({}, before=other)]
    assert gone == ["skill other removed", "tool other removed", "hook other removed"]


def test_what_changes_no_meaning_is_still_told():
    assert changes({T: "# a comment\n" + TOOL, "skills/item-qa/notes.txt": "n"}) == [
        ("file skills/item-qa/notes.txt · content added", None, None),
        ("file tools/get_price.yaml · form only changed", None, None),
    ]


def test_sections_come_go_and_nested_lines_belong_to_their_rule():
    before = "# A\n\n- one\n  more of one\n- two\n\n## B\n\ntext\n"
    after = "# A\n\n- one\n  more of it\n- two\n\n## C\n\nwords\n"
    found = [(c.section, c.unit, c.action) for c in diff_text(before, after)]
    assert found == [
        ("B", "section", "removed"),
        ("A", "rule", "changed"),
        ("C", "section", "added"),
    ]


def test_a_rule_that_moves_and_is_doubled_has_moved_once_and_come_once():
    found = [(c.unit, c.action) for c in diff_text("- a\n- b\n- a", "- b\n- a\n- a\n- a")]
    assert sorted(found) == [("rule", "added"), ("rule", "moved")]


WORDS = st.lists(st.sampled_from(["# A", "## B", "- rule a", "- rule b", "text", ""]), max_size=8)


@given(WORDS, WORDS)
def test_texts_of_equal_words_do_not_differ_and_of_other_words_do(one, other):
    before, after = "\n".join(one), "\n".join(other)
    assert diff_text(before, before) == []
    if sorted(filter(None, one)) != sorted(filter(None, other)):
        assert diff_text(before, after)
