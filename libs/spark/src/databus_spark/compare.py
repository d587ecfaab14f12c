"""Compares the rows of two tables by their keys."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from databus_spark.types import identifier

#: differing keys that are kept as examples
_EXAMPLES = 5


@dataclass(frozen=True)
class Differences:
    """How a copy differs from the original."""

    #: rows of the original
    rows: int
    #: rows that only the original has
    missing: int
    #: rows that only the copy has, and further rows with the same key
    invented: int
    #: rows that both have, with different values
    different: int
    #: the first keys of rows that differ, as text
    examples: Sequence[str]

    @property
    def equal(self) -> bool:
        """Whether there are none."""
        return not (self.missing or self.invented or self.different)

    @property
    def counts(self) -> str:
        """The numbers, in words."""
        return f"{self.rows:,} rows, {self.missing:,} missing, {self.invented:,} invented, {self.different:,} different"


def differences(original: DataFrame, copy: DataFrame, keys: Sequence[str]) -> Differences:
    """Compare two tables with the same columns, by the columns of the primary key."""
    columns = {identifier(name): kind for name, kind in original.dtypes}
    comparable = (f"to_json({name})" if kind == "variant" else name for name, kind in columns.items())
    key, values = (", ".join(each) for each in (map(identifier, keys), comparable))

    def folded(rows: DataFrame, name: str) -> DataFrame:
        return rows.selectExpr(f"struct({key}) as _key", f"struct({values}) as {name}")

    copies = folded(copy, "_b").groupBy("_key").agg(sql.first("_b").alias("_b"), sql.count("*").alias("_copies"))
    verdict = (
        "case when _b is null then 'missing' when _a is null then 'invented' when _a <=> _b then '' "
        "else 'different' end as _verdict"
    )
    joined = folded(original, "_a").join(copies, "_key", "full_outer")
    judged = joined.selectExpr("_key", "_a is not null as _is_original", "_copies - 1 as _repeated", verdict)
    sums = judged.groupBy("_verdict").agg(
        sql.count("*"), sql.count_if("_is_original"), sql.coalesce(sql.sum("_repeated"), sql.lit(0))
    )
    found = sums.collect()
    counts = {each: count for each, count, _, _ in found}
    wrong: list[Row] = []
    if counts.keys() - {""}:
        first = judged.where("_verdict <> ''").orderBy("_key").limit(_EXAMPLES)
        wrong = first.selectExpr("_verdict", "to_json(_key)").collect()
    return Differences(
        sum(originals for _, _, originals, _ in found),
        counts.get("missing", 0),
        counts.get("invented", 0) + sum(repeated for _, _, _, repeated in found),
        counts.get("different", 0),
        [f"{row[0]} {row[1]}" for row in wrong],
    )
