"""A comment stream into groups: by window, product and topic, one reply a group."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.records.catalogue import Catalogue, Product
from harness_cli.records.request import Comment, Request, Room
from harness_cli.runtime.aggregate import Aggregator, group_comments, request_of, topic_of

WORLD = Catalogue(
    snapshot="2026-01-01",
    products=tuple(
        Product(id=i, name=n, zh_name=z, category="x", price=1, list_price=1, keywords=k)
        for i, n, z, k in (
            ("p-1", "Sunscreen SPF50", "防晒乳", ("sunscreen",)),
            ("p-2", "Night Cream", "晚霜", ("cream",)),
            ("p-3", "Eye Cream", "眼霜", ()),
        )
    ),
)
ROOM = Room(id="r", products=("p-1", "p-2", "p-3"), current_link=2)


def said(text, at=None, viewer="v"):
    return Comment(text=text, at=at, viewer=viewer)


def grouped(*comments, **more):
    groups = group_comments(comments, ROOM, WORLD, **more)
    return [(g.product, g.topic, [c.text for c in g.comments]) for g in groups]


def test_comments_on_one_product_and_topic_within_a_window_get_one_reply():
    assert grouped(
        said("how much is #1?", 0),
        said("price of link 1", 2),
        said("1号多少钱", 3),
        said("is #1 in stock?", 3),
        said("how much is #3?", 4),
    ) == [
        ("p-1", "price", ["how much is #1?", "price of link 1", "1号多少钱"]),
        ("p-1", "stock", ["is #1 in stock?"]),
        ("p-3", "price", ["how much is #3?"]),
    ]


def test_a_window_ends_by_time_and_the_next_comment_opens_another():
    assert grouped(said("how much", 0), said("price?", 5.9), said("what's the price", 6.0)) == [
        ("p-2", "price", ["how much", "price?"]),
        ("p-2", "price", ["what's the price"]),
    ]


def test_a_full_group_closes_at_once():
    groups = grouped(*(said(f"price please {n}", 0) for n in range(5)), largest=2)
    assert [len(g[2]) for g in groups] == [2, 2, 1]


def test_the_same_words_again_need_no_second_answer():
    assert grouped(said("How much?", 0), said("how much", 1, "w"), said("how much!!", 2)) == [
        ("p-2", "price", ["How much?"])
    ]


@pytest.mark.parametrize(
    ("text", "product"),
    [
        ("how much is the sunscreen", "p-1"),
        ("how much is the eye cream", "p-3"),
        ("how much is the night cream", "p-2"),
        ("眼霜多少钱", "p-3"),
        ("how much is this", "p-2"),
        ("how much is #9", None),
        ("any discount tonight", None),
        ("hello", None),
    ],
)
def test_the_product_of_a_comment(text, product):
    assert grouped(said(text, 0))[0][0] == product


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("I want a refund", "aftersales"),
        ("有优惠券吗", "promotion"),
        ("when do you ship", "delivery"),
        ("还有货吗 库存多少", "stock"),
        ("show me the next one", "presentation"),
        ("多少钱", "price"),
        ("what size for 60 kg", "attribute"),
        ("thanks!", "thanks"),
        ("hi everyone", "greeting"),
        ("主播真好看", "chat"),
    ],
)
def test_the_topic_of_a_comment(text, topic):
    assert topic_of(text) == topic


def test_a_stream_says_when_it_has_to_be_looked_at_again():
    aggregator = Aggregator(ROOM, WORLD, window_s=5)
    assert aggregator.next_at() is None
    aggregator.add(said("how much"), 10)
    aggregator.add(said("thanks"), 12)
    assert aggregator.next_at() == 15
    assert aggregator.ready(14) == []
    assert [g.topic for g in aggregator.ready(15)] == ["price"]
    assert [g.topic for g in aggregator.flush()] == ["thanks"]


def test_the_request_of_a_group_says_whether_it_is_one_comment_or_more():
    base = Request(room=ROOM, anchor=("welcome",))
    one, two = group_comments(
        [said("how much", 0), said("price?", 0), said("hello", 1)], ROOM, WORLD
    )
    assert request_of(one, base).mode == "multi"
    assert request_of(two, base).mode == "single"
    assert request_of(two, base).anchor == ("welcome",)


TEXTS = st.sampled_from(["how much", "price #1", "hello", "thanks", "ship?", "", "还有货吗", "x"])


@given(st.lists(st.tuples(TEXTS, st.floats(0, 30)), max_size=30), st.integers(1, 5))
def test_no_group_is_empty_too_large_or_too_long_and_no_words_are_lost(stream, largest):
    comments = [said(text, at) for text, at in sorted(stream, key=lambda s: s[1])]
    groups = group_comments(comments, ROOM, WORLD, window_s=4, largest=largest)
    assert all(1 <= len(g.comments) <= largest for g in groups)
    assert all(c.at - g.opened < 4 for g in groups for c in g.comments)
    assert {c.text for c in comments if c.text} == {c.text for g in groups for c in g.comments}
