"""Every client of Kafka against a broker as managed ones are: a password over TLS (SCRAM), and a client certificate."""

import asyncio
import copy
import gc
import json
import re
import secrets
import sys
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from time import time
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from pyspark.sql import DataFrame, SparkSession

from databus.errors import DatabusError, InvalidSettings, KafkaUnavailable
from databus.events import Action
from databus.kafka_client import admin
from databus.kafka_history import read_history
from databus.kafka_java import java_settings
from databus.kafka_topics import partition_counts
from databus.runtime import Health
from databus.settings import Kafka, Settings
from databus.settings import Spark as SparkSection
from databus_cli.__main__ import main
from databus_dump_api.snapshot import end_offsets
from databus_publisher.producer import open_producer
from databus_publisher.topics import open_topics
from databus_spark_sink import service as sink
from databus_spark_sink.lake import LakeLayout
from databus_spark_sink.offsets import check_kafka
from databus_spark_sink.session import open_session
from devstack import Server, Stack
from devstack.certificates import Authority
from devstack.jars import resolve
from devstack.pipeline import Pipeline
from dump_support import Api, publish
from sink_support import DumpServer, SamplePublisher, read, serving, table
from support import Consume, Execute, MakePipeline
from token_endpoint import TokenEndpoint
from token_endpoint import serving as serving_tokens

#: py4j leaves the connection of a thread that has ended to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")

Section = dict[str, Any]
ITEMS = table("items", "id int(11)", "name varchar(20)")


@pytest.fixture(scope="session")
def kafka(secure_kafka: Server) -> Server:
    """The listener that the tests themselves use, without a login."""
    return secure_kafka


@pytest.fixture
def source(mariadb: Server) -> Server:
    return mariadb


@pytest.fixture(scope="session")
def folder(devstack: Stack, secure_kafka: Server) -> Path:
    return devstack.home / secure_kafka.kind


@pytest.fixture(scope="session")
def sections(folder: Path) -> dict[str, Section]:
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in ("scram", "mtls")}


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("stranger"))
    authority.issue("client")
    return authority


@pytest.fixture(params=["scram", "mtls"])
def section(request: pytest.FixtureRequest, sections: dict[str, Section]) -> Section:
    """What a configuration says of Kafka."""
    return sections[request.param]


def but(section: Section, **changed: Any) -> Section:
    """Change keys of a section, or of sections in it."""
    section = copy.deepcopy(section)
    for key, value in changed.items():
        section[key] = section.get(key, {}) | value if isinstance(value, dict) else value
    return section


# --- every service, by a password and by a certificate ----------------------------------------------------------------


async def deadletter(pipeline: Pipeline, *arguments: str) -> str:
    """Run `databus deadletter` and give what it says."""
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).parent / "databus",
        "deadletter",
        *arguments,
        "--config",
        pipeline.config,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_rows_dumps_and_dead_letters_pass(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume, section: Section
) -> None:
    pipeline = make_pipeline(source, schema, kafka=section)
    topic, elsewhere = f"{pipeline.name}.{schema}.t", f"{pipeline.name}.replayed"
    consumer = await changes(topic, **{"max.message.bytes": "3000"})
    replayed = await changes(elsewhere)
    await execute("CREATE TABLE t (id INT PRIMARY KEY, name TEXT)")
    pipeline.start_all("publisher", "reader", "dump-api")

    await execute(f"INSERT INTO t VALUES (1, '{'x' * 5000}')")
    await execute("INSERT INTO t VALUES (2, 'two')")
    assert [message["Rows"] for message in await consumer.until(1)] == [[[b"2", b"two"]]]

    letter = json.loads(await deadletter(pipeline, "list", "--json"))
    assert (letter["reason"], letter["topic"]) == ("too_large", topic)
    assert await deadletter(pipeline, "replay", "--to", elsewhere) == "databus: replayed: 1, left: 0\n"
    assert [message["Rows"] for message in await replayed.until(1)] == [[[b"1", b"x" * 5000]]]

    async with Api(base_url=pipeline.url("dump-api")) as api:
        manifest = await api.dumped(f"{schema}.t")
    assert manifest["kafka_offsets"][topic]["0"] > 0


@pytest.fixture(scope="session")
def jars(pytestconfig: pytest.Config) -> Path:
    return resolve(pytestconfig.rootpath / "services/spark-sink/pom.xml")


@pytest.fixture(scope="session")
def spark(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        spark = open_session(SparkSection(jars=jars), LakeLayout(tmp_path_factory.mktemp("spark").as_uri()))
    yield spark
    spark.stop()


async def test_spark_feeds_the_lake_writes_no_secret_there_and_says_why_it_is_refused(
    spark: SparkSession, kafka: Server, jars: Path, section: Section, stranger: Authority, tmp_path: Path
) -> None:
    name = f"sink-{secrets.token_hex(3)}"
    dumps, lake = DumpServer(tmp_path, name), LakeLayout((tmp_path / "lake").as_uri())
    async with serving(dumps) as url, SamplePublisher(name, kafka.url) as feed:
        spark_section = {"lake": (tmp_path / "lake").as_uri(), "tables": ["shop.*"], "jars": jars}

        async def run(kafka: Section) -> None:
            settings = Settings(name=name, kafka=kafka, dumps={"url": url}, spark=spark_section)
            await sink.keep_up_to_date(settings, Health(), spark, lake, until_idle=True)

        await feed.send((ITEMS, Action.INSERT, [[b"1", b"one"]]))
        manifest = dumps.manifest(feed.position, {ITEMS: [[b"1", b"one"]]}, kafka_offsets=dict(feed.offsets))
        dumps.manifests.append(manifest)
        await feed.send((ITEMS, Action.INSERT, [[b"2", b"two"]]))
        await run(section)
        mirror = read(lake.mirror("shop", "items"), "SELECT * FROM t ORDER BY id")
        assert [tuple(row.values()) for row in mirror] == [(1, "one"), (2, "two")]

        secret = section.get("sasl", {}).get("password", "PRIVATE KEY").encode()
        written = [path for path in lake.root.rglob("*") if path.is_file()]
        assert written
        assert not any(secret in path.read_bytes() for path in written)

        # From now on Spark is the first to connect: its checkpoint says where to begin.
        wrong, setting = (
            (but(section, sasl={"password": "wrong"}), "kafka.sasl.password")
            if "sasl" in section
            else (but(section, tls={"cert_file": str(stranger.folder / "client.pem")}), "kafka.tls.cert_file")
        )
        with pytest.raises(InvalidSettings, match=re.escape(setting)):
            await run(wrong)


# --- other ways to log in ---------------------------------------------------------------------------------------------


async def count_topics(section: Section) -> int:
    async with admin(Kafka.model_validate(section)) as client:
        return len(await partition_counts(client))


@pytest.fixture
async def topic(kafka: Server) -> str:
    """A topic that holds one record."""
    name = f"one-{secrets.token_hex(3)}"
    await publish(kafka, name, b"record")
    return name


def read_by_spark(spark: SparkSession, section: Section, topic: str) -> DataFrame:
    options = {f"kafka.{name}": value for name, value in java_settings(Kafka.model_validate(section)).items()}
    return spark.read.format("kafka").options(**options, subscribe=topic, startingOffsets="earliest").load()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_other_mechanisms_let_in(
    spark: SparkSession, sections: dict[str, Section], topic: str, mechanism: str
) -> None:
    section = but(sections["scram"], sasl={"mechanism": mechanism})
    assert await count_topics(section) > 0
    assert read_by_spark(spark, section, topic).count() == 1
    with pytest.raises(InvalidSettings, match=f"user 'databus' by {mechanism}: Authentication failed"):
        await count_topics(but(section, sasl={"password": "wrong"}))


async def test_a_key_may_be_encrypted_and_in_a_file_of_its_own(
    spark: SparkSession, sections: dict[str, Section], topic: str, folder: Path, tmp_path: Path
) -> None:
    pem = (folder / "client.pem").read_text()
    at = pem.index("-----BEGIN PRIVATE KEY")
    (tmp_path / "cert.pem").write_text(pem[:at])
    key = load_pem_private_key(pem[at:].encode(), None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open sesame"))
    (tmp_path / "key.pem").write_bytes(encrypted)
    (tmp_path / "key-password").write_text("open sesame\n")
    files = {"cert_file": "cert.pem", "key_file": "key.pem", "key_password_file": "key-password"}
    section = but(sections["mtls"], tls={name: str(tmp_path / file) for name, file in files.items()})
    assert await count_topics(section) > 0
    assert read_by_spark(spark, section, topic).count() == 1


def encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


class Signer:
    """Makes tokens that the broker trusts."""

    def __init__(self, keys: Path) -> None:
        self._key = rsa.generate_private_key(65537, 2048)
        numbers = self._key.public_key().public_numbers()
        public = {"n": encoded(numbers.n.to_bytes(256)), "e": encoded(numbers.e.to_bytes(3))}
        keys.write_text(json.dumps({"keys": [{"kty": "RSA", "kid": "test", "alg": "RS256", "use": "sig"} | public]}))

    def token(self) -> str:
        now = int(time())
        claims = {"sub": "databus", "scope": "kafka", "aud": "kafka", "iat": now, "exp": now + 300}
        parts = ({"alg": "RS256", "kid": "test"}, claims)
        text = ".".join(encoded(json.dumps(part).encode()) for part in parts)
        return f"{text}.{encoded(self._key.sign(text.encode(), padding.PKCS1v15(), SHA256()))}"


@pytest.fixture(scope="session")
def signer(folder: Path) -> Signer:
    return Signer(folder / "jwks.json")


@pytest.fixture
async def oauth(signer: Signer, sections: dict[str, Section]) -> AsyncIterator[Section]:
    """A section with an identity provider of the test's own."""
    async with serving_tokens(TokenEndpoint(signer.token, secret="s3cret")) as endpoint:
        login = {"token_url": endpoint.url, "client_id": "databus", "client_secret": "s3cret", "scope": "kafka"}
        yield sections["scram"] | {"sasl": {"mechanism": "OAUTHBEARER", "oauth": login}}


async def test_a_token_lets_in(spark: SparkSession, oauth: Section, topic: str) -> None:
    assert await count_topics(oauth) > 0
    assert await asyncio.to_thread(read_by_spark(spark, oauth, topic).count) == 1


async def test_a_client_without_a_token_is_told_by_whom(oauth: Section) -> None:
    oauth["sasl"]["oauth"] |= {"client_secret": "wrong"}
    with pytest.raises(InvalidSettings, match=r"token endpoint \S+ refuses client 'databus': unknown client"):
        await count_topics(oauth)


async def test_a_token_of_a_stranger_is_refused(sections: dict[str, Section], signer: Signer, tmp_path: Path) -> None:
    stranger = Signer(tmp_path / "jwks.json")
    async with serving_tokens(TokenEndpoint(stranger.token, secret="x")) as endpoint:
        login = {"token_url": endpoint.url, "client_id": "databus", "client_secret": "x"}
        section = sections["scram"] | {"sasl": {"mechanism": "OAUTHBEARER", "oauth": login}}
        said = r"refuses the login of OAuth client 'databus': .* \(check kafka\.sasl\.oauth\)"
        for client in (reader, publisher, dump_api, check_kafka, produce):
            with pytest.raises(InvalidSettings, match=said):
                await client(Settings(name="shop", kafka=section))


# --- Java's own settings ----------------------------------------------------------------------------------------------


def test_java_reads_any_password(spark: SparkSession, sections: dict[str, Section]) -> None:
    password = "a\\b\"c'd;e f=g\th\ni\rj//k/*l*/mäö€\U0001f98a{{}}"
    settings = java_settings(Kafka.model_validate(but(sections["scram"], sasl={"password": password})))
    java = spark._jvm
    config = java.java.util.HashMap()
    config.put("sasl.jaas.config", java.org.apache.kafka.common.config.types.Password(settings["sasl.jaas.config"]))
    context = java.org.apache.kafka.common.security.JaasContext.loadClientContext(config)
    (entry,) = context.configurationEntries()
    assert dict(entry.getOptions()) == {"username": "databus", "password": password}


def test_spark_shows_no_secret(spark: SparkSession, section: Section, topic: str, tmp_path: Path) -> None:
    settings = java_settings(Kafka.model_validate(section))
    options = {f"kafka.{name}": value for name, value in settings.items()}
    records = spark.readStream.format("kafka").options(**options, subscribe=topic, startingOffsets="earliest").load()
    writer = records.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    shown = query._jsq.explainInternal(True) + str(query.lastProgress)
    assert "KafkaScan" in shown
    for secret in (section.get("sasl", {}).get("password"), settings.get("ssl.keystore.key")):
        assert not secret or secret not in shown


# --- what is wrong is said in one line --------------------------------------------------------------------------------


def at_localhost(section: Section) -> Section:
    """Connect by a name that the broker's certificate does not have."""
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
        "(connect to a name that is in it, or set kafka.tls.verify_hostname to false)",
    ),
    "host-mtls": (
        "mtls",
        lambda section, _: at_localhost(section),
        "has a certificate that cannot be trusted: Hostname mismatch, certificate is not valid for 'localhost' "
        "(connect to a name that is in it, or set kafka.tls.verify_hostname to false)",
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
    async with open_topics(settings) as topics:
        await topics.ensure_progress()


async def dump_api(settings: Settings) -> None:
    await end_offsets(settings, set())


async def produce(settings: Settings) -> None:
    async with open_producer(settings):
        raise AssertionError


@pytest.mark.parametrize("client", [reader, publisher, dump_api, check_kafka, produce])
@pytest.mark.parametrize("wrong", WRONG)
async def test_a_wrong_setting_is_one_line(
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
async def test_the_command_line_says_it_too(
    sections: dict[str, Section], stranger: Authority, wrong: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    listener, change, said = WRONG[wrong]
    config = tmp_path / "databus.yaml"
    config.write_text(json.dumps({"name": "shop", "kafka": change(sections[listener], stranger)}))
    assert await asyncio.to_thread(main, ["deadletter", "list", "--config", str(config)]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize("wrong", ["password", "ca", "host", "certificate"])
async def test_a_service_ends_with_that_line(
    make_pipeline: MakePipeline, source: Server, sections: dict[str, Section], stranger: Authority, wrong: str
) -> None:
    listener, change, said = WRONG[wrong]
    pipeline = make_pipeline(source, "shop", kafka=change(sections[listener], stranger))
    pipeline.spawn("publisher")
    await asyncio.to_thread(pipeline.wait_ended, "publisher", 60)
    lines = [line for line in pipeline.log("publisher").read_text().splitlines() if " INFO " not in line]
    assert len(lines) == 1
    assert said in lines[0]


async def test_a_broker_that_refuses_while_another_lets_in_is_tried_again(section: Section) -> None:
    wrong = at_localhost(section)["bootstrap_servers"]
    both = Kafka.model_validate(but(section, bootstrap_servers=[*section["bootstrap_servers"], *wrong]))
    with pytest.raises(KafkaUnavailable, match="Hostname mismatch"):
        async with admin(both):
            raise KafkaConnectionError("lost")


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
async def test_a_port_of_another_protocol_is_a_question(sections: dict[str, Section], protocol: str) -> None:
    section = {"bootstrap_servers": sections["scram"]["bootstrap_servers"], "security_protocol": protocol}
    if protocol == "SSL":
        section["tls"] = sections["scram"]["tls"]
    with pytest.raises(DatabusError, match=rf"closed the connection: does this port speak {protocol} "):
        await count_topics(section)
