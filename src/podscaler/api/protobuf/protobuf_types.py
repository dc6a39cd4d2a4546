"""Makes the protobuf message classes of the API types on demand, from the field numbers in `api.schema`.

Called by `protobuf` and `protobuf_json`; importing this module imports google.protobuf.

Theory of operation: one proto2 file for each Go package, added to a descriptor pool after the files to which it refers
(Go packages have no import cycles). Fields are named by their numbers (`f1`), because JSON names such as `$ref` are no
identifiers. A map is described as on the wire, as a list of entries (`f1` the key, `f2` the value): the library's own
maps cannot be read where a key is not valid UTF-8.

Source: the field numbers of the schema.
"""

from functools import cache

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message as Proto

from podscaler.api.schema import schema
from podscaler.api.schema.schema import Field, Message

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
    "bool": _FIELD.TYPE_BOOL,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "uint32": _FIELD.TYPE_UINT32,
    "double": _FIELD.TYPE_DOUBLE,
}
_pool = descriptor_pool.DescriptorPool()


@cache
def for_message(name: str) -> type[Proto]:
    """The class of a message (`core/v1.Pod`). Raises KeyError for one that the schema does not have."""
    package = schema.get_message(name).package
    _add_file(package)
    descriptor = _pool.FindMessageTypeByName(_full_name(name))
    return message_factory.GetMessageClass(descriptor)


def field_name(number: int) -> str:
    """The attribute of the field with that number."""
    return f"f{number}"


@cache
def _add_file(package: str) -> str:
    """Add the file descriptor of a package, after those of the packages that it uses; returns the package."""
    messages = schema.messages_of(package)
    referenced_packages = {
        schema.get_message(field.type).package
        for message in messages
        for field in message.fields
        if field.number and not field.is_scalar
    }
    file = descriptor_pb2.FileDescriptorProto(name=package, package=_proto_package(package), syntax="proto2")
    file.dependency.extend(sorted(_add_file(other_package) for other_package in referenced_packages - {package}))
    for message in messages:
        _describe_message(file.message_type.add(), message)
    _pool.Add(file)
    return package


def _describe_message(message_descriptor: descriptor_pb2.DescriptorProto, message: Message) -> None:
    """Fill the descriptor of a message, with its fields that have a number."""
    message_descriptor.name = message.short_name
    for field in message.fields:
        if field.number:
            _describe_field(message_descriptor, field, f"{_full_name(message.name)}.E{field.number}")


def _describe_field(message_descriptor: descriptor_pb2.DescriptorProto, field: Field, entry_name: str) -> None:
    """Describe a field; a map is, as protobuf has it, a list of messages with key and value."""
    field_descriptor = message_descriptor.field.add(name=field_name(field.number), number=field.number)
    is_repeated = field.repeated or field.map
    field_descriptor.label = _FIELD.LABEL_REPEATED if is_repeated else _FIELD.LABEL_OPTIONAL
    if field.map:
        entry_descriptor = message_descriptor.nested_type.add(name=f"E{field.number}")
        entry_descriptor.field.add(name=field_name(1), number=1, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_OPTIONAL)
        _set_type(entry_descriptor.field.add(name=field_name(2), number=2, label=_FIELD.LABEL_OPTIONAL), field.type)
        field_descriptor.type, field_descriptor.type_name = _FIELD.TYPE_MESSAGE, f".{entry_name}"
    else:
        _set_type(field_descriptor, field.type)


def _set_type(field_descriptor: descriptor_pb2.FieldDescriptorProto, type_name: str) -> None:
    """Set the type of a field: a scalar of _SCALARS, or a message by its name (`core/v1.Pod`)."""
    if type_name in _SCALARS:
        field_descriptor.type = _SCALARS[type_name]
    else:
        field_descriptor.type, field_descriptor.type_name = _FIELD.TYPE_MESSAGE, f".{_full_name(type_name)}"


def _proto_package(package: str) -> str:
    return package.replace("/", ".")


def _full_name(message: str) -> str:
    package, _, short_name = message.rpartition(".")
    return f"{_proto_package(package)}.{short_name}"
