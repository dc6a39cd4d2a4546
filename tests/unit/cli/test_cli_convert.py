"""`podscaler convert`: files in, files out."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podscaler.cli.main import cli

OLD = """\
kind: HorizontalPodAutoscaler
apiVersion: autoscaling/v2beta1
metadata:
  namespace: shop
  name: web
spec:
  maxReplicas: 7
  metrics:
  - resource: {targetAverageUtilization: 40, name: cpu}
    type: Resource
  minReplicas: 2
  scaleTargetRef:
    name: web
    kind: Deployment
    apiVersion: apps/v1
"""
NEW = """\
kind: HorizontalPodAutoscaler
apiVersion: autoscaling/v2
metadata:
  namespace: shop
  name: web
spec:
  maxReplicas: 7
  metrics:
  - resource:
      name: cpu
      target:
        type: Utilization
        averageUtilization: 40
    type: Resource
  minReplicas: 2
  scaleTargetRef:
    name: web
    kind: Deployment
    apiVersion: apps/v1
"""
OTHER = "apiVersion: v1\nkind: ConfigMap   # with a comment\nmetadata: {name: x}\n"


def convert(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(cli, ["convert", *arguments], input=given)


def test_fields_keep_their_order() -> None:
    """A converted document has its fields where the author put them."""
    result = convert("-", "--to", "autoscaling/v2", given=OLD)
    assert (result.exit_code, result.stdout, result.stderr) == (0, NEW, "")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        pytest.param(
            f"# licence\n---\n{OTHER}--- # web\n{OLD}", f"# licence\n---\n{OTHER}--- # web\n{NEW}", id="comments"
        ),
        pytest.param(f"{OTHER}---\n---\n{OLD}...\n{OTHER}", f"{OTHER}---\n---\n{NEW}...\n{OTHER}", id="document ends"),
        pytest.param(OTHER, OTHER, id="no autoscaler"),
        pytest.param("", "", id="nothing"),
        pytest.param("# only\n", "# only\n", id="a comment"),
        pytest.param(NEW + "# kept", NEW + "# kept", id="the version wanted"),
        pytest.param(
            OLD.replace("autoscaling/v2beta1", "example.com/v1"),
            OLD.replace("autoscaling/v2beta1", "example.com/v1"),
            id="another group's kind",
        ),
        pytest.param("- 1\n- {kind: HorizontalPodAutoscaler}\n", "- 1\n- {kind: HorizontalPodAutoscaler}\n", id="list"),
    ],
)
def test_other_documents_stay_as_they_are(given: str, wanted: str) -> None:
    """Only autoscalers change; the rest of a file is written byte for byte."""
    result = convert("-", "--to", "v2", given=given)
    assert (result.exit_code, result.stdout) == (0, wanted)


def test_json_stays_json() -> None:
    """JSON values one after the other are converted one by one."""
    old = {
        "apiVersion": "extensions/v1beta1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleRef": {"kind": "ReplicationController", "name": "rc"}, "maxReplicas": 3},
    }
    other = '{"kind":"ConfigMap"}'
    result = convert("-", "--to", "autoscaling/v1", given=f"{other}\n{json.dumps(old)}\n")
    assert result.stdout.startswith(f"{other}\n{{\n")
    assert json.loads(result.stdout[len(other) :]) == {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"kind": "ReplicationController", "name": "rc"},
            "minReplicas": 1,
            "maxReplicas": 3,
            "targetCPUUtilizationPercentage": 80,
        },
    }


def test_the_format_may_change() -> None:
    """YAML becomes JSON and comes back; every document is written anew then."""
    as_json = convert("-", "--to", "v2", "-o", "json", given=f"{OLD}---\n{OTHER}")
    as_yaml = convert("-", "--to", "v2", "-o", "yaml", given=as_json.stdout)
    assert as_yaml.stdout == f"{NEW}---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n"


def test_lists_are_converted_item_by_item() -> None:
    """What `kubectl get -o json` prints is a List; what the API answers with is a list of its own kind."""
    item = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": {"kind": "ReplicationController", "name": "rc"}}}
    typed = {"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v1", **item}
    mixed = {"kind": "List", "apiVersion": "v1", "items": [{"kind": "Pod"}, typed]}
    own = {"kind": "HorizontalPodAutoscalerList", "apiVersion": "autoscaling/v1", "metadata": {}, "items": [item]}
    first, second = (json.loads(convert("-", "--to", "v2", given=json.dumps(each)).stdout) for each in (mixed, own))
    assert (first["items"][0], first["items"][1]["apiVersion"]) == ({"kind": "Pod"}, "autoscaling/v2")
    assert (second["apiVersion"], list(second["items"][0])) == ("autoscaling/v2", ["metadata", "spec"])
    assert first["items"][1]["spec"] == second["items"][0]["spec"]


def test_losses_are_said_and_no_failure(tmp_path: Path) -> None:
    """A line for each loss names file, document, object and field; the exit status is 0."""
    file = tmp_path / "hpa.yaml"
    second = NEW.replace(
        "  minReplicas", "  - resource: {name: cpu, target: {averageUtilization: 9}}\n    type: Resource\n  minReplicas"
    )
    file.write_text(f"{OTHER}---\n{second}")
    result = convert(str(file), "--to", "autoscaling/v1")
    assert (result.exit_code, result.stderr) == (
        0,
        f'{file}: document 2: HorizontalPodAutoscaler "web": spec.metrics[1]: autoscaling/v1 has no place for it\n',
    )


KNOWN = (
    "autoscaling/v2, autoscaling/v1, autoscaling/v2beta2, autoscaling/v2beta1, autoscaling/v2alpha1, extensions/v1beta1"
)
IN_SECOND = "standard input: document 2: "


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        pytest.param(OLD.replace("maxReplicas", "max"), 'unknown field "spec.max"', id="unknown field"),
        pytest.param(
            OLD.replace("maxReplicas: 7", "maxReplicas: many"),
            "json: cannot unmarshal string into Go struct field "
            "HorizontalPodAutoscalerSpec.spec.maxReplicas of type int32",
            id="wrong type",
        ),
        pytest.param(
            OLD + "kind: HorizontalPodAutoscaler\n",
            'yaml: unmarshal errors:\n  line 16: key "kind" already set in map',
            id="repeated field",
        ),
        pytest.param(
            OLD.replace("v2beta1", "v3"),
            f"unknown version 'autoscaling/v3' of HorizontalPodAutoscaler; known versions: {KNOWN}",
            id="unknown version of a document",
        ),
        pytest.param("a: [", "yaml: line 1: did not find expected node content", id="no YAML"),
        pytest.param(
            "kind: List\napiVersion: v1\nitems: [{kind: HorizontalPodAutoscaler, apiVersion: autoscaling/v1, x: 1}]",
            'items[0]: unknown field "x"',
            id="item of a list",
        ),
    ],
)
def test_errors_name_document_and_field(second: str, sentence: str) -> None:
    """A document that cannot be used ends the command before anything is written."""
    result = convert("-", "--to", "v2", given=f"{OTHER}---\n{second}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"podscaler: {IN_SECOND}{sentence.partition(chr(10))[0]}")


def test_unknown_versions_list_the_known_ones(tmp_path: Path) -> None:
    """A wrong --to says what would be right; so does a file that is not there."""
    wrong = convert("-", "--to", "v9")
    missing = convert(str(tmp_path / "none"), "--to", "v2")
    assert (wrong.exit_code, wrong.stderr) == (2, f"podscaler: unknown version 'v9'; known versions: {KNOWN}\n")
    assert (missing.exit_code, missing.stderr) == (
        2,
        f"podscaler: cannot read {tmp_path / 'none'}: No such file or directory\n",
    )


def test_broken_json_is_named() -> None:
    """A value that ends too early is the document that is named."""
    result = convert("-", "--to", "v2", given='{"a": 1} {"b": ')
    assert (result.exit_code, result.stderr) == (
        2,
        "podscaler: standard input: document 2: unexpected end of JSON input\n",
    )


def test_removed_apis_and_strictness_exclude_each_other() -> None:
    """`up` cannot serve what upstream does not and be strict about it."""
    result = CliRunner().invoke(cli, ["up", "--serve-removed-apis", "--strict-upstream"])
    assert (result.exit_code, result.stderr) == (
        2,
        "podscaler: --serve-removed-apis serves what upstream does not, which --strict-upstream forbids\n",
    )
