import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.evaluation.texts import LONG, Texts
from harness_cli.records.chat import ChatReply
from harness_cli.records.journal import TrajectoryRecord
from harness_cli.records.trajectory import Step, Trajectory
from harness_cli.store.journal import Journal
from harness_cli.store.runs import TEXTS, RunFolder


def trajectory(n, *prompts):
    messages = tuple({"role": "system", "content": text} for text in prompts)
    step = Step(index=0, messages=messages, reply=ChatReply(content="x"))
    return Trajectory(request_id=f"r{n}", item_id=f"i{n}", steps=(step,))


def journaled(folder, trajectories, *, restart_after=None):
    path = folder / "journal.jsonl"

    async def main():
        journal, texts = Journal(path), Texts(lambda text: text)
        for n, one in enumerate(trajectories):
            if n == restart_after:
                texts = Texts(lambda text: text)
            new, compact = texts.compact(one)
            for record in (*new, TrajectoryRecord(item=one.item_id, trajectory=compact)):
                journal.append(record)
        await journal.close()

    asyncio.run(main())
    return RunFolder(folder)


def prompt(n):
    return f"{n} " * LONG


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 2 * TEXTS), min_size=1, max_size=4), max_size=80),
    st.integers(0, 80),
)
def test_every_trajectory_comes_back_whole_whatever_order_its_prompts_came_in(
    tmp_path_factory, numbers, restart
):
    made = [trajectory(n, *map(prompt, some)) for n, some in enumerate(numbers)]
    run = journaled(tmp_path_factory.mktemp("run"), made, restart_after=restart)
    assert list(run.trajectories()) == made


def test_a_rollout_with_more_prompts_than_are_remembered_comes_back_whole(tmp_path):
    many = trajectory(0, *map(prompt, range(3 * TEXTS)))
    made = [trajectory(9, prompt(5)), many, trajectory(1, prompt(5), prompt(3 * TEXTS - 1))]
    assert list(journaled(tmp_path, made).trajectories()) == made


def test_one_trajectory_is_chosen_before_anything_large_is_read(tmp_path):
    run = journaled(tmp_path, [trajectory(n, prompt(n)) for n in range(5)])
    assert run.trajectory("i3") == trajectory(3, prompt(3))
    assert [t.item_id for t in run.trajectories(lambda key: key.item == "i1")] == ["i1"]
