"""Chromium without windows, from the Debian packages of the machine's own release."""

import os
from pathlib import Path
from typing import NamedTuple

from devstack import cache, debs
from devstack.server import CHROMIUM, Say

#: The fonts that are unpacked, and no others: pages look the same on every machine.
_FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{root}/usr/share/fonts</dir><cachedir>{root}/fonts-cache</cachedir></fontconfig>
"""


class Chromium(NamedTuple):
    """How the program is started."""

    program: Path
    #: variables that it needs besides those of this process
    environment: dict[str, str]


def install(say: Say) -> Chromium:
    """Unpack Chromium, unless DEVSTACK_CHROMIUM names one. Raises DevstackError.

    It is started by the system's own loader: it starts itself again, which the unpacked loader could not.
    """
    if given := os.environ.get(CHROMIUM):
        return Chromium(Path(given), {})
    root = cache.installed("chromium", lambda folder: _unpack(folder, say))
    folders = [folder for pattern in ("usr/lib/*-linux-gnu", "lib/*-linux-gnu") for folder in root.glob(pattern)]
    folders += [folder / "pulseaudio" for folder in folders if (folder / "pulseaudio").is_dir()]
    environment = {"LD_LIBRARY_PATH": ":".join(map(str, folders)), "FONTCONFIG_FILE": str(root / "fonts.conf")}
    return Chromium(root / "usr/lib/chromium/chromium-headless-shell", environment)


def _unpack(folder: Path, say: Say) -> None:
    debs.unpack("chromium", "chromium-headless-shell", folder, say)
    (folder / "fonts.conf").write_text(_FONTS.format(root=cache.root() / "chromium"))
