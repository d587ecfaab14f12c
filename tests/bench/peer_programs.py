"""Debezium, Maxwell and canal as Java programs: their jars from Maven Central, checked against a list of hashes."""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from environment import Environment, create
from served import CONSOLE

from devstack import cache, jars
from devstack.process import Process, spawn, tail
from devstack.programs import require, run
from devstack.server import DevstackError

#: for each program NAME.xml, its direct dependencies, and NAME.sha256, the hashes of all its jars
_POMS = Path(__file__).parent / "peers"
_SOURCES = Path(__file__).parent / "java"
_HOME = Path(".devstack/bench/peers")
#: The heap may grow to 2 GB, as in Kafka's own script for Connect. `spawn` switches Java's second compiler off, for
#: servers; peers are to be as fast as they can.
_JVM = ("-Xms256m", "-Xmx2g", "-XX:TieredStopAtLevel=4", f"-Dlog4j2.configurationFile={jars.POMS / 'kafka-log4j2.xml'}")


@dataclass(frozen=True)
class Running:
    """A system that has been started; it may not stream yet."""

    topic: str
    #: the system's own processes: name → process id
    pids: dict[str, int]
    #: has its logs
    folder: Path
    #: raises DevstackError if it has failed
    check: Callable[[], None]


def libraries(name: str) -> Path:
    """Return the folder with the jars of a program. Raises DevstackError unless they are exactly the listed ones."""
    folder = jars.resolve(_POMS / f"{name}.xml", CONSOLE.print)
    expected = dict(reversed(line.split()) for line in (_POMS / f"{name}.sha256").read_text().splitlines())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    if wrong := sorted(jar for jar in expected.keys() | found.keys() if expected.get(jar) != found.get(jar)):
        raise DevstackError(
            f"{folder} differs from {name}.sha256 in {', '.join(wrong)}: remove the folder, and try again"
        )
    return folder


def classes(classpath: Path) -> Path:
    """Return the folder with the compiled classes of the folder `java`."""
    sources = sorted(_SOURCES.rglob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]

    def build(folder: Path) -> None:
        javac = require("javac", "default-jdk-headless", "javac is needed; install a JDK 17", CONSOLE.print)
        run("javac", [javac, "-d", str(folder), "-cp", f"{classpath}/*", *map(str, sources)])

    return cache.installed(f"peers-{digest}", build)


@contextmanager
def java(main: list[str], topic: str, folder: Path, *classpath: str) -> Iterator[Running]:
    """Run a class with arguments, which writes to the topic, with the default options of Java but a limited heap."""
    command = [jars.java(main), *_JVM, "-cp", ":".join((*classpath, str(_SOURCES))), *main]
    process = spawn(command, folder / "log")
    try:
        yield Running(topic, {"java": process.pid}, folder, partial(require_alive, main[0], process, folder / "log"))
    finally:
        process.end(grace=20)


def new(system: str, env: Environment) -> tuple[str, str, Path]:
    """Return a new name, the topic of this name for table bench.t, which exists, and a private folder."""
    name = f"{system}-{secrets.token_hex(4)}"
    folder = (_HOME / name).resolve()
    folder.mkdir(parents=True, mode=0o700)
    create(env.kafka, f"{name}.bench.t")
    return name, f"{name}.bench.t", folder


def write_properties(path: Path, properties: Mapping[str, object]) -> str:
    """Write a file of Java properties that only we can read, and return its path."""
    path.touch(mode=0o600)
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return str(path)


def require_alive(program: str, process: Process, log: Path) -> None:
    """Raise DevstackError with the end of its log if a process has ended."""
    if not process.alive:
        raise DevstackError(f"{program} ended; the end of {log}:\n{tail(log)}")
