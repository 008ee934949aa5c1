"""Who asks: the library's viewer, a model as a viewer on a loopback endpoint, and its record."""

import asyncio
import json
import shutil
import subprocess

from aiohttp import web
from live_rooms import CALM, DRAWS, ROOT, SHOP, play

from harness_cli.errors import ProviderError
from harness_cli.models.open import open_policy
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.config import PolicyConfig
from harness_cli.simulator.environment import Environment
from harness_cli.simulator.live.episode import clockless
from harness_cli.simulator.live.replaying import replay
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.live.viewers import MOST, ModelViewer, one_line, quoted
from harness_cli.simulator.rooms import open_rooms
from harness_cli.simulator.sessions import Sessions, Start

DIALOGUE = Settings(faults=CALM, turns=4, mix={"product-qa": 1.0}, noisy=0.0, mixed=0.0)


def modelled(*lines):
    """A viewer that says these lines."""
    return ModelViewer(ScriptedPolicy(lines), rewords=True)


def spoken(env):
    return [f.asked.item.request.comments[0].text for f in env.finished]


def test_a_scripted_viewer_comes_back_with_another_question_about_the_same_product():
    talks = [play(s, chosen=DIALOGUE)[0] for s in range(12)]
    longer = [e for e in talks if len(e.finished) > 1]
    assert len(longer) >= 3
    for env in longer:
        first, second = env.finished[:2]
        assert second.asked.turn == 1
        assert second.asked.link == first.asked.link
        assert second.asked.item.id.endswith("-1")
        assert second.asked.item.expect.answers != first.asked.item.expect.answers
        if first.trajectory.reply:
            said = {"role": "assistant", "content": first.trajectory.reply}
            assert said in second.asked.item.request.history


def test_a_model_words_the_wish_asks_again_and_says_when_it_is_content():
    lines = ('"soo what does number 2 cost"', "you did not tell me the price!", "[DONE]")
    env, _ = play(3, chosen=DIALOGUE, viewer=lambda: modelled(*lines))
    assert spoken(env) == ["soo what does number 2 cost", "you did not tell me the price!"]
    first, second = (f.asked.item for f in env.finished)
    assert first.expect == second.expect
    assert env.record().lines == (*spoken(env), None)


def test_a_dialogue_with_a_model_replays_without_it():
    lines = ("what does #2 cost", "hm?", "[done]")
    env, _ = play(3, chosen=DIALOGUE, viewer=lambda: modelled(*lines))
    again = asyncio.run(replay(env.record(), SHOP, DRAWS))
    assert [clockless(f.trajectory) for f in again] == [
        clockless(f.trajectory) for f in env.finished
    ]


def test_a_model_that_fails_ends_the_dialogue_and_not_the_episode():
    failing = ProviderError.of("server", "no", retryable=False)
    env, _ = play(3, chosen=DIALOGUE, viewer=lambda: modelled("how much is #2", failing))
    assert spoken(env) == ["how much is #2"]
    plain, _ = play(3, chosen=DIALOGUE, viewer=lambda: modelled(failing, "[done]"))
    drawn = SHOP.stream(DIALOGUE, 3, "x").next()
    assert spoken(plain)[0] == drawn.item.request.comments[0].text


def test_what_a_model_says_is_one_line_of_a_comments_length():
    assert one_line('  "hi\n\nthere"  ') == "hi there"
    assert one_line("Thanks! [done]") is None
    assert one_line("  ") is None
    assert len(one_line("x" * 5000)) == MOST
    assert quoted('say "x"\nnow') == "\"say 'x' now\""


def test_the_viewer_is_told_its_wish_and_the_hosts_words_and_nothing_else():
    viewers = []

    def viewer():
        viewers.append(modelled("how much is #2", "[done]"))
        return viewers[-1]

    env, _ = play(3, chosen=DIALOGUE, viewer=viewer)
    policy = viewers[0]._policy
    told = str([r.messages for r in policy.requests])
    drawn = SHOP.stream(DIALOGUE, 3, "x").next()
    assert drawn.item.request.comments[0].text in told
    assert env.finished[0].trajectory.reply[:20] in told
    for fact in drawn.item.expect.facts:
        assert f"'value': {fact.value}" not in told
    assert all(r.tools == () for r in policy.requests)


def test_a_policy_of_the_project_plays_the_viewer_over_http():
    asked = []

    async def chat(request):
        body = await request.json()
        asked.append(body)
        text = "is number 2 any good" if len(asked) == 1 else "[done]"
        message = {"role": "assistant", "content": text}
        return web.json_response(
            {
                "id": "x",
                "model": "viewer",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            }
        )

    async def go():
        app = web.Application()
        app.router.add_post("/v1/chat/completions", chat)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        config = PolicyConfig(kind="openai", base_url=url, model="viewer", stream=False)
        policy = open_policy("viewer", config, root=ROOT)
        env = Environment(SHOP, DRAWS, DIALOGUE, viewer=lambda: ModelViewer(policy, rewords=True))
        seen = await env.reset(3)
        stepped = None
        while not env.done:
            said = (
                "Link 2 is here."
                if seen.call
                else {
                    "tool_calls": [
                        {"function": {"name": "load_skill", "arguments": {"skill": "item-qa"}}}
                    ]
                }
            )
            stepped = await env.step(said)
            seen = stepped.observation or seen
        await policy.close()
        await runner.cleanup()
        return env

    env = asyncio.run(go())
    assert spoken(env) == ["is number 2 any good"]
    assert asked[0]["messages"][0]["role"] == "system"
    assert "number 2" in asked[1]["messages"][2]["content"]


def test_the_role_user_simulator_plays_viewers_in_the_rooms_of_a_project(tmp_path):
    root = tmp_path / "shop"
    for name in ("catalogue", "scenarios"):
        shutil.copytree(ROOT / "evalsets" / name, root / "evalsets" / name)
    shutil.copytree(ROOT / "harness_repo", root / "harness_repo")
    script = {"replies": [{"text": "what is number 2"}, {"text": "[done]"}], "repeat": True}
    (root / "viewer.yaml").write_text(json.dumps(script))
    (root / "harness.yaml").write_text(
        json.dumps(
            {
                "policies": {
                    "builtin": {"kind": "builtin"},
                    "viewer": {"kind": "scripted", "script": "viewer.yaml"},
                },
                "roles": {"user_simulator": "viewer"},
            }
        )
    )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)

    async def go():
        sessions = Sessions(open_rooms(root, rewards=False))
        dialogue = {"turns": 3, "mix": {"product-qa": 1.0}}
        spoken = await sessions.open(Start(seed=3, settings=dialogue))
        alone = await sessions.open(Start(seed=3, settings={"mix": {"product-qa": 1.0}}))
        first = spoken.environment.item.request, alone.environment.item.request
        while spoken.environment.item.request == first[0]:
            await sessions.step(spoken.id, {"content": "Link 2 is here."})
        words = spoken.environment.item.request.comments[0].text
        await sessions.close_all()
        return first, words

    (one, other), words = asyncio.run(go())
    assert one == other
    assert words == "what is number 2"
