"""Linting as a whole: suppression, surroundings, lines, lists, texts."""

import re
from pathlib import Path
from textwrap import dedent

import pytest
from lint_manifests import deployment, found, hpa, obj, short

from podscaler.api.text import yaml_text
from podscaler.api.text.field_lines import FieldLines
from podscaler.lint import linter, rulebook
from podscaler.lint.model import reading
from podscaler.lint.model.lint_context import LintedCluster
from podscaler.lint.model.linted_item import DocumentOrigin

IGNORE = "podscaler.dev/lint-ignore"
DOCS = Path(__file__).parents[3] / "docs" / "lint.md"


def test_the_annotation_switches_a_rule_off() -> None:
    """An object's annotation hides findings of the rules that it names, and no others."""
    assert short(hpa(maxReplicas=2, annotations={IGNORE: "PSL001, PSL014"})) == []
    assert [each[0] for each in short(hpa(maxReplicas=2, annotations={IGNORE: "PSL001"}))] == ["PSL014"]


def test_the_annotation_of_either_object_counts() -> None:
    """A finding about two objects is hidden by the annotation of the other one too."""
    assert short(hpa(annotations={IGNORE: "PSL005"}), deployment(replicas=2)) == []


def test_a_refused_object_is_judged_for_that_alone() -> None:
    """What the API server refuses has no behaviour to judge, and its target is still there for others."""
    assert [each[0] for each in short(hpa(maxReplicas=0, minReplicas=0), deployment())] == ["PSL000", "PSL017"]
    broken = deployment()
    del broken["spec"]["selector"]
    assert {each[0] for each in short(hpa(), broken)} == {"PSL000"}


def test_objects_of_a_cluster_as_surroundings() -> None:
    """With files, findings about the cluster's objects alone do not count; those that concern a file do."""
    file = list(reading.items(hpa(), DocumentOrigin("hpa.yaml")))
    live = [
        item
        for each in (hpa("api", maxReplicas=2), hpa("rival"), deployment())
        for item in reading.items(each, DocumentOrigin())
    ]
    findings = linter.lint([*file, *live], LintedCluster(), files_only=True)
    assert sorted((each.rule.id, each.subject) for each in findings if each.file) == [
        ("PSL008", "HorizontalPodAutoscaler shop/web")
    ]
    assert all(each.rule.id == "PSL008" for each in findings)


def test_lists_are_their_items() -> None:
    """The items of a List, and of a list of one kind, are objects with paths of their own."""
    one = hpa(maxReplicas=2)
    untyped = {key: part for key, part in one.items() if key not in ("apiVersion", "kind")}
    text = b"items:\n- x\n- spec:\n    maxReplicas: 2\n"
    whole = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscalerList", "items": [hpa("a"), untyped]}
    items = list(reading.items(whole, DocumentOrigin("f.yaml", 10, text)))
    assert [item.origin.path for item in items] == ["items[0]", "items[1]"]
    assert [(each.rule.id, each.line) for each in linter.lint(items) if each.rule.id == "PSL014"] == [("PSL014", 13)]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (None, "Object 'Kind' is missing"),
        ({"apiVersion": "v1"}, "Object 'Kind' is missing"),
        ({"kind": "Pod"}, "Object 'apiVersion' is missing"),
        ([1], "couldn't get version/kind"),
        ({"kind": 1}, "couldn't get version/kind"),
    ],
    ids=["nothing", "no kind", "no version", "an array", "a number"],
)
def test_what_is_no_object_is_a_finding(value: object, fault: str) -> None:
    """Documents that do not say what they are give one finding without an object."""
    (finding,) = linter.lint(reading.items(value, DocumentOrigin("f.yaml")))
    assert (finding.rule.id, finding.subject, finding.message.startswith(fault)) == ("PSL000", "", True)


def test_lines_of_fields() -> None:
    """A field's line is that of its key or entry; a missing one has that of the nearest field around it."""
    text = dedent("""\
        ---
        kind: A
        spec:
          metrics:
          - type: B
            deep: {x: 1}
        """).encode()
    lines = FieldLines(text, 5)
    paths = ("", "kind", "spec.metrics", "spec.metrics[0]", "spec.metrics[0].deep.x", "spec.metrics[7]", "spec.other.z")
    assert [lines.line_of(path) for path in paths] == [6, 6, 8, 9, 10, 8, 7]


@pytest.mark.parametrize(
    "text", [b"", b"# nothing\n", b"\tnot: yaml", b"{", b"\xff\xfe", b"- 1\n- 2\n", b"a: *b"], ids=repr
)
def test_lines_of_what_cannot_be_read(text: bytes) -> None:
    """Without nodes everything is at the first line."""
    assert FieldLines(text, 3).line_of("spec.metrics[0]") == 3


def test_json_has_lines_too() -> None:
    """JSON is read as YAML for its lines."""
    assert FieldLines(b'{\n  "spec": {\n    "maxReplicas": 1\n  }\n}', 1).line_of("spec.maxReplicas") == 3


def test_a_message_names_container_template_and_reason() -> None:
    """The message about a missing request, whole."""
    (finding,) = found(hpa(), deployment(containers=[{"name": "main", "image": "i"}]))
    assert (finding.message, finding.fix) == (
        "container main of the pod template has no cpu request, so HorizontalPodAutoscaler shop/web cannot compute cpu "
        "utilization (spec.metrics[0].resource), and does not scale by it",
        "set resources.requests.cpu of container main, or give the metric an averageValue",
    )


def test_rules_are_in_order_and_documented() -> None:
    """Ids have no gaps, and each rule has the section that its findings point to."""
    ids = [rule.id for rule in rulebook.RULES]
    assert ids == sorted(ids)
    assert ids == [f"PSL{number:03}" for number in range(len(ids))]
    headings = re.findall(r"^## (PSL\d+) (\S+)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [(rule.id, rule.name) for rule in rulebook.RULES]


def test_the_examples_of_the_documentation() -> None:
    """The example of each section has a finding of its rule."""
    sections = re.split(r"^## ", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    missed = []
    for section in sections:
        rule = section[:6]
        examples = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
        if rule.startswith("PSL") and rule != "PSL013" and rule not in _rules(examples[0]):
            missed.append(rule)
    assert missed == []


def _rules(example: str) -> set[str]:
    texts = [part.encode() for part in example.split("---\n") if part.strip()]
    values = [yaml_text.parse(text).value for text in texts]
    items = [item for value in values for item in reading.items(value, DocumentOrigin("example"))]
    return {finding.rule.id for finding in linter.lint(items)}


def test_many_autoscalers_beside_each_other() -> None:
    """Three hundred autoscaled workloads beside each other are no finding."""
    objects = []
    for number in range(300):
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"w{number}"}
        objects += [hpa(f"w{number}", scaleTargetRef=reference), deployment(f"w{number}")]
    assert short(*objects, obj("ConfigMap", "v1", "c")) == []
