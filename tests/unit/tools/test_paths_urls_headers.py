"""Every place where the control plane or a client builds a path, a URL or a header of what others wrote, and its check.

Objects, requests and answers of other servers are untrusted: a `..`, a `//host` or a line break in one of their fields
must not lead anywhere. `CHECKED` names each function that joins such texts, with what keeps it safe; the tests look for
places in the sources of `PACKAGES`, so that a new one must be thought about, and entered here.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "src" / "podscaler"
CONTROL_PLANE = SOURCES / "controlplane"
PACKAGES = (
    *("aggregator", "apiserver", "auth", "controllers/endpoints"),
    *("credentials", "kubelet", "metrics/scraped", "network"),
)
CLIENTS = ("adapter", "controller", "dashboard", "kube", "metrics", "observe", "sources")

_OURS = "made of nothing that a client wrote"
_UID = "uids are made by the server (writing), names of containers and volumes are DNS labels (pod_validation)"
_PROCESS = "numbers of processes, from the kernel"

CHECKED = {
    "metrics/scraped/counters.py:_advance_counter": "a division of numbers",
    "apiserver/streaming/spdy_headers.py:_parse_headers": "headers of the client, as they are read",
    "kubelet/volumes/volumes.py:prepare_mounts": "the parts of a target are counted, for the order",
    "metrics/scraped/scrape_client.py:ScrapeClient._open_session": "constants",
    "metrics/scraped/targets.py:ScrapeTarget.url": "an address of the node's; checked annotations, escaped by yarl",
    "aggregator/availability.py:Availability._check_endpoint": "Service addresses; groups and versions are DNS names",
    "aggregator/server_connections.py:_request_url": "built of parts; a path that begins with two slashes is refused",
    "apiserver/webhooks/webhook_client.py:WebhookClient._post": "built of parts of a URL that yarl parsed and escaped",
    "apiserver/webhooks/webhook_client.py:_target": "validated (webhook_validation), parsed and escaped by yarl",
    "aggregator/proxy_headers.py:_without_hop_by_hop": "headers as aiohttp read them, without line breaks",
    "aggregator/proxy_headers.py:user_headers": "keys are escaped; aiohttp refuses values with line breaks",
    "aggregator/proxy_headers.py:response_headers": "headers as aiohttp read them, without line breaks",
    "aggregator/proxy_headers.py:request_headers": "headers as aiohttp read them; no names, tokens and impersonation",
    "aggregator/remote_documents.py:RemoteDocuments._read_body": "constants of discovery and OpenAPI",
    "network/addresses.py:_claim_file": _OURS,
    "kubelet/launching/capabilities.py:_mount_error": _OURS,
    "kubelet/server/node_server.py:NodeServer._respond": "content types are constants of the pages",
    "kubelet/programs/agnhost.py:pause": "the environment of the process itself, in its own container",
    "kubelet/programs/external_metrics.py:self_signed_context": "a temporary file of its own",
    "kubelet/programs/issuer_discovery.py:fetch_with_account": "https alone, and the cluster's authority, in a pod",
    "kubelet/programs/issuer_discovery.py:main": "flags of the container's own command",
    "kubelet/programs/logs_generator.py:main": "flags of the container's own command",
    "kubelet/programs/mounttest.py:file_system": "mount points as the kernel prints them; nothing is opened",
    "kubelet/programs/mounttest.py:print_content": "flags of the container's own command",
    "kubelet/programs/resource_consumer_controller.py:main": "flags of the container's own command",
    "kubelet/programs/serve_hostname.py:file_response": "resolved, and refused outside the root",
    "network/pod_networks.py:_await_forwarding": "the name of the interface is made here",
    "network/pod_networks.py:_set_option": "names of options are constants, that of the bridge is made here",
    "kubelet/launching/image_map.py:_command_of": "the operator's own flag, or a ConfigMap of kube-system; absolute",
    "kubelet/launching/image_map.py:_read_bundle": "below a folder that the operator named; config.json is his",
    "kubelet/launching/image_map.py:parse_flag": "the operator's own flag",
    "kubelet/launching/images.py:closed_folders": _OURS,
    "kubelet/launching/mount_tree.py:overlay_root": "constants; the root is opened by descriptor",
    "kubelet/processes/cgroups.py:Cgroups.make": "ids of containers are made here (container_run), or constants",
    "kubelet/processes/cgroups.py:Cgroups.remove": "ids of containers are made here (container_run)",
    "kubelet/processes/cgroups.py:set_up": "/proc/self/cgroup, from the kernel",
    "kubelet/probes/handlers.py:_quoted_url": "a text for messages, escaped where it is not printable",
    "kubelet/probes/http_check.py:ProbeRequest.url": "host by yarl; request_target: begins with a slash, escaped",
    "kubelet/probes/http_check.py:redirected_request": "read back by urlsplit; only the probed host is followed",
    "kubelet/processes/process_identity.py:_environment_of": _PROCESS,
    "kubelet/processes/process_identity.py:facts": _PROCESS,
    "kubelet/launching/images.py:write_programs": _OURS,
    "kubelet/launching/images.py:_program_command": _OURS,
    "kubelet/launching/mount_tree.py:MountTree._make_path": "parts of mount paths, below a root of the container's own",
    "kubelet/launching/launcher.py:carry_out": _OURS,
    "kubelet/volumes/volume_files.py:write_changed": "names that a walk of the volume found, for a comparison alone",
    "kubelet/logs/rotated_files.py:LogCursor.__init__": _OURS,
    "kubelet/logs/rotated_files.py:LogCursor._open_rotated": _OURS,
    "kubelet/volumes/name_files.py:_write_file": _OURS,
    "kubelet/startup.py:_read_line": _OURS,
    "kubelet/startup.py:node_info": _OURS,
    "kubelet/processes/paths.py:below": "refuses what is no name of one entry",
    "kubelet/launching/process_limits.py:_read_number": _OURS,
    "kubelet/processes/paths.py:NodePaths.log": _UID,
    "kubelet/processes/process_records.py:remove": "ids of containers are made here (container_run)",
    "kubelet/processes/process_records.py:write": "ids of containers are made here (container_run)",
    "kubelet/programs/wget.py:main": "the container's own command line, in its own process",
    "kubelet/volumes/service_variables.py:_variables_of": "addresses and ports, for environments",
    "apiserver/http/responses.py:add_warnings": "warning_values: no line breaks, quoted",
    "apiserver/handlers/endpoint_proxy.py:_headers": "read by aiohttp, so without line breaks; the URI is escaped",
    "apiserver/handlers/endpoint_proxy.py:_send_request": "the node's own address; an escaped path, the client's query",
    "apiserver/handlers/endpoint_proxy.py:through_proxy": "a header that aiohttp read; the base is escaped",
    "apiserver/handlers/remote_proxy.py:_headers": "read by aiohttp, so without line breaks; an escaped target",
    "apiserver/non_resource_handlers.py:_issuer_discovery": "the request's own Host, in a document for its sender",
    "apiserver/http/responses.py:from_error": "numbers and constants of errors",
    "apiserver/discovery/openapi_v3.py:_document_response": "a checksum",
    "apiserver/non_resource_handlers.py:_with_etag": "a checksum",
}
"""`module:function` below controlplane -> what keeps foreign texts in it from leading elsewhere."""

_NUMBERS = "a division of numbers"
_OBJECT = "namespaces and names of objects that the API server serves, which are segments"
_FLAGS = "flags and arguments of the user's own command line"
_KUBECONFIG = "the user's own kubeconfig, environment or command line"

CHECKED_CLIENTS = {
    "adapter/resource/node_targets.py:find_target": "refuses other addresses, ports and paths",
    "adapter/cluster/rest_mapper.py:MappedResource.path": "resources that the API server serves; segments are escaped",
    "adapter/cluster/rest_mapper.py:RESTMapper._request_resources": "groups and versions that the API server serves",
    "adapter/prometheus/connection.py:_parse_url": "a flag, read back by urlsplit; address_error",
    "controller/options/autoscaler_kinds.py:AutoscalerKind.path": _OBJECT,
    "controller/reconcile/event_recorder.py:AutoscalerEventRecorder._write": "an object's namespace, and more after it",
    "controller/informers/target_informer.py:TargetInformer._watch": "groups, versions and plurals are of discovery",
    "controller/history/history_maps.py:HistoryMaps._path": "a DNS label (parse_dns_label); names are constants",
    "controller/leaderelection/lease_events.py:LeaseEventRecorder._write": _FLAGS,
    "controller/leaderelection/lease.py:path": "names of Leases that the API server serves, and of flags",
    "controller/reconcile/autoscaler_state.py:AutoscalerState.note_status_write": _NUMBERS,
    "controller/coexistence/migration.py:Migrator._has_event": _OBJECT,
    "controller/work_assignment.py:WorkAssignment.queue_registered": _NUMBERS,
    "controller/informers/scale_client.py:_path": "object_name; the other segments are of discovery",
    "dashboard/report_folder.py:ReportFolder.read": "a name of letters, digits, `_`, `.`, `-` in one folder; no links",
    "dashboard/security.py:OwnAddress.__init__": "flags, compared with headers",
    "dashboard/server.py:DashboardServer.start": "flags",
    "dashboard/server.py:DashboardServer._serve_file": "constants",
    "observe/object_reader.py:ObjectReader._add_target": "escaped (urls); object_name; a kind that discovery lists",
    "observe/object_reader.py:ObjectReader._list": "constants, and the namespace of a cached object, escaped (urls)",
    "kube/client/client.py:Client._write_request": "content types are constants",
    "kube/client/connect.py:NamespacedTransport._narrowed": "a flag, checked as a DNS label and escaped (urls)",
    "kube/client/discovery.py:Discovery._mappings_of": "a group that the API server serves, and its versions",
    "kube/client/discovery.py:Discovery._read_versions": "the group of a reference, without slashes (group_of)",
    "kube/config/exec_command.py:_program": _KUBECONFIG,
    "kube/transport/http_response.py:HTTPResponse.on_header": "read from an answer, and sent nowhere",
    "kube/transport/http_transport.py:HttpTransport._encode": "targets are escaped (urls); Authorization: _header",
    "kube/transport/http_transport.py:_header_line": "refuses control characters",
    "kube/config/kubeconfig.py:_Entry.resolve": _KUBECONFIG,
    "kube/config/kubeconfig.py:_server": "read back by urlsplit; address_error",
    "kube/config/locate.py:find_config": _KUBECONFIG,
    "kube/config/locate.py:in_cluster_config": "address_error; names of files are constants",
    "kube/transport/proxies.py:parse": "read back by urlsplit",
    "kube/transport/rate_limit.py:TokenBucket.take": _NUMBERS,
    "metrics/metrics_apis.py:APIMetricsSource._custom_values": "versions are of discovery",
    "metrics/metrics_apis.py:APIMetricsSource._external_metric": "resource; the namespace is an object's",
    "metrics/metrics_apis.py:APIMetricsSource._object_metric": "object_name, subresource; the resource is of discovery",
    "metrics/metrics_apis.py:APIMetricsSource._pods_metric": "subresource; the namespace is an object's",
    "metrics/metrics_apis.py:APIMetricsSource._resource_metrics": "the namespace of an object",
    "metrics/heapster.py:HeapsterMetricsSource._get": "flags that are checked as names and a URL; paths of the callers",
    "metrics/heapster.py:HeapsterMetricsSource._request_results": "object_name and subresource",
    "metrics/heapster.py:last_minute_mean": "a division of numbers",
    "sources/informer.py:MetricSourceFetcher.find": "object_name; the namespace of an autoscaler",
    "sources/status.py:SourceStatusWriter._write_status": "namespace and name of an object",
    "sources/systems/file.py:_resolve_below": "resolved, and refused where it is not below the folder",
    "sources/systems/nats.py:NatsSource._connect": "split_address: a host and a number, which the client parses again",
    "sources/systems/http_client.py:WebClient._open_session": "_checked_headers; the credentials by _authorization",
    "sources/systems/http_client.py:_checked_url": "parsed by yarl; scheme, host and user information are checked",
}
"""The same for what asks API servers and metrics APIs, below podscaler; `urls.path` escapes, but keeps slashes."""


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class _Places(ast.NodeVisitor):
    """Collects the functions of a module that build a path, a URL or a header of something variable."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._within: list[str] = []

    def generic_visit(self, node: ast.AST) -> None:
        is_named = isinstance(node, _NAMED)
        if is_named:
            self._within.append(node.name)
        if self._within and (_is_path(node) or _is_url(node) or _is_header(node) or _is_request_path(node)):
            self.found.add(".".join(self._within))
        super().generic_visit(node)
        if is_named:
            self._within.pop()


def _is_variable(node: ast.AST) -> bool:
    """Whether it is neither a literal nor a constant of a module, such as a unit that something is divided by."""
    if isinstance(node, ast.Name | ast.Attribute):
        return not ast.unparse(node).rpartition(".")[2].isupper()
    return not isinstance(node, ast.Constant)


def _is_path(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=ast.Div(), right=right):
            return _is_variable(right)
        case ast.Call(func=called, args=arguments):
            name = ast.unparse(called)
            makes = name in ("Path", "PurePath", "PurePosixPath", "os.path.join") or name.endswith(".joinpath")
            return makes and any(_is_variable(each) for each in arguments)
    return False


def _is_request_path(node: ast.AST) -> bool:
    """A path of an API that has a segment which none of the functions of `urls` for that has seen."""
    match node:
        case ast.Call(func=called, args=arguments) if ast.unparse(called) in ("urls.path", "urls.group_version"):
            return any(_is_variable(each) and not _is_segment(each) for each in arguments)
    return False


def _is_segment(node: ast.AST) -> bool:
    segments = ("urls.object_name", "urls.resource", "urls.subresource")
    return isinstance(node, ast.Call) and ast.unparse(node.func) in segments


def _is_url(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr(values=parts):
            return any(isinstance(part, ast.Constant) and "://" in str(part.value) for part in parts)
        case ast.Call(func=called):
            return ast.unparse(called).rpartition(".")[2] in ("urljoin", "urlunsplit") or ast.unparse(called) in (
                "URL",
                "URL.build",
            )
    return False


def _is_header(node: ast.AST) -> bool:
    """Text with a line break as HTTP has it, an entry or a display of headers, or a function that returns them."""
    match node:
        case ast.FunctionDef(returns=ast.Subscript(value=ast.Name(id="CIMultiDict"))):
            return True
        case ast.JoinedStr(values=parts):
            return any(isinstance(part, ast.Constant) and "\r\n" in str(part.value) for part in parts)
        case ast.Assign(targets=[ast.Subscript(value=holder)], value=value):
            return _is_headers(holder) and _is_variable(value)
        case ast.Call(func=ast.Attribute(value=holder, attr="add" | "extend" | "update" | "setdefault")):
            return _is_headers(holder) and any(_is_variable(each) for each in node.args)
        case ast.keyword(arg="headers", value=ast.Dict(values=values)):
            return any(_is_variable(each) for each in values)
    return False


def _is_headers(node: ast.AST) -> bool:
    return ast.unparse(node).rpartition(".")[2].lower() == "headers"


def _places_in(module: Path, root: Path) -> Iterator[str]:
    places = _Places()
    places.visit(ast.parse(module.read_text(encoding="utf-8")))
    yield from (f"{module.relative_to(root).as_posix()}:{function}" for function in places.found)


@pytest.mark.parametrize(
    ("root", "packages", "checked"),
    [(CONTROL_PLANE, PACKAGES, CHECKED), (SOURCES, CLIENTS, CHECKED_CLIENTS)],
    ids=["control plane", "clients"],
)
def test_every_place_has_its_check(root: Path, packages: tuple[str, ...], checked: dict[str, str]) -> None:
    """Whoever builds a path, a URL or a header anew says in a table what keeps it safe; whoever stops removes it."""
    modules = [path for package in packages for path in (root / package).rglob("*.py")]
    found = {place for path in modules for place in _places_in(path, root)}
    assert {"unchecked": found - checked.keys(), "gone": checked.keys() - found} == {"unchecked": set(), "gone": set()}


@pytest.mark.parametrize(
    "source",
    [
        "folder / name",
        "folder / spec['path']",
        "Path(folder, name)",
        "os.path.join(folder, name)",
        "folder.joinpath(name)",
        "f'https://{host}/'",
        "URL.build(host=host)",
        "urljoin(base, location)",
        "f'{name}: {value}\\r\\n'",
        "request.headers.add('A', value)",
        "send(headers={'A': value})",
        "urls.path('pods', name)",
        "urls.path(*names)",
    ],
)
def test_what_counts_as_a_place(source: str) -> None:
    """The forms in which such texts are joined are found."""
    places = _Places()
    places.visit(ast.parse(f"def f():\n    {source}\n"))
    assert places.found == {"f"}


@pytest.mark.parametrize(
    "source",
    [
        "delay_ns / NANOSECONDS",
        "folder / 'name'",
        "Path('/x')",
        "f'{a}: {b}'",
        "a / 2",
        "urls.path('pods', urls.object_name(a))",
    ],
)
def test_what_does_not_count(source: str) -> None:
    """Divisions by units, and what is constant, are no places."""
    places = _Places()
    places.visit(ast.parse(f"def f():\n    {source}\n"))
    assert places.found == set()
