"""Build the compiled modules; everything else is in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCE = "src/databus_binlog"

decoder = Extension(
    "databus_binlog.decoder",
    [f"{SOURCE}/decoder.pyx"],
    depends=sorted(map(str, Path(SOURCE).glob("*.pxi"))),
    language="c++",
    extra_compile_args=["-O3", "-std=c++17"],
    libraries=["z"],
)

json_rows = Extension(
    "databus_binlog.json_rows",
    [f"{SOURCE}/json_rows.pyx"],
    depends=[f"{SOURCE}/json_text.pxi"],
    language="c++",
    extra_compile_args=["-O3", "-std=c++17"],
)

json_base64 = Extension(
    "databus_binlog.json_base64",
    [f"{SOURCE}/json_base64.pyx"],
    language="c++",
    extra_compile_args=["-O3", "-std=c++17"],
)

setup(ext_modules=cythonize([decoder, json_rows, json_base64]))
