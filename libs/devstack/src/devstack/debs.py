"""Use Debian packages without installing them: unpack them with their dependencies, and use the unpacked loader.

This needs no root, starts no system service, and allows packages of a suite with a newer C library than the system's.
"""

import platform
import shutil
from pathlib import Path
from typing import Literal

from devstack.programs import run
from devstack.server import CHROMIUM, VARIABLES, DevstackError, Kind, Say

UNSTABLE = "unstable"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_UNWANTED = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/perl", "./usr/lib/*/perl")


def unpack(
    kind: Kind | Literal["chromium"],
    package: str,
    into: Path,
    say: Say,
    *,
    suite: str | None = None,
    alone: str = "",
) -> None:
    """Download a package with its dependencies from `suite`, by default the machine's own, and unpack them.

    The package `alone` is unpacked too, without its dependencies.
    """
    variable = CHROMIUM if kind == "chromium" else VARIABLES[kind][0]
    otherwise = f"set {variable} to use an existing {'program' if kind == 'chromium' else 'server'}"
    if not shutil.which("apt-get"):
        raise DevstackError(f"{kind} is installed from Debian packages, and there is no apt-get; {otherwise}")
    state = into / "apt"
    for folder in ("sources", "preferences", "lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True)
    (state / "status").touch()
    (state / "sources" / "devstack.sources").write_text(_sources(suite))
    options = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": state / "sources",
        "Dir::Etc::PreferencesParts": state / "preferences",
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::Cache": state,
        "APT::Sandbox::User": "",
        "APT::Install-Recommends": "false",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::Retries": "3",
    }
    apt = ["apt-get", "-qy", *(part for name, value in options.items() for part in ("-o", f"{name}={value}"))]
    say("reading package lists")
    try:
        run(f"apt-get update for {package}", [*apt, "update"])
    except DevstackError as error:
        raise DevstackError(
            f"{error} ({kind} needs Debian's suite {suite}; {otherwise})" if suite else str(error)
        ) from error
    say(f"downloading {package}")
    run(f"apt-get download of {package}", [*apt, "--download-only", "install", package])
    if alone:
        run(f"apt-get download of {alone}", [*apt, "download", alone], cwd=state / "archives")
    say(f"unpacking {package}")
    excluded = [f"--exclude={path}" for path in _UNWANTED]
    for deb in sorted((state / "archives").glob("*.deb")):
        extract = ["sh", "-c", 'deb=$1 into=$2; shift 2; dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$into" "$@"']
        run(f"unpacking {deb.name}", [*extract, "unpack", str(deb), str(into), *excluded])
    shutil.rmtree(state)


def _sources(suite: str | None) -> str:
    """Return the machine's own apt sources as text, with `suite`, if given, in place of their suites."""
    system = platform.freedesktop_os_release()
    own = system.get("VERSION_CODENAME", "")
    distributions = {system.get("ID", ""), *system.get("ID_LIKE", "").split()}
    columns = "$(REPO_URI) $(RELEASE) $(ORIGIN)"
    main = ["Created-By: Packages", "Component: main"]
    shown = run("reading the apt sources", ["apt-get", "indextargets", "--format", columns, *main])
    targets = sorted({tuple(line.split(maxsplit=2)) for line in shown.splitlines()})
    wanted = [
        (uri, suite or release)
        for uri, release, *origin in targets  # apt knows no origins before its first update
        if own and (release == own or (not suite and release.startswith(f"{own}-")))
        if not origin or origin[0].lower() in distributions
    ]
    if not wanted:
        raise DevstackError(
            f"apt has no source of Debian packages for this machine's release ({own or 'unknown'}): "
            "add one in /etc/apt/sources.list.d"
        )
    signed = f"Signed-By: {_KEYRING}\n" if _KEYRING.exists() else ""
    return "\n".join(f"Types: deb\nURIs: {uri}\nSuites: {name}\nComponents: main\n{signed}" for uri, name in wanted)


def command(root: Path, program: str) -> list[str]:
    """Return the command line that runs an unpacked program with the unpacked libraries; arguments can be appended."""
    triplet = f"{platform.machine()}-linux-gnu"
    libraries = [folder for folder in (root / "usr/lib" / triplet, root / "lib" / triplet) if folder.is_dir()]
    loader = next(path for folder in libraries for path in folder.glob("ld-linux*.so.*"))
    path = ":".join(str(folder) for folder in libraries)
    return [str(loader), "--inhibit-cache", "--library-path", path, str(root / program)]
