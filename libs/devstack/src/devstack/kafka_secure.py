"""Kafka with TLS listeners as in a managed service: one for clients that log in, one for clients with a certificate."""

import json
from pathlib import Path

from devstack.certificates import Authority
from devstack.engine import Instance
from devstack.kafka import Kafka, configure, fetch, format_log, jvm
from devstack.server import Kind, Say

_DAYS = 3650
_LISTENERS = """\
listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller},\
LOGIN://127.0.0.1:{login},MTLS://127.0.0.1:{mtls}
advertised.listeners=PLAINTEXT://127.0.0.1:{client},LOGIN://127.0.0.1:{login},MTLS://127.0.0.1:{mtls}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_SSL,MTLS:SSL
ssl.keystore.type=PEM
ssl.keystore.location={folder}/server.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
listener.name.mtls.ssl.client.auth=required
listener.name.login.sasl.enabled.mechanisms=SCRAM-SHA-512,SCRAM-SHA-256,PLAIN,OAUTHBEARER
listener.name.login.scram-sha-512.sasl.jaas.config={modules}.scram.ScramLoginModule required;
listener.name.login.scram-sha-256.sasl.jaas.config={modules}.scram.ScramLoginModule required;
listener.name.login.plain.sasl.jaas.config={modules}.plain.PlainLoginModule required user_{user}="{password}";
listener.name.login.oauthbearer.sasl.jaas.config={modules}.oauthbearer.OAuthBearerLoginModule required;
listener.name.login.oauthbearer.sasl.server.callback.handler.class=\
{modules}.oauthbearer.OAuthBearerValidatorCallbackHandler
listener.name.login.oauthbearer.sasl.oauthbearer.jwks.endpoint.url={keys}
listener.name.login.oauthbearer.sasl.oauthbearer.expected.audience=kafka
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
"""


class SecureKafka(Kafka):
    """A broker with two more listeners, over TLS: LOGIN, for each SASL mechanism of Databus, and MTLS, for mutual TLS.

    Accounts may do everything, except with a resource that has ACLs: then only what these allow.

    Its folder has `ca.pem`, `client.pem` (certificate and key), the public keys that verify OAUTHBEARER's tokens
    (`jwks.json`, at first without keys), and for each of the two listeners the section `kafka` of a configuration:
    `scram.json` for LOGIN, `mtls.json` for MTLS.
    """

    kind: Kind = "kafka-secure"
    user = "databus"
    ports = 4
    proxies = 0

    def install(self, say: Say) -> Path:
        """Fetch the jars."""
        return fetch(say)

    def command(self, installation: Path, instance: Instance) -> list[str]:
        """Write the configuration; at the first start, also certificates and a log directory with an account."""
        folder, controller = instance.folder, instance.ports[1]
        keys = (folder / "jwks.json").as_uri()
        properties = configure(folder, self._listeners(instance, keys), controller, instance.data)
        if not (instance.data / "meta.properties").exists():
            authority = Authority(folder, _DAYS)
            authority.issue("server")
            authority.issue("client")
            (folder / "jwks.json").write_text('{"keys": []}')
            login = f"[name={self.user},password={instance.password}]"
            accounts = [f"--add-scram=SCRAM-SHA-{bits}={login}" for bits in (256, 512)]
            format_log(installation, properties, *accounts)
        self._write_sections(instance)
        return [
            *jvm(installation, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}"),
            "kafka.Kafka",
            str(properties),
        ]

    def _listeners(self, instance: Instance, keys: str) -> str:
        return _LISTENERS.format(
            **dict(zip(("client", "controller", "login", "mtls"), instance.ports, strict=True)),
            folder=instance.folder,
            modules="org.apache.kafka.common.security",
            user=self.user,
            password=instance.password,
            keys=keys,
        )

    def _write_sections(self, instance: Instance) -> None:
        folder, (_, _, login, mtls) = instance.folder, instance.ports
        scram = {
            "bootstrap_servers": [f"127.0.0.1:{login}"],
            "security_protocol": "SASL_SSL",
            "sasl": {"mechanism": "SCRAM-SHA-512", "username": self.user, "password": instance.password},
            "tls": {"ca_file": f"{folder}/ca.pem"},
        }
        certificate = {
            "bootstrap_servers": [f"127.0.0.1:{mtls}"],
            "security_protocol": "SSL",
            "tls": {"ca_file": f"{folder}/ca.pem", "cert_file": f"{folder}/client.pem"},
        }
        for name, section in (("scram", scram), ("mtls", certificate)):
            (folder / f"{name}.json").write_text(json.dumps(section, indent=2))
