"""A real etcd and kube-apiserver on loopback, with the aggregation layer, for the benchmark of controllers.

`benchmarks.cluster` starts one for each layout of objects. Everything is in a folder of its own; nothing else is killed
than what was started here. There is no TLS between etcd and the API server, and, where not asked for, no sync to disk:
what is measured there is controllers.
"""

import base64
import datetime
import ipaddress
import json
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tools import asset_modules

SERVER_NAMES = ("localhost", "kubernetes.default.svc", "metrics.bench.svc")
READY_WITHIN_S = 90.0
DAY = datetime.timedelta(days=1)
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")


def programs() -> dict[str, Path] | None:
    """The programs by name; None where `make assets` was not run."""
    found = {name: asset_modules.find_program(name) for name in PROGRAMS}
    return {name: path for name, path in found.items() if path} if all(found.values()) else None


class Authority:
    """A certificate authority that lives as long as the benchmark.

    Args:
        folder: where certificates go.
        name: of the authority; its own certificate is `<name>.crt`.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(self._name, self._name, self._key)
        made = builder.add_extension(x509.BasicConstraints(True, None), critical=True).sign(self._key, hashes.SHA256())
        self.pem = made.public_bytes(serialization.Encoding.PEM)
        self.path = folder / f"{name}.crt"
        self.path.write_bytes(self.pem)

    def issue(self, name: str, *, organization: str = "", is_server: bool = False) -> tuple[Path, Path]:
        """The files of a certificate for `name` and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
        subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = ExtendedKeyUsageOID.SERVER_AUTH if is_server else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = _builder(subject, self._name, key).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if is_server:
            names = [x509.DNSName(each) for each in SERVER_NAMES]
            addresses = [x509.IPAddress(ipaddress.ip_address(each)) for each in ("127.0.0.1", "10.0.0.1")]
            builder = builder.add_extension(x509.SubjectAlternativeName([*names, *addresses]), critical=False)
        made = builder.sign(self._key, hashes.SHA256())
        certificate_path, key_path = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        certificate_path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        key_path.touch(0o600)
        key_path.write_bytes(_key_pem(key))
        return certificate_path, key_path


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - DAY).not_valid_after(now + 10 * DAY)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


class Plane:
    """The control plane, from `start` to `stop`.

    Args:
        folder: for everything it writes.
        found: the programs.
        is_synced: whether writes wait for the disk.
        server_flags: of the API server, besides those that it needs.

    Attributes:
        url: of the API server.
        kubeconfig: of a user who may do everything.
        processes: what runs, by program.
    """

    def __init__(
        self, folder: Path, found: dict[str, Path], *, is_synced: bool = False, server_flags: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self.programs = found
        self._etcd_flags = () if is_synced else ("--unsafe-no-fsync",)
        self._further_flags = server_flags
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.kubeconfig = folder / "kubeconfig"
        self.authority = Authority(folder, "cluster-authority")
        self.front_authority = Authority(folder, "front-authority")
        self._port = free_port()
        self.url = f"https://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start both, and return when the API server is ready."""
        etcd = f"http://127.0.0.1:{free_port()}"
        peer = f"http://127.0.0.1:{free_port()}"
        self._launch("etcd", [*_etcd_flags(self.folder, etcd, peer), *self._etcd_flags])
        server, admin, front = self._certificates()
        self._launch("kube-apiserver", [*self._server_flags(etcd), *server, *front, *self._further_flags])
        self._write_kubeconfig(admin)
        self._wait_ready(admin)

    def stop(self) -> None:
        """End what was started, newest first."""
        for process in reversed(self.processes.values()):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _certificates(self) -> tuple[list[str], tuple[Path, Path], list[str]]:
        certificate, key = self.authority.issue("kube-apiserver", is_server=True)
        admin = self.authority.issue("bench-admin", organization="system:masters")
        client_certificate, client_key = self.front_authority.issue("front-proxy-client")
        accounts_key = self.authority.issue("service-accounts")[1]
        server = [
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.authority.path}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={accounts_key}",
            f"--service-account-signing-key-file={accounts_key}",
        ]
        front = [
            f"--requestheader-client-ca-file={self.front_authority.path}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={client_certificate}",
            f"--proxy-client-key-file={client_key}",
        ]
        return server, admin, front

    def _server_flags(self, etcd: str) -> list[str]:
        return [
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",  # nobody makes service accounts here
            "--event-ttl=10m",
        ]

    def _launch(self, name: str, flags: Sequence[str]) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [str(self.programs[name]), *flags]
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def _write_kubeconfig(self, admin: tuple[Path, Path]) -> None:
        certificate, key = (base64.b64encode(path.read_bytes()).decode() for path in admin)
        cluster = {
            "server": self.url,
            "certificate-authority-data": base64.b64encode(self.authority.pem).decode(),
        }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"client-certificate-data": certificate, "client-key-data": key}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "admin"}}],
        }
        self.kubeconfig.touch(0o600)
        self.kubeconfig.write_text(json.dumps(document))

    def _wait_ready(self, admin: tuple[Path, Path]) -> None:
        context = ssl.create_default_context(cafile=str(self.authority.path))
        context.load_cert_chain(*admin)
        deadline_s = time.monotonic() + READY_WITHIN_S
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", context=context, timeout=2) as answer:
                    if answer.read() == b"ok":
                        return
            except OSError:
                pass
            if time.monotonic() > deadline_s or self.processes["kube-apiserver"].poll() is not None:
                raise SystemExit(f"kube-apiserver is not ready; see {self.folder}/kube-apiserver.log")
            time.sleep(0.3)


def _etcd_flags(folder: Path, client: str, peer: str) -> list[str]:
    return [
        "--name=bench",
        f"--data-dir={folder}/etcd",
        "--log-level=warn",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=bench={peer}",
        "--quota-backend-bytes=8589934592",
        "--auto-compaction-mode=revision",
        "--auto-compaction-retention=20000",
    ]
