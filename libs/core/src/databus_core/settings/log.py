"""The section `log`: what the services write to stderr, and how."""

from typing import Literal, TypeAlias

from databus_core.settings.values import Section

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]


class Log(Section):
    """The log of the services."""

    format: Literal["console", "json"] = "console"
    """Format of the lines: `console` for people, or `json`, one object in each line, for log collectors."""
    level: LogLevel = "info"
    """Lowest level of our own lines."""
    levels: dict[str, LogLevel] = {}
    """Levels of single loggers, ours or libraries', as in `{databus.reader: debug, aiokafka: warning}`."""
