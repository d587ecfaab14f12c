"""A bench's results, printed as a table and written to bench-results/NAME.json."""

import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Result:
    """One figure of a bench: the median of its runs or, with `worst`, the largest."""

    name: str
    unit: str
    #: the figure of each run
    runs: list[float]
    #: for a ratio, the reader or program that ours is compared with
    baseline: str | None = None
    #: None: the figure has no goal
    goal: float | None = None
    #: True: the figure must not exceed the goal; False: it must at least reach it
    at_most: bool = False
    #: the value is the largest run, not the median
    worst: bool = False

    @property
    def value(self) -> float:
        """The figure that is reported and compared with the goal."""
        return max(self.runs) if self.worst else statistics.median(self.runs)

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None if there is no goal."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.at_most else self.value >= self.goal


def report(bench: str, results: list[Result]) -> None:
    """Print the results and write them to bench-results."""
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
