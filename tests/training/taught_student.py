"""A tiny checkpoint that half knows how to act: right and wrong turns, each about as likely.

Reinforcement learning needs a policy whose rollouts differ in their rewards. This one was taught
right and wrong lessons of one prompt in equal shares, for a few seconds, by plain cross-entropy.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parent))

from lesson_shop import make_lesson_shop
from tiny_checkpoint import END, make_tiny

from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.harness.load import load_state
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.augmentation import Recipe
from harness_cli.records.chat import ChatReply, Generation, RawToolCall
from harness_cli.training.playing import Ground, ItemsGround, Place

GREET, WRONG = "greet", "aftersale"
SAID = ("Hello and welcome!", "There are 99 left.")
THOUGHT = "A viewer says hello."


def call(skill):
    arguments = msgspec.json.encode({"skill": skill}).decode()
    return ChatReply(
        tool_calls=(RawToolCall(id="c", name="load_skill", arguments=arguments),),
        finish_reason="tool_calls",
    )


def written(reply):
    """What a policy samples to say this."""
    if reply.tool_calls:
        made = reply.tool_calls[0]
        said = f'<tool_call>{{"name": "{made.name}", "arguments": {made.arguments}}}</tool_call>'
    else:
        said = reply.content
    thought = f"<think>\n{reply.reasoning}\n</think>\n\n" if reply.reasoning else ""
    return f"{thought}{said}{END}"


def lessons(items):
    """Every item with right and wrong calls and replies."""
    for item in items:
        for skill in (GREET, WRONG):
            for said in SAID:
                thought = THOUGHT if said == SAID[0] else None
                yield item, [call(skill), ChatReply(content=said, reasoning=thought)]


def make_taught_shop(root: Path, *, steps: int = 80, hidden: int = 48, items: int = 2):
    """The lesson shop with `models/taught`; gives the project back."""
    import torch

    from harness_cli.models.checkpoint_model import CheckpointModel
    from harness_cli.models.template_source import template_for

    project = make_lesson_shop(root)
    state = load_state(project)
    evalset = load_evalset(project, "shop", split="dev", tools=None)
    asked = {item.id: item for item in evalset.items.first(items)}
    ground = ItemsGround(
        Ground(
            base=state,
            world=evalset.world,
            recipe=Recipe(),
            limits=project.limits("offline"),
            catalogue=project.evalsets / "catalogue",
        ),
        asked,
        0.0,
    )
    turns = []
    for name, replies in lessons(asked):
        policy = ScriptedPolicy(replies)
        asyncio.run(ground.play(Place(name, "g", 0), policy, Generation()))
        for request, reply in zip(policy.requests, replies, strict=False):
            if (request, reply) not in turns:
                turns.append((request, reply))
    texts = [str(m["content"]) for request, _ in turns for m in request.messages]
    texts += [msgspec.json.encode(t).decode() for t in turns[0][0].tools]
    folder = make_tiny(
        root / "models/taught", hidden=hidden, texts=texts * 4, vocab=1600, spread=0.05
    )
    model = CheckpointModel.open(folder, template_for(root, folder, None))
    rows = []
    for request, reply in turns:
        prompt = model.prompt(request)
        target = model.tokenizer(written(reply), add_special_tokens=False)["input_ids"]
        rows.append((prompt, target))
    _teach(model.model, rows, steps, torch)
    model.model.save_pretrained(folder)
    return project


def _teach(model, rows, steps, torch):
    width = max(len(p) + len(t) for p, t in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    labels = torch.full((len(rows), width), -100)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, (prompt, target) in enumerate(rows):
        whole = torch.tensor([*prompt, *target])
        ids[i, : len(whole)], mask[i, : len(whole)] = whole, 1
        labels[i, len(prompt) : len(whole)] = torch.tensor(target)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model.train()
    torch.manual_seed(0)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 1e-2 * min(1, (step + 1) / 5) * (1 - step / steps)
        chosen = torch.randperm(len(rows))[:6]
        loss = model(input_ids=ids[chosen], attention_mask=mask[chosen], labels=labels[chosen]).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return loss.item()
