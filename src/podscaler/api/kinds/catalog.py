"""Lists the records of all built-in kinds that the API server serves.

A record (`podscaler.api.resource.resources.Resource`) holds the names, versions, defaults, validation and table of one
kind. A new kind: write its record in a module of this package and add it to RESOURCES. `podscaler.cli.up.control_plane`
gives RESOURCES to the API server; tests read single records with `get`.
"""

from podscaler.api.kinds.apiextensions import apiservice, customresourcedefinition
from podscaler.api.kinds.apps import cronjob, daemonset, deployment, job, podtemplate, replicaset, statefulset
from podscaler.api.kinds.autoscaling import hpa
from podscaler.api.kinds.core import (
    certificatesigningrequest,
    clustertrustbundle,
    configmap,
    event,
    lease,
    metrics,
    namespace,
    node,
    secret,
)
from podscaler.api.kinds.networking import endpoints, endpointslice, ingress, ingressclass, networkpolicy, service
from podscaler.api.kinds.pods import pod
from podscaler.api.kinds.policy import (
    admission_policy,
    limitrange,
    poddisruptionbudget,
    priorityclass,
    resourcequota,
    role,
    rolebinding,
    runtimeclass,
    webhookconfiguration,
)
from podscaler.api.kinds.volumes import persistentvolume, persistentvolumeclaim, storage_kinds
from podscaler.api.resource.resources import Resource

RESOURCES: tuple[Resource, ...] = (
    configmap.CONFIG_MAP,
    endpoints.RESOURCE,
    event.RESOURCE,
    limitrange.RESOURCE,
    namespace.RESOURCE,
    node.RESOURCE,
    persistentvolumeclaim.RESOURCE,
    persistentvolume.RESOURCE,
    pod.RESOURCE,
    podtemplate.RESOURCE,
    replicaset.REPLICATION_CONTROLLER,
    resourcequota.RESOURCE,
    secret.SECRET,
    namespace.SERVICE_ACCOUNT,
    service.RESOURCE,
    webhookconfiguration.MUTATING,
    webhookconfiguration.VALIDATING,
    admission_policy.POLICY,
    admission_policy.BINDING,
    apiservice.RESOURCE,
    customresourcedefinition.RESOURCE,
    statefulset.CONTROLLER_REVISION,
    daemonset.RESOURCE,
    deployment.RESOURCE,
    replicaset.RESOURCE,
    statefulset.RESOURCE,
    hpa.RESOURCE,
    cronjob.RESOURCE,
    job.RESOURCE,
    certificatesigningrequest.RESOURCE,
    clustertrustbundle.RESOURCE,
    lease.RESOURCE,
    endpointslice.RESOURCE,
    event.EVENTS_V1,
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
    storage_kinds.CSI_NODE,
    storage_kinds.CSI_STORAGE_CAPACITY,
    storage_kinds.STORAGE_CLASS,
    storage_kinds.VOLUME_ATTACHMENT,
)
"""The core group first, then the other groups by name; the kinds of a group by plural, as discovery lists them."""

_BY_KEY = {resource.key: resource for resource in RESOURCES}


def get(key: str) -> Resource:
    """The record with that `Resource.key` (`pods`, `deployments.apps`). Raises KeyError for a key without a record."""
    return _BY_KEY[key]
