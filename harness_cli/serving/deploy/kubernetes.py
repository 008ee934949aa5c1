"""A job as Kubernetes objects: replicas, the router that finds them, and what it needs to look.

The router discovers pods by label, so replicas are added and removed by `kubectl scale`. Admission
is each replica's own there (`--max-running-requests`, `--max-queued-requests`): our door stands on
one machine only.
"""

from typing import Any, Final

from harness_cli.records.serve_job import Deploy, ServeJob
from harness_cli.serving.deploy.engine import PORT, engine_words

ROUTER_PORT: Final = 30000
METRICS_PORT: Final = 29000
Object = dict[str, Any]


def kubernetes(job: ServeJob, deploy: Deploy) -> list[Object]:
    """The objects in the order in which they are applied."""
    return [
        *_rights(job, deploy),
        _replicas(job, deploy),
        _router(job, deploy),
        _service(job, deploy),
    ]


def _meta(job: ServeJob, deploy: Deploy, name: str, component: str) -> Object:
    labels = {
        "app.kubernetes.io/name": job.name,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": "harness",
    }
    return {"name": name, "namespace": deploy.namespace, "labels": labels}


def _name(job: ServeJob) -> str:
    """A DNS label of the job's name."""
    return "".join(c if c.isalnum() else "-" for c in job.name.lower()).strip("-")[:50]


def _rights(job: ServeJob, deploy: Deploy) -> list[Object]:
    """The router may look at pods of its namespace, and at nothing else."""
    name = f"{_name(job)}-router"
    meta = _meta(job, deploy, name, "router")
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": deploy.namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": [rule]},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [subject],
        },
    ]


def _replicas(job: ServeJob, deploy: Deploy) -> Object:
    name = _name(job)
    labels = {"app": name, "harness/component": "replica"}
    volumes: list[Object] = [
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": deploy.shared_memory}}
    ]
    mounts: list[Object] = [{"name": "shm", "mountPath": "/dev/shm"}]
    if deploy.claim:
        claim = {"claimName": deploy.claim, "readOnly": True}
        volumes.append({"name": "weights", "persistentVolumeClaim": claim})
        mounts.append({"name": "weights", "mountPath": deploy.mount, "readOnly": True})
    period = max(1, round(job.process.health_s))
    probe = {"httpGet": {"path": "/health", "port": PORT}, "timeoutSeconds": 20}
    start = {
        **probe,
        "periodSeconds": 5,
        "failureThreshold": max(1, round(job.process.ready_s / 5)),
    }
    container: Object = {
        "name": "engine",
        "image": deploy.image,
        "command": list(engine_words(job)),
        "env": [{"name": k, "value": v} for k, v in sorted(job.env.items())],
        "ports": [{"name": "http", "containerPort": PORT}],
        "resources": {"limits": {"nvidia.com/gpu": job.parallelism.gpus}},
        "startupProbe": start,
        "readinessProbe": {**probe, "periodSeconds": period, "failureThreshold": 2},
        "livenessProbe": {
            **probe,
            "periodSeconds": period,
            "failureThreshold": job.process.unhealthy,
        },
        "volumeMounts": mounts,
    }
    pod: Object = {
        "containers": [container],
        "volumes": volumes,
        # The engine drains on SIGTERM without a bound of its own.
        "terminationGracePeriodSeconds": round(job.process.drain_s) + 10,
    }
    if deploy.node_label:
        pod["nodeSelector"] = {"nvidia.com/gpu.product": deploy.accelerator}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(job, deploy, name, "replica"),
        "spec": {
            "replicas": job.replicas,
            "selector": {"matchLabels": labels},
            # A new replica answers before an old one goes: a switch has no gap.
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _router(job: ServeJob, deploy: Deploy) -> Object:
    name = f"{_name(job)}-router"
    labels = {"app": name, "harness/component": "router"}
    words = [
        "python", "-m", "sglang_router.launch_router",
        "--host", "0.0.0.0", "--port", str(ROUTER_PORT),
        "--policy", job.router.policy,
        "--balance-abs-threshold", str(job.admission.per_replica - 1),
        "--balance-rel-threshold", "1.0",
        "--retry-max-retries", str(job.router.retries),
        "--service-discovery",
        "--selector", f"app={_name(job)}",
        "--service-discovery-port", str(PORT),
        "--service-discovery-namespace", deploy.namespace,
        "--prometheus-host", "0.0.0.0", "--prometheus-port", str(METRICS_PORT),
    ]  # fmt: skip
    probe = {"httpGet": {"path": "/health", "port": ROUTER_PORT}, "periodSeconds": 5}
    container = {
        "name": "router",
        "image": deploy.router_image or deploy.image,
        "command": words,
        "ports": [
            {"name": "http", "containerPort": ROUTER_PORT},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        "readinessProbe": probe,
        "livenessProbe": probe,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(job, deploy, name, "router"),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"serviceAccountName": name, "containers": [container]},
            },
        },
    }


def _service(job: ServeJob, deploy: Deploy) -> Object:
    name = f"{_name(job)}-router"
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(job, deploy, name, "router"),
        "spec": {
            "type": "ClusterIP",
            "selector": {"app": name, "harness/component": "router"},
            "ports": [{"name": "http", "port": job.port or ROUTER_PORT, "targetPort": ROUTER_PORT}],
        },
    }
