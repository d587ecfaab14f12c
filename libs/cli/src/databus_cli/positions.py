"""How positions are described."""

from databus_binlog import Position


def described(position: Position) -> str:
    """Return a position in the forms that `--to` takes."""
    forms = [f"{position.file}:{position.offset}"] if position.file else []
    forms += [f"gtid:{position.gtid_set}"] if position.gtid_set else []
    return " = ".join(forms)
