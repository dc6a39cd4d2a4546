"""Strategic merge facts that kubectl's patches rely on."""

import pytest

from podscaler.api.schema import merge_keys
from podscaler.api.schema.merge_keys import Merge


@pytest.mark.parametrize(
    ("message", "field", "strategy"),
    [
        ("core/v1.PodSpec", "containers", Merge(merge=True, key="name")),
        ("core/v1.PodSpec", "initContainers", Merge(merge=True, key="name")),
        ("core/v1.PodSpec", "ephemeralContainers", Merge(merge=True, key="name")),
        ("core/v1.PodSpec", "volumes", Merge(merge=True, retain_keys=True, key="name")),
        ("core/v1.PodSpec", "imagePullSecrets", Merge(merge=True, key="name")),
        ("core/v1.PodSpec", "hostAliases", Merge(merge=True, key="ip")),
        ("core/v1.PodSpec", "topologySpreadConstraints", Merge(merge=True, key="topologyKey")),
        ("core/v1.PodSpec", "tolerations", None),
        ("core/v1.Container", "env", Merge(merge=True, key="name")),
        ("core/v1.Container", "ports", Merge(merge=True, key="containerPort")),
        ("core/v1.Container", "volumeMounts", Merge(merge=True, key="mountPath")),
        ("core/v1.Container", "args", None),
        ("core/v1.ServiceSpec", "ports", Merge(merge=True, key="port")),
        ("core/v1.PodStatus", "conditions", Merge(merge=True, key="type")),
        ("apps/v1.DeploymentSpec", "strategy", Merge(retain_keys=True)),
        ("apps/v1.DeploymentStatus", "conditions", Merge(merge=True, key="type")),
        ("meta/v1.ObjectMeta", "ownerReferences", Merge(merge=True, key="uid")),
        ("meta/v1.ObjectMeta", "finalizers", Merge(merge=True)),
        ("autoscaling/v2.HorizontalPodAutoscalerSpec", "metrics", None),
        ("autoscaling/v2.HorizontalPodAutoscalerStatus", "conditions", Merge(merge=True, key="type")),
        ("core/v1.EphemeralContainer", "env", Merge(merge=True, key="name")),
        ("core/v1.PodSpec", "nothing", None),
        ("no/v1.Such", "thing", None),
    ],
)
def test_lists_merge_by_their_declared_keys(message, field, strategy):
    """Each list merges by the key that the API type declares, or is replaced."""
    assert merge_keys.merge_strategy(message, field) == strategy


@pytest.mark.parametrize(
    ("message", "field", "element", "is_map"),
    [
        ("apps/v1.Deployment", "spec", "apps/v1.DeploymentSpec", False),
        ("core/v1.PodSpec", "containers", "core/v1.Container", False),
        ("core/v1.Volume", "configMap", "core/v1.ConfigMapVolumeSource", False),
        ("core/v1.ResourceRequirements", "limits", "", True),
        ("core/v1.Secret", "data", "", True),
        ("meta/v1.ObjectMeta", "labels", "", True),
        ("meta/v1.ManagedFieldsEntry", "fieldsV1", "", False),
        ("apiextensions/v1.JSONSchemaProps", "properties", "apiextensions/v1.JSONSchemaProps", True),
        ("no/v1.Such", "thing", "", False),
    ],
)
def test_a_patch_can_be_walked_beside_its_types(message, field, element, is_map):
    """The message below a field is known, and empty where plain data begins."""
    assert (merge_keys.element_message(message, field), merge_keys.is_map(message, field)) == (element, is_map)
