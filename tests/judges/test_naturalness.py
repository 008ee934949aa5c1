"""Naturalness: what a live host says passes; lists, markup and written style do not."""

import json
from pathlib import Path

import pytest

from harness_cli.judges.assertions import check_assertion
from harness_cli.judges.naturalness import problems
from harness_cli.records.item import Assertion
from harness_cli.records.trajectory import Trajectory

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the shared folder is not beside this checkout"
)

SPOKEN = [
    "Link 3, the down jacket, is 299 yuan right now, 160 less than before!",
    "Hi, welcome to the room! Shout a link number if you'd like to know more.",
    "That one's 90% white duck down, so it's really light. Want me to show you the back?",
    "Sorry about that! Just message customer service on the order page, they'll sort it out.",
    "12.5 yuan a pair, that's all.",
    "It ships within 48 hours from Guangzhou, and you've got 7 days to change your mind.",
    "I'm an AI host, so no coffee for me, but I'm here all evening.",
    "3号链接羽绒服现在299元，比原价便宜160元哦。",
    "哈哈懂你！陪我多待一会儿，看中哪个就扣链接号。",
    "这款是90%白鸭绒的，特别轻，要不要我翻过来给大家看看？",
    "真的不好意思，麻烦您点订单页的客服，会有专人帮您处理。",
    "48小时内从广州发货，支持7天无理由退货，放心拍。",
    "我是AI主播哦，不是真人，不过整晚都在陪大家。",
]
UNSPOKEN = [
    ("- Price: 299 yuan\n- Stock: 12", "list"),
    ("1. Open the link. 2. Tap the coupon. 3. Pay.", "list"),
    ("Firstly, it is light. Secondly, it is warm.", "list"),
    ("首先它很轻，其次它很保暖。", "list"),
    ("**Down jacket** is 299 yuan.", "markup"),
    ("See [the card](https://shop.example/3).", "markup"),
    ("## Details\nIt is warm.", "markup"),
    ("<b>299</b> yuan tonight!", "markup"),
    ("Price: 299 yuan", "fields"),
    ("价格：299元", "fields"),
    ("As an AI language model, I can't feel the fabric.", "boilerplate"),
    ("It is 299 yuan. If you have any further questions, feel free to ask!", "boilerplate"),
    ("Thank you for your inquiry, it is in stock.", "boilerplate"),
    ("感谢您的咨询，这款有货。", "boilerplate"),
    ("如有任何疑问，请随时联系客服。", "boilerplate"),
    ("根据查询结果，这款还有12件。", "boilerplate"),
    ("作为一个AI，我没法试穿。", "boilerplate"),
    ("It is light; furthermore, it is warm.", "written"),
    ("Please note that this product features a detachable hood.", "written"),
    ("In order to proceed, kindly open the link.", "written"),
    ("本产品采用90%白鸭绒材质。", "written"),
    ("该商品支持退货，若您需要，请知悉运费。", "written"),
    ("此外，它还具有防风功能。", "written"),
    ("The jacket (light, warm) is 299 yuan.", "brackets"),
    ("这款羽绒服（轻薄款）299元。", "brackets"),
    (
        "So this jacket that we have here tonight comes with a hood that you can take off and two "
        "pockets that close and a lining that keeps the wind out when you go outside in the "
        "morning",
        "long sentence",
    ),
    ("好看。" + "这个颜色很百搭，" * 20, "too long"),
]


@pytest.mark.parametrize("text", SPOKEN)
def test_what_a_host_says_has_no_problem(text):
    assert problems(text) == []


@pytest.mark.parametrize(("text", "kind"), UNSPOKEN)
def test_what_no_host_says_is_named_by_its_kind(text, kind):
    assert kind in [p.kind for p in problems(text)]


def checked(reply, value=None):
    trajectory = Trajectory(request_id="r", reply=reply)
    return check_assertion(Assertion(type="naturalness", value=value), trajectory)


def test_the_assertion_says_what_is_wrong_and_where():
    result = checked("**299** yuan")
    assert (result.passed, result.reason) == (False, "markup `**`")
    assert checked("299 yuan tonight!").passed is True


def test_silence_is_neither_natural_nor_unnatural():
    result = checked("  ")
    assert (result.passed, result.reason) == (None, "nothing was said")


def test_only_the_named_kinds_count_and_unknown_ones_are_said():
    assert checked("Price: 299 yuan", ["markup"]).passed is True
    assert checked("Price: 299 yuan", ["fields"]).passed is False
    assert "`prose`" in checked("hi", ["prose"]).reason


def test_a_text_made_to_be_slow_is_still_quick():
    for text in ("(" * 50_000, "1) " * 30_000, "首先" * 30_000, "a:" * 40_000, "- " * 40_000):
        problems(text)


@needs_shared
def test_real_streamers_pass_and_essays_do_not():
    """45 replies of real streamers (LiveChat, MIT) and 541 of GPT-4 to written tasks (IFEval)."""
    live = json.loads((SHARED / "commerce/livechat/subset.json").read_text())
    replies = [reply for pairs in live.values() for _, reply in pairs]
    assert len(replies) == 45
    assert [r for r in replies if problems(r)] == []
    path = SHARED / "ifeval/input_response_data_gpt4_20231107_145030.jsonl"
    essays = [json.loads(line)["response"] for line in path.read_text().splitlines()]
    assert sum(bool(problems(e)) for e in essays) > 0.8 * len(essays)
