"""A wrong password, certificate or host is reported in one line that says what to do, by every client of Kafka."""

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiokafka.errors import KafkaConnectionError

from common.pipelines import MakePipeline
from common.token_endpoint import Signer, TokenEndpoint
from common.token_endpoint import serving as serving_tokens
from databus_cli.__main__ import main
from databus_core.change_topics import ChangeTopics
from databus_core.errors import DatabusError, InvalidSettings, KafkaUnavailable
from databus_core.kafka_client import admin
from databus_core.kafka_history import read_history
from databus_core.settings import Kafka, Settings
from databus_dump_api.preparation import end_offsets
from databus_publisher.producer import open_producer
from databus_publisher.topics import open_topics
from devstack import Server
from devstack.certificates import Authority
from integration.secure.settings import Section, but, count_topics


def at_localhost(section: Section) -> Section:
    """Name the broker by a host that its certificate does not contain."""
    return but(section, bootstrap_servers=[section["bootstrap_servers"][0].replace("127.0.0.1", "localhost")])


WRONG: dict[str, tuple[str, Callable[[Section, Authority], Section], str]] = {
    "password": (
        "scram",
        lambda section, _: but(section, sasl={"password": "wrong"}),
        "refuses the login of user 'databus' by SCRAM-SHA-512: Authentication failed during authentication due to "
        "invalid credentials with SASL mechanism SCRAM-SHA-512 (check kafka.sasl.username and kafka.sasl.password)",
    ),
    "ca": (
        "scram",
        lambda section, stranger: but(section, tls={"ca_file": str(stranger.ca)}),
        "has a certificate that cannot be trusted: unable to get local issuer certificate (check kafka.tls.ca_file)",
    ),
    "ca-mtls": (
        "mtls",
        lambda section, stranger: but(section, tls={"ca_file": str(stranger.ca)}),
        "has a certificate that cannot be trusted: unable to get local issuer certificate (check kafka.tls.ca_file)",
    ),
    "host": (
        "scram",
        lambda section, _: at_localhost(section),
        "has a certificate that cannot be trusted: Hostname mismatch, certificate is not valid for 'localhost' "
        "(connect to a name that the certificate contains, or set kafka.tls.verify_hostname to false)",
    ),
    "host-mtls": (
        "mtls",
        lambda section, _: at_localhost(section),
        "has a certificate that cannot be trusted: Hostname mismatch, certificate is not valid for 'localhost' "
        "(connect to a name that the certificate contains, or set kafka.tls.verify_hostname to false)",
    ),
    "certificate": (
        "mtls",
        lambda section, stranger: but(section, tls={"cert_file": str(stranger.folder / "client.pem")}),
        "does not accept this client's certificate: ",
    ),
}


async def reader(settings: Settings) -> None:
    await read_history(settings)


async def publisher(settings: Settings) -> None:
    async with open_topics(settings):
        raise AssertionError


async def dump_api(settings: Settings) -> None:
    await end_offsets(settings, set())


async def consumer(settings: Settings) -> None:
    await ChangeTopics(settings, ["shop.*"]).beginnings()


async def produce(settings: Settings) -> None:
    async with open_producer(settings):
        raise AssertionError


@pytest.mark.parametrize("client", [reader, publisher, dump_api, consumer, produce])
@pytest.mark.parametrize("wrong", WRONG)
async def test_a_wrong_setting_is_reported_in_one_line(
    sections: dict[str, Section],
    stranger: Authority,
    wrong: str,
    client: Callable[[Settings], Awaitable[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener, change, said = WRONG[wrong]
    section = change(sections[listener], stranger)
    with pytest.raises(InvalidSettings) as caught:
        await client(Settings(name="shop", kafka=section))
    text = str(caught.value)
    assert text.startswith(f"Kafka at {section['bootstrap_servers'][0]} {said}")
    assert len(text.splitlines()) == 1
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]


@pytest.mark.parametrize("wrong", WRONG)
async def test_the_command_line_reports_a_wrong_setting_in_one_line(
    sections: dict[str, Section], stranger: Authority, wrong: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    listener, change, said = WRONG[wrong]
    config = tmp_path / "databus.yaml"
    config.write_text(json.dumps({"name": "shop", "kafka": change(sections[listener], stranger)}))
    assert await asyncio.to_thread(main, ["deadletter", "list", "--config", str(config)]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize("wrong", ["password", "ca", "host", "certificate"])
async def test_a_service_with_a_wrong_setting_ends_with_one_line(
    make_pipeline: MakePipeline, source: Server, sections: dict[str, Section], stranger: Authority, wrong: str
) -> None:
    listener, change, said = WRONG[wrong]
    pipeline = make_pipeline(source, "shop", kafka=change(sections[listener], stranger))
    pipeline.spawn("publisher")
    await asyncio.to_thread(pipeline.wait_ended, "publisher", 60)
    lines = [line for line in pipeline.log("publisher").read_text().splitlines() if " INFO " not in line]
    assert len(lines) == 1
    assert said in lines[0]


async def test_a_token_of_an_unknown_issuer_is_refused(
    sections: dict[str, Section], signer: Signer, tmp_path: Path
) -> None:
    stranger = Signer(tmp_path / "jwks.json")
    async with serving_tokens(TokenEndpoint(stranger.token, secret="x")) as endpoint:
        login = {"token_url": endpoint.url, "client_id": "databus", "client_secret": "x"}
        section = sections["scram"] | {"sasl": {"mechanism": "OAUTHBEARER", "oauth": login}}
        said = r"refuses the login of OAuth client 'databus': .* \(check kafka\.sasl\.oauth\)"
        for client in (reader, publisher, dump_api, consumer, produce):
            with pytest.raises(InvalidSettings, match=said):
                await client(Settings(name="shop", kafka=section))


async def test_a_refused_connection_is_retryable_if_another_broker_accepts_the_login(section: Section) -> None:
    wrong = at_localhost(section)["bootstrap_servers"]
    both = Kafka.model_validate(but(section, bootstrap_servers=[*section["bootstrap_servers"], *wrong]))
    with pytest.raises(KafkaUnavailable, match="Hostname mismatch"):
        async with admin(both):
            raise KafkaConnectionError("lost")


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
async def test_the_error_for_a_port_that_speaks_another_protocol_asks_about_the_protocol(
    sections: dict[str, Section], protocol: str
) -> None:
    section = {"bootstrap_servers": sections["scram"]["bootstrap_servers"], "security_protocol": protocol}
    if protocol == "SSL":
        section["tls"] = sections["scram"]["tls"]
    with pytest.raises(DatabusError, match=rf"closed the connection: does this port speak {protocol} "):
        await count_topics(section)
