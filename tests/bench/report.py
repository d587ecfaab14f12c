"""A bench's result: a table for people and bench-results/NAME.json for machines."""

import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Result:
    """One figure: the median of its runs, or the worst of them where no run may exceed a limit."""

    name: str
    unit: str
    runs: list[float]
    #: what it is compared with, measured in the same run
    baseline: str | None = None
    #: what is wanted; None for a figure that only informs
    goal: float | None = None
    #: the goal is a limit
    at_most: bool = False
    #: the largest run counts
    worst: bool = False

    @property
    def value(self) -> float:
        """What counts of the runs."""
        return max(self.runs) if self.worst else statistics.median(self.runs)

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.at_most else self.value >= self.goal


def report(bench: str, results: list[Result]) -> None:
    """Print the results and write them down."""
    table = Table("figure", "value", "unit", "runs", "against", "goal", "met", title=bench)
    for result in results:
        runs = f"{_short(min(result.runs))} – {_short(max(result.runs))}"
        met = {True: "yes", False: "no", None: ""}[result.met]
        goal = "" if result.goal is None else f"{'≤' if result.at_most else '≥'} {result.goal:g}"
        table.add_row(result.name, _short(result.value), result.unit, runs, result.baseline or "", goal, met)
    Console().print(table)
    folder = Path("bench-results")
    folder.mkdir(exist_ok=True)
    rows = [asdict(result) | {"value": result.value, "met": result.met} for result in results]
    (folder / f"{bench}.json").write_text(json.dumps(rows, indent=2))


def _short(figure: float) -> str:
    return f"{figure:.3g}" if figure < 1000 else f"{figure:,.0f}"
