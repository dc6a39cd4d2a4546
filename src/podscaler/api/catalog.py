"""All kinds that the API server serves, as records.

Called by the API server, which serves what is listed, and by whoever needs a kind's names. A kind is added by writing
its record in `podscaler.api.kinds` and listing it here.
"""

from podscaler.api.kinds import (
    apiservice,
    configmap,
    controllerrevision,
    customresourcedefinition,
    daemonset,
    deployment,
    endpoints,
    endpointslice,
    event,
    hpa,
    ingress,
    ingressclass,
    job,
    lease,
    limitrange,
    metrics,
    namespace,
    networkpolicy,
    node,
    persistentvolumeclaim,
    pod,
    poddisruptionbudget,
    priorityclass,
    replicaset,
    resourcequota,
    role,
    rolebinding,
    runtimeclass,
    service,
    serviceaccount,
    statefulset,
)
from podscaler.api.resources import Resource

RESOURCES: tuple[Resource, ...] = (
    configmap.CONFIG_MAP,
    endpoints.RESOURCE,
    event.RESOURCE,
    limitrange.RESOURCE,
    namespace.RESOURCE,
    node.RESOURCE,
    persistentvolumeclaim.RESOURCE,
    pod.RESOURCE,
    replicaset.REPLICATION_CONTROLLER,
    resourcequota.RESOURCE,
    configmap.SECRET,
    serviceaccount.RESOURCE,
    service.RESOURCE,
    apiservice.RESOURCE,
    customresourcedefinition.RESOURCE,
    controllerrevision.RESOURCE,
    daemonset.RESOURCE,
    deployment.RESOURCE,
    replicaset.RESOURCE,
    statefulset.RESOURCE,
    hpa.RESOURCE,
    job.RESOURCE,
    lease.RESOURCE,
    endpointslice.RESOURCE,
    event.NEW_FACE,
    metrics.NODE_METRICS,
    metrics.POD_METRICS,
    ingressclass.RESOURCE,
    ingress.RESOURCE,
    networkpolicy.RESOURCE,
    runtimeclass.RESOURCE,
    poddisruptionbudget.RESOURCE,
    rolebinding.CLUSTER_ROLE_BINDING,
    role.CLUSTER_ROLE,
    rolebinding.ROLE_BINDING,
    role.ROLE,
    priorityclass.RESOURCE,
)
"""Core group first, then by group; within a group by name, as discovery lists them."""

_BY_KEY = {resource.key: resource for resource in RESOURCES}


def get(key: str) -> Resource:
    """The record of `Resource.key` (`pods`, `deployments.apps`). Raises KeyError for a kind that is not served."""
    return _BY_KEY[key]
