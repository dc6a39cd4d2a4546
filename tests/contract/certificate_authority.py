"""A certificate authority for tests with servers over TLS."""

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Issuer:
    """A certificate authority for this test."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.certificate = self._signed(self._name, self._key.public_key(), is_authority=True)
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str) -> bytes:
        """Certificate and key for a name, for both ends of a connection."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key.public_key(), name=name)
        return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def _signed(self, subject: x509.Name, key: Any, *, name: str = "", is_authority: bool = False) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        )
        if name:
            general: x509.GeneralName = (
                x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
            )
            builder = builder.add_extension(x509.SubjectAlternativeName([general]), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def server_context(self, folder: Path, name: str) -> ssl.SSLContext:
        """For a server of that name, which asks clients for a certificate and can do without."""
        file = folder / f"{name}.pem"
        file.write_bytes(self.issue(name))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        context.load_verify_locations(cadata=self.pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context
