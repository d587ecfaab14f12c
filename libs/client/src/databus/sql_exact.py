"""Types of SQL columns that have every value of the source, in databases that lack the type, too."""

from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

from sqlalchemy import Interval, Numeric, String, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

from databus.values import converter
from databus_core.events import Column


class ExactNumeric(TypeDecorator[Decimal]):
    """NUMERIC; in SQLite, which has none, the text of the number."""

    impl = Numeric
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type in a database."""
        return dialect.type_descriptor(Text() if dialect.name == "sqlite" else self.impl_instance)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Convert a number that is written."""
        return f"{Decimal(value):f}" if value is not None and dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        """Convert a number that is read."""
        return Decimal(value) if isinstance(value, str) else value


class ExactTime(TypeDecorator[Any]):
    """INTERVAL in PostgreSQL; elsewhere the text of a TIME, which may be negative or longer than a day."""

    impl = Interval
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type in a database."""
        return dialect.type_descriptor(self.impl_instance if dialect.name == "postgresql" else String(17))

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """Convert the text of a time that is written."""
        return _duration(value) if value is not None and dialect.name == "postgresql" else value


class JsonText(TypeDecorator[str]):
    """JSON, written as in the source: no digit of a number is lost. In SQLite it is TEXT, which stays as it is."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type in a database."""
        return dialect.type_descriptor(self.impl_instance if dialect.name == "sqlite" else _Json())


class _Json(UserDefinedType[str]):
    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the name of the type."""
        return "JSON"


def _duration(text: str) -> timedelta:
    return cast("timedelta", _time_converter(text.encode()))


_time_converter = converter(Column(name="", type="", raw_type="time"))
