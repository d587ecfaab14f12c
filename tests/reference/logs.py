"""The tables of docs/reference/logs.md, made from databus_core.log_events."""

from typing import get_type_hints

from databus_core.log_events import Fields, LogEvent
from reference.pages import Page, generated


def page() -> Page:
    """Return the page with the tables of events and fields."""
    events = "".join(f"| `{event}` | {event.meaning} |\n" for event in LogEvent)
    hints = get_type_hints(Fields, include_extras=True)
    fields = "".join(f"| `{name}` | {hint.__metadata__[0]} |\n" for name, hint in hints.items())
    head = "|---|---|\n"
    tables = f"### Events\n\n| event | meaning |\n{head}{events}\n### Fields\n\n| field | meaning |\n{head}{fields}"
    return generated("logs.md", "databus/log_events.py", tables)
