"""The Dockerfile: an image for each program, from a base without package managers, with byte code of every module."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "Dockerfile").read_text()
#: name of a stage → its base and its instructions; the last stage, the image itself, has no name
STAGES = {
    name: (base, body)
    for base, name, body in re.findall(r"^FROM (\S+)(?: AS (\S+))?\n(.*?)(?=^FROM |\Z)", TEXT, re.MULTILINE | re.DOTALL)
}
MAKEFILE = (ROOT / "Makefile").read_text()
(IMAGES,) = (line.split() for line in re.findall(r"^IMAGES := (.*)$", MAKEFILE, re.MULTILINE))


@pytest.mark.parametrize("image", IMAGES)
def test_every_image_has_a_stage_and_a_lock(image: str) -> None:
    assert STAGES[image][0] == ("python" if image == "cli" else "runtime")
    assert (ROOT / "requirements" / f"{image}.txt").exists()


def test_the_image_is_made_of_copies_and_runs_as_a_user_without_rights() -> None:
    base, body = STAGES[""]
    assert base == "${SERVICE}"
    assert "\nRUN " not in body
    assert "\nUSER 10001:10001\n" in body


def test_services_have_no_pip_and_no_layer_below_that_has_one() -> None:
    base, body = STAGES["runtime"]
    assert base == "scratch"
    assert "COPY --from=slim / /\n" in body
    assert "site-packages/pip*" in STAGES["slim"][1]


@pytest.mark.parametrize("stage", ["python", "dependencies", "code"])
def test_everything_that_is_installed_has_byte_code(stage: str) -> None:
    assert "python -m compileall -q -j 0 --invalidation-mode unchecked-hash" in STAGES[stage][1]


def test_official_images_are_the_only_bases() -> None:
    official = {"python:3.13-slim", "eclipse-temurin:17-jre", "scratch", "${SERVICE}"}
    assert {base for base, _ in STAGES.values()} - STAGES.keys() == official
