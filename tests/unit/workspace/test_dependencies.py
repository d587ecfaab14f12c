"""A distribution declares exactly what it imports.

A lock contains exactly the packages that its program declares, itself or through our libraries, and their dependencies.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
#: distributions that are installed from a lock of their own
INSTALLED = ["databus-cli", *(f"databus-{service}" for service in ("reader", "publisher", "dump-api", "spark-sink"))]
#: package that we may declare without importing it → package that imports it without declaring it
FOR_OTHERS = {"cryptography": "asyncmy", "pynacl": "asyncmy"}
OPTIONAL_ENGINE = "databus_binlog.mysql_replication"
_PYX_IMPORT = re.compile(r"^\s*(?:from ([\w.]+) import \(?([\w, ]*)|import ([\w.]+))", re.MULTILINE)


@dataclass(frozen=True)
class Member:
    """A distribution of this repository."""

    name: str
    #: requirements by extra; those under "" are always installed
    requires: dict[str, list[Requirement]]
    #: its modules by name
    modules: dict[str, Path]
    #: modules that its entry points name
    plugins: list[str]

    @property
    def declared(self) -> set[str]:
        """Names of all distributions that it requires, with or without an extra."""
        return {canonicalize_name(one.name) for requirements in self.requires.values() for one in requirements}


@dataclass
class Reached:
    """Everything that some modules import, directly or indirectly, except the standard library."""

    #: modules of this repository
    modules: set[str] = field(default_factory=set)
    #: imports from packages of others, as `imports` returns them
    others: set[str] = field(default_factory=set)


@cache
def members() -> dict[str, Member]:
    return {member.name: member for member in map(read_member, sorted(ROOT.glob("*/*/pyproject.toml")))}


def read_member(file: Path) -> Member:
    project = tomllib.loads(file.read_text())["project"]
    groups = {"": project["dependencies"]} | project.get("optional-dependencies", {})
    points = (point for group in project.get("entry-points", {}).values() for point in group.values())
    source = file.parent / "src"
    modules = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in source.rglob("*.py*")
        if path.suffix in {".py", ".pyx"}
    }
    requires = {extra: [Requirement(text) for text in texts] for extra, texts in groups.items()}
    return Member(project["name"], requires, modules, [point.partition(":")[0] for point in points])


@cache
def our_modules() -> dict[str, Path]:
    return {name: path for member in members().values() for name, path in member.modules.items()}


@cache
def our_packages() -> dict[str, str]:
    """Return the name of the distribution for each top-level package of this repository."""
    return {module.partition(".")[0]: member.name for member in members().values() for module in member.modules}


@cache
def imports(path: Path) -> frozenset[str]:
    """Return a module's imports, as `package.module` or `package.module.name`, without those under TYPE_CHECKING."""
    if path.suffix == ".pyx":
        texts = [path.read_text(), *(file.read_text() for file in path.parent.glob("*.pxi"))]
        found = [match for text in texts for match in _PYX_IMPORT.findall(text)]
        return frozenset(name for module, names, alone in found for name in _pyx_names(module, names, alone))
    return frozenset(_names(ast.parse(path.read_text()).body))


def _pyx_names(module: str, names: str, alone: str) -> Iterator[str]:
    yield module or alone
    for name in names.split(","):
        yield f"{module}.{name.split()[0]}" if name.split() else module


def _names(body: Iterable[ast.AST]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield from _names(node.orelse)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from _names(ast.iter_child_nodes(node))


def reached_from(start: Iterable[str]) -> Reached:
    """Follow the imports of modules of this repository.

    Whoever imports a module that looks up plugins also reaches all plugins of this repository. This does not apply if
    that module is imported only as the parent package of another one.
    """
    found, waiting = Reached(), set(start)
    while waiting:
        name = waiting.pop()
        found.modules.add(name)
        for target in imports(our_modules()[name]):
            if (top := target.partition(".")[0]) in sys.stdlib_module_names:
                continue
            if top not in our_packages():
                found.others.add(target)
                continue
            parts = target.split(".")
            parents = [".".join(parts[: end + 1]) for end in range(len(parts))]
            imported = [parent for parent in parents if parent in our_modules()]
            waiting.update(imported)
            if looks_up_plugins(imported[-1]):
                waiting.update(
                    plugin for member in members().values() for plugin in member.plugins if "databus_" in plugin
                )
        waiting -= found.modules
    return found


@cache
def looks_up_plugins(module: str) -> bool:
    return "importlib.metadata.entry_points" in imports(our_modules()[module])


def distributions_of(targets: Iterable[str]) -> set[str]:
    """Return the distributions that these imports are from."""
    return {canonicalize_name(name) for target in targets for name in _owners(target)}


@cache
def _owners(target: str) -> set[str]:
    top, *inner = target.split(".")
    names = set(_installed()[top])
    if len(names) == 1:
        return names
    folders = ["/".join([top, *inner[:depth]]) for depth in range(1, len(inner) + 1)]  # of a shared namespace
    files = {f"{folder}{end}" for folder in folders for end in (".py", "/__init__.py")}
    owners = {name for name in names if files & {str(file) for file in distribution(name).files or ()}}
    if not owners:
        raise LookupError(f"{target} is in none of the distributions that share {top}: {sorted(names)}")
    return owners


@cache
def _installed() -> Mapping[str, list[str]]:
    return packages_distributions()


def declared_by(name: str, extras: Iterable[str] = ()) -> dict[str, Requirement]:
    """Return, by name, the packages of others that a distribution requires, itself or through our distributions."""
    found: dict[str, Requirement] = {}
    wanted: dict[str, set[str]] = {}
    waiting, seen = [(name, extra) for extra in ("", *extras)], set()
    while waiting:
        current = waiting.pop()
        seen.add(current)
        for requirement in members()[current[0]].requires[current[1]]:
            if (ours := canonicalize_name(requirement.name)) in members():
                waiting += [(ours, extra) for extra in ("", *requirement.extras) if (ours, extra) not in seen]
            else:
                found[ours] = merged = Requirement(str(requirement))
                merged.extras = wanted[ours] = wanted.get(ours, set()) | merged.extras
    return found


def installed_with(requirements: Iterable[Requirement]) -> set[str]:
    """Return the names of all distributions that pip would install for these requirements on this platform."""
    waiting = [(requirement, "") for requirement in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement, wanted_by = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": wanted_by}):
            continue
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {extra for seen_name, extra in seen if seen_name == name}:
            seen.add((name, extra))
            waiting += [(Requirement(text), extra) for text in distribution(name).requires or ()]
    return {name for name, _ in seen}


def locked(lock: str) -> dict[str, str]:
    """Return the versions that a lock pins on this platform, by name."""
    lines = re.findall(r"^([\w.-]+)==(\S+)(?: ; (.+?))? \\$", (ROOT / "requirements" / f"{lock}.txt").read_text(), re.M)
    pins = [Requirement(f"{name}=={version}" + (f"; {marker}" if marker else "")) for name, version, marker in lines]
    return {pin.name: str(pin.specifier) for pin in pins if pin.marker is None or pin.marker.evaluate()}


@pytest.mark.parametrize("name", sorted(members()))
def test_a_distribution_declares_what_its_modules_import(name: str) -> None:
    member = members()[name]
    targets = {target for path in member.modules.values() for target in imports(path)}
    tops = {target: top for target in targets if (top := target.partition(".")[0]) not in sys.stdlib_module_names}
    ours = {our_packages()[top] for top in tops.values() if top in our_packages()} - {name}
    others = distributions_of(target for target, top in tops.items() if top not in our_packages())
    assert ours | others == member.declared - (FOR_OTHERS.keys() - others) - {name}


@pytest.mark.parametrize("name", INSTALLED)
def test_a_program_requires_exactly_what_it_imports_itself_or_through_our_libraries(name: str) -> None:
    reached = reached_from(members()[name].modules)
    assert OPTIONAL_ENGINE not in reached.modules
    others = distributions_of(reached.others)
    others |= {package for package, importer in FOR_OTHERS.items() if importer in others}
    assert declared_by(name).keys() == others


@pytest.mark.parametrize("name", INSTALLED)
def test_a_lock_contains_exactly_the_declared_packages_and_their_dependencies(name: str) -> None:
    lock = locked(name.removeprefix("databus-"))
    assert lock.keys() == installed_with(declared_by(name).values())
    assert lock.items() <= locked("dev").items()


def test_what_only_the_site_needs_is_not_installed_for_development() -> None:
    site, dev = locked("site"), locked("dev")
    assert "sphinx" in site
    assert "sphinx" not in dev
    assert {name: site[name] for name in site.keys() & dev.keys()}.items() <= dev.items()


def test_the_sink_installs_no_protobuf_no_database_client_and_no_rich() -> None:
    assert not locked("spark-sink").keys() & {"protobuf", "asyncmy", "pynacl", "rich"}


def test_the_command_line_installs_no_spark_and_no_web_server() -> None:
    assert not locked("cli").keys() & {"pyspark", "starlette", "uvicorn"}


@pytest.mark.parametrize("service", ["reader", "publisher"])
def test_what_makes_spans_is_not_installed_because_redis_would_import_opentelemetry_without_using_it(
    service: str,
) -> None:
    assert not [name for name in locked(service) if name.startswith("opentelemetry")]


def test_spans_come_with_an_extra_of_the_core() -> None:
    others = distributions_of(reached_from(["databus_core.spans"]).others)
    assert others <= declared_by("databus-core", ["tracing"]).keys()


def test_the_second_engine_comes_with_an_extra_of_the_reader() -> None:
    modules = [name for name in our_modules() if name.startswith(OPTIONAL_ENGINE)]
    others = distributions_of(reached_from(modules).others)
    assert others <= declared_by("databus-reader", ["mysql-replication"]).keys()
    assert "mysql-replication" not in declared_by("databus-reader")
