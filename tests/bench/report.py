"""A bench's result: a table for people and bench-results/NAME.json for machines."""

import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Result:
    """One figure: the median of its runs, compared with a baseline measured in the same run."""

    name: str
    unit: str
    runs: list[float]
    #: what it is compared with, and the ratio that is wanted; None for a figure that only informs
    baseline: str | None = None
    goal: float | None = None

    @property
    def value(self) -> float:
        """Median of the runs."""
        return statistics.median(self.runs)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        return None if self.goal is None else self.value >= self.goal


def report(bench: str, results: list[Result]) -> None:
    """Print the results and write them down."""
    table = Table("figure", "median", "unit", "runs", "against", "goal", "met", title=bench)
    for result in results:
        runs = " ".join(f"{run:.3g}" for run in result.runs)
        met = {True: "yes", False: "no", None: ""}[result.met]
        goal = "" if result.goal is None else f"{result.goal:g}"
        table.add_row(result.name, f"{result.value:.3g}", result.unit, runs, result.baseline or "", goal, met)
    Console().print(table)
    folder = Path("bench-results")
    folder.mkdir(exist_ok=True)
    rows = [asdict(result) | {"value": result.value, "met": result.met} for result in results]
    (folder / f"{bench}.json").write_text(json.dumps(rows, indent=2))
