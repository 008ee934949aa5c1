"""`cluster.yaml`: the machines that a training job is sent to; the job says what is trained."""

from typing import Literal

import msgspec

from harness_cli.records.bounds import AtLeastOne, Positive, Share


class Cluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nodes, how a model is cut over them, and how jobs reach them."""

    schema: int = 1
    address: str = "http://127.0.0.1:8265"
    """Ray's dashboard, where jobs are handed in."""
    auth: Literal["token", "disabled"] = "token"
    """`RAY_AUTH_MODE` of head and client: since 2.60 a token is asked for unless both say
    `disabled`."""
    ray: str = "ray"
    """The program that hands jobs in."""
    python: str | None = None
    """Interpreter of the cluster's environment, where it is not the one that Ray runs in."""
    nodes: AtLeastOne = 1
    gpus: AtLeastOne = 8
    """Of one node."""
    model: str | None = None
    """The base as the cluster finds it (a folder all nodes see, a hub name); the job's own path
    without one."""
    teacher: str | None = None
    """The same of the teacher."""
    output: str = "checkpoints"
    """Where checkpoints go: a folder that all nodes see."""
    prompt_tokens: AtLeastOne = 8192
    """Of the longest first prompt."""
    response_tokens: AtLeastOne = 8192
    """Of all that follows it: answers, tool results, what hooks say."""
    strategy: Literal["fsdp", "fsdp2", "megatron"] = "fsdp2"
    rollout: Literal["sglang", "vllm"] = "sglang"
    trainer: Literal["colocated", "colocated_async", "disaggregated"] = "colocated"
    """Trainer and sampler on the same GPUs in turns; the same with partial rollouts; apart."""
    rollout_nodes: AtLeastOne = 1
    """Nodes that only sample, for `disaggregated`."""
    sync_every: AtLeastOne = 4
    """Updates between two transfers of weights, for `disaggregated`."""
    teacher_nodes: AtLeastOne = 1
    """Nodes that serve the teacher of a distillation."""
    teacher_gpus: AtLeastOne | None = None
    """Of each such node; `gpus` without one."""
    tensor: AtLeastOne = 1
    """Tensor parallelism of the trainer (Megatron)."""
    pipeline: AtLeastOne = 1
    context: AtLeastOne = 1
    """Context parallelism (Megatron), sequence parallelism by Ulysses (FSDP)."""
    experts: AtLeastOne = 1
    """Expert parallelism of the trainer (Megatron), for mixtures of experts; the sampler then lays
    its experts over `serve_tensor` ranks."""
    replay_routing: bool = False
    """Train a mixture of experts with the routing that was sampled (Megatron)."""
    serve_tensor: AtLeastOne = 1
    """Tensor parallelism of the sampler."""
    memory: Share = 0.6
    """Share of a GPU's memory for the sampler."""
    tokens_per_gpu: AtLeastOne = 16_384
    """Tokens that go through the trainer at a time, a GPU: never below the longest row."""
    offload: bool = False
    """Parameters and optimiser wait in main memory while the other half works."""
    workers: AtLeastOne = 8
    """Processes that run rollouts."""
    loggers: tuple[Literal["console", "tensorboard", "file"], ...] = ("console", "tensorboard")
    behind: AtLeastOne = 1
    """Updates that a rollout may lag behind, for trainers that do not wait."""
    weight_cap: Positive = 5.0
    """Largest weight π_prox / π_behav of a token, where rollouts lag behind (T2)."""
    env: dict[str, str] = {}
    """Environment of all processes. No secret belongs here: the file is written as it is."""

    @property
    def world(self) -> int:
        """GPUs that train."""
        return self.nodes * self.gpus
