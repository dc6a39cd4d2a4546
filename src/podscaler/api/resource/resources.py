"""Defines the record of a served kind: `Resource`, with its versions, strategy (hooks of writes), table and scale.

`podscaler.api.kinds.catalog` lists the records; `podscaler.controlplane` serves every listed kind. A new kind is a new
record, never a new branch in the server; `api.kinds.core.lease` is a short example. A new hook is an attribute of
Strategy, with a default that does nothing, and a call in `podscaler.controlplane.registry`. Objects are JSON-ready
dicts; functions in records neither read the clock nor make random values (the server sets uid, creationTimestamp,
resourceVersion and generated names).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podscaler.api.machinery.field import FieldError
from podscaler.api.managed_fields.field_types import FieldType
from podscaler.api.schema.decoding import Decoded

Object = dict[str, Any]
"""One API object (or a part of one) as JSON-ready data."""


def _keep_as_is(obj: Object) -> Object:
    return obj


def _change_nothing(obj: Object) -> None:
    del obj


def _change_nothing_on_update(new: Object, old: Object) -> None:
    del new, old


def _see_stored_object(sent_object: Object) -> Callable[[Object], Object]:
    del sent_object
    return _keep_as_is


def _no_errors(new: Object, old: Object | None) -> list[FieldError]:
    del new, old
    return []


def _no_warnings(new: Object, old: Object | None) -> list[str]:
    del new, old
    return []


@dataclass(frozen=True, slots=True)
class Version:
    """One version in which a resource is served.

    Attributes:
        version: `v1`, `v2`, ...
        message: the name of the object in `api.schema.schema`: `autoscaling/v2.HorizontalPodAutoscaler`; empty for
            kinds without schema (custom resources), which have `decode`, `openapi` and `fields_type` instead.
        default: sets this version's API defaults, in place.
        to_storage: converts a decoded and defaulted object to the storage version (may return its argument).
        from_storage: the reverse; its result has this version's apiVersion and the fields that are always present.
        deprecation: the warning to clients of a deprecated version, else empty.
        decode: decodes a parsed body of a kind without schema. Raises `json_text.DecodeError`.
        openapi: makes the OpenAPI schemas of a kind without schema, by name.
        fields_type: the type of objects in server-side apply; None: the type that the schema of `message` defines.
        find_missing: for kinds that a webhook converts: the exception to raise before `from_storage` can convert all of
            the given objects, None if it can; None for other kinds.
    """

    version: str
    message: str
    default: Callable[[Object], None] = _change_nothing
    to_storage: Callable[[Object], Object] = _keep_as_is
    from_storage: Callable[[Object], Object] = _keep_as_is
    deprecation: str = ""
    decode: Callable[[Any], Decoded] | None = None
    openapi: Callable[[], Mapping[str, Object]] | None = None
    fields_type: FieldType | None = None
    find_missing: Callable[[Iterable[Object]], Exception | None] | None = None


@dataclass(frozen=True, slots=True)
class Strategy:
    """Hooks of a kind, which the API server calls with an object in the storage version, between decoding and storing.

    Hooks get the new object and, on updates, the stored one (`None` on create). `prepare_*` change the new object in
    place: they clear fields, or copy those that the client may not set from the stored object. `validate*` return all
    field errors, in kube-apiserver's order. With `has_generation` the server sets metadata.generation: 1 at first, and
    one more whenever `spec_of` differs in meaning (`podscaler.api.resource.semantics`).
    """

    prepare_create: Callable[[Object], None] = _change_nothing
    prepare_update: Callable[[Object, Object], None] = _change_nothing_on_update
    """For writes of the object itself, which usually keep the stored status."""
    prepare_status_update: Callable[[Object, Object], None] = _change_nothing_on_update
    """For writes of the subresource `status`, which usually keep the stored spec."""
    validate: Callable[[Object, Object | None], list[FieldError]] = _no_errors
    validate_status: Callable[[Object, Object | None], list[FieldError]] = _no_errors
    has_generation: bool = False
    spec_of: Callable[[Object], Any] = lambda obj: obj.get("spec")
    """The part of an object whose changes increase the generation."""
    grace_period_s: Callable[[Object, int | None], int] | None = None
    """For kinds that are deleted gracefully (Pod): from an object and the requested grace period (None: none is
    requested) to the grace period of the delete."""
    prepare_delete: Callable[[Object], None] = _change_nothing
    """Changes, in place, an object that a delete marks with a deletionTimestamp instead of removing it."""
    is_held: Callable[[Object], bool] = lambda _obj: False
    """Whether something besides metadata.finalizers keeps a deleted object (a namespace's spec.finalizers)."""
    prepare_subresource_update: Mapping[str, Callable[[Object, Object], None]] = field(default_factory=dict)
    """Further subresources whose PUT is an update of the object (`finalize`) -> hook in place of prepare_update."""
    validate_subresource_update: Mapping[str, Callable[[Object, Object | None], list[FieldError]]] = field(
        default_factory=dict
    )
    """The validation of these subresources, for those that have one."""
    seen_by_managers: Callable[[Object], Callable[[Object], Object]] = _see_stored_object
    """From the sent object to a function that converts the stored one to the object whose fields get managers.

    The two differ in fields that the kind overrides: the manager that sent such a field owns it all the same.
    """
    allows_unconditional_update: bool = True
    """Whether a PUT without resourceVersion replaces any stored version of the object (False for Lease)."""
    stored_form: Callable[[Object], Object] = _keep_as_is
    """For kinds without schema: the form in which a valid object is stored (may return its argument)."""
    convert: Callable[[Object], None] | None = None
    """For kinds that a webhook converts: converts an object of any version, in place, to that of the record, in which
    the other hooks get it. None: they get objects in the storage version."""
    allows_bare_finalizers: bool = False
    """Whether finalizers other than Kubernetes' own may lack a domain (custom resources: with a warning)."""
    warnings: Callable[[Object, Object | None], list[str]] = _no_warnings
    """The warnings for the client of a create or update (Warning headers)."""
    allows_create_on_update: bool = False
    """Whether a PUT to an object that does not exist creates it (Lease, Event, Service, ...)."""
    orphans_by_default: bool = False
    """Whether dependents outlive the object when the client names no propagation policy (ReplicationController)."""
    has_no_dependents: bool = False
    """Whether nothing can depend on its objects, so that a propagation policy means nothing (Event)."""
    permanent_names: Mapping[str, str] = field(default_factory=dict)
    """Name of an object that cannot be deleted -> the message of the error."""
    orphaning_warning: str = ""
    """The warning for a delete without a propagation policy, which orphans dependents (Job)."""
    is_checked_before_metadata: bool = False
    """Whether metadata of a new object is validated only if its other fields are valid (Event)."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table (`kubectl get`): meta.k8s.io/v1 TableColumnDefinition.

    Attributes:
        type: the OpenAPI type of the cells.
        format: the OpenAPI format of the cells; `name` for the name of the object.
        priority: 0 for columns that are always shown, 1 for those of `kubectl get -o wide`.
    """

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


def _no_conditions(_obj: Object) -> Sequence[Object]:
    """No conditions: those of the rows of most kinds."""
    return ()


@dataclass(frozen=True, slots=True)
class Printer:
    """How objects of a kind are printed as a Table (`kubectl get`).

    Attributes:
        columns: the columns.
        row: from an object and the present time (nanoseconds since the epoch) to one cell for each column.
        empty_is_null: whether `rows` of an empty Table is null; so it is for kinds for which kube-apiserver uses its
            default printer.
        conditions: from an object to the conditions of its row.
    """

    columns: tuple[Column, ...]
    row: Callable[[Object, int], list[Any]]
    empty_is_null: bool = False
    conditions: Callable[[Object], Sequence[Object]] = _no_conditions


@dataclass(frozen=True, slots=True)
class ScaleMapping:
    """How a kind maps to autoscaling/v1 Scale.

    Attributes:
        replicas: reads the desired number; None if a custom object has none.
        status_replicas: reads the observed number.
        selector: reads the label selector of the pods, in text form; empty without one.
        set_replicas: sets the desired number, in place.
        custom_path: for custom resources, the JSON path of the desired number; empty for other kinds.
    """

    replicas: Callable[[Object], int | None]
    status_replicas: Callable[[Object], int]
    selector: Callable[[Object], str]
    set_replicas: Callable[[Object, int], None]
    custom_path: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind in all its versions, as it is served and stored.

    Attributes:
        group: the API group; empty for core.
        plural, singular, kind: the names of the kind; singular is by default the kind in lower case.
        versions: the preferred version first.
        storage_version: the version in which objects are stored, and passed to `strategy`, `printer`, `fields` and
            `scale`; by default the preferred one.
        namespaced: whether objects live in a namespace.
        short_names, categories: names in kubectl (`hpa`, `all`).
        has_status: whether there is a `status` subresource.
        scale: how the `scale` subresource maps; None without one.
        fields: from an object to its selectable fields besides name and namespace: `{"status.phase": "Running"}`.
        stored: False where another part of the program provides the objects (metrics.k8s.io).
        stored_as: for a second API of stored objects, the key of the resource that stores them: `events` for
            `events.events.k8s.io`. `versions` convert to and from that resource's storage version, and errors have
            that resource's group; strategy, printer and fields are its own.
        face: distinguishes the records of one custom resource: the version, except for the stored one; else empty.
        is_custom: whether the record was made from a CustomResourceDefinition.
        returns_deleted_object: whether a DELETE responds with the deleted object, not with a Status.
        hidden_annotations: annotations that replace a removed field; PartialObjectMetadata does not show them.
        list_kind: the kind of lists; by default the kind with the ending List.
    """

    group: str
    plural: str
    kind: str
    versions: tuple[Version, ...]
    printer: Printer
    singular: str = ""
    storage_version: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    strategy: Strategy = field(default_factory=Strategy)
    has_status: bool = False
    scale: ScaleMapping | None = None
    fields: Callable[[Object], Mapping[str, str]] = lambda _obj: {}
    stored: bool = True
    stored_as: str = ""
    face: str = ""
    is_custom: bool = False
    returns_deleted_object: bool = False
    hidden_annotations: frozenset[str] = frozenset()
    list_kind: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "list_kind", self.list_kind or f"{self.kind}List")
        object.__setattr__(self, "singular", self.singular or self.kind.lower())
        object.__setattr__(self, "storage_version", self.storage_version or self.versions[0].version)

    @property
    def storage_key(self) -> str:
        """The key under which the objects are stored: `stored_as`, or else `key`."""
        return self.stored_as or self.key

    @property
    def key(self) -> str:
        """The group-resource text that identifies the record in code: `pods`, `deployments.apps`."""
        return f"{self.name_in_messages}@{self.face}" if self.face else self.name_in_messages

    @property
    def name_in_messages(self) -> str:
        """The group-resource text in messages; records of several versions of a kind share it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural
