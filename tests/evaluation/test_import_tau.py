import json

import pytest
from imported_files import (
    ABSENT,
    DID,
    SHARED,
    left_behind,
    tau2_file,
    tau2_simulation,
    tau2_task,
    tau_record,
    write,
)

from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.evaluation.compare import compare
from harness_cli.evaluation.imports.bring_in import bring_in
from harness_cli.evaluation.imports.imported import ImportOptions
from harness_cli.evaluation.imports.kinds import reader
from harness_cli.evaluation.imports.source import opened
from harness_cli.evaluation.imports.tau2_reward import RewardInfo, recheck
from harness_cli.evaluation.plan import EvalOptions, resolve
from harness_cli.evolution.recorded import diagnose_file, diagnose_imported
from harness_cli.evolution.session import choose_run, examine
from harness_cli.loop.record import evolution_record
from harness_cli.records.gates import Gate, GatesFile
from harness_cli.records.trajectory import StopReason, ToolErrorKind
from harness_cli.release.candidate import evidence_of, fits, named_run, pair_of_run
from harness_cli.release.gates import standing
from harness_cli.release.gates.facts import Facts
from harness_cli.release.gather import candidate, provenance

shared = pytest.mark.skipif(not SHARED.is_dir(), reason=ABSENT)
PUBLISHED = {
    "tau2/results/gpt-4.1_retail.json": (40, 0.85),
    "tau2/results/gpt-4.1_airline.json": (20, 0.50),
    "tau2/results/gpt-4.1_telecom.json": (40, 0.45),
    "tau2/results/gpt-4.1-sft_retail.json": (40, 0.85),
    "tau2/results/gpt-4.1-sft_airline.json": (20, 0.65),
    "tau2/results/gpt-4.1-sft_telecom.json": (40, 0.75),
}
"""Simulations and reward of each file, as SOURCES.md of the data states them."""


def take(project, kind, path, **options):
    return bring_in(project, kind, path, ImportOptions(**options))


@shared
def test_the_published_tau_bench_rewards_and_pass_hat_k_are_reproduced(make_project):
    path = SHARED / "tau_bench/gpt-4o-airline.json"
    made = take(make_project(), "tau-bench", path)
    recorded = json.loads(path.read_text())
    rewards = {(r.item_id, r.repeat): r.scores["reward"] for r in made.run.results()}
    assert rewards == {(str(r["task_id"]), r["trial"]): r["reward"] for r in recorded}
    assert made.report.counts["passed"] == 84
    assert made.report.counts["failed"] == 116
    assert made.report.counts["missing"] == 0
    means = {m.metric: m.mean for m in made.report.metrics}
    assert means["reward"] == pytest.approx(0.42, abs=1e-12)
    # C(c,k)/C(4,k) over the 50 tasks, counted by hand from the file.
    assert made.report.pass_hat == pytest.approx(
        {"1": 0.42, "2": 82 / 300, "3": 0.22, "4": 0.20}, abs=1e-9
    )


@shared
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_tau2_rewards_are_reproduced_and_follow_from_their_checks(name, make_project):
    n, mean = PUBLISHED[name]
    made = take(make_project(), "tau2", SHARED / name)
    assert made.report.planned == made.report.counts["passed"] + made.report.counts["failed"] == n
    assert made.report.metrics[0].mean == pytest.approx(mean, abs=1e-12)
    assert not [note for note in made.imported.notes if "contradict" in note]
    assert made.run.config().imported.user_simulator == "gpt-4.1"


@shared
def test_two_models_on_the_same_tasks_are_two_runs_on_one_evalset(make_project):
    project = make_project()
    a = take(project, "tau2", SHARED / "tau2/results/gpt-4.1_airline.json")
    b = take(project, "tau2", SHARED / "tau2/results/gpt-4.1-sft_airline.json")
    assert (a.fresh, b.fresh) == (True, False)
    found = compare(
        a.run.results(), b.run.results(), config_a=a.run.config(), config_b=b.run.config()
    )
    delta = next(m for m in found.metrics if m.metric == "reward")
    assert (delta.mean_a, delta.mean_b) == pytest.approx((0.5, 0.65))
    assert found.only_a == found.only_b == ()
    assert len(found.fixed) - len(found.broken) == 3


@shared
@pytest.mark.parametrize(
    ("name", "tasks", "refused"),
    [
        ("gpt-4.1_retail", "domains/retail/tasks.json", False),
        ("gpt-4.1_retail", "domains/retail/split_tasks.json", False),
        ("gpt-4.1_retail", "domains/mock/tasks.json", True),
        ("gpt-4.1_telecom", "domains/telecom/tasks_small.json", True),
    ],
)
def test_task_ids_are_checked_against_the_task_list(name, tasks, refused, make_project):
    project = make_project()
    path, text = SHARED / f"tau2/results/{name}.json", (SHARED / "tau2" / tasks).read_text()
    if refused:
        with pytest.raises(BadFile, match="40 task ids are not in the task list"):
            take(project, "tau2", path, tasks=text)
        assert left_behind(project) == set()
    else:
        notes = take(project, "tau2", path, tasks=text).imported.notes
        assert [n for n in notes if n.startswith("74 tasks of the list were not run")]


@shared
def test_a_result_file_is_diagnosed_as_it_stands():
    made, notes = diagnose_file(SHARED / "tau_bench/gpt-4o-airline.json")
    assert (made.failures, made.of) == (40, 50)
    assert made.unexplained == 0
    sizes = {c.id: c.size for c in made.clusters}
    assert sizes["skipped-action"] >= 5
    assert sizes["over-action"] >= 5
    assert {c.side for c in made.clusters if c.id == "simulator-at-fault"} == {"simulator"}
    assert all(case.step is not None for c in made.clusters for case in c.cases)
    assert "tau-bench" in notes[0]


def read(tmp_path, kind, value, **options):
    with opened(write(tmp_path, "results.json", value)) as source:
        made = reader(kind)(source, ImportOptions(**options))
        return made, list(made.recorded())


def test_a_dialogue_becomes_steps_calls_and_a_tail(tmp_path):
    made, (one,) = read(tmp_path, "tau-bench", [tau_record(calls=[DID])])
    first, second = one.trajectory.steps
    assert [m["role"] for m in first.messages] == ["system", "user"]
    assert [m["role"] for m in second.messages] == ["assistant", "tool"]
    (call,) = first.calls
    assert (call.name, call.arguments["reservation_id"]) == ("cancel_reservation", "R1")
    assert call.result.structured == {"status": "cancelled"}
    assert one.trajectory.reply == "Done."
    assert [m["content"] for m in one.trajectory.tail] == ["Thanks ###STOP###"]
    assert made.header.name == "tau-bench-airline"
    assert made.items[0].expect.tools[0].name == "cancel_reservation"


def test_calls_of_the_simulated_user_are_messages_and_a_failed_call_has_a_typed_error(tmp_path):
    _, (one,) = read(tmp_path, "tau2", tau2_file([tau2_simulation()]))
    names = [c.name for c in one.trajectory.calls]
    assert names == ["return_item"]
    (call,) = one.trajectory.calls
    assert (call.result.ok, call.result.error) == (False, ToolErrorKind.NOT_FOUND)
    roles = [m["role"] for m in one.trajectory.steps[0].messages]
    assert roles == ["assistant", "user", "user", "tool"]  # the scripted greeting is no step
    assert one.trajectory.steps[0].reply.usage.input_tokens == 10


FACTS = [
    ([DID], "Done.", 0.0, set()),
    ([], "Shall I go ahead? Please confirm.", 0.0, {"simulator_stopped_early"}),
    ([DID, ("send_certificate", {"amount": 9}, "ok")], "Done.", 0.0, {"over_action"}),
    ([("send_certificate", {"amount": 9}, "Error: no such user")], "No.", 0.0, set()),
    ([("transfer_to_human_agents", {}, "Transfer successful")], "", 0.0, {"needless_transfer"}),
    ([("get_user_details", {"user_id": "u1"}, "{}")], "No.", 0.0, set()),
]


@pytest.mark.parametrize(("calls", "end", "reward", "kinds"), FACTS)
def test_structural_facts_are_read_from_the_dialogue(calls, end, reward, kinds, tmp_path):
    record = tau_record(calls=calls, end=end, reward=reward)
    record["traj"][-1]["content"] = "Yes, please proceed. ###STOP###"
    _, (one,) = read(tmp_path, "tau-bench", [record])
    assert {f.kind for f in one.findings} - {"wrong_end_state"} == kinds


WRONG_IDS = {
    "a trial twice": (
        [tau_record(0, 0), tau_record(0, 0)],
        "record 2: trial 0 of task `0` stands in results.json: record 1 already",
    ),
    "another task under a known id": (
        [tau_record(0, 0), tau_record(0, 1, actions=())],
        "record 2: the task id `0` is wrong: its task is another than in results.json: record 1",
    ),
    "a reward that its own info denies": (
        [tau_record(reward_info={"reward": 0.0, "info": {}})],
        "record 1: the reward is 1, its `reward_info` says 0",
    ),
    "a reward out of range": ([tau_record(reward=7.0)], "record 1: the reward 7 is not between"),
    "a trial out of range": ([tau_record(trial=-1)], "record 1: trial -1 is not between"),
    "an id that is none": ([tau_record(task_id=" 3")], "record 1: `task_id` must be a text"),
    "a role that is none": (
        [{**tau_record(), "traj": [{"role": "robot"}]}],
        "record 1: message 1: the role `robot`",
    ),
    "no list": ({"a": 1}, "a τ-bench result file is a list"),
    "nothing in it": ([], "the list holds no record"),
}


@pytest.mark.parametrize("name", WRONG_IDS)
def test_wrong_tau_bench_files_are_refused_with_their_place_and_leave_nothing(name, make_project):
    project = make_project()
    value, says = WRONG_IDS[name]
    with pytest.raises(BadFile) as caught:
        take(project, "tau-bench", write(project.root, "results.json", value))
    assert says in str(caught.value)
    assert left_behind(project) == set()


def test_missing_trials_are_counted_and_named(make_project):
    project = make_project()
    records = [tau_record(0, 0), tau_record(0, 1, 0.0), tau_record(1, 0)]
    made = take(project, "tau-bench", write(project.root, "r.json", records))
    assert made.report.counts == {
        "passed": 2,
        "failed": 1,
        "unscored": 0,
        "errored": 0,
        "missing": 1,
    }
    assert "1 tasks lack trials (of 2): `1`" in made.imported.notes


def test_a_trial_that_broke_keeps_its_reward_of_nothing_and_its_reason(make_project):
    project = make_project()
    broken = {
        "task_id": 0,
        "trial": 1,
        "reward": 0.0,
        "info": {"error": "RateLimitError: slow down", "traceback": "…"},
        "traj": [],
    }
    path = write(project.root, "r.json", [broken, tau_record(0, 0)])
    made = take(project, "tau-bench", path)
    assert made.report.metrics[0].mean == 0.5
    assert "RateLimitError" in made.run.trajectory("0", 1).error
    assert next(iter(made.evalset.items)).request.prompt.startswith("You are u1")


def test_tau2_ids_that_the_file_does_not_list_and_tasks_of_one_id_are_refused(tmp_path):
    alien = tau2_file([tau2_simulation("t2")])
    with pytest.raises(BadFile, match="simulation 1: the task id `t2` is none of the file's tasks"):
        read(tmp_path, "tau2", alien)
    twice = tau2_file([tau2_simulation()], [tau2_task("t1"), tau2_task("t1")])
    with pytest.raises(BadFile, match="task 2: the task id `t1` stands twice"):
        read(tmp_path, "tau2", twice)


def test_a_reward_that_its_checks_contradict_is_named(tmp_path):
    odd = tau2_simulation(reward=1.0)
    odd["reward_info"]["db_check"] = {"db_match": False, "db_reward": 0.0}
    made, _ = read(tmp_path, "tau2", tau2_file([odd]))
    assert "1 rewards contradict their own checks: ['t1 #0']" in made.notes


@pytest.mark.parametrize(
    ("told", "product"),
    [
        (RewardInfo(reward=0.0), None),
        (RewardInfo(reward=1.0), 0.0),
        (RewardInfo(reward=1.0, reward_basis=("DB",), reward_breakdown={"DB": 1.0}), 1.0),
        (RewardInfo(reward=1.0, reward_basis=("NEW",), reward_breakdown={"NEW": 1.0}), None),
    ],
)
def test_the_reward_of_a_dialogue_is_the_product_of_its_parts(told, product):
    assert recheck(told) == product


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("max_steps", StopReason.MAX_ROUNDS),
        ("timeout", StopReason.TIMEOUT),
        ("agent_error", StopReason.COMPLETED),
    ],
)
def test_a_dialogue_that_was_cut_keeps_its_reward_and_says_why(reason, stop, tmp_path):
    cut = tau2_simulation(reward=0.0, termination_reason=reason)
    _, (one,) = read(tmp_path, "tau2", tau2_file([cut]))
    assert (one.trajectory.stop, one.trajectory.error) == (stop, f"ended by {reason}")
    assert one.scores == {"reward": 0.0}


def test_a_simulation_without_a_reward_is_unscored(make_project):
    project = make_project()
    value = tau2_file([tau2_simulation(reward_info=None)])
    made = take(project, "tau2", write(project.root, "r.json", value))
    assert made.report.counts["unscored"] == 1
    (result,) = made.run.results()
    assert result.error == "the file holds no reward of this simulation"


def test_an_evalset_of_the_name_with_other_items_is_left_alone(make_project):
    project = make_project()
    take(project, "tau-bench", write(project.root, "a.json", [tau_record(0)]))
    other = write(project.root, "b.json", [tau_record(0, actions=())])
    before = left_behind(project)
    with pytest.raises(UsageError, match="1 of the file's items are other ones there: `0`"):
        take(project, "tau-bench", other)
    assert left_behind(project) == before
    assert take(project, "tau-bench", other, name="second").evalset.header.name == "second"


def test_an_imported_run_is_marked_and_its_diagnosis_is_written(make_project):
    project = make_project()
    made = take(project, "tau-bench", write(project.root, "r.json", [tau_record(0, 0, 0.0)]))
    config = made.run.config()
    assert (config.agent, config.harness_id, config.fresh) == ("imported", "", False)
    assert (config.imported.kind, config.imported.file) == ("tau-bench", "r.json")
    assert made.run.status() == "complete"
    diagnosis, _ = diagnose_imported(project, made.run)
    assert [c.id for c in diagnosis.clusters] == ["skipped-action"]
    assert (made.run.path / "diagnosis.json").is_file()


def test_an_imported_run_is_no_candidate_no_evidence_and_the_provenance_gate_says_so(make_project):
    project = make_project()
    made = take(project, "tau-bench", write(project.root, "r.json", [tau_record(0)]))
    config = made.run.config()
    with pytest.raises(UsageError, match="can never be promoted"):
        named_run(project, made.run.id)
    gate = Gate(name="business", kind="regression", evalset=config.evalset.name, split="dev")
    pair = pair_of_run(config)
    assert not fits(gate, pair, config)
    # Even a run whose record was bent to fit the pair is named by the gate that looks at origins.
    facts = provenance(
        candidate(project, GatesFile(gates=(gate,)), pair, made.run),
        {"business": evidence_of(made.run)},
    )
    assert f"run `{made.run.id}` was imported: it was not measured here" in facts
    told = standing.provenance(
        Gate(name="provenance", kind="provenance"), Facts(provenance=tuple(facts))
    )
    assert told.outcome == "FAIL"


def test_the_record_of_dialogues_is_not_run_whatever_judge_is_named(make_project):
    project = make_project()
    take(project, "tau-bench", write(project.root, "r.json", [tau_record(0)]))
    for judge in (None, "none", "grounded"):
        with pytest.raises(UsageError, match="its items cannot be run here"):
            resolve(project, EvalOptions(evalset="tau-bench-airline", judge=judge))


def test_a_comparison_says_that_other_simulators_played_the_user(make_project):
    project = make_project()
    path = write(project.root, "r.json", [tau_record(0)])
    a = take(project, "tau-bench", path, simulator="u-1")
    b = take(project, "tau-bench", path, simulator="u-2")
    found = compare(
        a.run.results(), b.run.results(), config_a=a.run.config(), config_b=b.run.config()
    )
    assert "user simulators differ: u-1 and u-2" in found.warnings


def test_an_imported_run_is_not_edited_and_is_in_no_evolution_record(make_project):
    project = make_project()
    made = take(project, "tau-bench", write(project.root, "r.json", [tau_record(0)]))
    with pytest.raises(UsageError, match="nothing to edit"):
        examine(project, made.run)
    with pytest.raises(UnknownName):
        choose_run(project, None)
    name, _ = project.policy()
    rows, _ = evolution_record(project, evalset="tau-bench-airline", split=None, policy=name)
    assert rows == []
