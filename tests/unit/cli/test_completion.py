"""What a shell completes with the scripts of `databus completion`."""

import subprocess
from pathlib import Path

import pytest

from databus_cli.__main__ import main


def completed(script: str, *words: str) -> list[str]:
    """Return what bash completes the last word to."""
    line = " ".join(f"'{word}'" for word in words)
    program = f"""{script}
    COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}
    name=$(complete -p databus | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
    "$name" databus '{words[-1]}' '{words[-2]}'
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    # compopt works only while a user completes
    command = ["bash", "-c", f"compopt() {{ :; }}\n{program}"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()


@pytest.fixture
def bash(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", "bash"]) == 0
    return capsys.readouterr().out


def test_bash_completes_commands_actions_options_values_and_files(bash: str, tmp_path: Path) -> None:
    assert completed(bash, "databus", "dead") == ["deadletter"]
    assert {"reset", "skip"} <= set(completed(bash, "databus", "pipeline", ""))
    assert completed(bash, "databus", "backfill", "start", "--cl") == ["--clean"]
    assert completed(bash, "databus", "completion", "") == ["bash", "zsh", "fish"]
    (tmp_path / "databus.yaml").touch()
    assert completed(bash, "databus", "deadletter", "list", "--config", f"{tmp_path}/dat") == [
        f"{tmp_path}/databus.yaml"
    ]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_with_all_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("backfill", "deadletter", "pipeline", "completion"))


def test_a_shell_without_a_script_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["completion", "tcsh"])
    assert ended.value.code == 2
    assert "invalid choice" in capsys.readouterr().err
