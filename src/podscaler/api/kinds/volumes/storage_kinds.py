"""The records of StorageClass, VolumeAttachment, CSINode and CSIStorageCapacity (storage.k8s.io/v1).

No controller here acts on them. STORAGE_CLASS, VOLUME_ATTACHMENT, CSI_NODE and CSI_STORAGE_CAPACITY register the
functions of this module as hooks, which `api.resource.resources` explains; `api.kinds.catalog` lists them for the API
server. A new field: a check in the `_validate_` function of its kind; a new column, a cell in the function `cells` of
its table. Quantities were checked when they were decoded.

Source: the API reference of storage.k8s.io/v1; kube-apiserver's validation messages. Differs: the table of a single
StorageClass marks the default class, too; inline volumes of VolumeAttachments and the status of CSINodes are not
validated.
"""

from typing import Any, Final

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required, too_long
from podscaler.api.machinery.quantity import Quantity
from podscaler.api.resource import checks, go_struct, label_selector, semantics, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_GROUP: Final = "storage.k8s.io"
_PARAMETERS_MAX: Final = 512
_PARAMETERS_MAX_BYTES: Final = 256 * 1024
_DRIVER_MAX_BYTES: Final = 63
_NODE_ID_MAX_BYTES: Final = 256
_IMMUTABLE_CLASS_FIELDS: Final = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
_NO_SUBDOMAIN_MESSAGE: Final = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'Example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_ONE_SOURCE_MESSAGE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def _set_class_defaults(storage_class: Object) -> None:
    """API defaults of a StorageClass, in place: its volumes are deleted with their claims, and bound at once."""
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")


def _validate_class(new: Object, old: Object | None) -> list[FieldError]:
    """The errors of a StorageClass, of which only the expansion, mount options and topologies can change."""
    provisioner, parameters = new.get("provisioner", ""), new.get("parameters") or {}
    errors = [] if provisioner else [required("provisioner")]
    if provisioner:
        messages = names.label_key_errors(provisioner.lower())
        errors += [invalid("provisioner", provisioner.lower(), message) for message in messages]
    errors += _parameter_errors(parameters)
    errors += checks.one_of(new["reclaimPolicy"], "reclaimPolicy", ("Delete", "Retain"))
    errors += checks.one_of(new["volumeBindingMode"], "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))
    errors += checks.each(new.get("allowedTopologies"), "allowedTopologies", _topology_errors)
    if old is None:
        return errors
    for field in _IMMUTABLE_CLASS_FIELDS:
        if not semantics.same(new.get(field) or None, old.get(field) or None):
            errors.append(invalid(field, None, checks.IMMUTABLE))  # kube-apiserver does not show the value
    return errors


def _parameter_errors(parameters: Object) -> list[FieldError]:
    """Field errors of the parameters (name -> value): their number, empty names, their size together."""
    if len(parameters) > _PARAMETERS_MAX:
        return [too_long("parameters", _PARAMETERS_MAX)]  # though it is a number of parameters, as upstream
    errors = [invalid("parameters", key, "field can not be empty.") for key in parameters if not key]
    size_bytes = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    return errors + ([too_long("parameters", _PARAMETERS_MAX_BYTES)] if size_bytes > _PARAMETERS_MAX_BYTES else [])


def _topology_errors(term: Object, path: str) -> list[FieldError]:
    """Errors of an item of `allowedTopologies`: its keys are unique, and so are the values of each."""
    errors: list[FieldError] = []
    earlier_keys: set[str] = set()
    for index, expression in enumerate(term.get("matchLabelExpressions") or []):
        expression_path, key = f"{path}.matchLabelExpressions[{index}]", expression.get("key", "")
        values = expression.get("values") or []
        errors += [] if values else [required(f"{expression_path}.values")]
        earlier_values: set[str] = set()
        for value_index, value in enumerate(values):
            errors += checks.not_repeated(value, f"{expression_path}.values[{value_index}]", earlier_values)
        errors += checks.well_formed(key, f"{expression_path}.key", names.label_key_errors)
        errors += checks.not_repeated(key, f"{expression_path}.key", earlier_keys)
    return errors


def _class_cells(storage_class: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row of a StorageClass: provisioner, policies, expansion."""
    return [
        storage_class.get("provisioner", ""),
        storage_class.get("reclaimPolicy", "Delete"),
        storage_class.get("volumeBindingMode", "Immediate"),
        storage_class.get("allowVolumeExpansion", False),
    ]


def _validate_attachment(new: Object, old: Object | None) -> list[FieldError]:
    """The errors of a VolumeAttachment, whose spec never changes."""
    spec = new.get("spec") or {}
    attacher, node = spec.get("attacher", ""), spec.get("nodeName", "")
    source = spec.get("source") or {}
    volume_name, inline_spec = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    errors: list[FieldError] = []
    if volume_name is None and inline_spec is None:
        errors.append(required("spec.source", _ONE_SOURCE_MESSAGE))
    elif volume_name is not None and inline_spec is not None:
        errors.append(forbidden("spec.source", _ONE_SOURCE_MESSAGE))
    elif volume_name == "":
        errors.append(required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName"))
    errors += checks.well_formed(node, "spec.nodeName", names.dns_subdomain_errors)
    errors += checks.well_formed(volume_name, "spec.source.persistentVolumeName", names.dns_subdomain_errors)
    errors += _attacher_errors(attacher)
    if old is not None and not semantics.same(spec, old.get("spec")):
        errors.append(invalid("spec", None, checks.IMMUTABLE))
    return errors


def _attacher_errors(attacher: str) -> list[FieldError]:
    """Errors of the name of a volume driver, a DNS subdomain of at most _DRIVER_MAX_BYTES in any case."""
    path = "spec.attacher"
    if not attacher:
        return [required(path)]
    if len(attacher.encode()) > _DRIVER_MAX_BYTES:
        return [too_long(path, _DRIVER_MAX_BYTES)]
    return [invalid(path, attacher, _NO_SUBDOMAIN_MESSAGE)] if names.dns_subdomain_errors(attacher.lower()) else []


def _attachment_cells(attachment: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row of a VolumeAttachment: attacher, volume, node, whether it is attached."""
    spec, status = attachment.get("spec") or {}, attachment.get("status") or {}
    volume = (spec.get("source") or {}).get("persistentVolumeName") or ""
    return [spec.get("attacher", ""), volume, spec.get("nodeName", ""), status.get("attached", False)]


def _validate_capacity(new: Object, old: Object | None) -> list[FieldError]:
    """The errors of a CSIStorageCapacity, of which only the capacities can change."""
    errors = checks.optional(new.get("nodeTopology"), "nodeTopology", label_selector.validate)
    errors += checks.well_formed(new.get("storageClassName", ""), "storageClassName", names.dns_subdomain_errors)
    if new.get("capacity") is not None:
        size = Quantity.parse(str(new["capacity"]))
        errors += checks.holds(size.sign() >= 0, "capacity", str(size), checks.NOT_NEGATIVE)
    if old is None:
        return errors
    for field in ("nodeTopology", "storageClassName"):
        if not semantics.same(new.get(field), old.get(field)):
            errors.append(invalid(field, new.get(field), checks.IMMUTABLE))
    return errors


def _set_csi_node_defaults(csi_node: Object) -> None:
    csi_node.setdefault("spec", {"drivers": None})


def _validate_csi_node(new: Object, old: Object | None) -> list[FieldError]:
    """The errors of a CSINode: of a driver that stays only `allocatable` can change."""
    drivers, old_drivers = new["spec"].get("drivers") or [], ((old or {}).get("spec") or {}).get("drivers") or []
    errors: list[FieldError] = []
    earlier_names: set[str] = set()
    for index, driver in enumerate(drivers):
        path, name = f"spec.drivers[{index}]", driver.get("name", "")
        errors += _driver_name_errors(name, f"{path}.name") + _driver_errors(driver, path)
        errors += checks.not_repeated(name, f"{path}.name", earlier_names)
    old_fields_by_name = {driver.get("name", ""): _immutable_driver_fields(driver) for driver in old_drivers}
    for driver_fields in map(_immutable_driver_fields, drivers):
        if not semantics.same(driver_fields, old_fields_by_name.get(driver_fields["name"], driver_fields)):
            printed = go_struct.printed(driver_fields, "storage/v1.CSINodeDriver")
            errors.append(invalid("spec.drivers", printed, checks.IMMUTABLE))
    return errors


def _driver_name_errors(name: str, path: str) -> list[FieldError]:
    """Field errors of the name of a driver of a CSINode."""
    if not name:
        return [required(path)]
    if len(name.encode()) > _DRIVER_MAX_BYTES:
        return [too_long(path, _DRIVER_MAX_BYTES)]
    return [invalid(path, name, error) for error in names.dns_subdomain_errors(name.lower())]


def _driver_errors(driver: Object, path: str) -> list[FieldError]:
    """The errors of a driver of a CSINode, except those of its name."""
    node_id = driver.get("nodeID", "")
    too_long_message = f"must be {_NODE_ID_MAX_BYTES} characters or less"
    errors = [] if node_id else [required(f"{path}.nodeID")]
    errors += checks.holds(len(node_id.encode()) <= _NODE_ID_MAX_BYTES, f"{path}.nodeID", node_id, too_long_message)
    errors += checks.not_negative((driver.get("allocatable") or {}).get("count"), f"{path}.allocatable.count")
    earlier_keys: set[str] = set()
    for key in driver.get("topologyKeys") or []:
        errors += [] if key else [required(path)]
        errors += checks.not_repeated(key, path, earlier_keys)
        errors += checks.well_formed(key, path, names.label_key_errors)
    return errors


def _immutable_driver_fields(driver: Object) -> Object:
    """The fields of a driver that cannot change."""
    return {
        "name": driver.get("name", ""),
        "nodeID": driver.get("nodeID", ""),
        "topologyKeys": driver.get("topologyKeys"),
    }


def _csi_node_cells(csi_node: Object, _now_ns: int) -> list[Any]:
    return [len((csi_node.get("spec") or {}).get("drivers") or [])]


STORAGE_CLASS = Resource(
    group=_GROUP,
    plural="storageclasses",
    kind="StorageClass",
    returns_deleted_object=True,
    versions=(Version("v1", "storage/v1.StorageClass", default=_set_class_defaults),),
    namespaced=False,
    short_names=("sc",),
    strategy=Strategy(validate=_validate_class),
    printer=tables.named(
        "storage class",
        Column("Provisioner", description="Who makes its volumes."),
        Column("ReclaimPolicy", description="What happens to a volume after its claim."),
        Column("VolumeBindingMode", description="When a claim is bound."),
        Column("AllowVolumeExpansion", description="Whether volumes may grow."),
        cells=_class_cells,
        note="",
    ),
)
VOLUME_ATTACHMENT = Resource(
    group=_GROUP,
    plural="volumeattachments",
    kind="VolumeAttachment",
    returns_deleted_object=True,
    versions=(Version("v1", "storage/v1.VolumeAttachment"),),
    namespaced=False,
    has_status=True,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({"attached": False}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=_validate_attachment,
        allows_unconditional_update=False,
    ),
    printer=tables.named(
        "volume attachment",
        Column("Attacher", format="name", description="Who attaches."),
        Column("PV", description="The volume."),
        Column("Node", description="Where it is attached."),
        Column("Attached", "boolean", description="Whether it is attached."),
        cells=_attachment_cells,
        note="",
    ),
)
CSI_NODE = Resource(
    group=_GROUP,
    plural="csinodes",
    kind="CSINode",
    returns_deleted_object=True,
    versions=(Version("v1", "storage/v1.CSINode", default=_set_csi_node_defaults),),
    namespaced=False,
    has_status=True,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=_validate_csi_node,
        allows_unconditional_update=False,
    ),
    printer=tables.named(
        "node",
        Column("Drivers", "integer", description="How many drivers it has."),
        cells=_csi_node_cells,
        note="",
    ),
)
CSI_STORAGE_CAPACITY = Resource(
    group=_GROUP,
    plural="csistoragecapacities",
    kind="CSIStorageCapacity",
    versions=(Version("v1", "storage/v1.CSIStorageCapacity"),),
    strategy=Strategy(validate=_validate_capacity, allows_unconditional_update=False),
    printer=tables.with_creation_time("storage capacity"),
)
