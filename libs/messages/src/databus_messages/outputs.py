"""The outputs of a pipeline: one for each routing rule that publishes, with its format and its state.

In the settings, several rules can belong to the same `output`; here, each rule has an `Output` of its own.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from databus_core.errors import InvalidSettings
from databus_core.events import Begin
from databus_core.settings.rules import Rule
from databus_messages import formats
from databus_messages.formats import AnyFormat
from databus_messages.formats.base import MessageSource, Options, Record
from databus_messages.routing.partitions import Partition
from databus_wire.rows_writer import Counter


class OutputPlan(NamedTuple):
    """A rule with its format's class and validated options."""

    rule: Rule
    format: type[AnyFormat]
    options: Options


class Output:
    """The output of one rule: its format, and its state in the open transaction."""

    def __init__(self, plan: OutputPlan, source: MessageSource) -> None:
        self.rule = plan.rule
        self.format: AnyFormat = plan.format(source, plan.options)
        self.accepts_packed_rows = self.format.accepts_packed_rows
        #: whether changes are buffered until the end of their transaction, because the format needs `transaction_end`
        self.is_buffered = self.format.needs_transaction_end
        #: whether `begin` and `end` of the format are called; this output then numbers its rows itself (`number_rows`)
        self.is_framed = self.is_buffered or self.format.emits_frames
        #: whether encoding may call another service, e.g. a schema registry
        self.calls_services = plan.format.calls_services
        #: the rows of transactions whose rows compiled code writes
        self.counter = Counter()
        #: number of rows of the open transaction that `number_rows` has counted
        self.row_count = 0
        #: partitions with changes of the open transaction, in the order of their first change
        self.partitions: dict[Partition, None] = {}
        self._begin_records: Sequence[Record] = ()

    def enter(self, partition: Partition, begin: Begin) -> Sequence[Record]:
        """Return the records that precede a transaction's first change in a partition; return none for later changes.

        Records for the format's own topics are returned only with the first partition of a transaction.
        """
        if partition in self.partitions:
            return ()
        if self.partitions:
            records = [record for record in self._begin_records if record.topic is None]
        else:
            self._begin_records = records = list(self.format.begin(begin))
        self.partitions[partition] = None
        return records

    def next_ordinal(self, row: int) -> int:
        """Return the ordinal of the next changed row, which is number `row` among all captured rows."""
        return self.row_count if self.is_framed else row

    def number_rows(self, count: int) -> range:
        """Count changed rows; return their ordinals among the transaction's rows that this output publishes."""
        first = self.row_count
        self.row_count += count
        return range(first, self.row_count)

    def end_transaction(self) -> None:
        """Forget the open transaction."""
        self.row_count = 0
        self.partitions = {}


def plan_outputs(rules: Iterable[Rule]) -> list[OutputPlan]:
    """Find the format and validate the options of each rule that publishes.

    Raises InvalidSettings, with a line for each error.
    """
    plans: list[OutputPlan] = []
    errors: list[str] = []
    for rule in rules:
        if rule.drop:
            continue
        try:
            kind = formats.find(rule.format)
            plans.append(OutputPlan(rule, kind, kind.options_type.model_validate(rule.options)))
        except InvalidSettings as error:
            errors.append(f"{rule}: {error}")
        except ValidationError as error:
            for detail in error.errors():
                path = ".".join(map(str, ("options", *detail["loc"])))
                if detail["type"] == "extra_forbidden":
                    errors.append(f"{rule}: {path}: format {rule.format} has no such option; {_options(kind)}")
                    continue
                errors.append(f"{rule}: {path}: {detail['msg'].removeprefix('Value error, ')} (format {rule.format})")
    if errors:
        raise InvalidSettings("\n".join(errors))
    return plans


def _options(kind: type[AnyFormat]) -> str:
    names = ", ".join(kind.options_type.model_fields)
    return f"it has {names}" if names else "it has none"


def check_outputs(plans: Sequence[OutputPlan], pipeline: str) -> None:
    """Check that outputs share no topic of their formats, and the services that formats depend on. Blocks.

    Raises InvalidSettings, and what `Format.check` raises.
    """
    rules: dict[str, Rule] = {}
    for plan in plans:
        for topic in plan.format(MessageSource(pipeline, "mysql", "", 0), plan.options).topics():
            rule, other = plan.rule, rules.setdefault(topic, plan.rule)
            if (rule.output, rule.format) != (other.output, other.format):
                raise InvalidSettings(
                    f"{rule}: format {rule.format} writes to topic {topic}, and so does {other}, for output "
                    f"{other.output} in format {other.format}: set another name in options, for instance `prefix`"
                )
    for plan in plans:
        plan.format.check(plan.options)
