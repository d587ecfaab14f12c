"""Message formats, found by name through the entry-point group `databus.formats`.

Any package can add one: its entry point names a subclass of `databus_messages.formats.base.Format`.
"""

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeAlias

from databus_core.errors import InvalidSettings

if TYPE_CHECKING:  # not imported at run time: `databus binlog --help` needs only the formats' names
    from typing import Any

    from databus_messages.formats.base import Format

AnyFormat: TypeAlias = "Format[Any]"

_GROUP = "databus.formats"


def known() -> list[str]:
    """List the names of all installed formats."""
    return sorted(entry_points(group=_GROUP).names)


def find(name: str) -> type[AnyFormat]:
    """Return a format's class. Raises InvalidSettings if the format is not installed or cannot be imported."""
    found = entry_points(group=_GROUP, name=name)
    if not found:
        raise InvalidSettings(f"format {name} is not known: use one of {', '.join(known())}")
    try:
        loaded: type[AnyFormat] = next(iter(found)).load()
    except (ImportError, AttributeError) as error:
        raise InvalidSettings(f"format {name} cannot be imported: {error}") from error
    return loaded
