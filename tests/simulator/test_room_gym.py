"""The Gymnasium form of a room, before the real checker."""

import json
import math
import subprocess
import sys
import warnings

import pytest
from live_rooms import CALM, ROOT, SHOP, STATE, calling

from harness_cli.errors import UsageError
from harness_cli.simulator.gym import RoomEnv
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.live.states import Draws


@pytest.fixture
def room():
    made = RoomEnv(SHOP, Draws(STATE), Settings(faults=CALM, requests=2), render_mode="ansi")
    yield made
    made.close()


def test_the_checker_of_gymnasium_finds_nothing_wrong(room):
    pytest.importorskip("gymnasium", reason="Gymnasium is not installed")
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*not within|.*render.*|.*spec.*")
        check_env(room, skip_render_check=True)


def test_a_seed_is_an_episode_and_rewards_come_when_a_request_ends(room):
    first, info = room.reset(seed=3, options={"group": "g", "rollout": 1})
    assert room.reset(seed=3, options={"group": "g", "rollout": 1})[0] == first
    assert {"messages", "tools"} == set(json.loads(first))
    assert info["seed"] == 3
    action = json.dumps(
        calling(("load_skill", {"skill": "item-qa"}), ("get_inventory", {"link_id": 1}))
    )
    rewards, done, text = [], False, first
    while not done:
        looked_up = json.loads(text)["messages"][-1]["role"] == "tool"
        say = "Link 1 is here in the room, friends!" if looked_up else action
        text, reward, done, cut, info = room.step(say)
        rewards += [reward] if info["outcomes"] else []
        assert info["outcomes"] or reward == 0
        assert not cut
    assert text == ""
    assert len(rewards) == 2
    assert all(math.isnan(r) or 0 <= r <= 6 for r in rewards)
    assert "host: " in room.render()


def test_an_unknown_option_is_refused(room):
    with pytest.raises(UsageError, match="no `state`"):
        room.reset(seed=1, options={"state": "x"})


def test_a_reward_that_is_unscored_is_no_zero(room):
    room.reset(seed=3)
    done, rewards, why = False, [], []
    for _ in range(30):
        _, reward, done, _, info = room.step("")
        rewards += [reward] if info["outcomes"] else []
        why += info.get("unscored", [])
        if done:
            break
    assert done
    assert any(math.isnan(r) for r in rewards)
    assert any("nothing was said" in w for w in why)


def test_without_gymnasium_the_same_methods_are_there():
    program = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "sys.path.insert(0, 'tests/simulator')\n"
        "from live_rooms import *\n"
        "from harness_cli.simulator.gym import RoomEnv\n"
        "room = RoomEnv(SHOP, DRAWS)\n"
        "assert RoomEnv.__mro__[1] is object\n"
        "text, info = room.reset(seed=3)\n"
        "print(len(room.step('Hello!')), info['seed'])\n"
        "room.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["5", "3"], done.stderr
