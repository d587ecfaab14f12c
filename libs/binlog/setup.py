"""Build the compiled modules; everything else is in pyproject.toml."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

PACKAGE = Path("src/databus_binlog")
#: Cython's own checks are off: the code checks sizes before it reads, and uses no negative index.
DIRECTIVES = {"boundscheck": False, "wraparound": False, "cdivision": True, "initializedcheck": False}

modules = Extension(
    "databus_binlog.*",
    [str(PACKAGE / "*.pyx")],
    include_dirs=[str(PACKAGE)],
    depends=sorted(map(str, PACKAGE.glob("*.hpp"))),
    language="c++",
    extra_compile_args=["-O3", "-std=c++17"],
)
setup(
    ext_modules=cythonize([modules], language_level=3, compiler_directives=DIRECTIVES),
    options={"build_ext": {"parallel": os.cpu_count()}},
)
