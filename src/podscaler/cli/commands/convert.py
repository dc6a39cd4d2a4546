"""`podscaler convert`: converts the autoscalers of manifests to another version of their API.

`podscaler.cli.main` registers the command. `podscaler.api.kinds.autoscaling.conversion` converts one autoscaler, and
has the versions, where a new one goes; this command finds autoscalers, reports losses, and writes the file: documents
without an autoscaler byte for byte, the others re-encoded with their fields in the former order.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from podscaler.api.kinds.autoscaling import conversion
from podscaler.api.kinds.autoscaling.conversion import KIND, VERSIONS
from podscaler.api.schema import decoding
from podscaler.api.text import json_text, manifests, yaml_output
from podscaler.api.text.json_text import DecodeError
from podscaler.api.text.manifests import Format, ManifestDocument
from podscaler.base.errors import UsageError

STANDARD_INPUT = "-"
"""The FILE that means standard input."""
JSON_INDENT = 4
GROUPS = frozenset(version.partition("/")[0] for version in VERSIONS)

JsonObject = dict[str, Any]
ReportLoss = Callable[[str], None]

EXAMPLE = """\b
Examples:
  podscaler convert hpa.yaml --to autoscaling/v2
  kubectl get hpa -o yaml | podscaler convert - --to v1
"""


@click.command(epilog=EXAMPLE)
@click.argument("file", type=click.Path())
@click.option("--to", required=True, metavar="VERSION", help=f"one of {', '.join(VERSIONS)}")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), help="what to write [default: as FILE is written]")
def command(file: str, to: str, output: Format | None) -> None:
    """Write FILE ('-': standard input) with its autoscalers in another version.

    Other documents stay as they are, and fields keep their order; comments within converted documents do not. What the
    version cannot express is kept in annotations, as the API server keeps it. What is lost for good is reported on
    standard error, one line each; the exit status is 0 then, too.
    """
    version = _parse_version(to)
    name, content = _read(file)
    output_format = output or manifests.format_of(content)
    try:
        converted_documents = [
            _convert_document(document, version, _loss_printer(name, document))
            for document in manifests.parse_documents(content)
        ]
        output_bytes = _join_documents(converted_documents, manifests.format_of(content), output_format)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    sys.stdout.buffer.write(output_bytes)


def _parse_version(version_name: str) -> str:
    """The version that `autoscaling/v2` or `v2` names. Raises UsageError."""
    matching = [version for version in VERSIONS if version_name in (version, version.partition("/")[2])]
    if not matching:
        raise UsageError(f"unknown version {version_name!r}; known versions: {', '.join(VERSIONS)}")
    return matching[0]


def _read(file: str) -> tuple[str, bytes]:
    """The name of FILE for messages, and its content. Raises UsageError."""
    if file == STANDARD_INPUT:
        return "standard input", sys.stdin.buffer.read()
    try:
        return file, Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None


def _loss_printer(name: str, document: ManifestDocument) -> ReportLoss:
    """A function that writes a loss to standard error, after the file's name and the document's number."""
    return lambda loss: click.echo(f"{name}: document {document.number}: {loss}", err=True)


def _convert_document(
    document: ManifestDocument, version: str, report_loss: ReportLoss
) -> tuple[ManifestDocument, Any]:
    """A document with its converted value; None for the value if nothing was converted. Raises UsageError."""
    try:
        if document.repeated and _is_autoscaler(document.value):
            raise UsageError(document.repeated)
        return document, _convert_value(document.value, version, report_loss)
    except (UsageError, DecodeError) as error:
        raise UsageError(f"document {document.number}: {error}") from None


def _is_autoscaler(json_value: Any) -> bool:
    """Whether a JSON value is an autoscaler in a known version.

    Raises:
        UsageError: it is an autoscaler in an unknown version.
    """
    if not isinstance(json_value, dict) or json_value.get("kind") != KIND:
        return False
    api_version = json_value.get("apiVersion")
    if not isinstance(api_version, str) or api_version.partition("/")[0] not in GROUPS:
        return False
    if api_version not in VERSIONS:
        raise UsageError(f"unknown version {api_version!r} of {KIND}; known versions: {', '.join(VERSIONS)}")
    return True


def _convert_value(json_value: Any, version: str, report_loss: ReportLoss) -> Any:
    """The JSON value with the autoscalers in it converted; None if nothing changes. Raises UsageError, DecodeError."""
    if _is_autoscaler(json_value):
        if json_value["apiVersion"] == version:
            return None
        return _convert_autoscaler(json_value, version, report_loss)
    if not isinstance(json_value, dict) or not isinstance(json_value.get("items"), list):
        return None
    if (json_value.get("apiVersion"), json_value.get("kind")) == ("v1", "List"):
        return _convert_mixed_list(json_value, version, report_loss)
    if json_value.get("kind") == f"{KIND}List" and json_value.get("apiVersion") in VERSIONS:
        return _convert_autoscaler_list(json_value, version, report_loss)
    return None


def _convert_autoscaler(autoscaler: JsonObject, version: str, report_loss: ReportLoss) -> JsonObject:
    """The autoscaler in another version, with its fields in their order. Raises UsageError, DecodeError."""
    decoded = decoding.decode_value(autoscaler, VERSIONS[autoscaler["apiVersion"]].message)
    if decoded.problems:
        raise UsageError(", ".join(decoded.problems))
    converted = conversion.convert(decoded.obj, version)
    subject = f'{KIND} "{(decoded.obj.get("metadata") or {}).get("name", "")}"'
    for loss in converted.losses:
        report_loss(f"{subject}: {loss}")
    ordered: JsonObject = _ordered_like(converted.obj, autoscaler)
    return ordered


def _convert_mixed_list(list_object: JsonObject, version: str, report_loss: ReportLoss) -> JsonObject | None:
    """A list of any kinds (`kind: List`) with its autoscalers converted; None if nothing changes."""
    old_items = list_object["items"]
    converted_items = [_convert_item(index, old, version, report_loss) for index, old in enumerate(old_items)]
    if all(converted is None for converted in converted_items):
        return None
    pairs = zip(old_items, converted_items, strict=True)
    return {**list_object, "items": [old if converted is None else converted for old, converted in pairs]}


def _convert_autoscaler_list(list_object: JsonObject, version: str, report_loss: ReportLoss) -> JsonObject | None:
    """A list of autoscalers, whose items may omit apiVersion and kind; None if it is in that version already."""
    if list_object["apiVersion"] == version:
        return None
    converted_items = []
    for index, autoscaler in enumerate(list_object["items"]):
        if not isinstance(autoscaler, dict):
            raise UsageError(f"items[{index}] is no object")
        complete_autoscaler = {"apiVersion": list_object["apiVersion"], "kind": KIND, **autoscaler}
        converted = _convert_item(index, complete_autoscaler, version, report_loss) or complete_autoscaler
        added_names = {"apiVersion", "kind"} - autoscaler.keys()
        converted_items.append({name: field for name, field in converted.items() if name not in added_names})
    return {**list_object, "apiVersion": version, "items": converted_items}


def _convert_item(index: int, list_item: Any, version: str, report_loss: ReportLoss) -> Any:
    """As `_convert_value`, for one item of a list; its index precedes the messages. Raises UsageError."""
    try:
        return _convert_value(list_item, version, lambda loss: report_loss(f"items[{index}]: {loss}"))
    except (UsageError, DecodeError) as error:
        raise UsageError(f"items[{index}]: {error}") from None


def _join_documents(
    converted_documents: list[tuple[ManifestDocument, Any]], input_format: Format, output_format: Format
) -> bytes:
    """The output; documents that were not converted keep their bytes, unless the format (YAML or JSON) changes."""
    if input_format == output_format:
        return b"".join(
            document.text if converted is None else _document_text(document, converted, output_format)
            for document, converted in converted_documents
        )
    encoded_documents = []
    for document, converted in converted_documents:
        if document.number:  # 0: an empty document
            json_value = document.value if converted is None else converted
            encoded_documents.append(_encoded(json_text.plain(json_value), output_format))
    separator = b"---\n" if output_format == "yaml" else b""
    return separator.join(encoded_documents)


def _document_text(document: ManifestDocument, converted: Any, output_format: Format) -> bytes:
    """A converted document, encoded, with the document markers or the white space around the former text."""
    encoded = _encoded(json_text.plain(converted), output_format)
    if output_format == "yaml":
        return document.marker_line + encoded + document.end_marker
    leading_space = document.text[: len(document.text) - len(document.text.lstrip())]
    return leading_space + encoded.rstrip(b"\n")


def _encoded(json_value: Any, output_format: Format) -> bytes:
    """JSON-ready data in the requested format."""
    if output_format == "yaml":
        return yaml_output.write(json_value, sort_keys=False)
    return json.dumps(json_value, indent=JSON_INDENT, ensure_ascii=False).encode() + b"\n"


def _ordered_like(value: Any, model: Any) -> Any:
    """`value` with its fields in the order of `model`, at every depth.

    A field that the model lacks follows the field that it followed in `value`. Items of lists are compared by index.
    """
    if isinstance(value, dict) and isinstance(model, dict):
        return {name: _ordered_like(value[name], model.get(name)) for name in _ordered_keys(list(value), model)}
    if isinstance(value, list) and isinstance(model, list):
        models = model + [None] * (len(value) - len(model))
        return [_ordered_like(item, models[index]) for index, item in enumerate(value)]
    return value


def _ordered_keys(keys: list[str], model: dict[str, Any]) -> list[str]:
    """The keys in the model's order: of [a, new, b] and a model with b before a, [b, a, new]."""
    new_keys_after: dict[str | None, list[str]] = {}  # by the known key before them; None: at the begin
    latest_known_key: str | None = None
    for key in keys:
        if key in model:
            latest_known_key = key
        else:
            new_keys_after.setdefault(latest_known_key, []).append(key)
    ordered = new_keys_after.get(None, [])
    for key in model:
        if key in keys:
            ordered += [key, *new_keys_after.get(key, [])]
    return ordered
