"""Makes the structural schema of a MetricSource: one section of the spec for each system, exactly one of which is set.

`metric_source.definition` includes it. The types of fields, their bounds and the rule "exactly one of" are checked by
every API server; rules beyond a schema (the syntax of JSONPath and cron) are checked when `podscaler.sources` opens the
source. Only CEL of Kubernetes 1.28 and older is used. A new system: a function for its section, in `_sections`, its
source in `podscaler.sources.source_types`, and the file that `podscaler crd` prints, in deploy/crd.
"""

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
"""A JSON schema, or a map of them."""

TIMEOUT_MAX_S = 30
DEFAULT_TIMEOUT_S = 5


def _text(description: str, **limits: Any) -> Json:
    """The schema of a text that is not empty; `limits` are further keywords."""
    return {"type": "string", "description": description, "minLength": 1, "maxLength": 1024} | limits


def _integer(description: str, **limits: Any) -> Json:
    return {"type": "integer", "format": "int32", "description": description} | limits


def _number(description: str) -> Json:
    return {"type": "number", "description": description, "minimum": 0}


def _object(
    description: str, *, properties: Json, required: Sequence[str] = (), rules: Sequence[tuple[str, str]] = ()
) -> Json:
    """The schema of an object.

    Args:
        description: the text that `kubectl explain` shows.
        properties: member -> schema.
        required: the names of required members.
        rules: (CEL rule, message if it is false).
    """
    schema: Json = {"type": "object", "description": description, "properties": properties}
    if required:
        schema["required"] = list(required)
    if rules:
        schema["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in rules]
    return schema


def _url() -> Json:
    """The schema of a URL."""
    return _text(
        "An http or https URL without user and password. Link-local addresses are refused.",
        pattern="^https?://[^@]+$",
        maxLength=2048,
    )


def _address(usual_port: int) -> Json:
    return _text(
        f"host:port, usually of port {usual_port}; an IPv6 address in brackets.", pattern="^[^/@ ]+:[0-9]{1,5}$"
    )


def _host() -> Json:
    return _text("The name or the IP address of the server.", pattern="^[^/@ ]+$", maxLength=253)


def _port(default: int) -> Json:
    return _integer("The TCP port of the server.", minimum=1, maximum=65535, default=default)


def _headers() -> Json:
    """The schema of HTTP headers that are not secret."""
    return {
        "type": "object",
        "description": "Further headers of the request that are not secret, as X-Scope-OrgID.",
        "maxProperties": 16,
        "additionalProperties": {"type": "string", "maxLength": 1024},
    }


_JSON_PATH_DESCRIPTION = "A JSONPath query (RFC 9535) that selects one number; absent: the whole text is a number."


def _prometheus_section() -> Json:
    """The section of a Prometheus query."""
    return _object(
        "The result of an instant query: a scalar, or a vector with one sample.",
        required=("url", "query"),
        properties={
            "url": _url(),
            "query": _text("The query in PromQL.", maxLength=8192),
            "emptyValue": _number("The value of an empty result; absent: an empty result is a failure."),
            "headers": _headers(),
        },
    )


def _redis_section() -> Json:
    """The section of the length of a list or stream of Redis."""
    return _object(
        "The length of a list, or a figure of a stream.",
        required=("address",),
        properties={
            "address": _address(6379),
            "database": _integer("The number of the database.", minimum=0, default=0),
            "username": _text("The ACL user."),
            "list": _text("The key of a list; one that does not exist has length 0."),
            "stream": _redis_stream(),
        },
        rules=[("has(self.list) != has(self.stream)", "must have exactly one of list and stream")],
    )


def _postgresql_section() -> Json:
    """The section of an SQL query."""
    return _object(
        "The one number of a query, which runs in a read-only transaction.",
        required=("host", "database", "query"),
        properties={
            "host": _host(),
            "port": _port(5432),
            "database": _text("The name of the database."),
            "username": _text("The role."),
            "query": _text("One SELECT that returns one row with one number.", maxLength=8192),
        },
    )


def _rabbitmq_section() -> Json:
    """The section of a queue of RabbitMQ."""
    return _object(
        "The number of messages of a queue that are ready for delivery.",
        required=("host", "queue"),
        properties={
            "host": _host(),
            "port": _integer("The AMQP port; absent: 5672, and 5671 with spec.tls.", minimum=1, maximum=65535),
            "virtualHost": _text("The virtual host.", default="/"),
            "username": _text("The user; absent, here and in credentials: guest."),
            "queue": _text("The name of the queue.", maxLength=255),
        },
    )


def _nats_section() -> Json:
    """The section of a JetStream stream or consumer."""
    return _object(
        "The messages of a JetStream stream, or those that a consumer has not received yet.",
        required=("address", "stream"),
        properties={
            "address": _address(4222),
            "username": _text("The user."),
            "stream": _text("The name of the stream.", pattern=r"^[^\s.*>/\\]+$"),
            "consumer": _text("The name of a consumer of the stream.", pattern=r"^[^\s.*>/\\]+$"),
            "includeUnacknowledged": {
                "type": "boolean",
                "description": "Whether messages that the consumer has received and not acknowledged count too.",
            },
        },
    )


def _kafka_section() -> Json:
    """The section of the lag of a consumer group."""
    return _object(
        "The messages of a topic that a consumer group has not committed yet, over all partitions.",
        required=("bootstrapServers", "consumerGroup", "topic"),
        properties={
            "bootstrapServers": {
                "type": "array",
                "description": "Brokers, any of which is enough to find the others.",
                "minItems": 1,
                "maxItems": 16,
                "items": _address(9092),
            },
            "consumerGroup": _text("The name of the consumer group."),
            "topic": _text("The name of the topic.", maxLength=249),
            "offsetResetPolicy": {
                "type": "string",
                "description": "What counts in a partition without a committed offset: nothing, or all of it.",
                "enum": ["Latest", "Earliest"],
                "default": "Latest",
            },
            "username": _text("The SASL user."),
            "saslMechanism": {
                "type": "string",
                "description": "How the user authenticates; used where there is a password.",
                "enum": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
                "default": "PLAIN",
            },
        },
    )


def _http_section() -> Json:
    """The section of a number in an HTTP response."""
    return _object(
        "A number in the response to a GET request. Redirects are not followed.",
        required=("url",),
        properties={"url": _url(), "jsonPath": _text(_JSON_PATH_DESCRIPTION), "headers": _headers()},
    )


def _file_section() -> Json:
    """The section of a number in a file."""
    return _object(
        "A number in a file of the controller's machine, below the folder of --metric-source-folder.",
        required=("path",),
        properties={
            "path": _text("The path, relative to the folder.", pattern="^[^/]", maxLength=4096),
            "jsonPath": _text(_JSON_PATH_DESCRIPTION),
            "maxAgeSeconds": _integer("An older file is a failure; absent: any age.", minimum=1),
        },
    )


def _cron_section() -> Json:
    """The section of a value by schedule."""
    return _object(
        "One value between a start and the next end, and another one at other times.",
        required=("start", "end", "insideValue"),
        properties={
            "start": _text("A cron expression of five fields: when the value becomes insideValue."),
            "end": _text("A cron expression of five fields: when the value becomes outsideValue."),
            "timeZone": _text("A name of the IANA time zone database.", default="UTC"),
            "insideValue": _number("The value from a start to the next end."),
            "outsideValue": _number("The value at other times.") | {"default": 0},
        },
    )


def _custom_section() -> Json:
    """The section of a source of another distribution."""
    return _object(
        "A source of another distribution, which the entry point group podscaler.metric_sources names.",
        required=("type",),
        properties={
            "type": _text("The name of the entry point.", maxLength=63),
            "settings": {
                "type": "object",
                "description": "As that source defines them.",
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
    )


def _redis_stream() -> Json:
    """The schema of a stream in the section of Redis."""
    return _object(
        "A stream.",
        required=("key",),
        properties={
            "key": _text("The key of the stream."),
            "consumerGroup": _text("The name of the consumer group; not for count Length."),
            "count": {
                "type": "string",
                "description": "All entries, those not delivered to the group yet, or those not acknowledged by it.",
                "enum": ["Length", "Lag", "Pending"],
                "default": "Length",
            },
        },
        rules=[
            (
                "(self.count == 'Length') != has(self.consumerGroup)",
                "count Lag and Pending need a consumerGroup, count Length has none",
            )
        ],
    )


def _sections() -> dict[str, Json]:
    """The sections of the spec, by the types of systems."""
    return {
        "prometheus": _prometheus_section(),
        "redis": _redis_section(),
        "postgresql": _postgresql_section(),
        "rabbitmq": _rabbitmq_section(),
        "nats": _nats_section(),
        "kafka": _kafka_section(),
        "http": _http_section(),
        "file": _file_section(),
        "cron": _cron_section(),
        "custom": _custom_section(),
    }


SYSTEM_TYPES = tuple(_sections())
"""The sections of the spec, of which exactly one is set."""


def _spec() -> Json:
    """The schema of the spec: the sections, of which exactly one is set, and what all types of systems share."""
    properties = {
        "timeoutSeconds": _integer(
            "How long one read may take.", minimum=1, maximum=TIMEOUT_MAX_S, default=DEFAULT_TIMEOUT_S
        ),
        "credentials": _credentials(),
        "tls": _object(
            "Encrypts the connection; for prometheus and http the URL decides, and this says how to verify the server.",
            properties={
                "caBundle": {
                    "type": "string",
                    "format": "byte",
                    "description": "Authorities (PEM, in base64) that verify the server; absent: the system's.",
                },
                "insecureSkipVerify": {"type": "boolean", "description": "Whether the server is not verified at all."},
            },
        ),
        **_sections(),
    }
    set_sections = ", ".join(f"has(self.{type_name})" for type_name in SYSTEM_TYPES)
    exactly_one = (f"[{set_sections}].filter(x, x).size() == 1", f"must have exactly one of {', '.join(SYSTEM_TYPES)}")
    return _object("What is read, and how.", properties=properties, rules=[exactly_one])


def _credentials() -> Json:
    """The schema of the credentials, which are only references to Secrets."""
    reference = _object(
        'A key of a Secret in the namespace, which bears the label podscaler.dev/metric-source: "true".',
        required=("name", "key"),
        properties={"name": _text("The name of the Secret.", maxLength=253), "key": _text("The key.", maxLength=253)},
    )
    credential = _object(
        "One credential.",
        required=("name", "secretKeyRef"),
        properties={
            "name": _text("username, password or token; a custom source may have others.", maxLength=63),
            "secretKeyRef": reference,
        },
    )
    return {
        "type": "array",
        "description": "What the system wants to know of us, from Secrets.",
        "maxItems": 8,
        "items": credential,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }


def _status() -> Json:
    """The schema of the status, which the controller writes."""
    time = {"type": "string", "format": "date-time"}
    condition = _object(
        "The state of one aspect.",
        required=("type", "status", "lastTransitionTime", "reason", "message"),
        properties={
            "type": {"type": "string"},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "observedGeneration": {"type": "integer", "format": "int64"},
            "lastTransitionTime": time,
            "reason": {"type": "string"},
            "message": {"type": "string"},
        },
    )
    properties = {
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "description": "The generation of the spec that was read last.",
        },
        "query": {"type": "string", "description": "What was asked of which system, without credentials."},
        "value": {"type": "string", "description": "The latest value, as a quantity."},
        "lastReadTime": time | {"description": "When that value was read. It is renewed once a minute at most."},
        "conditions": {
            "type": "array",
            "description": "Ready says whether the last read succeeded.",
            "items": condition,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    }
    return _object("What the latest read found. A source that no autoscaler uses is not read.", properties=properties)


def root() -> Json:
    """The schema of the whole object, as a new value at each call."""
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": _spec(),
        "status": _status(),
    }
    description = (
        "A system from which podscaler reads the external metric of the same name, for autoscalers of the namespace."
    )
    return _object(description, properties=properties, required=("spec",))
