"""Runs writes through admission that may wait, such as webhooks, around the atomic writes of the store.

`registry.objects` calls it for the writes that an `AsyncAdmission` (`apiserver.webhooks.webhook_admission`) selects;
`apiserver.dispatch` calls `admit_connection`. A write is decided twice: first as a dry run, whose result is what
validating admission gets, then for good, unless the object was changed meanwhile; then it starts again from the new
version. So no transaction waits for the network. A new operation: a value of `Operation`, and a function here that
calls `mutate` and `validate`.

Source: kube-apiserver calls mutating admission before, and validating admission after, the preparation of an object.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from podscaler.api.machinery.field import invalid, invalid_object, required
from podscaler.api.resource import checks
from podscaler.api.resource.resources import Object, Resource
from podscaler.base.errors import StatusError
from podscaler.controlplane.registry import object_preparation
from podscaler.controlplane.storage.entries import Entry, deep_copy

ATTEMPTS_MAX = 10
"""How often an update is tried: it starts again if the object was changed meanwhile."""
ADMITTED_SUBRESOURCES = frozenset({"", "status", "scale", "finalize"})
"""The subresources whose updates are admitted."""
CONNECTED_SUBRESOURCES = frozenset({"attach", "exec", "portforward", "proxy"})
"""The subresources whose connections are admitted."""
_CONFLICT = 409

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(slots=True)
class WriteContext:
    """What a request states about its writes besides the object.

    Attributes:
        api_version: the version of the request's path (`apps/v1`), empty for writes of controllers.
        warnings: gets the texts for `Warning` headers of the response.
    """

    api_version: str = ""
    warnings: list[str] = field(default_factory=list)


_CONTEXT: ContextVar[WriteContext | None] = ContextVar("podscaler-write-context", default=None)


def set_context(context: WriteContext) -> None:
    """Set the context for the rest of the current task."""
    _CONTEXT.set(context)


def current() -> WriteContext:
    """The context of the current task; an empty one for writes of controllers."""
    return _CONTEXT.get() or WriteContext()


@dataclass(frozen=True, slots=True)
class AdmittedWrite:
    """One write to admit, or one connection.

    Attributes:
        resource: the kind.
        operation: what is done.
        subresource: `status`, `scale`, `finalize`; empty for the object itself.
        namespace: empty for cluster-scoped objects.
        name: empty for a new object whose name is generated.
        new: the object as it would be stored, in the storage version (of `scale` a Scale); None for a delete; the
            options of a connection.
        old: the stored object; None for a create and a connection.
        is_dry: whether nothing will be stored.
    """

    resource: Resource
    operation: Operation
    subresource: str
    namespace: str
    name: str
    new: Object | None
    old: Object | None
    is_dry: bool


class AsyncAdmission(Protocol):
    """Admission that may wait."""

    def selects(self, resource: Resource, operation: Operation, subresource: str) -> bool:
        """Whether such writes may have to be admitted; False costs nothing more."""
        ...

    async def mutate(self, write: AdmittedWrite) -> Object | None:
        """The object in place of `write.new`; None if that is None. Raises StatusError for a rejected write."""
        ...

    async def validate(self, write: AdmittedWrite) -> None:
        """Raise StatusError for a rejected write."""
        ...


class AdmitsNothing:
    """The admission of a server without any; an AsyncAdmission."""

    def selects(self, resource: Resource, operation: Operation, subresource: str) -> bool:
        """False for all writes."""
        del resource, operation, subresource
        return False

    async def mutate(self, write: AdmittedWrite) -> Object | None:
        """The object unchanged."""
        return write.new

    async def validate(self, write: AdmittedWrite) -> None:
        """Accept the write."""
        del write


@dataclass(frozen=True, slots=True)
class UpdateSteps:
    """The steps of an update around which the admission is called.

    Attributes:
        read: the stored version. Raises StatusError 404.
        change: from the stored version to the stored object and the changed one, as admission gets them.
        store: stores an object (changed in place) if the stored version has that revision, or checks it (if the third
            argument is true); returns the entry, and the object as admission gets it. Raises StatusError 409 for
            another revision.
    """

    read: Callable[[], Entry]
    change: Callable[[Entry], Awaitable[tuple[Object, Object]]]
    store: Callable[[Object, int, bool], Awaitable[tuple[Entry, Object]]]


async def admitted_create(
    admission: AsyncAdmission,
    write: AdmittedWrite,
    create: Callable[[Object, str, bool], Awaitable[Entry]],
) -> Entry:
    """The entry of a new object, with the name and uid that it had when it was validated.

    Args:
        admission: called before the create.
        write: the create, with the object.
        create: stores an object (changed in place) with a uid (empty: a new one); a dry run if the third argument is
            true.

    Raises StatusError as `create`, 400 if admission changed the namespace, and for a rejected write.
    """
    new = await admission.mutate(write) or {}
    object_preparation.set_namespace(new, write.namespace)
    preview = (await create(deep_copy(new), "", True)).decode()  # a dry run
    metadata = preview["metadata"]
    await admission.validate(replace(write, new=preview, name=metadata["name"]))
    named = {**new, "metadata": {**new["metadata"], "name": metadata["name"]}}
    return await create(named, metadata["uid"], write.is_dry)


async def admitted_update(admission: AsyncAdmission, write: AdmittedWrite, steps: UpdateSteps) -> Entry:
    """The entry of a changed object; `write` lacks the objects.

    Raises StatusError as the steps, 400 if admission changed the namespace, and for a rejected write.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        stored = steps.read()
        old, changed = await steps.change(stored)
        new = await admission.mutate(replace(write, new=changed, old=deep_copy(old))) or {}
        if write.subresource != "scale":  # whose metadata are read for the name and the version alone
            object_preparation.set_namespace(new, write.namespace)
            _check_named(new, write.resource)
        try:
            entry, preview = await steps.store(deep_copy(new), stored.revision, True)
            await admission.validate(replace(write, new=preview, old=old))
            return entry if write.is_dry else (await steps.store(new, stored.revision, False))[0]
        except StatusError as error:  # a conflict is repeated, unless the client's precondition caused it
            if error.code != _CONFLICT or attempt == ATTEMPTS_MAX or steps.read().revision == stored.revision:
                raise
    raise AssertionError("the last attempt returns or raises")


def _check_named(new: Object, resource: Resource) -> None:
    """Raise StatusError 422 if admission removed the name of an object that is updated."""
    if not new["metadata"].get("name"):
        path = "metadata.name"
        errors = [required(path, "name or generateName is required"), invalid(path, "", checks.IMMUTABLE)]
        raise invalid_object(group=resource.group, kind=resource.kind, name="", errors=errors)


async def admit_connection(
    admission: AsyncAdmission,
    resource: Resource,
    subresource: str,
    namespace_and_name: tuple[str, str],
    options: Object,
) -> None:
    """Admit a connection to a subresource of the object with this namespace and name. Raises StatusError."""
    if admission.selects(resource, "CONNECT", subresource):
        write = AdmittedWrite(
            resource, "CONNECT", subresource, *namespace_and_name, new=options, old=None, is_dry=False
        )
        await admission.mutate(write)
        await admission.validate(write)
