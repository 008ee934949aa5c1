"""Handing a job folder to a Ray cluster: `ray job submit`, with its authentication said aloud.

Since 2.60 Ray asks for a token unless head *and* client say `RAY_AUTH_MODE=disabled`; a client that
says nothing fails late and without a reason. Here it is always said, and a token that is missing is
missed before anything is sent.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness_cli.errors import HarnessError, MissingExtra, UsageError
from harness_cli.records.cluster import Cluster

ENV_FILE: Final = "runtime_env.yaml"
TOKENS: Final = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
TOKEN_FILE: Final = Path(".ray", "auth_token")


def submit_words(cluster: Cluster, entry: Sequence[str]) -> list[str]:
    """The command line, to be run in the job's folder."""
    words = [cluster.ray, "job", "submit", "--address", cluster.address, "--no-wait"]
    return [*words, "--runtime-env", ENV_FILE, "--", *entry]


def client_env(cluster: Cluster) -> dict[str, str]:
    """What the client's environment must say."""
    return {"RAY_AUTH_MODE": cluster.auth}


def shell_script(cluster: Cluster, words: Sequence[str]) -> str:
    """`submit.sh`: the same by hand."""
    env = "\n".join(f"export {k}={shlex.quote(v)}" for k, v in client_env(cluster).items())
    return f'#!/bin/sh\nset -e\ncd "$(dirname "$0")"\n{env}\nexec {shlex.join(words)}\n'


def submit(folder: Path, cluster: Cluster, words: Sequence[str]) -> str:
    """Hand the job in; what Ray said. Raises `MissingExtra`, `UsageError`, `HarnessError`."""
    if shutil.which(words[0]) is None:
        raise MissingExtra.of(f"handing a job in (program `{words[0]}`)", "ray")
    env = {**os.environ, **client_env(cluster)}
    if cluster.auth == "token" and not _has_token(env):
        raise UsageError(
            "the cluster asks for a token, and there is none here",
            hint=f"{TOKENS[0]} or {TOKENS[1]} in the environment, ~/{TOKEN_FILE}, or "
            "`auth: disabled` in the cluster file where the head was started so",
        )
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    told = (done.stdout + done.stderr).strip()
    if done.returncode:
        last = "\n".join(told.splitlines()[-5:])
        raise HarnessError(
            f"`{words[0]} job submit` ended with {done.returncode}:\n{last}",
            hint=f"is Ray's dashboard at {cluster.address}?",
        )
    return told


def _has_token(env: Mapping[str, str]) -> bool:
    home = Path(env.get("HOME", "~")).expanduser()
    return any(env.get(name) for name in TOKENS) or (home / TOKEN_FILE).is_file()
