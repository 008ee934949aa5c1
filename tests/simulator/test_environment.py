"""A room stepped from outside: the production loop between two actions, episodes that replay."""

import asyncio
from collections import Counter

import msgspec
import pytest
from live_rooms import CALM, DRAWS, SHOP, STATE, calling, looks_up_link_2, play, played

from harness_cli.augmentation.renaming import Renaming
from harness_cli.errors import UsageError
from harness_cli.harness.load import state_from_files
from harness_cli.judges.rewards.judge import RuleRewards
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.chat import ChatReply
from harness_cli.records.episode import EpisodeRecord
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.simulator.environment import Environment
from harness_cli.simulator.live.episode import Episode, Start, clockless
from harness_cli.simulator.live.faults import observed
from harness_cli.simulator.live.replaying import replay
from harness_cli.simulator.live.replicas import replicas
from harness_cli.simulator.live.settings import Faults, Settings
from harness_cli.simulator.live.states import Draws, augmented_by, check_group
from harness_cli.simulator.live.stream import fingerprint


def trajectories(env):
    return [clockless(f.trajectory) for f in env.finished]


def test_a_stepped_episode_is_the_rollout_that_the_runtime_makes():
    env, _ = play(3, chosen=Settings(faults=CALM))
    done = env.finished[0]
    policy = ScriptedPolicy(env.actions, policy_id="outside")
    agent = Agent(
        state=STATE,
        policy=policy,
        executors=replicas(STATE, done.asked.world),
        world=SHOP.world,
        profile="simulator",
    )
    direct = asyncio.run(
        rollout(
            done.asked.item.request,
            agent,
            request_id=done.trajectory.request_id,
            item_id=done.asked.item.id,
        )
    )
    assert clockless(direct) == clockless(done.trajectory)


def test_the_observation_is_the_prompt_and_the_tools_of_the_state():
    async def first():
        env = Environment(SHOP, DRAWS)
        seen = await env.reset(4)
        item = env.item
        await env.close()
        return seen, item

    seen, item = asyncio.run(first())
    assert next(m["role"] for m in seen.messages) == "system"
    assert item.request.comments[0].text in seen.messages[-1]["content"]
    assert {t["function"]["name"] for t in seen.tools} == {t.name for t in STATE.all_tools()}
    assert seen.call == 0
    assert "expect" not in str(seen.messages)


def test_hooks_send_a_bad_reply_back_as_in_production():
    def host(seen):
        if seen.call < 2:
            return "# Hello\n- one\n- two"
        return looks_up_link_2(msgspec.structs.replace(seen, call=seen.call - 2))

    env, steps = play(3, host, Settings(faults=CALM))
    hooks = {h.hook for s in env.finished[0].trajectory.steps for h in s.hooks}
    assert "reply-skill" in hooks
    assert sum(s.done for s in steps) == 1


def test_an_episode_has_so_many_requests_and_remembers_what_was_said():
    env, steps = play(5, chosen=Settings(requests=4, faults=CALM))
    assert len(env.finished) == 4
    assert sum(len(s.finished) for s in steps) == 4
    spoken = [f for f in env.finished if f.trajectory.reply]
    later = env.finished[-1].asked.item.request.history
    assert {"role": "assistant", "content": spoken[0].trajectory.reply} in later


def test_an_episode_is_the_same_every_time_and_another_seed_is_another():
    one, same, other = (play(s, chosen=Settings(requests=3))[0] for s in (8, 8, 9))
    assert trajectories(one) == trajectories(same)
    assert trajectories(one) != trajectories(other)


@pytest.mark.parametrize("chosen", [Settings(requests=3), Settings(requests=2, turns=3)])
def test_a_recorded_episode_replays_byte_for_byte(chosen):
    env, _ = play(12, chosen=chosen, rollout=2, group="g")
    line = msgspec.json.encode(env.record())
    again = asyncio.run(replay(msgspec.json.decode(line, type=EpisodeRecord), SHOP, DRAWS))
    assert [clockless(f.trajectory) for f in again] == trajectories(env)


def test_a_replay_that_comes_out_differently_is_an_error():
    record = play(12, chosen=Settings())[0].record()
    other = msgspec.structs.replace(
        record, actions=(*record.actions[:-1], ChatReply(content="Something else."))
    )
    with pytest.raises(UsageError, match="came out differently"):
        asyncio.run(replay(other, SHOP, DRAWS))
    with pytest.raises(UsageError, match="another harness"):
        asyncio.run(replay(msgspec.structs.replace(record, base_id="f" * 40), SHOP, DRAWS))


def test_rollouts_of_a_group_share_the_request_and_differ_in_the_failures_of_tools():
    often = Settings(faults=Faults(timeout=0.3, malformed=0.2, denied=0.1))
    envs = [play(6, chosen=often, group="g", rollout=n)[0] for n in range(12)]
    asked = [fingerprint(e.finished[0].asked) for e in envs]
    check_group([e.finished[0].trajectory for e in envs], asked)
    assert len(set(asked)) == 1
    outcomes = {tuple(c.result.error for c in e.finished[0].trajectory.calls) for e in envs}
    assert len(outcomes) > 1


def test_failures_come_at_their_rates_with_the_real_kinds_and_no_wall_time():
    rates = Faults(timeout=0.2, malformed=0.1, denied=0.05)
    envs = [play(s, chosen=Settings(faults=rates))[0] for s in range(160)]
    done = [f.trajectory for e in envs for f in e.finished]
    found, calls = observed(done)
    assert calls >= 150
    for kind in ("timeout", "malformed", "denied"):
        share = getattr(rates, kind)
        error = (share * (1 - share) / calls) ** 0.5
        assert abs(getattr(found, kind) - share) < 4 * error
    failed = [c for t in done for c in t.calls if c.result.error]
    assert Counter(c.result.error.value for c in failed).keys() == {
        "timeout",
        "malformed",
        "denied",
    }
    assert max(c.latency_s for c in failed) < 1.0
    assert any("gave no result in 5 s" in c.result.content for c in failed)


def test_a_failed_call_made_again_is_drawn_again():
    def host(seen):
        if seen.call < 3:
            given = {"link_id": 1, "attribute": "material"} if seen.call else {"link_id": 1}
            return calling(("get_product_info_by_link_id", given))
        return "Link 1 is here."

    rates = Settings(faults=Faults(timeout=0.5, malformed=0, denied=0))
    results = [
        [c.result.ok for f in play(s, host, rates)[0].finished for c in f.trajectory.calls]
        for s in range(10)
    ]
    assert any(r and not r[0] and r[-1] for r in results)


def test_the_product_a_host_moves_is_presented_in_the_next_request():
    def host(seen):
        if seen.call == 0:
            return calling(
                ("load_skill", {"skill": "change-order"}),
                ("change_presentation_order", {"link_id": 5}),
            )
        return "Link 5 comes up now."

    for seed in range(20):
        env, _ = play(seed, host, Settings(requests=2, faults=CALM, tick_s=120))
        first, second = env.finished
        if first.asked.at // 120 == second.asked.at // 120 and first.trajectory.actions:
            moved = env.episode.stream.state
            assert moved.current_link in (5, second.asked.item.request.room.current_link)
            assert second.asked.item.request.room.current_link == 5
            return
    raise AssertionError("no two requests shared a tick")


def renamed_state():
    """The shipped state with one tool renamed everywhere, as an augmentation makes it."""
    from live_rooms import shipped_files

    from harness_cli.store.tree import Entry

    old, new = "get_inventory", "check_units_left"
    files = {
        path.replace(old, new): Entry(e.mode, e.data.replace(old.encode(), new.encode()))
        for path, e in shipped_files().items()
    }
    tool = files[f"tools/{new}.yaml"]
    meta = b"_meta: {harness.executor: sandbox}"
    assert meta in tool.data
    files[f"tools/{new}.yaml"] = Entry(
        tool.mode,
        tool.data.replace(
            meta, b"_meta: {harness.executor: sandbox, harness.operation: get_inventory}"
        ),
    )
    return state_from_files(files), AugmentationMap(state="hsa-1", tools={old: new}, seed=1)


class Made:
    def __init__(self):
        self.state, self.map = renamed_state()


def test_a_state_is_drawn_once_for_a_group_and_recorded_and_judged_in_the_bases_names():
    made, asked_for = Made(), []

    def augment(number):
        asked_for.append(number)
        return made

    draws = Draws(STATE, augment, pool=3, seed=1)
    half = Settings(faults=CALM, augmented=0.5)
    states = {g: draws.of_group(f"g-{g}", 0.5) for g in range(40)}
    augmented = [g for g, drawn in states.items() if drawn.augmented]
    assert 10 < len(augmented) < 30
    assert set(asked_for) <= {0, 1, 2}
    assert len(asked_for) <= 3

    def host(seen):
        names = {t["function"]["name"] for t in seen.tools}
        tool = "check_units_left" if "check_units_left" in names else "get_inventory"
        return calling((tool, {"link_id": 2})) if seen.call == 0 else "Link 2 is here."

    group = f"g-{augmented[0]}"
    envs = [play(7, host, half, group=group, rollout=n, draws=draws)[0] for n in range(3)]
    first = envs[0].finished[0]
    assert {c.name for c in first.trajectory.calls} == {"check_units_left"}
    assert {c.name for c in first.judged.calls} == {"get_inventory"}
    assert first.trajectory.calls[0].result.ok
    assert envs[0].record().state_seed is not None
    assert len({e.finished[0].trajectory.harness_id for e in envs}) == 1
    again = asyncio.run(replay(envs[0].record(), SHOP, draws))
    assert clockless(again[0].trajectory) == clockless(first.trajectory)
    plain = play(7, looks_up_link_2, Settings(faults=CALM), group="other")[0]
    mixed = [first.trajectory, plain.finished[0].trajectory]
    with pytest.raises(UsageError, match=r"a mixed group.*2 harness states"):
        check_group(mixed, ["x", "x"])
    with pytest.raises(UsageError, match="2 requests"):
        check_group([first.trajectory] * 2, ["x", "y"])


def test_a_rollout_that_would_mix_its_group_is_refused():
    draws = Draws(STATE)

    async def go():
        env, other = (Environment(SHOP, draws, Settings(noisy=n)) for n in (0.0, 1.0))
        await env.reset(3, group="g", rollout=0)
        await env.reset(3, group="g", rollout=1)
        with pytest.raises(UsageError, match="`g` has another request already"):
            await env.reset(4, group="g", rollout=2)
        with pytest.raises(UsageError, match="a mixed group"):
            await other.reset(3, group="g", rollout=3)
        await other.reset(3)
        await other.close()
        await env.close()

    asyncio.run(go())


def test_a_share_of_augmented_groups_needs_something_that_makes_them():
    with pytest.raises(UsageError, match="nothing makes them"):
        Environment(SHOP, DRAWS, Settings(augmented=0.1))


def test_states_of_the_augmentation_room_serve_groups_and_rewards_stay_in_the_bases_names():
    draws = Draws(STATE, augmented_by(STATE), pool=2, seed=3)
    chosen = Settings(faults=CALM, augmented=1.0)

    def host_of(drawn):
        renamed = Renaming(drawn.map)
        tool = renamed.tool("load_skill")
        given = renamed.arguments("load_skill", {"skill": "item-qa"})

        def host(seen):
            return calling((tool, given)) if seen.call == 0 else "Ask me anything you like."

        return host

    envs = [
        play(7, host_of(draws.of_group(g, 1.0)), chosen, group=g, draws=draws,
             rewards=RuleRewards())[0]
        for g in "abcdefgh"
    ]  # fmt: skip
    ids = {e.finished[0].trajectory.harness_id for e in envs}
    assert STATE.id not in ids
    assert len(ids) == 2
    for env in envs:
        done = env.finished[0]
        assert done.judged.skills_loaded == ("item-qa",)
        assert done.judged.calls[0].name == "load_skill"
        assert done.verdict.scores["skill_selection"] is not None
        assert asyncio.run(replay(env.record(), SHOP, draws))


def test_rewards_come_with_the_step_that_ends_a_request():
    _, steps = play(3, chosen=Settings(requests=2, faults=CALM), rewards=RuleRewards())
    outcomes = [o for s in steps for o in s.finished]
    assert len(outcomes) == 2
    for one in outcomes:
        assert set(one.scores) == {
            "accuracy",
            "effectiveness",
            "tool_rationality",
            "skill_selection",
            "rule_compliance",
            "length",
        }
        assert all(s is None or 0 <= s <= 1 for s in one.scores.values())
        assert len(one.trajectory_sha256) == 64


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"role": "user", "content": "x"}, "role `assistant`"),
        ({"role": "assistant", "text": "x"}, "no field `text`"),
        ({"role": "assistant", "tool_calls": [{"id": "a"}]}, "no assistant message"),
        ({"role": "assistant", "content": 7}, "no assistant message"),
    ],
)
def test_an_action_that_is_no_assistant_message_changes_nothing(action, words):
    async def go():
        env = Environment(SHOP, DRAWS)
        await env.reset(3)
        with pytest.raises(UsageError, match=words):
            await env.step(action)
        stepped = await env.step(looks_up_link_2(await_seen))
        await env.close()
        return stepped

    from harness_cli.simulator.environment import Observation

    await_seen = Observation(request="", call=0, messages=())
    assert asyncio.run(go()).observation.call == 1


def test_arguments_that_are_no_json_reach_the_loop_as_they_are():
    def host(seen):
        return calling(("get_inventory", '{"link_id": ')) if seen.call == 0 else "Sorry."

    env, _ = play(3, host, Settings(faults=CALM))
    call = env.finished[0].trajectory.calls[0]
    assert (call.arguments_raw, call.arguments) == ('{"link_id": ', None)


def test_stepping_without_an_episode_or_after_it_is_refused():
    async def go():
        env = Environment(SHOP, DRAWS)
        with pytest.raises(UsageError, match="episode is over"):
            await env.step("x")
        with pytest.raises(UsageError, match="no episode yet"):
            env.record()
        env, _ = await played(3)
        with pytest.raises(UsageError, match="episode is over"):
            await env.step("x")
        await env.reset(4)
        assert not env.done
        await env.reset(5)
        await env.close()
        return env.done, [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]

    assert asyncio.run(go()) == (True, [])


def test_a_thousand_rooms_wait_side_by_side_and_none_hears_of_another():
    async def go():
        envs = [Environment(SHOP, DRAWS, Settings(faults=CALM)) for _ in range(1000)]
        seen = [await e.reset(n % 500) for n, e in enumerate(envs)]
        half = [await envs[n].step(looks_up_link_2(seen[n])) for n in range(0, 1000, 2)]
        twins = [
            envs[n].episode.stream.state is not envs[n + 500].episode.stream.state
            for n in range(500)
        ]
        for env in envs:
            await env.close()
        return seen, half, twins

    seen, half, twins = asyncio.run(go())
    assert all(a.messages == b.messages for a, b in zip(seen[:500], seen[500:], strict=True))
    assert len({str(s.messages) for s in seen}) > 400
    assert all(h.observation.call == 1 for h in half)
    assert all(twins)


def test_an_episode_runs_with_any_policy_of_the_project_inside():
    async def go():
        episode = Episode(SHOP, DRAWS.base, Settings(faults=CALM), Start(3, "g"))
        replies = [ChatReply(content="Welcome!")] * 6
        return await episode.play(ScriptedPolicy(replies, policy_id="p@1"))

    done = asyncio.run(go())
    assert done[0].trajectory.policy_id == "p@1"
    assert done[0].trajectory.profile == "simulator"
