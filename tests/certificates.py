"""Certificates for tests of TLS."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """Issues certificates for 127.0.0.1 into a folder, each as one file with its key; its own is `ca`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = folder / "ca.pem"
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.ca.write_bytes(self._sign(self._name, self._key, 1, ca=True).public_bytes(Encoding.PEM))

    def issue(self, name: str, days: int = 1) -> Path:
        """Write a certificate and its key that are valid for so many days more, or have not been for so many."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file = self.folder / f"{name}.pem"
        file.write_bytes(self._sign(subject, key, days, ca=False).public_bytes(Encoding.PEM) + secret)
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
