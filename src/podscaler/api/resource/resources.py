"""Records of served kinds: names, versions, strategy, table and scale of a kind, as data.

`podscaler.api.kinds.catalog` lists the records; `podscaler.controlplane` serves whatever is listed. A new kind is a new
record, never a new branch in the server. Objects are JSON-ready dicts throughout; functions here neither read the clock
nor make random values (the server sets uid, creationTimestamp, resourceVersion and generated names).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podscaler.api.machinery.field import FieldError
from podscaler.api.managed_fields.field_types import FieldType
from podscaler.api.schema.decoding import Decoded

Object = dict[str, Any]
"""One API object (or a part of one) as JSON-ready data."""


def _same(obj: Object) -> Object:
    return obj


def _nothing(obj: Object) -> None:
    del obj


def _nothing_of(new: Object, old: Object) -> None:
    del new, old


def _as_stored(sent: Object) -> Callable[[Object], Object]:
    del sent
    return _same


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
        message: the schema's name of the object (`autoscaling/v2.HorizontalPodAutoscaler`, see `api.schema.schema`).
        default: sets this version's API defaults, in place.
        to_storage: converts a decoded and defaulted object to the storage version (may return its argument).
        from_storage: the reverse; its result has this version's apiVersion and the fields that are always present.
        deprecation: the warning for clients of a version that upstream no longer serves, else empty.
        decode: for kinds without schema: decodes a parsed body. Raises `json_text.DecodeError`.
        openapi: for such kinds, makes their schemas in OpenAPI documents, by name.
        fields_type: for such kinds, how server-side apply sees objects (`managed_fields.structural_types`); None: as
            the schema of `message` has it, or without a schema.
    """

    version: str
    message: str
    default: Callable[[Object], None] = _nothing
    to_storage: Callable[[Object], Object] = _same
    from_storage: Callable[[Object], Object] = _same
    deprecation: str = ""
    decode: Callable[[Any], Decoded] | None = None
    openapi: Callable[[], Mapping[str, Object]] | None = None
    fields_type: FieldType | None = None


@dataclass(frozen=True, slots=True)
class Strategy:
    """What happens to objects (in the storage version) between decoding and storing.

    `prepare_*` change the new object in place (clear or carry over status, keep what a client may not set); `validate*`
    return all field errors, in upstream's order. Generation is the server's: where `has_generation`, it starts at 1 and
    rises when `spec_of` differs in meaning (`podscaler.api.resource.semantics`).
    """

    prepare_create: Callable[[Object], None] = _nothing
    prepare_update: Callable[[Object, Object], None] = _nothing_of
    prepare_status_update: Callable[[Object, Object], None] = _nothing_of
    validate: Callable[[Object, Object | None], list[FieldError]] = _no_errors
    validate_status: Callable[[Object, Object | None], list[FieldError]] = _no_errors
    has_generation: bool = False
    spec_of: Callable[[Object], Any] = lambda obj: obj.get("spec")
    grace_period_s: Callable[[Object], int] | None = None
    """For kinds that are deleted gracefully (Pod): the seconds that apply when the client names none.

    0 means at once whatever the client names (a pod that runs nowhere).
    """
    prepare_delete: Callable[[Object], None] = _nothing
    """Called, in place, whenever a delete marks the object instead of removing it."""
    is_held: Callable[[Object], bool] = lambda _obj: False
    """Whether something besides metadata.finalizers keeps a deleted object (a namespace's spec.finalizers)."""
    prepare_subresource_update: Mapping[str, Callable[[Object, Object], None]] = field(default_factory=dict)
    """Further subresources whose PUT is an update of the object (`finalize`): what prepare_update is to it."""
    seen_by_managers: Callable[[Object], Callable[[Object], Object]] = _as_stored
    """From an update as it was sent (which it does not change) to how the managers of its fields see what is stored.

    It differs from the stored object in fields that the kind overrides: who sent those owns them all the same.
    """
    allows_unconditional_update: bool = True
    """Whether a PUT without resourceVersion replaces whatever is stored (not a Lease: its holder must have seen it)."""
    stored_form: Callable[[Object], Object] = _same
    """For kinds that the schema does not know: a valid object as it is stored (may return its argument)."""
    allows_bare_finalizers: bool = False
    """Whether a finalizer that is not the system's own may do without a domain (custom resources: with a warning).

    True for kinds whose metadata upstream validates by the rules of apimachinery and not by those of core.
    """
    warnings: Callable[[Object, Object | None], list[str]] = _no_warnings
    """The warnings for the client of a create or update (Warning headers)."""
    allows_create_on_update: bool = False
    """Whether a PUT to an object that does not exist creates it (Lease, Event, Service, ...)."""
    orphans_by_default: bool = False
    """Whether dependents outlive the object when the client names no propagation policy (ReplicationController)."""
    has_no_dependents: bool = False
    """Whether nothing can depend on its objects, so that a propagation policy means nothing (Event)."""
    permanent_names: Mapping[str, str] = field(default_factory=dict)
    """Objects that cannot be deleted, by name, with the message of the error."""
    orphaning_warning: str = ""
    """The warning for a delete without a propagation policy, which orphans dependents (Job)."""
    is_checked_before_metadata: bool = False
    """Whether metadata of a new object is validated only if its other fields are valid (Event)."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table (`kubectl get`): meta.k8s.io/v1 TableColumnDefinition."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Printer:
    """How a kind looks as a Table: `row` returns one cell per column; its second argument is now (nanoseconds).

    `empty_is_null` where upstream has no printer of its own for the kind: a table without rows has null for them then.
    """

    columns: tuple[Column, ...]
    row: Callable[[Object, int], list[Any]]
    empty_is_null: bool = False


@dataclass(frozen=True, slots=True)
class ScaleMapping:
    """How a kind maps to autoscaling/v1 Scale."""

    replicas: Callable[[Object], int | None]
    """The wanted number; None where it must be there and is not."""
    status_replicas: Callable[[Object], int]
    selector: Callable[[Object], str]
    set_replicas: Callable[[Object, int], None]
    custom_path: str = ""
    """Of a custom resource, the path of its replicas in its definition; its schema validates them."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind in all its versions, as it is served and stored.

    Attributes:
        group: API group, empty for core.
        plural, singular, kind: its names; singular is by default the kind in lower case.
        versions: preferred version first.
        storage_version: the version in which objects are kept and given to `strategy`, `printer`, `fields` and `scale`;
            by default the preferred one.
        namespaced: whether objects live in a namespace.
        short_names, categories: for kubectl (`hpa`, `all`).
        has_status: whether there is a `status` subresource.
        scale: how the `scale` subresource maps, None without one.
        fields: the selectable fields besides metadata.name and metadata.namespace: `{"status.phase": "Running"}`.
        stored: False where another part of the program provides the objects (metrics.k8s.io).
        stored_as: key of the resource that keeps the objects, where that is another one: `events.events.k8s.io` is a
            second API for `events`. Its `versions` convert to and from that resource's storage version, and errors
            name that resource's group. Strategy, printer and fields are its own.
        face: distinguishes records of one name: a custom resource has one for each version that is not the stored one.
        is_custom: whether a CustomResourceDefinition made it.
        hidden_annotations: what only objects show, and not their bare metadata: annotations that stand for a field.
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
    hidden_annotations: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "singular", self.singular or self.kind.lower())
        object.__setattr__(self, "storage_version", self.storage_version or self.versions[0].version)

    @property
    def storage_key(self) -> str:
        """The key under which the objects are stored: `key`, or that of the resource that stores them."""
        return self.stored_as or self.key

    @property
    def key(self) -> str:
        """The group-resource text that names it in code and in messages: `pods`, `deployments.apps`."""
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        return f"{name}@{self.face}" if self.face else name
