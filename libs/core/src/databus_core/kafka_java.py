"""Turn the section `kafka` into the settings of Kafka's Java clients, which Spark uses.

Certificates and keys are passed as text, not as files, so the machines of Spark's executors need no files. Java would
also accept only a single file with the client's certificate and key, and can read neither a key that OpenSSL encrypted
nor a key in a format older than PKCS#8.
"""

import re
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from databus_core.errors import InvalidSettings
from databus_core.settings import Kafka
from databus_core.settings.kafka import KafkaSasl
from databus_core.settings.tls import ClientTls

#: regular expression, as Java writes it, of the names of settings whose values are secret
SECRETS = r"(?i)secret|password|token|(access|account|private|encryption)[.]?key|jaas|keystore[.]key"

_MODULES = "org.apache.kafka.common.security"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
#: character in a quoted JAAS value → its escape sequence
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})


def java_settings(kafka: Kafka) -> dict[str, str]:
    """Return the settings of a Java client. Raises InvalidSettings if a file cannot be read or has no usable key."""
    settings = {
        "bootstrap.servers": ",".join(kafka.bootstrap_servers),
        "security.protocol": kafka.security_protocol,
    }
    if kafka.tls:
        settings |= _tls(kafka.tls)
    if kafka.sasl:
        settings |= _sasl(kafka.sasl)
    return settings


def _tls(tls: ClientTls) -> dict[str, str]:
    settings: dict[str, str] = {}
    if tls.ca_file:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _certificates(tls.ca_file)}
    if tls.cert_file:
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _certificates(tls.cert_file),
            "ssl.keystore.key": _key(tls.key_file or tls.cert_file, tls.key_password.get_secret_value()),
        }
    if not tls.verify_hostname:
        settings["ssl.endpoint.identification.algorithm"] = ""
    return settings


def _certificates(file: Path) -> str:
    return "\n".join(_CERTIFICATE.findall(_read(file).decode()))


def _key(file: Path, password: str) -> str:
    """Read a private key, and return it as unencrypted PKCS#8 text."""
    try:
        key = load_pem_private_key(_read(file), password.encode() or None)
    except (TypeError, ValueError) as error:  # TypeError: a password for a key that needs none
        raise InvalidSettings(f"kafka.tls: {file}: no private key that Spark can use: {error}") from error
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidSettings(f"kafka.tls: {file}: {error.strerror}") from error


def _sasl(sasl: KafkaSasl) -> dict[str, str]:
    settings = {"sasl.mechanism": sasl.mechanism}
    password = sasl.password.get_secret_value()
    if oauth := sasl.oauth:
        options = {"clientId": oauth.client_id, "clientSecret": oauth.client_secret.get_secret_value()}
        if oauth.scope:
            options["scope"] = oauth.scope
        return settings | {
            "sasl.jaas.config": _jaas("oauthbearer.OAuthBearerLoginModule", options),
            "sasl.login.callback.handler.class": f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": oauth.token_url,
        }
    module = "plain.PlainLoginModule" if sasl.mechanism == "PLAIN" else "scram.ScramLoginModule"
    return settings | {"sasl.jaas.config": _jaas(module, {"username": sasl.username, "password": password})}


def _jaas(module: str, options: dict[str, str]) -> str:
    values = " ".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in options.items())
    return f"{_MODULES}.{module} required {values};"
