"""The examples in docs/guide/formats.md are what the formats write, and the custom format in the guide works.

The reference describes every option.
"""

import json
import re
from importlib.metadata import entry_points

import pytest

from databus_cli.__main__ import main
from golden.cases import FOLDER
from golden.guide import GUIDE, with_examples

REFERENCE = GUIDE.parents[1] / "reference"


def test_the_examples_are_what_the_formats_write():
    assert with_examples(GUIDE.read_text()) == GUIDE.read_text()


@pytest.mark.parametrize("entry", entry_points(group="databus.formats"), ids=lambda entry: entry.name)
def test_the_reference_describes_every_option_of_a_format(entry):
    page = REFERENCE / ("debezium.md" if entry.name.startswith("debezium") else "formats.md")
    text = page.read_text()
    assert [name for name in entry.load().options_type.model_fields if f"`{name}`" not in text] == []


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install the guide's custom format, as pip would."""
    code, project = (re.search(rf"```{kind}\n(.*?)```", GUIDE.read_text(), re.DOTALL)[1] for kind in ("python", "toml"))
    (tmp_path / "acme_csv.py").write_text(code)
    info = tmp_path / "acme_csv-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-csv\nVersion: 1\n")
    entry = re.search(r'^(acme-csv = )"(.*)"$', project, re.MULTILINE).expand(r"\1\2")
    (info / "entry_points.txt").write_text(f"[databus.formats]\n{entry}\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("installed")
def test_the_guides_custom_format_works(capsys):
    command = ["binlog", str(FOLDER / "mysql.bin"), "--quiet", "--format", "acme-csv", "--option", "separator=;"]
    assert main([*command, "--tables", "shop.orders"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["value"] for line in out.splitlines()] == [
        "orders;insert;10;1;1",
        "orders;update;10;1;1",
        "orders;update;10;1;2",
        "orders;update;10;1;2",
        "orders;update;10;2;2",
    ]
    assert "databus: statements: 1 left out;" in err


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("sep=;", "format acme-csv has no option sep: it has separator"),
        ("separator", "'separator' is not NAME=VALUE"),
        ("separator=[]", "option separator of format acme-csv: input should be a valid string"),
        ("separator=[;]", "'[;]' is not a JSON list: "),
    ],
)
def test_a_wrong_option_is_reported_in_one_line(option, error, capsys):
    try:
        code = main(["binlog", str(FOLDER / "mysql.bin"), "--format", "acme-csv", "--option", option])
    except SystemExit as exit_:
        code = exit_.code
    assert code in {1, 2}
    assert error in capsys.readouterr().err.splitlines()[-1]
