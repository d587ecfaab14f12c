"""Services, command line and Spark log in to a secure Kafka: by password over TLS, certificate or OAuth token."""

import asyncio
import json
import re
import secrets
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from pyspark.sql import DataFrame, SparkSession

from common.connections import Execute
from common.pipelines import Consume, MakePipeline
from common.spark import leaves_sockets
from common.token_endpoint import Signer, TokenEndpoint
from common.token_endpoint import serving as serving_tokens
from databus_core.errors import InvalidSettings
from databus_core.events import Action
from databus_core.kafka_java import java_settings
from databus_core.runtime import Health
from databus_core.settings import Kafka, Settings
from databus_spark.layout import Layout
from databus_spark_sink import service as sink
from devstack import Server
from devstack.certificates import Authority
from devstack.pipeline import Pipeline
from integration.dump_api import Api, produce
from integration.secure.settings import Section, but, count_topics
from integration.sink_peers import DumpServer, SamplePublisher, describe_table, read, serving

pytestmark = leaves_sockets

#: `make test` starts a sink only with a certificate
mostly_with_certificates = pytest.mark.parametrize(
    "section", [pytest.param("scram", marks=pytest.mark.lake), "mtls"], indirect=True
)
ITEMS = describe_table("items", "id int(11)", "name varchar(20)")


# --- every service, by a password and by a certificate ----------------------------------------------------------------


async def deadletter(pipeline: Pipeline, *arguments: str) -> str:
    """Run `databus deadletter` and return its output."""
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


async def test_services_can_publish_rows_and_take_dumps_and_replay_dead_letters(
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
        manifest = await api.take_dump(f"{schema}.t")
    assert manifest["kafka_offsets"][topic]["0"] > 0


@mostly_with_certificates
@pytest.mark.slow
async def test_the_sink_fills_the_lake_and_writes_no_secret_there_and_names_a_wrong_setting(
    spark: SparkSession, kafka: Server, jars: Path, section: Section, stranger: Authority, tmp_path: Path
) -> None:
    name = f"sink-{secrets.token_hex(3)}"
    dumps, lake = DumpServer(tmp_path, name), Layout((tmp_path / "lake").as_uri())
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
        assert [(row["id"], row["name"]) for row in mirror] == [(1, "one"), (2, "two")]

        secret = section.get("sasl", {}).get("password", "PRIVATE KEY").encode()
        written = [path for path in (tmp_path / "lake").rglob("*") if path.is_file()]
        assert written
        assert not any(secret in path.read_bytes() for path in written)

        # Kafka refuses access, and that is reported although there is nothing to read.
        wrong, setting = (
            (but(section, sasl={"password": "wrong"}), "kafka.sasl.password")
            if "sasl" in section
            else (but(section, tls={"cert_file": str(stranger.folder / "client.pem")}), "kafka.tls.cert_file")
        )
        with pytest.raises(InvalidSettings, match=re.escape(setting)):
            await run(wrong)


# --- other ways to log in ---------------------------------------------------------------------------------------------


@pytest.fixture
async def topic(kafka: Server) -> str:
    """A topic with one record."""
    name = f"one-{secrets.token_hex(3)}"
    await produce(kafka, name, b"record")
    return name


def read_by_spark(spark: SparkSession, section: Section, topic: str) -> DataFrame:
    options = {f"kafka.{name}": value for name, value in java_settings(Kafka.model_validate(section)).items()}
    return spark.read.format("kafka").options(**options, subscribe=topic, startingOffsets="earliest").load()


@pytest.mark.parametrize("mechanism", [pytest.param("PLAIN", marks=pytest.mark.slow), "SCRAM-SHA-256"])
async def test_other_sasl_mechanisms_log_in(
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


@pytest.fixture
async def oauth(signer: Signer, sections: dict[str, Section]) -> AsyncIterator[Section]:
    """A section with an identity provider of the test's own."""
    async with serving_tokens(TokenEndpoint(signer.token, secret="s3cret")) as endpoint:
        login = {"token_url": endpoint.url, "client_id": "databus", "client_secret": "s3cret", "scope": "kafka"}
        yield sections["scram"] | {"sasl": {"mechanism": "OAUTHBEARER", "oauth": login}}


async def test_a_token_logs_in(spark: SparkSession, oauth: Section, topic: str) -> None:
    assert await count_topics(oauth) > 0
    assert await asyncio.to_thread(read_by_spark(spark, oauth, topic).count) == 1


async def test_the_error_of_a_refused_client_secret_names_the_token_endpoint(oauth: Section) -> None:
    oauth["sasl"]["oauth"] |= {"client_secret": "wrong"}
    with pytest.raises(InvalidSettings, match=r"token endpoint \S+ refuses client 'databus': unknown client"):
        await count_topics(oauth)


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
