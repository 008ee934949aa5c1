"""The proposer without a model, its guards, and the memory of what was rejected."""

import dataclasses
import random

import msgspec
import pytest
from failed_rollouts import call, evidence, skill
from small_shop import FILES

from harness_cli.evolution.diagnose import Subject, diagnose, gather
from harness_cli.evolution.fuzzy import suggest
from harness_cli.evolution.ops import apply_ops
from harness_cli.evolution.proposal_file import new_proposal
from harness_cli.evolution.propose.deterministic import propose
from harness_cli.evolution.propose.drafts import Ground
from harness_cli.evolution.propose.guard import LeakCheck, fault_of
from harness_cli.evolution.propose.memory import is_rejected, rejections, remember
from harness_cli.evolution.propose.sections import add_bullet, extend_skill, extend_yaml
from harness_cli.harness.load import state_from_files
from harness_cli.records.diagnosis import Decision, Edit, Op
from harness_cli.records.item import Expect, ExpectedTool, Fact
from harness_cli.records.trajectory import HookEvent, StopReason
from harness_cli.records.verdict import Finding
from harness_cli.store.tree import FILE, Entry

# ruff: noqa: E501  rows of tables read best on one line

PATTERN_SKILL = FILES["skills/item-qa/SKILL.md"] + (
    "\n## Reply patterns\n\n- **price**: what it costs\n  - en: It is {price} yuan.\n"
    "- **stock**: how many are left\n  - en: There are {stock}.\n"
)
WORDS = ["mug", "lamp", "chair", "scarf", "kettle", "blanket", "pan", "towel"]


def ground(rows, changed=None):
    texts = {**FILES, **(changed or {})}
    files = {path: text.encode() for path, text in texts.items() if text is not None}
    state = state_from_files({p: Entry(FILE, d) for p, d in files.items()})
    material = gather(rows)
    made = diagnose(material, Subject("run-1", state.id, "set"))
    return Ground(made, material.failures, material.seen, state, state.files, frozenset(WORDS))


def rows(kind, texts, n=12, passes=("hello {}", "what colour is the {}", "nice {}"), **fields):
    draw = random.Random(7)
    for i in range(n):
        made = {k: v(i) if callable(v) else v for k, v in fields.items()}
        yield evidence(f"{kind}-{i:02}", draw.choice(texts).format(draw.choice(WORDS)), **made)
    for i in range(24):
        text = passes[i % len(passes)].format(draw.choice(WORDS))
        yield evidence(f"pass-{i:02}", text, state="passed", calls=[skill("greet")], reply="Hi")


def edits(found):
    return {edit.id: edit for edit in found.edits}


def after(where, edit):
    return {p: (d or b"").decode() for p, d in apply_ops(where.files, edit.ops).items()}


NEEDS_STOCK = Expect(
    skills=("item-qa",), tools=(ExpectedTool(name="get_inventory"),), answers=("stock",)
)
STOCK_ASKED = ["how many {} are left", "are any {} left", "{} left in the shop?"]


def test_a_tool_that_was_not_called_gets_a_hook_a_rule_and_words_in_its_description():
    where = ground(
        rows("s", STOCK_ASKED, calls=[skill("item-qa")], reply="Lovely.", expect=NEEDS_STOCK)
    )
    found = edits(propose(where))
    hook = found["require-get-inventory"]
    text = after(where, hook)["hooks/requires-get-inventory.yaml"]
    assert "check: tool_required" in text
    assert r"\bleft\b" in text
    assert set(hook.predicted_fixes) == {f"s-{i:02}" for i in range(12)}
    assert "no passing item" in hook.risks or "costs one more round" in hook.risks
    told = after(where, hook)
    assert (
        '`get_inventory`: when the comment says something like "left"'
        in told["skills/item-qa/SKILL.md"]
    )
    assert told["tools/get_inventory.yaml"].startswith("# how it is called\n")
    assert hook.classes == ("tool-not-called-get-inventory",)


def test_an_existing_required_tool_hook_gets_more_triggers_not_a_twin():
    hook = ("schema: 1\nname: stock\nevent: before_reply\nchecks:\n  - check: tool_required\n"
            "    with: {triggers: ['stock'], tools: [get_inventory]}\naction: retry\nmessage: x\n")  # fmt: skip
    where = ground(
        rows("s", STOCK_ASKED, calls=[skill("item-qa")], reply="Lovely.", expect=NEEDS_STOCK),
        {"hooks/stock.yaml": hook},
    )
    made = after(where, edits(propose(where))["require-get-inventory"])
    assert "hooks/requires-get-inventory.yaml" not in made
    assert r"triggers: ['stock', \bleft\b]" in made["hooks/stock.yaml"]


def test_a_wrong_skill_gets_triggers_and_an_exclusion():
    expect = Expect(skills=("aftersale",), answers=("returns",))
    asked = ["refund my {}", "I want a refund for the {}", "refund please, the {} broke"]
    where = ground(rows("r", asked, calls=[skill("item-qa")], reply="Steel.", expect=expect))
    found = edits(propose(where))
    told = after(where, found["trigger-aftersale"])["skills/aftersale/SKILL.md"]
    assert '  Also for comments like "refund"' in told
    assert '- The comment says something like "refund"' in told
    wrong = after(where, found["exclude-aftersale-from-item-qa"])["skills/item-qa/SKILL.md"]
    assert "## Do not use\n\n- When the comment says something like" in wrong


def test_a_fact_that_was_fetched_and_left_out_widens_its_reply_pattern():
    expect = Expect(skills=("item-qa",), answers=("stock",),
                    facts=(Fact(field="stock", value=12, answer="stock"),))  # fmt: skip
    calls = [skill("item-qa"), call("get_inventory", {"link_id": 1}, {"stock": 12, "name": "Mug"})]
    where = ground(
        rows("f", ["remaining {} count", "remaining pieces of {}", "the {} remaining?"], calls=calls,
             reply="Lovely.", expect=expect),
        {"skills/item-qa/SKILL.md": PATTERN_SKILL},
    )  # fmt: skip
    made = edits(propose(where))["say-stock-of-get-inventory-in-item-qa"]
    assert (
        "- **stock**: how many are left, remaining" in after(where, made)["skills/item-qa/SKILL.md"]
    )
    bare = ground(
        rows(
            "f",
            ["remaining {} count", "the {} remaining?"],
            calls=calls,
            reply="Lovely.",
            expect=expect,
        )
    )
    made = edits(propose(bare))["say-stock-of-get-inventory-in-item-qa"]
    assert (
        "- Say `stock` from the result of `get_inventory`"
        in after(bare, made)["skills/item-qa/SKILL.md"]
    )


def test_fields_that_were_asked_and_not_fetched_are_named_where_they_are_covered():
    """Words of the catalogue, not of the comments: they hold for questions worded otherwise."""

    def expect(i):
        return Expect(skills=("aftersale",), tools=(ExpectedTool(name="get_inventory"),), answers=("x",),
                      facts=(Fact(field=("net_weight", "policy.care", "promotion.p-1", "name")[i % 4], value="5 g"),))  # fmt: skip

    asked = ["what about {}", "and {}?", "tell me of {}"]
    made = ground(rows("v", asked, calls=[skill("item-qa")], reply="Steel.", expect=expect))
    where = Ground(
        made.diagnosis,
        made.failures,
        made.seen,
        made.state,
        made.files,
        made.names,
        {"net_weight": "净含量"},
    )
    edit = edits(propose(where))["covers-aftersale"]
    told = after(where, edit)
    assert "  Covers care, net weight（净含量）.\n" in told["skills/aftersale/SKILL.md"]
    assert (
        "- The viewer asks about care, net weight（净含量）.\n" in told["skills/aftersale/SKILL.md"]
    )
    assert "Gives care, net weight（净含量）." in told["tools/get_inventory.yaml"]
    assert len(edit.predicted_fixes) == 6


@pytest.mark.parametrize(
    ("missed", "named"),
    [
        (["care", "flavour", "net_weight"], "care, flavour, net weight"),
        (["care", "flavour"], None),
        (["care", "care", "care", "flavour"], "care"),
    ],
)
def test_fields_missed_once_are_named_only_where_a_run_is_too_small_to_repeat_any(missed, named):
    def expect(i):
        return Expect(skills=("aftersale",), answers=("x",), facts=(Fact(field=missed[i], value="5 g"),))  # fmt: skip

    where = ground(rows("v", ["what about {}"], n=len(missed), calls=[skill("item-qa")], reply="Steel.", expect=expect))  # fmt: skip
    made = edits(propose(where))
    assert ("covers-aftersale" in made) is (named is not None)
    if named:
        told = after(where, made["covers-aftersale"])
        assert f"  Covers {named}.\n" in told["skills/aftersale/SKILL.md"]


def test_refusals_that_were_wrong_are_excluded_where_the_refusal_is_described():
    where = ground(rows("o", ["a gift box for the {}", "is the {} in a gift box", "gift box please"], calls=[call("refuse", {"reason": "x"})],
                        stop=StopReason.REFUSED, reply="No.", expect=Expect(answers=("faq",))))  # fmt: skip
    made = after(where, edits(propose(where))["refuse-less"])["tools/refuse.yaml"]
    assert 'Do not use it for comments like "gift' in made


@pytest.mark.parametrize(
    ("kind", "ruled"),
    [
        ("unsupported_claim", True),
        ("false_promise", True),
        ("over_refusal", False),
        ("suppressed", False),
        ("missed_comment", False),
    ],
)
def test_only_a_claim_is_answered_by_saying_less(kind, ruled):
    """More of the same would follow from "leave out …" where too little was said."""
    said = (Finding(kind=kind, detail="x"),)
    where = ground(rows("f", ["is the {} good"], calls=[skill("item-qa")], reply="Hm.", findings=said,
                        expect=Expect(skills=("item-qa",))))  # fmt: skip
    assert (f"no-{kind.replace('_', '-')}-in-item-qa" in edits(propose(where))) is ruled


def test_replies_in_another_language_get_a_check_when_there_is_none():
    where = ground(rows("l", ["这个{}多少钱", "{}还有货吗"], reply="It is nice.", calls=[skill("item-qa")],
                        expect=Expect(skills=("item-qa",), answers=("price",))))  # fmt: skip
    assert "reply-language" in edits(propose(where))
    has = {"hooks/lang.yaml": "schema: 1\nname: lang\nevent: before_reply\nchecks:\n  - check: output_format\n"
                              "    with: {language: match_viewer}\naction: retry\nmessage: x\n"}  # fmt: skip
    where = ground(rows("l", ["这个{}多少钱", "{}还有货吗"], reply="It is nice.", calls=[skill("item-qa")],
                        expect=Expect(skills=("item-qa",), answers=("price",))), has)  # fmt: skip
    assert "reply-language" not in edits(propose(where))


def test_a_length_check_in_the_way_moves_its_number_within_the_range():
    stopped = [HookEvent(hook="reply-length", event="before_reply", outcome="retry", step=0)]
    where = ground(
        rows("w", ["tell me about {}"], reply="x", hooks=stopped, calls=[skill("item-qa")])
    )
    made = after(where, edits(propose(where))["widen-reply-length"])["prompts/pipeline.yaml"]
    assert "reply_length: {value: 240, range: [80, 300], unit: characters}" in made


def test_the_number_that_moves_is_the_one_of_the_pipeline_that_ran():
    stopped = [HookEvent(hook="reply-length", event="before_reply", outcome="retry", step=0)]
    short = FILES["prompts/pipeline.yaml"].replace("value: 200", "value: 100")
    where = ground(
        rows("w", ["tell me about {}"], reply="x", hooks=stopped, calls=[skill("item-qa")]),
        {"prompts/pipeline.short.yaml": short},
    )
    where = dataclasses.replace(where, pipeline="short")
    made = edits(propose(where))["widen-reply-length"]
    changed = after(where, made)
    assert made.module == "prompts/pipeline.short.yaml"
    assert "reply_length: {value: 120," in changed["prompts/pipeline.short.yaml"]
    assert (
        changed.get("prompts/pipeline.yaml", FILES["prompts/pipeline.yaml"])
        == FILES["prompts/pipeline.yaml"]
    )


def test_two_odd_failures_make_no_rule_and_other_sides_make_none_either():
    few = ground(
        rows("s", STOCK_ASKED, n=2, calls=[skill("item-qa")], reply="L", expect=NEEDS_STOCK)
    )
    assert propose(few).edits == ()
    broken = ground(
        rows(
            "t",
            ["how many {} are left"],
            calls=[call("get_inventory", {"link_id": 1}, ok=False)],
            reply="x",
        )
    )
    assert propose(broken).edits == ()


def test_words_that_passing_comments_have_too_are_no_trigger():
    where = ground(rows("s", ["hello {} there", "nice {} you have"], passes=("hello {} there", "nice {} you have"),
                        calls=[skill("item-qa")], reply="Lovely.", expect=NEEDS_STOCK))  # fmt: skip
    assert "require-get-inventory" not in edits(propose(where))


def test_product_names_are_no_trigger():
    where = ground(rows("s", ["{}?", "{}!", "{}"], calls=[skill("item-qa")], reply="Lovely.", expect=NEEDS_STOCK,
                        passes=("hello", "good evening")))  # fmt: skip
    assert propose(where).edits == ()


def test_the_proposals_are_the_same_every_time_and_leave_a_harness_that_loads():
    def make():
        return ground(
            rows("s", STOCK_ASKED, calls=[skill("item-qa")], reply="Lovely.", expect=NEEDS_STOCK)
        )

    where, again = make(), make()
    assert propose(where) == propose(again)
    files = dict(where.files)
    for edit in propose(where).edits:
        for path, data in apply_ops(files, edit.ops).items():
            files[path] = data
    state_from_files({p: Entry(FILE, d) for p, d in files.items()})


@pytest.mark.parametrize(
    ("added", "copied"),
    [
        ("- Answer when is the blue kettle still in stock today", "is the blue kettle still"),
        ("- Answer when it is in stock", None),
        ("- IS THE BLUE, kettle: still!", "is the blue kettle still"),
        ("- 这个蓝色水壶还有没有货呢", "这个蓝色水壶还有"),
        ("- 还有没有货", None),
    ],
)
def test_wording_of_dev_items_is_recognised_as_a_copy(added, copied):
    leaks = LeakCheck(["Is the blue kettle still in stock?", "这个蓝色水壶还有没有货"])
    assert leaks.copied(added) == copied


def test_an_edit_that_copies_or_grows_too_much_is_not_proposed():
    files = {"a.md": b"x\n"}
    leaks = LeakCheck(["is the blue kettle still in stock"])

    def edit(text):
        return Edit(
            id="e", module="a.md", ops=(Op(op="write", path="a.md", text=text),), rationale="r"
        )

    assert "copies a dev item" in fault_of(
        files, edit("say: is the blue kettle still in stock\n"), leaks
    )
    assert "too many" in fault_of(files, edit("words " * 400), leaks)
    assert fault_of(files, edit("say what is left\n"), leaks) is None


def decided(edit, state, script=False):
    decision = Decision(
        state=state, by="ann", reason="too broad", at="2026-01-01T00:00:00Z", script=script
    )
    return msgspec.structs.replace(
        edit, ops=tuple(msgspec.structs.replace(o, decision=decision) for o in edit.ops)
    )


def test_a_rejected_edit_is_not_proposed_again_without_new_evidence(tmp_path):
    where = ground(
        rows("s", STOCK_ASKED, calls=[skill("item-qa")], reply="Lovely.", expect=NEEDS_STOCK)
    )
    found = propose(where)
    no = tuple(decided(e, "reject") for e in found.edits)
    made = new_proposal(no, base="b", base_commit=None, diagnosis="d", proposer="p")
    assert remember(tmp_path, made) == len(no)
    known = rejections(tmp_path)
    assert known[0].reason == "too broad"
    again = propose(where, rejected=known)
    assert again.edits == ()
    assert {why for _, why in again.dropped} == {"was rejected before and there is no new evidence"}
    more = ground(
        rows("s", STOCK_ASKED, n=24, calls=[skill("item-qa")], reply="Lovely.", expect=NEEDS_STOCK)
    )
    assert "require-get-inventory" in edits(propose(more, rejected=known))
    remember(tmp_path, made)
    assert len(rejections(tmp_path)) == len(known)


def test_what_a_script_or_nobody_rejected_is_not_remembered(tmp_path):
    edit = Edit(id="e", module="a.md", ops=(Op(op="write", path="a.md", text="x"),), rationale="r")
    for one in (decided(edit, "reject", script=True), decided(edit, "accept"), edit):
        made = new_proposal((one,), base="b", base_commit=None, diagnosis="d", proposer="p")
        assert remember(tmp_path, made) == 0
    assert not is_rejected(edit, rejections(tmp_path))


def test_what_the_gates_rejected_on_a_run_is_remembered(tmp_path):
    op = Op(op="write", path="a.md", text="x")
    edit = Edit(id="e", module="a.md", ops=(op,), rationale="r", predicted_fixes=("i1", "i2"))
    no = decided(edit, "reject", script=True)
    made = new_proposal((no,), base="b", base_commit=None, diagnosis="d", proposer="p")
    assert remember(tmp_path, made, measured=True) == 1
    assert is_rejected(edit, rejections(tmp_path))


SECTION = "---\nname: a\ndescription: One.\n---\n# A\n\n## Rules\n\n- one\n\n## Tools\n\n- t\n"


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Rules", "## Rules\n\n- one\n- new\n\n## Tools"),
        ("Tools", "## Tools\n\n- t\n- new\n"),
        ("tools", "## Tools\n\n- t\n- new\n"),
        ("Other", "- one\n\n## Other\n\n- new\n\n## Tools"),
    ],
)
def test_a_bullet_goes_to_its_section(title, expected):
    op = add_bullet(SECTION, "a.md", title, "new")
    made = apply_ops({"a.md": SECTION.encode()}, [op])["a.md"].decode()
    assert expected in made
    assert add_bullet(made, "a.md", title, "new") is None


def test_sections_added_together_do_not_fall_into_one_another():
    ops = [
        add_bullet(SECTION, "a.md", title, title.lower()) for title in ("X", "Tools", "Y", "Rules")
    ]
    made = apply_ops({"a.md": SECTION.encode()}, ops)["a.md"].decode()
    assert "- one\n- rules\n" in made
    assert "- t\n- tools\n" in made
    assert "## X\n\n- x\n\n## Y\n\n- y\n\n## Tools" in made


def test_descriptions_grow_in_their_own_form_and_not_beyond_their_limit():
    folded = "---\nname: a\ndescription: >-\n  One\n  two.\n---\nbody\n"
    op = extend_skill(folded, "a.md", "Three.")
    assert b"  two.\n  Three.\n---" in apply_ops({"a.md": folded.encode()}, [op])["a.md"]
    plain = extend_skill(SECTION, "a.md", 'Also "x": y.')
    assert b"description: 'One. Also" in apply_ops({"a.md": SECTION.encode()}, [plain])["a.md"] or \
        b'description: "One. Also' in apply_ops({"a.md": SECTION.encode()}, [plain])["a.md"]  # fmt: skip
    assert extend_yaml("name: t\ndescription: One.\n", "t.yaml", "Two.").value == "One. Two."
    assert extend_yaml("name: t\ndescription: One. Two.\n", "t.yaml", "Two.") is None
    assert extend_yaml(f"name: t\ndescription: {'x' * 1020}\n", "t.yaml", "Two.") is None


TEXT = "# Rules\n\n- Look the price up before you say it.\n- Be kind to everyone in the room.\n- Never guess.\n"


def test_a_hunk_that_is_nearly_there_is_suggested_with_its_likeness_and_applies_exactly():
    op = Op(op="replace", path="a.md", search="- Look up the price before you say it!\n",
            text="- Look up the price and the stock before you say it!\n")  # fmt: skip
    made = suggest(TEXT, op)
    assert 0.6 < made.placed < 1
    assert made.search == "- Look the price up before you say it.\n"
    assert b"and the stock" in apply_ops({"a.md": TEXT.encode()}, [made])["a.md"]


@pytest.mark.parametrize("search", ["- Something else entirely, about shipping.\n", "zzz", ""])
def test_a_hunk_that_is_nowhere_is_not_suggested(search):
    assert suggest(TEXT, Op(op="replace", path="a.md", search=search, text="new\n")) is None


def test_a_hunk_that_stands_twice_is_never_said_to_be_nowhere():
    op = Op(op="replace", path="a.md", search="Look the price up", text="Look it up")
    assert suggest(TEXT + "\nLook the price up\n", op) is None


def test_two_tools_that_gave_the_same_field_are_two_edits_with_names_of_their_own():
    rows = [
        evidence(f"s-{tool}-{i}", f"stock of number {i}",
                 calls=[skill("item-qa"), call(tool, {"link_id": i}, {"stock": i + 10})],
                 reply="It is lovely.",
                 expect=Expect(skills=("item-qa",), answers=("stock",), facts=(
                     Fact(product="p-1", field="stock", value=i + 10, answer="stock"),)))
        for tool in ("get_inventory", "get_product_info_by_link_id") for i in range(3)
    ]  # fmt: skip
    names = [e.id for e in propose(ground(rows)).edits]
    assert len(names) == len(set(names))
    assert sum(name.startswith("say-stock-of-") for name in names) == 2
