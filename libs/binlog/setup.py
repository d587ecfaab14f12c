"""Build the compiled modules; everything else is in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCE = "src/databus_binlog"


def extension(name: str, **options: list[str]) -> Extension:
    """Describe a module of `name.pyx`; any of the included files may be part of it."""
    return Extension(
        f"databus_binlog.{name}",
        [f"{SOURCE}/{name}.pyx"],
        depends=sorted(map(str, Path(SOURCE).glob("*.pxi"))),
        language="c++",
        extra_compile_args=["-O3", "-std=c++17"],
        **options,
    )


names = ("json_rows", "json_base64", "kafka_records")
modules = [extension("decoder", libraries=["z"]), *map(extension, names)]
setup(ext_modules=cythonize(modules))
