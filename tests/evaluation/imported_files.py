"""Tiny result files of other tools, and a project to bring them into."""

import json
from pathlib import Path

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
ABSENT = "the shared folder is not beside this checkout"

CANCEL = {"name": "cancel_reservation", "kwargs": {"reservation_id": "R1", "reason": "health"}}


def call(name, arguments, call_id="c1"):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


def tau_record(task_id=0, trial=0, reward=1.0, *, actions=(CANCEL,), calls=(), end="Done.", **info):
    """One trial: the user asks, the agent makes the calls and says something, the user leaves."""
    traj = [
        {"role": "system", "content": "# Airline Agent Policy\n\nCancel what may be cancelled."},
        {"role": "user", "content": "I am ill, cancel R1."},
    ]
    for number, (name, arguments, answer) in enumerate(calls):
        call_id = f"c{number}"
        traj.append(
            {"role": "assistant", "content": None, "tool_calls": [call(name, arguments, call_id)]}
        )
        traj.append({"role": "tool", "tool_call_id": call_id, "name": name, "content": answer})
    traj.append({"role": "assistant", "content": end})
    traj.append({"role": "user", "content": "Thanks ###STOP###"})
    return {
        "task_id": task_id,
        "trial": trial,
        "reward": reward,
        "info": {
            "task": {
                "user_id": "u1",
                "instruction": f"You are u1 ({task_id}) and ill. Cancel R1.",
                "actions": list(actions),
                "outputs": [],
            },
            "source": "user",
            "user_cost": 0.01,
            "reward_info": {
                "reward": reward,
                "info": {"r_actions": reward, "gt_data_hash": "x"},
                "actions": list(actions),
            },
            **info,
        },
        "traj": traj,
    }


DID = ("cancel_reservation", CANCEL["kwargs"], '{"status": "cancelled"}')


def tau2_message(role, content=None, calls=None, **more):
    usage = {"prompt_tokens": 10, "completion_tokens": 5} if role == "assistant" else None
    return {
        "role": role,
        "content": content,
        "tool_calls": calls,
        "usage": usage,
        "cost": 0.001 if usage else None,
        "raw_data": {"finish_reason": "stop"} if usage else None,
        **more,
    }


def tau2_file(simulations, tasks=None):
    return {
        "timestamp": "2025-08-01T00:00:00",
        "info": {
            "num_trials": 1,
            "agent_info": {"implementation": "llm_agent", "llm": "model-a", "llm_args": {}},
            "user_info": {"implementation": "user_simulator", "llm": "model-u", "llm_args": {}},
            "environment_info": {"domain_name": "shop", "policy": "Be kind."},
        },
        "tasks": [tau2_task("t1")] if tasks is None else tasks,
        "simulations": simulations,
    }


def tau2_task(task_id):
    action = {
        "action_id": f"{task_id}_0",
        "requestor": "assistant",
        "name": "return_item",
        "arguments": {"order": "W1", "item": "i1"},
        "compare_args": ["order"],
    }
    return {
        "id": task_id,
        "user_scenario": {"instructions": {"reason_for_call": f"Return W1 ({task_id})."}},
        "evaluation_criteria": {"actions": [action], "reward_basis": ["DB", "COMMUNICATE"]},
    }


def tau2_simulation(task_id="t1", trial=0, reward=1.0, **more):
    asked = [{"id": "k1", "name": "return_item", "arguments": {"order": "W1", "item": "i9"}}]
    user_call = [{"id": "k2", "name": "check_lamp", "arguments": {}, "requestor": "user"}]
    return {
        "id": f"{task_id}-{trial}",
        "task_id": task_id,
        "trial": trial,
        "termination_reason": "user_stop",
        "duration": 1.5,
        "reward_info": {
            "reward": reward,
            "db_check": {"db_match": reward == 1.0, "db_reward": reward},
            "env_assertions": [],
            "action_checks": [],
            "nl_assertions": [],
            "communicate_checks": None,
            "reward_basis": ["DB", "COMMUNICATE"],
            "reward_breakdown": {"DB": reward, "COMMUNICATE": 1.0},
        },
        "messages": [
            {"role": "assistant", "content": "Hi! How can I help?"},
            tau2_message("user", "Return W1."),
            tau2_message("user", None, user_call),
            {"role": "tool", "id": "k2", "content": "off", "requestor": "user", "error": False},
            tau2_message("assistant", None, asked),
            {
                "role": "tool",
                "id": "k1",
                "content": "Error: order not found",
                "requestor": "assistant",
                "error": True,
            },
            tau2_message("assistant", "It cannot be found."),
            tau2_message("user", "###STOP###"),
        ],
        **more,
    }


def write(folder, name, value):
    """A file with text, bytes or JSON in it."""
    path = Path(folder) / name
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def left_behind(project):
    """Everything an import wrote: evalsets, runs, and what a broken one would leave."""
    known = {"bench"}
    evalsets = {p.name for p in project.evalsets.iterdir()} - known
    runs = {p.name for p in project.runs.iterdir()} if project.runs.is_dir() else set()
    stages = {p.name for p in project.root.rglob(".importing-*")}
    return evalsets | runs | stages
