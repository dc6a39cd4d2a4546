"""Jobs and CronJobs of a real `up`, with processes, by kubectl."""

import json

import pytest
from up_process import Up, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("kubectl_present")]

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods?labelSelector=job-name%3D"


def job(name: str, script: str, **spec: object) -> dict[str, object]:
    """A Job whose pods run a shell script."""
    container = {"name": "main", "image": "any:1", "command": ["/bin/sh", "-c", script]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **spec}}


def test_an_indexed_job_completes_and_takes_its_pods_along(up: Up) -> None:
    """Each process reads its index; kubectl waits for the end; a delete removes the pods."""
    up.create(
        JOBS, job("indexed", "echo $JOB_COMPLETION_INDEX", completions=2, parallelism=2, completionMode="Indexed")
    )
    up.kubectl("wait", "--for=condition=complete", "job/indexed", "--timeout=60s")
    assert sorted(up.kubectl("logs", "-l", "job-name=indexed").split()) == ["0", "1"]
    status = up.get(f"{JOBS}/indexed")["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (2, "0,1")
    up.kubectl("delete", "job", "indexed")
    eventually(lambda: up.get(PODS + "indexed")["items"], until=lambda items: items == [])


def test_a_job_that_fails_says_why(up: Up) -> None:
    """The exit code of a process counts."""
    up.create(JOBS, job("failing", "exit 3", backoffLimit=0))
    up.kubectl("wait", "--for=condition=failed", "job/failing", "--timeout=60s")
    assert up.get(f"{JOBS}/failing")["status"]["conditions"][-1]["reason"] == "BackoffLimitExceeded"


def test_kubectl_creates_a_cron_job_and_a_job_from_it(up: Up) -> None:
    """`create cronjob`, `create job --from`, and the controller of the Job."""
    up.kubectl("create", "cronjob", "yearly", "--image=any:1", "--schedule=@yearly", "--", "/bin/true")
    up.kubectl("create", "job", "now", "--from=cronjob/yearly")
    up.kubectl("wait", "--for=condition=complete", "job/now", "--timeout=60s")
    owner = json.loads(up.kubectl("get", "job", "now", "-o", "json"))["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("CronJob", "yearly")
