"""A real etcd, kube-apiserver and kube-controller-manager on loopback, for suites that run on both sides.

There are no nodes: pods are created and stay pending, unless a test writes their status. The controller manager leaves
out the HorizontalPodAutoscaler controller, whose place is taken by the subject of the test.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import cluster_plane
from controller_manager import controller_manager

import prerequisites

CONTROLLERS = ("*", "-horizontal-pod-autoscaler-controller", "-node-lifecycle-controller")


@contextmanager
def real_control_plane(folder: Path, *controllers: str) -> Iterator[cluster_plane.Plane]:
    """Runs it until the block ends; its `kubeconfig` is that of a user who may do everything.

    Args:
        folder: for everything it writes; it must exist and be empty.
        controllers: those of the controller manager, by default all but the autoscaler's.
    """
    programs = cluster_plane.programs()
    if programs is None:
        prerequisites.REAL_PLANE.skip()
    plane = cluster_plane.Plane(folder, programs)
    try:
        plane.start()
        with controller_manager(plane.kubeconfig, *(controllers or CONTROLLERS), log=folder / "controllers.log"):
            yield plane
    finally:
        plane.stop()
