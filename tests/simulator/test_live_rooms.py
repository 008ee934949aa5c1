"""A room that moves: stock that sells, offers in their windows, comments that fit what is true."""

import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.errors import UnknownName, UsageError
from harness_cli.simulator.live.arrivals import Arrivals
from harness_cli.simulator.live.room import RoomState, narrowed
from harness_cli.simulator.live.script import draw_script, offers_of_the_day
from harness_cli.simulator.live.settings import KINDS, Actions, Settings, checked
from harness_cli.simulator.live.shop import open_shop
from harness_cli.simulator.live.stream import fingerprint
from harness_cli.simulator.promotions import running
from harness_cli.simulator.scenarios.library import read_library

EVALSETS = Path(__file__).parents[2] / "evalsets"
SHOP = open_shop(EVALSETS)
ROOMS = [r.id for r in SHOP.world.rooms]
BUSY = Settings(actions=Actions(per_s=1.0, order=1.0), windows=1.0)


def room(seed: int, name: str = "room-beauty", chosen: Settings = BUSY) -> RoomState:
    live = SHOP.world.room(name)
    base = narrowed(SHOP.world, live)
    return RoomState(base, draw_script(base, live, chosen, SHOP.library.context.viewers, seed))


def asked(seed: int, **more):
    stream = SHOP.stream(Settings(**more), seed, f"room-{seed}")
    while (found := stream.next()) is not None:
        yield found


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(ROOMS), st.lists(st.floats(0, 950), min_size=1))
def test_stock_never_rises_nor_falls_below_zero(seed, name, moments):
    state = room(seed, name)
    left = {p: state.units(p) for p in state.room.products}
    for at in sorted(moments):
        state.advance(at)
        for level in state.moment().stock:
            assert level.units >= 0
        now = {p: state.units(p) for p in state.room.products}
        assert all(now[p] <= left[p] for p in now)
        left = now


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(ROOMS), st.floats(0, 899))
def test_an_offer_runs_exactly_while_its_window_is_open(seed, name, at):
    state = room(seed, name)
    state.advance(at)
    shown = {o.id for o in running(state.moment(), name)}
    windows = {w.offer: w for w in state.script.windows}
    for offer in offers_of_the_day(SHOP.world, SHOP.world.room(name)):
        window = windows.get(offer.id)
        assert (offer.id in shown) == (window is None or window.opens <= at < window.closes)


def test_orders_that_are_seen_were_sold():
    state = room(7)
    before = sum(state.units(p) for p in state.room.products)
    state.advance(300.0)
    sold = before - sum(state.units(p) for p in state.room.products)
    orders = [d for d in state.script.deeds if d.kind == "order" and d.at <= 300.0]
    assert orders
    assert len(orders) - state.refused_orders <= sold <= sum(d.units for d in orders)
    assert all(e.at <= 300.0 for e in state.seen())


def test_the_moment_is_one_object_until_something_moves():
    state = room(3, chosen=Settings(actions=Actions(per_s=0), windows=0))
    state.advance(10.0)
    first = state.moment()
    state.advance(500.0)
    assert state.moment() is first


def test_a_seed_gives_the_same_requests_and_another_seed_others():
    def played(seed):
        return [fingerprint(a) for a in asked(seed)]

    assert played(11) == played(11)
    assert played(11) != played(12)
    assert len(played(11)) > 20


def test_what_is_expected_is_true_at_the_moment_of_the_request():
    found = 0
    for seed in range(6):
        for one in asked(seed, actions=Actions(per_s=1.0, order=1.0)):
            units = {p.id: 0 for p in one.world.products}
            for level in one.world.stock:
                units[level.product] += level.units
            pieces = [p for s in one.said for p in s.pieces]
            for piece, fact in ((p, f) for p in pieces for f in p.facts):
                if fact.field == "stock":
                    found += 1
                    variants = {s.units for s in one.world.stock if s.product == fact.product}
                    of_one = piece.scenario.build == "variant"
                    assert fact.value in (variants if of_one else {units[fact.product]})
                elif fact.field.startswith("promotion."):
                    found += 1
                    names = {o.id for o in running(one.world, one.item.request.room.id)}
                    assert fact.field.partition(".")[2] in names
    assert found > 40


def test_a_pronoun_points_at_what_is_presented_and_no_vague_comment_comes_then():
    for seed in range(8):
        for one in asked(seed, noisy=0.0):
            room_ = one.item.request.room
            if one.item.category == "clarification":
                assert room_.current_link is None
                assert not one.item.request.history
            if "anaphora" in one.item.tags and one.item.mode == "single":
                assert one.link == room_.current_link


def test_all_kinds_of_comments_come_and_mixed_ones_and_groups():
    kinds, tags = set(), set()
    for seed in range(14):
        for one in asked(seed, mixed=0.2):
            kinds.add(KINDS[one.item.category])
            tags |= set(one.item.tags) & {"mixed", "multi", "zh", "en"}
            kinds |= {f"event:{e.kind}" for e in one.item.request.events}
    assert kinds >= set(KINDS.values())
    assert kinds >= {"event:join", "event:like", "event:add_to_cart", "event:order"}
    assert tags == {"mixed", "multi", "zh", "en"}


def test_no_phrase_of_a_test_family_is_ever_said():
    library = read_library(EVALSETS / "scenarios")
    forbidden = {f.id for s in library.scenarios for f in s.families if f.split == "test"}
    for scenario in SHOP.library.scenarios:
        assert not {f.id for f in scenario.families} & forbidden
    assert set(SHOP.library.context.chatter) == {"dev"}
    assert all(set(by) == {"dev"} for by in SHOP.library.context.refs.values())
    said = {t for seed in range(5) for a in asked(seed) for t in a.item.tags}
    assert not {f"family:{name}" for name in forbidden} & said


def test_a_mixed_comment_expects_both_of_its_answers():
    for one in (a for seed in range(12) for a in asked(seed, mixed=1.0, noisy=0.0)):
        if "mixed" in one.item.tags and one.item.mode == "single":
            assert len(one.said[0].pieces) == 2
            wanted = {a for p in one.said[0].pieces for a in p.scenario.answers}
            assert set(one.item.expect.answers) == wanted
            return
    raise AssertionError("no mixed comment came")


def test_a_product_the_host_moved_is_presented_until_the_script_goes_on():
    state = room(5, chosen=Settings())
    state.advance(0.0)
    other = 3 if state.current_link != 3 else 4
    state.moved(other, "next")
    assert state.current_link != other
    state.moved(other, "now")
    assert state.current_link == other
    state.advance(890.0)
    assert state.taken_up is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"mix": {"gossip": 1.0}}, "gossip"),
        ({"mix": {"chat": 0.0}}, "weights"),
        ({"tick_s": 1000.0}, "longer than the session"),
        ({"faults": {"timeout": 0.6, "malformed": 0.6}}, "at most 1"),
        ({"schema": 7}, "schema 7 of settings is not known"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(wrong, words):
    with pytest.raises(UsageError, match=words):
        checked(msgspec.convert(wrong, Settings))


def test_unknown_settings_and_rates_are_refused_where_they_stand():
    endless = ({"session_s": 1e12}, {"tick_s": 1e-9})
    for wrong in ({"split": "test"}, {"faults": {"timeout": 1.5}}, {"mixed": -0.1}, *endless):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, Settings)


def test_an_unknown_room_is_named_with_those_there_are():
    with pytest.raises(UnknownName, match="room-moon"):
        SHOP.stream(Settings(room="room-moon"), 1, "x")


def test_a_room_without_comments_has_no_request():
    silent = Settings(arrivals=Arrivals(base=1e-9, stir=0.0))
    assert SHOP.stream(silent, 1, "x").next() is None


def test_streams_share_no_state():
    one, other = (SHOP.stream(Settings(), 21, "x") for _ in range(2))
    first = [fingerprint(one.next()) for _ in range(5)]
    random.Random(0).random()
    assert first == [fingerprint(other.next()) for _ in range(5)]
