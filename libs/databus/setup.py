"""Build the compiled writer of JSON; everything else is in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

json_rows = Extension("databus.formats.json_rows", ["src/databus/formats/json_rows.pyx"], extra_compile_args=["-O3"])

setup(ext_modules=cythonize([json_rows]))
