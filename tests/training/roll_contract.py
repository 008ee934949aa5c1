"""Run by an interpreter that has ROLL's dependencies, its checkout on the path: one line a check.

python roll_contract.py configs FOLDER…     compose, build `AgenticConfig`, the loss it chooses
python roll_contract.py runner ROOM         our runner behind an endpoint like ROLL's proxy
"""

import json
import sys
from pathlib import Path


def say(**told):
    print("CHECK " + json.dumps(told, ensure_ascii=False), flush=True)


def config_of(folder):
    from dacite import from_dict
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf
    from roll.pipeline.agentic.agentic_config import AgenticConfig

    with initialize_config_dir(str(Path(folder).resolve()), version_base=None):
        cfg = compose(config_name="harness_rl")
    return from_dict(AgenticConfig, OmegaConf.to_container(cfg, resolve=True))


def runner(room):
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from omegaconf import OmegaConf

    from harness_cli.training.scale.roll_runner import HarnessRunner

    seen = []
    call = {"name": "load_skill", "arguments": '{"skill": "greet"}'}

    class Proxy(BaseHTTPRequestHandler):
        """Two answers in turn, as a policy behind ROLL's proxy gives them."""

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, self.headers["Authorization"], body))
            message = {"role": "assistant", "content": "Hello and welcome!"}
            if len(seen) % 2:
                message = {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c", "type": "function", "function": call}],
                }
            told = json.dumps(
                {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 1,
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made = HarnessRunner(
        base_url=f"http://127.0.0.1:{server.server_port}",
        env_id=5,
        env_config=OmegaConf.create({"config": {"room": room}}),
    )
    made.setup()
    first, second = made.run_job(0), made.run_job(0)
    server.shutdown()
    say(
        status=[first.status, second.status],
        scores=[first.score, second.score],
        metrics=sorted(first.metrics),
        paths=sorted({path for path, _, _ in seen}),
        tokens=sorted({token for _, token, _ in seen}),
        calls=len(seen),
        tools=all(body.get("tools") for _, _, body in seen),
        stream=any(body.get("stream") for _, _, body in seen),
    )  # fmt: skip


def configs(folders):
    import torch
    from roll.utils.functionals import agg_loss

    for folder in folders:
        made = config_of(folder)
        generating = made.actor_infer.generating_args
        loss = torch.tensor([[1.0, 1.0, 50.0, 50.0]], requires_grad=True)
        mask = torch.tensor([[1, 1, 0, 0]])
        tokens, samples = torch.tensor(2.0), torch.tensor(1.0)
        found = agg_loss(loss, mask, made.loss_agg_mode, batch_num_tokens=tokens,
                         global_valid_samples=samples)  # fmt: skip
        found.backward()
        say(
            folder=Path(folder).name,
            kind=type(made).__name__,
            ratio=made.ratio_type,
            loss=made.loss_agg_mode,
            clip=[made.use_pg_clip_range, made.pg_clip_low, made.pg_clip_high],
            batch=made.rollout_batch_size,
            group=made.train_env_manager.group_size,
            traj_per_env=made.train_env_manager.max_traj_per_env,
            sampling=[generating.top_p, generating.top_k],
            reference=made.enable_reference,
            envs=sum(len(v) for v in made.train_env_manager.env_configs.values()),
            masked_gradient=loss.grad[0, 2:].abs().max().item(),
            value=round(found.item(), 4),
        )


if __name__ == "__main__":
    {"configs": configs, "runner": lambda given: runner(*given)}[sys.argv[1]](sys.argv[2:])
