"""How each kind of data set is read by a trainer: the last part of its README."""

SFT = """\
## Reading it

`<student>.tokens.jsonl` (with a template) is what to train on: `input_ids` and `labels`, -100 where
there is no loss. TRL leaves a data set with both columns as it is:

```python
from datasets import load_dataset
from trl import SFTConfig

rows = load_dataset("json", data_files="tool.tokens.jsonl", split="train")
config = SFTConfig(max_length=None)  # the default of 1024 drops longer rows without a word
```

`agent.jsonl` and `tool.jsonl` are TRL's `messages` + `tools` (`assistant_only_loss=True`, and a
template with generation marks), `response.jsonl` is `prompt` + `completion` + `tools`
(`completion_only_loss=True`). `tools` is JSON text. Arguments of calls are objects, so read these
files with datasets 4.7 or later: before, Arrow gave every call the arguments of all others.

Each row's `provenance` names its item, harness state, map, teacher, judge and verdict; the whole
rollouts lie in `teacher/journal.jsonl`, the augmented harnesses in `states/`.
"""

PREFS = """\
## Reading it

`prefs.jsonl` is TRL's preference form with an explicit prompt: `prompt`, `chosen`, `rejected`
(messages) and `tools` (JSON text), for `DPOTrainer` as it is. `same_prompt: false` marks pairs
whose rejected reply was given under another harness; it stands here under the prompt of the chosen
one.
"""

RL_TASKS = """\
## Reading it

A line of `tasks.jsonl` is one interaction task: the `request` goes to the simulator or the runtime,
`facts`, `skills` and `tools` are for rewards and never for the policy. `bucket` is the difficulty
for the policy that was measured: `passed` of `rollouts` scored ones. A group whose rollouts all
fail or all pass has no advantage, so train on `hard`, `medium` and `easy` first:

```yaml
# a job of harness train rl, here or with --engine verl|roll
tasks: FOLDER                    # this folder, relative to the project; it says evalset and split
buckets: [hard, medium, easy]
```
"""
