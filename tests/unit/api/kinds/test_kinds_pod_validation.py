"""What is wrong with pods: the mistakes that people make."""

from typing import Any

import pytest

from podscaler.api.kinds import catalog

_POD = catalog.get("pods")
_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_C = "spec.containers[0]"


def _pod(spec: dict[str, Any]) -> dict[str, Any]:
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    _POD.versions[0].default(pod)
    return pod


def _faults(**spec: Any) -> list[str]:
    return [str(fault) for fault in _POD.strategy.validate(_pod(spec), None)]


def _container_faults(**container: Any) -> list[str]:
    return _faults(containers=[{"name": "c", "image": "i", **container}])


@pytest.mark.parametrize(
    ("container", "faults"),
    [
        pytest.param({"name": ""}, [f"{_C}.name: Required value"], id="no name"),
        pytest.param({"name": "C"}, [f'{_C}.name: Invalid value: "C": {_LABEL}'], id="bad name"),
        pytest.param({"image": ""}, [f"{_C}.image: Required value"], id="no image"),
        pytest.param(
            {"image": " i"},
            [f'{_C}.image: Invalid value: " i": must not have leading or trailing whitespace'],
            id="spaces around the image",
        ),
        pytest.param(
            {"imagePullPolicy": "Sometimes"},
            [
                f'{_C}.imagePullPolicy: Unsupported value: "Sometimes": '
                'supported values: "Always", "IfNotPresent", "Never"'
            ],
            id="pull policy",
        ),
        pytest.param({"ports": [{}]}, [f"{_C}.ports[0].containerPort: Required value"], id="no port"),
        pytest.param(
            {"ports": [{"containerPort": 65536}]},
            [f"{_C}.ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive"],
            id="port out of range",
        ),
        pytest.param(
            {"ports": [{"containerPort": 1, "protocol": "tcp"}]},
            [f'{_C}.ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"'],
            id="protocol",
        ),
        pytest.param(
            {"ports": [{"containerPort": 1, "name": "1"}]},
            [f'{_C}.ports[0].name: Invalid value: "1": must contain at least one letter (a-z)'],
            id="port name",
        ),
        pytest.param(
            {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
            [f'{_C}.ports[1].name: Duplicate value: "a"'],
            id="port name twice",
        ),
        pytest.param(
            {"env": [{"value": "x"}, {"name": "A=B"}]},
            [
                f"{_C}.env[0].name: Required value",
                f'{_C}.env[1].name: Invalid value: "A=B": a valid environment variable name must consist only of '
                "printable ASCII characters other than '='",
            ],
            id="variable names",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            [f'{_C}.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
            id="value and source",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.foo"}}}]},
            [
                f'{_C}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.foo": '
                "error converting fieldPath: field label not supported: spec.foo"
            ],
            id="unknown field",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {}}}]},
            [
                f"{_C}.env[0].valueFrom.configMapKeyRef.name: Required value",
                f"{_C}.env[0].valueFrom.configMapKeyRef.key: Required value",
            ],
            id="config map without names",
        ),
        pytest.param(
            {"envFrom": [{"prefix": "A_"}]},
            [f'{_C}.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
            id="envFrom without a source",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
            [f'{_C}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
            id="request over limit",
        ),
        pytest.param(
            {"resources": {"requests": {"memory": "-1"}}},
            [f'{_C}.resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0'],
            id="negative request",
        ),
        pytest.param(
            {"resources": {"limits": {"example.com/gpu": "1500m"}}},
            [
                f'{_C}.resources.{part}[example.com/gpu]: Invalid value: "1500m": must be an integer'
                for part in ("limits", "requests")
            ],
            id="part of a device",
        ),
        pytest.param(
            {"volumeMounts": [{"name": "v", "mountPath": "/x"}]},
            [f'{_C}.volumeMounts[0].name: Not found: "v"'],
            id="unknown volume",
        ),
        pytest.param(
            {"livenessProbe": {}}, [f"{_C}.livenessProbe: Required value: must specify a handler type"], id="no handler"
        ),
        pytest.param(
            {"livenessProbe": {"tcpSocket": {"port": 80}, "successThreshold": 2}},
            [f"{_C}.livenessProbe.successThreshold: Invalid value: 2: must be 1"],
            id="liveness succeeds at once",
        ),
        pytest.param(
            {"readinessProbe": {"tcpSocket": {"port": 80}, "exec": {"command": ["x"]}, "periodSeconds": -1}},
            [
                f"{_C}.readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
                f"{_C}.readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
            ],
            id="two handlers",
        ),
        pytest.param(
            {"startupProbe": {"httpGet": {"port": 0, "scheme": "http"}}},
            [
                f"{_C}.startupProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
                f'{_C}.startupProbe.httpGet.scheme: Unsupported value: "http": supported values: "HTTP", "HTTPS"',
            ],
            id="http handler",
        ),
    ],
)
def test_containers(container: dict[str, Any], faults: list[str]) -> None:
    """Each mistake in a container is told with its path, in upstream's words."""
    assert _container_faults(**container) == faults


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({"containers": []}, ["spec.containers: Required value"], id="no containers"),
        pytest.param(
            {"containers": [{"name": "c", "image": "i"}] * 2},
            ['spec.containers[1].name: Duplicate value: "c"'],
            id="name twice",
        ),
        pytest.param(
            {"restartPolicy": "Sometimes"},
            ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
            id="restart policy",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 0},
            ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
            id="deadline",
        ),
        pytest.param(
            {"hostAliases": [{"ip": "x"}]},
            [
                'spec.hostAliases[0].ip: Invalid value: "x": '
                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            ],
            id="alias",
        ),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "i", "livenessProbe": {"tcpSocket": {"port": 1}}}]},
            [
                "spec.initContainers[0].livenessProbe: Forbidden: "
                "may not be set for init containers without restartPolicy=Always"
            ],
            id="probe of an init container",
        ),
        pytest.param(
            {
                "initContainers": [
                    {
                        "name": "i",
                        "image": "i",
                        "restartPolicy": "Always",
                        "livenessProbe": {"tcpSocket": {"port": 1}},
                    }
                ]
            },
            [],
            id="probe of a sidecar",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "configMap": {}}, {"name": "v"}]},
            ["spec.volumes[0].configMap.name: Required value", 'spec.volumes[1].name: Duplicate value: "v"'],
            id="volumes",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
            ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
            id="two sources",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "a", "path": "../b"}]}}]},
            ["spec.volumes[0].configMap.items[0].path: Invalid value: \"../b\": must not contain '..'"],
            id="path out of a volume",
        ),
        pytest.param(
            {"tolerations": [{"operator": "Equal"}]},
            [
                'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, '
                'which means "match all values and all keys"'
            ],
            id="toleration",
        ),
    ],
)
def test_specs(spec: dict[str, Any], faults: list[str]) -> None:
    """Each mistake in a pod spec is told with its path, in upstream's words."""
    assert _faults(**spec) == faults


def _changed(change: dict[str, Any]) -> list[str]:
    old, new = _pod({}), _pod(change)
    return [fault.text.partition("\n")[0] for fault in _POD.strategy.validate(new, old)]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"containers": [{"name": "c", "image": "j", "imagePullPolicy": "Always"}]}, id="image"),
        pytest.param({"activeDeadlineSeconds": 5}, id="deadline"),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, id="another toleration"),
    ],
)
def test_what_may_change(change: dict[str, Any]) -> None:
    """Images, the deadline and further tolerations of a stored pod may change."""
    assert _changed(change) == []


def test_the_seconds_of_a_toleration_may_change() -> None:
    """An update may change the tolerationSeconds of an existing toleration, but not remove the toleration."""
    toleration = {"key": "a", "operator": "Exists", "effect": "NoExecute"}
    old = _pod({"tolerations": [{**toleration, "tolerationSeconds": 5}]})
    assert _POD.strategy.validate(_pod({"tolerations": [{**toleration, "tolerationSeconds": 9}]}), old) == []
    assert [error.field for error in _POD.strategy.validate(_pod({}), old)] == ["spec.tolerations"]


def test_what_may_not_change() -> None:
    """Anything else is refused, with the lines that differ."""
    old, new = _pod({}), _pod({"hostname": "x"})
    [fault] = _POD.strategy.validate(new, old)
    assert fault.text.partition("\n")[2].splitlines()[4:6] == ['- "Hostname": "",', '+ "Hostname": "x",']
    two = {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}
    assert _changed(two) == ["Forbidden: pod updates may not add or remove containers"]
