"""Java programs from Maven: download the dependencies of a pom into the cache, and find the Java that runs them."""

import hashlib
import os
import re
from pathlib import Path

from devstack import cache
from devstack.programs import require, run
from devstack.server import DevstackError, Say

#: folder with the poms of the servers
POMS = Path(__file__).parent / "poms"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def resolve(pom: Path, say: Say = lambda _: None) -> Path:
    """Return the folder with the runtime jars of this pom and the contents of its archives (tar.gz).

    The folder depends only on the name and the text of the pom.
    """
    if not pom.is_file():
        raise DevstackError(f"there is no pom {pom}")
    digest = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]

    def build(folder: Path) -> None:
        missing = "Maven is needed to download jars; install maven"
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
    """Return the path of a Java 17 or newer: the one in JAVA_HOME if that is set, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    missing = (
        f"{program} needs a Java 17 runtime or a newer one; install openjdk-17-jre-headless or default-jre-headless"
    )
    found = require(f"{home}/bin/java" if home else "java", "default-jre-headless", missing, say)
    version = re.search(r'version "(\d+)', run("java -version", [found, "-version"]))
    if not version or int(version[1]) < 17:
        raise DevstackError(f"{missing} ({found} is too old)")
    return found
