"""Jars from Maven: what a pom depends on, copied into the cache once."""

import hashlib
from pathlib import Path

from devstack import cache
from devstack.programs import require, run
from devstack.server import DevstackError, Say

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def resolve(pom: Path, say: Say = lambda _: None) -> Path:
    """Return the folder that holds the runtime jars of this pom; the same text of a pom gives the same folder."""
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

    return cache.installed(f"jars-{pom.stem}-{digest}", build)
