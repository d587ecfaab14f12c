"""Build the compiled decoder; everything else is in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCE = "src/databus_binlog"

decoder = Extension(
    "databus_binlog.decoder",
    [f"{SOURCE}/decoder.pyx"],
    depends=[f"{SOURCE}/{part}.pxi" for part in ("text", "buffer", "json", "rows")],
    language="c++",
    extra_compile_args=["-O3", "-std=c++17"],
    libraries=["z"],
)

setup(ext_modules=cythonize([decoder]))
