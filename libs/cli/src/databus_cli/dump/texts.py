"""How dumps are described on a terminal."""

from datetime import datetime, timedelta

from rich.filesize import decimal

from databus_core.manifest import FileFormat, Manifest


def totals(manifest: Manifest) -> tuple[int, int]:
    """Return the rows of a dump, which each of its formats has, and the bytes of all its files."""
    formats = dict.fromkeys(FileFormat, 0)
    for file in manifest.files:
        formats[file.format] += file.rows
    return max(formats.values()), sum(file.bytes for file in manifest.files)


def counts(rows: int, size: int) -> str:
    """Describe rows and bytes."""
    return f"{rows:,} rows, {decimal(size)}"


def duration(seconds: float) -> str:
    """Describe a time in hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))


def time_of(time: datetime | None) -> str:
    """Describe a time in UTC."""
    return time.isoformat(" ", "seconds").removesuffix("+00:00") if time else ""


def amount(manifest: Manifest) -> str:
    """Describe how much a dump has, or how far it has come."""
    if progress := manifest.progress:
        left = "" if progress.eta_seconds is None else f", {duration(progress.eta_seconds)} left"
        estimate = max(progress.estimated_rows, progress.rows)
        return f"{progress.rows:,} of about {estimate:,} rows, {decimal(progress.bytes)}{left}"
    return counts(*totals(manifest)) if manifest.files else ""
