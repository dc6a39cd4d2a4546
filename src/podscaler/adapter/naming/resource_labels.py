"""Associates labels of series with resources: which label contains the names of a resource's objects, and the reverse.

Called by `naming.rule_naming` and `providers.resource_metrics`. With the template `kube_<<.Resource>>` the label
`kube_pod` belongs to the resource `pods`.

Source: prometheus-adapter v0.12.0 (association): overrides have precedence over the template; a label of the template's
form belongs to the resource of that name, if the API server serves it.
"""

import re

from podscaler.adapter.cluster.rest_mapper import ServedResources
from podscaler.adapter.config.rules import GroupResource, ResourceMapping
from podscaler.adapter.go_template.lexing import TemplateError
from podscaler.adapter.go_template.template import Template
from podscaler.adapter.naming.metric_names import RuleError
from podscaler.api.machinery import re2_patterns
from podscaler.api.machinery.re2_patterns import CapturingPattern, PatternError
from podscaler.api.text.quoting import quoted

NAMESPACES = GroupResource("", "namespaces")
NODES = GroupResource("", "nodes")
PODS = GroupResource("", "pods")
CLUSTER_SCOPED = frozenset({NAMESPACES, NODES, GroupResource("", "persistentvolumes")})
"""The resources whose metrics are requested without a namespace."""

_NO_LABEL_CHARACTER = re.compile(r"[.-]")


class ResourceLabels:
    """The labels of resources by one ResourceMapping.

    Args:
        mapping: the rule's overrides and template.
        served_resources: the resources that the API server serves.

    Raises:
        RuleError: the template is invalid, or the API server does not serve the resource of an override.
    """

    def __init__(self, mapping: ResourceMapping, served_resources: ServedResources) -> None:
        self._served = served_resources
        # the overrides, and what was derived from the template so far; None: the label names no resource
        self._resource_by_label: dict[str, GroupResource | None] = {}
        self._label_by_resource: dict[GroupResource, str] = {}
        self._template: Template | None = None
        self._pattern: CapturingPattern | None = None
        if mapping.template:
            self._template, self._pattern = _parse_template(mapping.template)
        for label, resource in mapping.overrides.items():
            mapped_resource = served_resources.find(resource)
            if mapped_resource is None:
                raise RuleError(f"resources.overrides.{label}: the API server does not serve {quoted(str(resource))}")
            self._resource_by_label[label] = mapped_resource.resource
            self._label_by_resource[mapped_resource.resource] = label

    def find_resource(self, label: str) -> GroupResource | None:
        """The resource whose objects are named by the values of a label; None if there is none. The result is kept."""
        if label not in self._resource_by_label:
            self._resource_by_label[label] = self._resource_by_template(label)
        return self._resource_by_label[label]

    def get_label(self, resource: GroupResource) -> str:
        """The label with the names of the objects of a (normalized) resource. Raises RuleError if there is none."""
        if resource not in self._label_by_resource:
            self._label_by_resource[resource] = self._label_by_template(resource)
        return self._label_by_resource[resource]

    def _resource_by_template(self, label: str) -> GroupResource | None:
        """The resource of a label that has the form of the template; None if there is none."""
        groups = None if self._pattern is None else self._pattern.find_groups(label)
        if self._pattern is None or groups is None:
            return None
        group_number = self._pattern.find_group_number("group")  # None: the template has no .Group
        group = "" if group_number is None else groups[group_number]
        resource = groups[self._pattern.find_group_number("resource") or 0]  # never 0: `_parse_template` has checked it
        mapped_resource = self._served.find(GroupResource(group, resource))
        return None if mapped_resource is None else mapped_resource.resource

    def _label_by_template(self, resource: GroupResource) -> str:
        """The label of a resource by the template. Raises RuleError."""
        if self._template is None:
            raise RuleError(f"resources: no label of {resource} is known, and there is no template")
        mapped_resource = self._served.find(GroupResource("", resource.resource))  # by its name alone, as upstream
        if mapped_resource is None:
            raise RuleError(f"resources: the API server does not serve {resource}")
        template_data = {"Group": _NO_LABEL_CHARACTER.sub("_", resource.group), "Resource": mapped_resource.singular}
        try:
            label = self._template.execute(template_data)
        except TemplateError as error:
            raise RuleError(f"resources.template {quoted(self._template.text)}: {error}") from error
        if not label:
            raise RuleError(f"resources.template {quoted(self._template.text)} gives an empty label for {resource}")
        return label


def _parse_template(template_text: str) -> tuple[Template, CapturingPattern]:
    """The template of labels, and the pattern of labels of its form: `^kube_(?P<resource>.+?)$`. Raises RuleError."""
    try:
        template = Template(template_text)
        form = template.execute({"Group": "(?P<group>.+?)", "Resource": "(?P<resource>.+?)"})
        pattern = re2_patterns.compile_with_groups(f"^{form}$")
    except (TemplateError, PatternError) as error:
        raise RuleError(f"resources.template {quoted(template_text)}: {error}") from error
    if pattern.find_group_number("resource") is None:
        raise RuleError(f"resources.template {quoted(template_text)} lacks .Resource")
    return template, pattern
