"""A certificate authority in a folder, for servers and clients on 127.0.0.1."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID


class Authority:
    """Issues certificates for 127.0.0.1, which are valid from 30 days ago until `days` from now.

    It writes each certificate to a file in `folder`, together with the key. `ca` is the path of the authority's own
    certificate, without the key.
    """

    def __init__(self, folder: Path, days: int = 1) -> None:
        self.folder = folder
        self.days = days
        self.ca = folder / "ca.pem"
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.ca.write_bytes(self._sign(self._name, self._key, days, ca=True).public_bytes(Encoding.PEM))

    def issue(self, name: str, days: int | None = None, password: str = "") -> Path:
        """Write a certificate and its key to a file, and return the path of the file.

        With a password, the key is encrypted. With a negative `days`, the certificate has expired.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        encryption: KeySerializationEncryption = NoEncryption()
        if password:
            encryption = BestAvailableEncryption(password.encode())
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        certificate = self._sign(subject, key, self.days if days is None else days, ca=False)
        file = self.folder / f"{name}.pem"
        file.touch(mode=0o600)
        file.write_bytes(certificate.public_bytes(Encoding.PEM) + secret)
        return file

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: int, *, ca: bool) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
        return (
            builder.not_valid_before(now - timedelta(days=30))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
            .sign(self._key, SHA256())
        )
