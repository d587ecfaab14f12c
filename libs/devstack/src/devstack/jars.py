"""Programs from Maven: what a pom depends on, put into the cache once, and the Java that runs it."""

import hashlib
import os
import re
from pathlib import Path

from devstack import cache
from devstack.programs import require, run
from devstack.server import DevstackError, Say

#: of our own servers
POMS = Path(__file__).parent / "poms"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def resolve(pom: Path, say: Say = lambda _: None) -> Path:
    """Return the folder that holds the runtime jars of this pom, and what its archives (tar.gz) hold.

    The same text of a pom gives the same folder.
    """
    if not pom.is_file():
        raise DevstackError(f"there is no pom {pom}")
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]

    def build(folder: Path) -> None:
        missing = "jars are fetched by Maven; install maven"
        maven = [
            require("mvn", "maven", missing, say),
            "--batch-mode",
            "--quiet",
            "--no-transfer-progress",
            "-Dstyle.color=never",
        ]
        say(f"downloading the jars of {pom.name}")
        goal = [_COPY, "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        run(f"Maven with {pom.name}", [*maven, "--file", str(pom.resolve()), *goal])
        for archive in folder.glob("*.tar.gz"):
            run(f"unpacking {archive.name}", ["tar", "-xzf", str(archive), "--no-same-owner", "-C", str(folder)])
            archive.unlink()

    return cache.installed(f"jars-{pom.stem}-{digest}", build)


def java(program: str, say: Say = lambda _: None) -> str:
    """Find the Java that is to run a program: the one of JAVA_HOME or else of the path, 17 or newer."""
    home = os.environ.get("JAVA_HOME")
    missing = (
        f"{program} needs a Java 17 runtime or a newer one; install openjdk-17-jre-headless or default-jre-headless"
    )
    found = require(f"{home}/bin/java" if home else "java", "default-jre-headless", missing, say)
    version = re.search(r'version "(\d+)', run("java -version", [found, "-version"]))
    if not version or int(version[1]) < 17:
        raise DevstackError(f"{missing} ({found} is too old)")
    return found
