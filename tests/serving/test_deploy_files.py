"""The files for more than one machine hold to the schemas of Kubernetes and SkyPilot."""

import json
import shlex
from pathlib import Path

import jsonschema
import msgspec
import pytest
import yaml

from harness_cli.errors import UsageError
from harness_cli.records.config import CheckpointRef
from harness_cli.records.serve_job import Deploy, MtpServing, Parallelism, ServeJob
from harness_cli.serving.deploy.render import render

SCHEMAS = Path(__file__).with_name("deploy_schemas")
JOB = ServeJob(
    name="Host_35B.v2",
    engine="sglang",
    version="0.5.23",
    model="/models/host",
    checkpoint=CheckpointRef(uri="file:///models/host", sha256="ab" * 32),
    mtp=MtpServing(),
    replicas=3,
    parallelism=Parallelism(tp=2),
    env={"NCCL_DEBUG": "WARN"},
    launcher=("/opt/here/python", "-m", "sglang.launch_server"),
    deploy=Deploy(image="lmsysorg/sglang:v0.5.23", claim="weights", namespace="live"),
)


def check(schema, value):
    found = json.loads((SCHEMAS / f"{schema}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(found)
    jsonschema.validate(value, found, cls=jsonschema.Draft202012Validator)


def objects(job=JOB):
    return list(yaml.safe_load_all(render(job, "kubernetes")))


@pytest.mark.parametrize(
    "deploy",
    [
        JOB.deploy,
        Deploy(image="x"),
        Deploy(image="x", router_image="y", accelerator="NVIDIA-H20", node_label=True),
    ],
)
def test_every_kubernetes_object_holds_to_its_schema(deploy):
    made = objects(msgspec.structs.replace(JOB, deploy=deploy))
    assert [item["kind"] for item in made] == [
        "ServiceAccount", "Role", "RoleBinding", "Deployment", "Deployment", "Service",
    ]  # fmt: skip
    for item in made:
        check("kubernetes", item)


def test_the_router_finds_the_pods_that_the_replicas_are():
    replicas, router, service = objects()[3:]
    pod = replicas["spec"]["template"]
    words = router["spec"]["template"]["spec"]["containers"][0]["command"]
    selector = words[words.index("--selector") + 1].split("=")
    assert pod["metadata"]["labels"][selector[0]] == selector[1] == "host-35b-v2"
    port = words[words.index("--service-discovery-port") + 1]
    assert pod["spec"]["containers"][0]["ports"][0]["containerPort"] == int(port)
    assert words[words.index("--service-discovery-namespace") + 1] == "live"
    labels = router["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    account = router["spec"]["template"]["spec"]["serviceAccountName"]
    assert account == objects()[0]["metadata"]["name"]


def test_a_replica_runs_the_same_command_as_here_and_drains_in_time():
    pod = objects()[3]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    words = container["command"]
    assert words[:3] == ["python", "-m", "sglang.launch_server"]  # no path of this machine
    assert words[words.index("--speculative-algorithm") + 1] == "NEXTN"
    assert words[words.index("--host") + 1] == "0.0.0.0"
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert pod["terminationGracePeriodSeconds"] == 70
    probe = container["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 900
    assert objects()[3]["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_the_routers_command_parses_under_its_own_parser():
    launch_router = pytest.importorskip("sglang_router.launch_router")
    words = objects()[4]["spec"]["template"]["spec"]["containers"][0]["command"]
    parsed = launch_router.parse_router_args(words[3:])
    assert parsed.service_discovery
    assert parsed.selector == {"app": "host-35b-v2"}


def test_a_skypilot_service_holds_to_its_schema():
    made = yaml.safe_load(render(JOB, "skypilot"))
    check("skypilot", made)
    assert made["resources"]["accelerators"] == "H20:2"
    assert (made["service"]["replicas"], made["envs"]) == (3, {"NCCL_DEBUG": "WARN"})
    assert "--speculative-num-steps" in shlex.split(made["run"])


def test_a_schema_refuses_what_is_no_field():
    made = objects()[3]
    made["spec"]["template"]["spec"]["replicaz"] = 1
    with pytest.raises(jsonschema.ValidationError):
        check("kubernetes", made)


@pytest.mark.parametrize(
    ("given", "said"),
    [({"deploy": None}, "names no image"), ({"engine": "builtin"}, "on this machine only")],
)
def test_a_job_that_cannot_leave_this_machine_says_so(given, said):
    with pytest.raises(UsageError, match=said):
        render(msgspec.structs.replace(JOB, **given), "kubernetes")
