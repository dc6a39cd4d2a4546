"""client-go's shared informers follow our server through a burst of changes."""

import json
import os
import subprocess
from collections.abc import Iterator

import pytest
from up_process import Up

from real_programs import real_program

pytestmark = [pytest.mark.e2e, pytest.mark.real]

PATHS = {
    "pods": "/api/v1/namespaces/{}/pods",
    "deployments": "/apis/apps/v1/namespaces/{}/deployments",
    "horizontalpodautoscalers": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
}
OBJECTS = 20
LEFT = 14
"""Of 20, every third is deleted in the burst."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The API server alone: nobody but the burst changes anything."""
    instance = Up(tmp_path_factory.mktemp("informers") / "data", ("--api-only",)).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


@pytest.mark.parametrize("watch_list", ["true", "false"], ids=["watch-list", "list-and-watch"])
@pytest.mark.parametrize("client", ["json", "protobuf", "dynamic", "metadata"])
def test_caches_hold_what_the_server_has(served: Up, client: str, watch_list: str) -> None:
    """After the burst, caches and handlers know every object in its last version, and no request failed on the way."""
    program = real_program("informers")
    namespace = f"{client}-{watch_list}"
    served.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    command = [program, f"-kubeconfig={served.kubeconfig}", f"-namespace={namespace}", f"-client={client}"]
    done = subprocess.run(
        [*command, f"-count={OBJECTS}"],
        capture_output=True,
        text=True,
        env={**os.environ, "KUBE_FEATURE_WatchListClient": watch_list},
    )
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    live = {resource: versions(served, path.format(namespace)) for resource, path in PATHS.items()}
    assert [len(objects) for objects in live.values()] == [LEFT] * len(PATHS)
    assert report == {"caches": live, "handlers": live, "problems": []}


def versions(up: Up, path: str) -> dict[str, str]:
    """Name and resourceVersion of the objects of a list."""
    items = up.get(path)["items"]
    return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in items}
