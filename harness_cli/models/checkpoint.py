"""The `checkpoint` policy: any local checkpoint in this process, as a trainer and a test need it.

A request is rendered by the checkpoint's own chat template (or the one the settings name), sampled,
and read back as every server's answer is: reasoning, tool calls, what is said. The reply carries
the tokens read, the tokens sampled and their log-probabilities, so nothing is ever encoded anew.

Requests that come together are sampled together. One thread owns the model; it takes what waits,
the longest prompts with their like, and answers each request the moment its row has ended. Weights
can be swapped between batches: the id changes with them, and every reply names the id it was
sampled under.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from harness_cli.errors import BadFile, MissingExtra, ProviderError, UsageError
from harness_cli.models.base import Deadline
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.models.checkpoint_batch import Waiting, fail, in_parts, unheard
from harness_cli.models.identity import policy_id
from harness_cli.models.packaged import find_model
from harness_cli.models.template_source import template_for
from harness_cli.models.wire import ReplyBuilder, sound_messages
from harness_cli.records.canonical import digest as digest_of_value
from harness_cli.records.canonical import sha256
from harness_cli.records.chat import ChatReply, ChatRequest
from harness_cli.records.config import PolicyConfig
from harness_cli.store.checkpoints import digest_of, find_checkpoint

if TYPE_CHECKING:
    from harness_cli.models.checkpoint_drafting import DraftCounts
    from harness_cli.models.checkpoint_model import CheckpointModel, Row

TEMPLATE: Final = "chat_template.jinja"
TOGETHER: Final = 16
"""Requests that are sampled together at most, where `concurrency` says nothing else."""
GATHER_S: Final = 0.01
"""How long the first request of a batch waits for company."""


class CheckpointPolicy:
    """One checkpoint in this process. Nothing is loaded before the first call."""

    tells_first_token = True

    def __init__(
        self,
        name: str,
        config: PolicyConfig,
        load: Callable[[], "CheckpointModel"],
        *,
        digest: str,
        template: ChatTemplate | None = None,
    ) -> None:
        self.name = name
        self._template = template
        self._config, self._load, self._digest = config, load, digest
        self._version = ""
        self.id = self._named()
        self._model: CheckpointModel | None = None
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[Waiting] = []
        self._running = False
        self._thread: ThreadPoolExecutor | None = None

    @property
    def version(self) -> str:
        """What the weights were called when they were swapped in; empty for the first ones."""
        return self._version

    def check_tools(self) -> None:
        """Raise `UsageError` where the template knows no tools: a harness has some."""
        if self._template is not None and self._template.arguments is None:
            raise UsageError(
                f"policy `{self.name}`: the chat template `{self._template.name}` knows no tools",
                hint="`template:` names one that does; for SmolLM2 trl:qwen2_5_training",
            )

    @property
    def draft_counts(self) -> "DraftCounts | None":
        """How drafting went since the weights were read; None where nothing is drafted."""
        return getattr(self._model, "counts", None)

    def swap(self, model: Any, *, version: str, digest: str | None = None) -> None:
        """Sample from other weights from the next batch on: a torch module of the same tokenizer.

        Waits for the batch that is being sampled. `digest` names the weights where it is known.
        """
        loaded = self.loaded()
        with self._turn:
            loaded.model = model
            self._version = version
            self._digest = digest or self._digest
            self.id = self._named()

    async def complete(
        self, request: ChatRequest, deadline: Deadline, *, began: Callable[[], None] = unheard
    ) -> ChatReply:
        """One answer; a deadline or a cancellation takes its row out of the batch.

        `began` is called in the event loop once the first token is sampled: what a server streams.
        """
        begun = time.perf_counter()
        loop = asyncio.get_running_loop()

        def told() -> None:
            loop.call_soon_threadsafe(began)

        waiting = Waiting(request, told, threading.Event(), Future())
        try:
            async with asyncio.timeout(deadline.left()):
                self._enqueue(waiting)
                fields = await asyncio.wrap_future(waiting.answer)
        except TimeoutError as exc:
            raise ProviderError.of(
                "timeout", f"policy `{self.name}`: no answer within the deadline", retryable=False
            ) from exc
        finally:
            waiting.given_up.set()
        return self._reply(request, fields, begun)

    async def warm(self) -> None:
        """Read the weights now instead of at the first call."""
        await asyncio.to_thread(self.loaded)

    async def close(self) -> None:
        """Let the weights go."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(thread.shutdown)
        self._model = None

    def loaded(self) -> "CheckpointModel":
        """The model; read when it was not."""
        with self._turn:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _named(self) -> str:
        """name@digest of weights, template and settings; where it lies is none of it."""
        bare = msgspec.structs.replace(self._config, checkpoint=None, adapter=None)
        more = {"version": self._version} if self._version else {}
        return policy_id(self.name, bare, weights=self._digest, **more)

    def _enqueue(self, waiting: Waiting) -> None:
        with self._lock:
            self._waiting.append(waiting)
            if self._running:
                return
            self._running = True
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"checkpoint-{self.name}")
            self._thread.submit(self._drain)

    def _drain(self) -> None:
        """Sample what waits, batch after batch, until nothing does."""
        while True:
            time.sleep(GATHER_S)
            with self._lock:
                batch, self._waiting = self._waiting, []
                if not batch:
                    self._running = False
                    return
            try:
                self._sample(batch)
            except Exception as exc:  # noqa: BLE001  the boundary to torch: its caller must hear of it
                for one in batch:
                    fail(one, exc)

    def _sample(self, batch: Sequence[Waiting]) -> None:
        model = self.loaded()
        rows: list[tuple[Waiting, Row]] = []
        for one in batch:
            if one.given_up.is_set():
                fail(one, ProviderError.of("timeout", "given up", retryable=False))
                continue
            try:
                rows.append((one, self._row(model, one)))
            except ProviderError as exc:
                fail(one, exc)
        rows.sort(key=lambda pair: len(pair[1].prompt))
        for part in in_parts(rows, self._config.concurrency or TOGETHER):
            with self._turn:
                self._sample_part(model, part)

    def _sample_part(self, model: "CheckpointModel", part: Sequence[tuple[Waiting, "Row"]]) -> None:
        own_id = self.id
        waits = {id(row): one for one, row in part}

        def done(row: "Row") -> None:
            model.remember(row.prompt, row.ids)
            one = waits[id(row)]
            if not one.answer.done():
                one.answer.set_result({"row": row, "text": model.answer(row), "id": own_id})

        model.sample([row for _, row in part], done)

    def _row(self, model: "CheckpointModel", one: Waiting) -> "Row":
        from harness_cli.models.checkpoint_model import Row

        config, request = self._config, one.request
        messages = sound_messages(request.messages, reasoning=config.send_back_reasoning)
        prompt = model.prompt(msgspec.structs.replace(request, messages=tuple(messages)))
        most = min(request.max_tokens, config.max_tokens or request.max_tokens)
        seed = None
        if request.seed is not None:  # one seed for all calls of a run: the prompt tells them apart
            seed = f"{request.seed}:{sha256(repr(prompt).encode())}"
        return Row(
            prompt=prompt,
            most=most,
            temperature=_first(config.temperature, request.temperature),
            top_p=_first(config.top_p, request.top_p),
            seed=seed,
            stop=request.stop,
            stopped=one.given_up.is_set,
            began=one.began,
        )

    def _reply(self, request: ChatRequest, fields: dict[str, Any], begun: float) -> ChatReply:
        row: Row = fields["row"]
        usage = {"prompt_tokens": len(row.prompt), "completion_tokens": len(row.ids)}
        choice = {"message": {"content": fields["text"]}, "finish_reason": row.finish}
        builder = ReplyBuilder(request)
        builder.add({"model": fields["id"], "choices": [choice], "usage": usage})
        return msgspec.structs.replace(
            builder.finish(),
            policy=self.name,
            latency_s=time.perf_counter() - begun,
            ttft_s=None if row.first_s is None else row.first_s - begun,
            cost=0.0,
            prompt_ids=tuple(row.prompt),
            token_ids=tuple(row.ids),
            logprobs=tuple(row.logprobs),
        )


def open_checkpoint(name: str, config: PolicyConfig, root: Path) -> CheckpointPolicy:
    """The checkpoint policy of a `harness.yaml` entry, or of `--policy checkpoint:…`.

    Raises `MissingExtra` where torch or transformers is absent, `UsageError` where the entry names
    no checkpoint, its folder holds none, its digest is another, or its template is missing.
    """
    for package in ("torch", "transformers", *(("peft",) if config.adapter else ())):
        if find_spec(package) is None:
            raise MissingExtra.of(f"policy `{name}` (package {package})", "train")
    if config.checkpoint is None:
        raise UsageError(
            f"policy `{name}` names no checkpoint",
            hint="checkpoint: {uri: FOLDER or the name of a registered one}",
        )
    folder = find_model(root, config.checkpoint.uri)
    adapter = None if config.adapter is None else find_checkpoint(root, config.adapter)
    weights = digest_of(folder)
    if config.checkpoint.sha256 not in (None, weights):
        raise UsageError(
            f"policy `{name}`: `{config.checkpoint.uri}` is not the checkpoint that is named",
            hint=f"its digest is {weights}",
        )
    own = adapter is not None and (adapter / TEMPLATE).is_file()
    template = template_for(root, adapter if own and adapter else folder, config.template)
    if not (folder / "tokenizer_config.json").is_file():
        raise BadFile(f"policy `{name}`: `{config.checkpoint.uri}` holds no tokenizer")

    def load() -> "CheckpointModel":
        from harness_cli.models.checkpoint_model import CheckpointModel

        if config.mtp is not None:
            from harness_cli.models.checkpoint_drafted import DraftedModel

            return DraftedModel.with_head(
                folder, template, config.mtp, context=config.context, dtype=config.dtype
            )
        return CheckpointModel.open(
            folder, template, adapter=adapter, context=config.context, dtype=config.dtype
        )

    decides = [weights, template.sha256, *([digest_of(adapter)] if adapter else [])]
    return CheckpointPolicy(name, config, load, digest=digest_of_value(decides), template=template)


def _first(given: float | None, else_: float) -> float:
    return else_ if given is None else given
