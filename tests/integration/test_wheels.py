"""The wheels work in environments that, besides them, have only the packages that `requirements/` locks."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from databus_messages import formats
from golden.cases import Case, path, without_volatile

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
LIBRARIES = [file.parent for file in sorted(ROOT.glob("libs/*/pyproject.toml")) if file.parent.name != "devstack"]

Install = Callable[[str, str], Path]


def uv(*arguments: str | Path) -> None:
    subprocess.run([UV, "--quiet", *arguments], check=True, timeout=300)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel of each library but devstack, of the reader and of dump-api."""
    folder = tmp_path_factory.mktemp("wheels")

    def build(member: Path) -> None:
        copy = folder / "src" / member.name
        shutil.copytree(member, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        reuse_compiled(copy)
        uv("build", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", folder, copy)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(build, [*LIBRARIES, ROOT / "services" / "reader", ROOT / "services" / "dump-api"]))
    return folder


def reuse_compiled(member: Path) -> None:
    """Save minutes of compiling: move the modules from `make setup` to where setuptools expects them."""
    built = member / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for module in (member / "src").rglob("*.so"):
        target = built / module.relative_to(member / "src")
        target.parent.mkdir(parents=True, exist_ok=True)
        module.rename(target)
        target.touch()


@pytest.fixture(scope="module")
def install(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Install as the images do: what is locked, then the distribution with those of our libraries that it needs."""

    def run(distribution: str, lock: str) -> Path:
        environment = tmp_path_factory.mktemp(distribution)
        python = environment / "bin" / "python"
        uv("venv", "--python", sys.executable, environment)
        locked = (
            "pip",
            "install",
            "--python",
            python,
            "--no-deps",
            "--require-hashes",
            "-r",
            f"{ROOT}/requirements/{lock}",
        )
        try:
            uv(*locked, "--offline")
        except subprocess.CalledProcessError:  # not all locked packages are in uv's cache
            uv(*locked)
        uv("pip", "install", "--python", python, "--no-index", "--find-links", wheels, distribution)
        uv("pip", "check", "--python", python)
        return environment / "bin"

    return run


@pytest.fixture(scope="module")
def databus(install: Install) -> Path:
    return install("databus-cli", "cli.txt") / "databus"


def run(*command: str | Path) -> subprocess.CompletedProcess[bytes]:
    # Outside of the repository, and without the tests' environment variables.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DATABUS"))}
    return subprocess.run(command, check=False, capture_output=True, cwd="/", env=environment, timeout=60)


@pytest.mark.parametrize("format_name", ["canal-json", "canal-protobuf"])
def test_the_installed_command_decodes_a_binlog(databus: Path, format_name: str) -> None:
    case = Case(format_name)
    done = run(databus, "binlog", ROOT / "tests" / "golden" / "mariadb.bin", "--format", format_name, "--quiet")
    assert done.returncode == 0
    assert without_volatile(case, done.stdout) == path("mariadb", case).read_bytes()


def test_the_installed_command_lists_all_formats(databus: Path) -> None:
    shown = run(databus, "binlog", "--help").stdout.decode()
    assert all(name in shown for name in formats.known())


def test_the_installed_reader_names_the_package_of_a_missing_engine(install: Install, tmp_path: Path) -> None:
    program = install("databus-reader", "reader.txt") / "databus-reader"
    config = tmp_path / "databus.yaml"
    config.write_text("{name: shop, reader: {engine: mysql-replication}}")
    done = run(program, "--config", config, "--check")
    assert done.returncode == 78
    [line] = done.stderr.decode().splitlines()
    assert (
        "reader.engine: mysql-replication is not installed: "
        "pip install 'databus-reader[mysql-replication]', or set it to native"
    ) in line


@pytest.mark.parametrize(
    "member", [member for member in LIBRARIES if (member / "setup.py").exists()], ids=lambda member: member.name
)
def test_a_source_distribution_has_all_sources_and_no_generated_code(member: Path, tmp_path: Path) -> None:
    copy = tmp_path / member.name
    shutil.copytree(member, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "*.so", "__pycache__"))
    sources = {str(file.relative_to(copy)) for file in copy.rglob("*.*") if file.suffix not in {".cpp", ".md"}}
    uv("build", "--sdist", "--no-build-isolation", "--python", sys.executable, "--out-dir", tmp_path, copy)
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert not sources - names
    assert not [name for name in names if name.endswith(".cpp")]


def list_files(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as packed:
        return packed.namelist()


def test_wheels_hold_no_sources_of_compiled_modules(wheels: Path) -> None:
    names = [name for wheel in wheels.glob("*.whl") for name in list_files(wheel)]
    assert any(name.startswith("databus_binlog/decoder.") and name.endswith(".so") for name in names)
    assert not [name for name in names if name.endswith((".cpp", ".hpp", ".pxd", ".pxi", ".pyx"))]
    assert {name.partition("/")[0] for name in names if name.endswith("/py.typed")} >= {"databus", "databus_binlog"}


def test_the_wheel_of_dump_api_has_the_operations_page(wheels: Path) -> None:
    [wheel] = wheels.glob("databus_dump_api-*.whl")
    folder = ROOT / "services" / "dump-api" / "src"
    assert {str(file.relative_to(folder)) for file in folder.glob("databus_dump_api/page/*")} <= {*list_files(wheel)}
