"""Security settings of Kafka's clients: each invalid setting is one error line, and secrets are never shown."""

from pathlib import Path

import pytest

from databus_core.errors import InvalidSettings
from databus_core.settings import Settings, load
from devstack.certificates import Authority

SCRAM = "mechanism: SCRAM-SHA-512, username: databus"


def write(folder: Path, kafka: str) -> Path:
    path = folder / "databus.yaml"
    path.write_text(f"name: shop\nkafka: {kafka}".replace("FOLDER", str(folder)))
    return path


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with certificates and a password."""
    authority = Authority(tmp_path)
    authority.issue("client")
    authority.issue("locked", password="open sesame")
    (tmp_path / "password").write_text("hunter2\n")
    return tmp_path


def load_kafka(folder: Path, kafka: str) -> Settings:
    return load(write(folder, kafka))


def test_a_login_over_tls_is_read(files: Path) -> None:
    settings = load_kafka(
        files,
        f"{{security_protocol: SASL_SSL, sasl: {{{SCRAM}, password_file: FOLDER/password}}, "
        "tls: {ca_file: FOLDER/ca.pem, cert_file: FOLDER/locked.pem, key_password: open sesame}}",
    )
    sasl = settings.kafka.sasl
    assert sasl and sasl.password.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(settings)
    assert "sesame" not in repr(settings)


def test_security_settings_can_come_from_the_environment_alone(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in {
        "SECURITY_PROTOCOL": "SASL_SSL",
        "SASL__MECHANISM": "OAUTHBEARER",
        "SASL__OAUTH__TOKEN_URL": "https://idp.example/token",
        "SASL__OAUTH__CLIENT_ID": "databus",
        "SASL__OAUTH__CLIENT_SECRET_FILE": f"{files}/password",
        "TLS__CA_FILE": f"{files}/ca.pem",
    }.items():
        monkeypatch.setenv(f"DATABUS__KAFKA__{variable}", value)
    sasl = load_kafka(files, "{}").kafka.sasl
    assert sasl and sasl.oauth
    assert sasl.oauth.client_secret.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(sasl)


@pytest.mark.parametrize(
    ("kafka", "message"),
    [
        ("{security_protocol: TLS}", "kafka.security_protocol: must be 'PLAINTEXT', 'SSL', "),
        ("{security_protocol: SASL_SSL}", "kafka: security_protocol SASL_SSL needs sasl"),
        (
            f"{{security_protocol: SSL, sasl: {{{SCRAM}, password: x}}}}",
            "kafka: sasl needs security_protocol SASL_SSL or SASL_PLAINTEXT, it is SSL",
        ),
        (
            f"{{security_protocol: SASL_PLAINTEXT, sasl: {{{SCRAM}, password: x}}, tls: {{}}}}",
            "kafka: tls needs security_protocol SSL or SASL_SSL, it is SASL_PLAINTEXT",
        ),
        ("{sasl: {username: x}}", "kafka.sasl.mechanism: is missing"),
        (f"{{sasl: {{{SCRAM}}}}}", "kafka.sasl: mechanism SCRAM-SHA-512 needs username, and password or password_file"),
        ("{sasl: {mechanism: PLAIN, password: x}}", "kafka.sasl: mechanism PLAIN needs username, and password"),
        (
            f"{{sasl: {{{SCRAM}, password_file: FOLDER/none}}}}",
            "kafka.sasl: password_file cannot be read: No such file",
        ),
        ("{sasl: {mechanism: OAUTHBEARER}}", "kafka.sasl: mechanism OAUTHBEARER needs oauth, with token_url and"),
        (
            "{sasl: {mechanism: OAUTHBEARER, username: x, oauth: {token_url: 'https://a/b', client_id: c}}}",
            "kafka.sasl: mechanism OAUTHBEARER takes no username or password: set client_id and client_secret in oauth",
        ),
        (
            f"{{sasl: {{{SCRAM}, password: x, oauth: {{token_url: 'https://a/b', client_id: c}}}}}}",
            "kafka.sasl: oauth is for mechanism OAUTHBEARER, not for SCRAM-SHA-512",
        ),
        (
            "{sasl: {mechanism: OAUTHBEARER, oauth: {token_url: 'https://c:s3cret@a/b', client_id: c}}}",
            "kafka.sasl.oauth.token_url: the URL must not contain a login",
        ),
        ("{tls: {ca_file: FOLDER/none.pem}}", "kafka.tls: FOLDER/none.pem: No such file"),
        ("{tls: {key_file: FOLDER/client.pem}}", "kafka.tls: key_file needs a cert_file"),
        ("{tls: {cert_file: FOLDER/ca.pem}}", "kafka.tls: FOLDER/ca.pem: no PEM certificate with its private key, or "),
        (
            "{tls: {cert_file: FOLDER/locked.pem}}",
            "kafka.tls: FOLDER/locked.pem: no PEM certificate with its private key, or the key is encrypted "
            "and no password is set",
        ),
        (
            "{tls: {cert_file: FOLDER/locked.pem, key_password: wrong}}",
            "kafka.tls: FOLDER/locked.pem: no PEM certificate with its private key, or the key's password is wrong",
        ),
    ],
)
def test_an_invalid_setting_is_reported_in_one_line(files: Path, kafka: str, message: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load_kafka(files, kafka)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{files}/databus.yaml: {message}".replace("FOLDER", str(files)))
