"""`podscaler lint`: files and folders in, findings out."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from podscaler.cli.main import cli

HPA = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 10
"""
DEPLOYMENT = """\
# the web server
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: example.com/web:1
        resources: {requests: {cpu: 100m}}
"""
FINDING = {
    "rule": "PSL005",
    "name": "replicas-in-manifest",
    "severity": "warning",
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "namespace": "shop",
    "object": "web",
    "field": "spec.replicas",
    "file": "standard input",
    "line": 13,
    "message": "replicas is set by the manifest: each apply undoes what HorizontalPodAutoscaler shop/web decided",
    "fix": "remove spec.replicas from the manifest",
    "docs": "docs/lint.md#psl005-replicas-in-manifest",
}
SUMMARY = {"objects": 2, "autoscalers": 1, "errors": 0, "warnings": 1, "infos": 0}
TEXT = """\
standard input:13: warning PSL005 Deployment shop/web spec.replicas
  replicas is set by the manifest: each apply undoes what HorizontalPodAutoscaler shop/web decided
  fix: remove spec.replicas from the manifest
  see: docs/lint.md#psl005-replicas-in-manifest

1 warning in 2 objects, 1 autoscaler
"""


def lint(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(cli, ["lint", *arguments], input=given)


def test_findings_name_object_field_and_line() -> None:
    """The text names all that is needed to mend it; the exit status is 1."""
    result = lint("-", given=HPA + DEPLOYMENT)
    assert (result.exit_code, result.stdout, result.stderr) == (1, TEXT, "")


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)], ids=["json", "yaml"])
def test_findings_as_data(form: str, read: Any) -> None:
    """JSON and YAML have the same fields."""
    result = lint("-", "-o", form, given=HPA + DEPLOYMENT)
    assert (result.exit_code, read(result.stdout)) == (1, {"findings": [FINDING], "summary": SUMMARY})


def test_nothing_found() -> None:
    """Without findings the exit status is 0."""
    result = lint("-", given=HPA)
    assert (result.exit_code, result.stdout) == (0, "no findings in 1 object, 1 autoscaler\n")


def test_a_folder_is_judged_as_a_whole(tmp_path: Path) -> None:
    """All its manifests count together; hidden files and files for others do not."""
    (tmp_path / "deep").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "hpa.yaml").write_text(HPA)
    (tmp_path / "deep" / "web.yml").write_text(DEPLOYMENT)
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / "package.json").write_text("[1]")
    (tmp_path / ".git" / "x.yaml").write_text(HPA)
    (tmp_path / "notes.txt").write_text("{")
    result = lint(str(tmp_path), str(tmp_path / "hpa.yaml"), "-o", "json")
    shown = json.loads(result.stdout)
    assert [(each["rule"], each["file"], each["line"]) for each in shown["findings"]] == [
        ("PSL005", str(tmp_path / "deep" / "web.yml"), 7)
    ]
    assert shown["summary"] == SUMMARY


def test_the_namespace_of_objects_that_name_none() -> None:
    """`-n` is where they will be created."""
    given = HPA.replace(", namespace: shop", "") + DEPLOYMENT
    assert lint("-", given=given).exit_code == 0
    assert lint("-", "-n", "shop", given=given).exit_code == 1


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("a: b\n---\nx: [\n", 3, "document 2: yaml: line 1: did not find expected node content"),
        ('{"kind":', 1, "document 1: unexpected end of JSON input"),
        ("kind: Pod\n", 1, "Object 'apiVersion' is missing"),
    ],
    ids=["yaml", "json", "no object"],
)
def test_a_broken_file_is_a_finding(tmp_path: Path, content: str, line: int, message: str) -> None:
    """What cannot be read as manifests is found like everything else."""
    file = tmp_path / "broken.yaml"
    file.write_text(content)
    finding = json.loads(lint(str(file), "-o", "json").stdout)["findings"][-1]
    assert (finding["rule"], finding["line"], finding["message"]) == ("PSL000", line, message)


def test_a_repeated_key_is_a_finding() -> None:
    """The API server would refuse it with strict validation."""
    result = lint("-", "-o", "json", given=HPA + "  maxReplicas: 10\n")
    (finding,) = json.loads(result.stdout)["findings"]
    assert (finding["rule"], 'key "maxReplicas" already set in map' in finding["message"]) == ("PSL000", True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to check: give files or folders, '-' for standard input, or --live for a cluster"),
        (["missing.yaml"], "cannot read missing.yaml: No such file or directory"),
        (["--live", "-A", "-n", "x"], "--namespace and --all-namespaces exclude each other"),
        (["--kubeconfig", "/nowhere"], "/nowhere"),
    ],
    ids=["nothing", "no file", "two namespaces", "no kubeconfig"],
)
def test_wrong_use(arguments: list[str], message: str) -> None:
    """One sentence, and exit status 2."""
    result = lint(*arguments)
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True)
    assert len(result.stderr.splitlines()) == 1


def test_sarif_has_what_the_standard_requires(tmp_path: Path) -> None:
    """Version, driver, and for each result a message, a rule that is listed, and a place (SARIF 2.1.0)."""
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "all.yaml").write_text(HPA + DEPLOYMENT + "---\nx: 1\n")
    result = lint(str(folder / "all.yaml"), "-o", "sarif")
    log = json.loads(result.stdout)
    assert (result.exit_code, log["version"], len(log["runs"])) == (1, "2.1.0", 1)
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "podscaler lint"
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    assert [each["ruleId"] for each in run["results"]] == ["PSL005", "PSL000"]
    for each in run["results"]:
        assert driver["rules"][each["ruleIndex"]]["id"] == each["ruleId"]
        assert each["level"] in ("error", "warning", "note")
        assert each["message"]["text"]
        (location,) = each["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uri"] == (folder / "all.yaml").as_uri()
        assert place["region"]["startLine"] > 0


def test_sarif_without_findings() -> None:
    """A log always has its results, here none: consumers take a missing list for a run that failed."""
    log = json.loads(lint("-", "-o", "sarif", given=HPA).stdout)
    assert log["runs"][0]["results"] == []
