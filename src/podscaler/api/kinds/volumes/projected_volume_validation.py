"""Validates the sources of a projected volume, above all the paths of their files.

Called by `volume_validation`. A new source: an entry of _SOURCES, and a case in `_source_errors`. Valid sources name
files below the volume's directory only; no two sources name the same file, except for tokens, whose paths
kube-apiserver does not compare.

Source: kube-apiserver's validation of core/v1 ProjectedVolumeSource, recorded responses (tests/conformance/recorded).
The fields of its messages are kube-apiserver's too: the path of a token is `projected.path`, that of a downward API
file `downwardAPI.path` without the index.
"""

from podscaler.api.kinds.volumes import downward_validation, volume_paths
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.resource import checks, go_struct, label_selector, signers
from podscaler.api.resource.resources import Object

_SOURCES = ("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate")
_TOKEN_LIFETIME_MIN_S = 10 * 60
_TOKEN_LIFETIME_MAX_S = 2**32
_CERTIFICATE_LIFETIME_MIN_S = 60 * 60
_CERTIFICATE_LIFETIME_MAX_S = 91 * 24 * 60 * 60
_KUBERNETES_CERTIFICATE_LIFETIME_MAX_S = 24 * 60 * 60
"""The upper bound for signers of the domain kubernetes.io and its subdomains."""
_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_CERTIFICATE_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")
_NO_CERTIFICATE_PATH_MESSAGE = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"


def validate(source: Object, path: str, *, trusts_token_paths: bool) -> list[FieldError]:
    """The field errors of the `projected` source at `path`.

    Args:
        trusts_token_paths: whether paths of tokens may be invalid, because the stored object has an invalid one.
    """
    errors: list[FieldError] = []
    used_paths = _UsedPaths(path)
    for index, volume_projection in enumerate(source.get("sources") or []):
        item_path = f"{path}.sources[{index}]"
        set_types = [source_type for source_type in _SOURCES if volume_projection.get(source_type) is not None]
        for source_type in set_types:
            projection = volume_projection[source_type]
            errors += _source_errors(source_type, projection, f"{item_path}.{source_type}", used_paths)
            is_trusted = trusts_token_paths and projection.get("path")
            if source_type == "serviceAccountToken" and not is_trusted:
                errors += _token_path_errors(projection, f"{path}.path")
        if len(set_types) > 1:
            errors.append(forbidden(item_path, "may not specify more than 1 volume type per source"))
    return errors


def has_invalid_token_path(source: Object) -> bool:
    """Whether a stored `projected` source has a token with an invalid path."""
    tokens = [volume_projection.get("serviceAccountToken") for volume_projection in source.get("sources") or []]
    return any(token is not None and volume_paths.file_errors(token.get("path", ""), "") for token in tokens)


def _source_errors(source_type: str, projection: Object, path: str, used_paths: "_UsedPaths") -> list[FieldError]:
    """Field errors of one source, whose type is one of _SOURCES, without those of the path of a token."""
    match source_type:
        case "secret" | "configMap":
            return _config_or_secret_errors(projection, path, used_paths)
        case "downwardAPI":
            return _downward_errors(projection, path, used_paths)
        case "serviceAccountToken":
            return _token_lifetime_errors(projection.get("expirationSeconds"), f"{path}.expirationSeconds")
        case "clusterTrustBundle":
            return _bundle_errors(projection, path, used_paths)
        case _:  # podCertificate
            return _certificate_errors(projection, path, used_paths)


class _UsedPaths:
    """The paths of the files that the sources of one volume have so far.

    Args:
        field_path: the path of the volume's source, for errors.
    """

    def __init__(self, field_path: str) -> None:
        self._field_path = field_path
        self._file_paths: set[str] = set()
        self._reported_names: set[str] = set()

    def add(self, file_path: str, shown_name: str) -> list[FieldError]:
        """Adds a file path; returns the error if another file has it, but only once for each `shown_name`."""
        if file_path not in self._file_paths:
            self._file_paths.add(file_path)
            return []
        is_reported = shown_name in self._reported_names
        self._reported_names.add(shown_name)
        return checks.holds(is_reported, self._field_path, shown_name, "conflicting duplicate paths")


def _config_or_secret_errors(projection: Object, path: str, used_paths: _UsedPaths) -> list[FieldError]:
    """Field errors of a projected ConfigMap or Secret.

    Args:
        used_paths: the file paths of all sources of the volume so far; those of this source are added.
    """
    name = projection.get("name", "")
    errors = checks.present(name, f"{path}.name")
    for index, key_to_path in enumerate(projection.get("items") or []):
        errors += volume_paths.key_to_path_errors(key_to_path, f"{path}.items[{index}]")
        if key_to_path.get("path"):
            errors += used_paths.add(key_to_path["path"], name)
    return errors


def _downward_errors(projection: Object, path: str, used_paths: _UsedPaths) -> list[FieldError]:
    """Field errors of the files of the downward API; their paths are added to `used_paths`."""
    errors = []
    for file in projection.get("items") or []:
        errors += downward_validation.file_errors(file, path)
        if file.get("path"):
            errors += used_paths.add(file["path"], file["path"])
    return errors


def _token_lifetime_errors(expiration_s: int | None, path: str) -> list[FieldError]:
    """Errors of a token's lifetime: ten minutes to 2^32 seconds."""
    if expiration_s is None:
        return [required(path)]
    if expiration_s < _TOKEN_LIFETIME_MIN_S:
        return [invalid(path, expiration_s, "may not specify a duration less than 10 minutes")]
    if expiration_s > _TOKEN_LIFETIME_MAX_S:
        return [invalid(path, expiration_s, "may not specify a duration larger than 2^32 seconds")]
    return []


def _token_path_errors(projection: Object, path: str) -> list[FieldError]:
    """Field errors of the path of a token, which must be set."""
    file_path = projection.get("path", "")
    return volume_paths.file_errors(file_path, path) if file_path else [required(path)]


def _bundle_errors(projection: Object, path: str, used_paths: _UsedPaths) -> list[FieldError]:
    """Field errors of projected trust bundles: their selection, and the path of the file."""
    errors = _bundle_choice_errors(projection, path)
    file_path = projection.get("path", "")
    errors += checks.present(file_path, f"{path}.path")
    return errors + volume_paths.file_errors(file_path, f"{path}.path") + used_paths.add(file_path, file_path)


def _bundle_choice_errors(projection: Object, path: str) -> list[FieldError]:
    """Field errors of the selection of trust bundles: by name, or by signer with a label selector."""
    name, signer, selector = projection.get("name"), projection.get("signerName"), projection.get("labelSelector")
    if name is not None and signer is not None:
        printed = go_struct.printed(projection, "core/v1.ClusterTrustBundleProjection")
        return [invalid(path, printed, "only one of name and signerName may be used")]
    if name is not None:
        errors = checks.present(name, f"{path}.name", "must be a valid object name")
        signer_in_name = name.rpartition(":")[0].replace(":", "/")
        errors += [
            invalid(f"{path}.name", name, f"not a valid clustertrustbundlename: {message}")
            for message in signers.bundle_name_messages(name, signer_in_name)
        ]
        if selector is not None:
            detail = "labelSelector must be unset if name is specified"
            errors.append(invalid(f"{path}.labelSelector", selector, detail))
        return errors
    if signer is not None:
        errors = checks.present(signer, f"{path}.signerName", "must be a valid signer name")
        errors += signers.signer_name_errors(signer, f"{path}.signerName")
        return errors + (label_selector.validate(selector, f"{path}.labelSelector") if selector else [])
    return [required(path, "either name or signerName must be specified")]


def _certificate_errors(projection: Object, path: str, used_paths: _UsedPaths) -> list[FieldError]:
    """Errors of a pod certificate: signer, key type, lifetime, the paths of its files."""
    errors = signers.signer_name_errors(projection.get("signerName", ""), f"{path}.signerName")
    for key in projection.get("userAnnotations") or {}:
        errors += _annotation_key_errors(key.lower(), f"{path}.userAnnotations")
    errors += checks.one_of(projection.get("keyType", ""), f"{path}.keyType", _KEY_TYPES)
    errors += _certificate_lifetime_errors(projection, f"{path}.maxExpirationSeconds")
    set_fields = [field for field in _CERTIFICATE_PATHS if projection.get(field)]
    for field in set_fields:
        errors += volume_paths.file_errors(projection[field], f"{path}.{field}")
        errors += used_paths.add(projection[field], projection[field])
    return errors if set_fields else [*errors, required(path, _NO_CERTIFICATE_PATH_MESSAGE)]


def _certificate_lifetime_errors(projection: Object, path: str) -> list[FieldError]:
    """Errors of a certificate's lifetime (none is valid), which signers of Kubernetes limit to less than others."""
    lifetime_s = projection.get("maxExpirationSeconds")
    if lifetime_s is None:
        return []
    host = projection.get("signerName", "").partition("/")[0]
    is_kubernetes = host == "kubernetes.io" or host.endswith(".kubernetes.io")
    max_lifetime_s = _KUBERNETES_CERTIFICATE_LIFETIME_MAX_S if is_kubernetes else _CERTIFICATE_LIFETIME_MAX_S
    message_start = "if provided, maxExpirationSeconds must be"
    if lifetime_s < _CERTIFICATE_LIFETIME_MIN_S:
        return [invalid(path, lifetime_s, f"{message_start} >= {_CERTIFICATE_LIFETIME_MIN_S}")]
    return checks.holds(lifetime_s <= max_lifetime_s, path, lifetime_s, f"{message_start} <= {max_lifetime_s}")


def _annotation_key_errors(key: str, path: str) -> list[FieldError]:
    """Errors of the key of an annotation, which has the prefix of a domain."""
    if not key:
        return [required(path)]
    errors = checks.well_formed(key, path, names.label_key_errors)
    if not errors and "/" not in key:
        errors = [invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")')]
    return errors
