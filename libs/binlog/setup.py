"""Build the compiled modules; everything else is in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCE = "src/databus_binlog"

decoder = Extension(
    "databus_binlog.decoder",
    [f"{SOURCE}/decoder.pyx"],
    depends=sorted(map(str, Path(SOURCE).glob("*.pxi"))),
    libraries=["z"],
    language="c++",
    extra_compile_args=["-O3", "-std=c++17"],
)
setup(ext_modules=cythonize([decoder]))
