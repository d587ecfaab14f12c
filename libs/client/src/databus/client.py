"""The client: where a program begins."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from databus.changes import Changes
from databus.formats.others import FORMATS
from databus.iteration import Iteration
from databus.kafka_store import KafkaStore
from databus.source import Source
from databus.starts import Start
from databus.stores import FileStore, Store
from databus_core.change_topics import ChangeTopics
from databus_core.dump_client import DumpApi
from databus_core.pipeline_description import settings_of
from databus_core.settings import Settings, load


class Databus:
    """A pipeline, whose tables a program reads.

    `source` is the URL of its dump-api, the path of the services' configuration file, or settings. dump-api says where
    Kafka is, as the services reach it. `kafka` says it otherwise, and adds what dump-api does not tell: an address, as
    `host:port`, or settings of the section `kafka`, such as `{"sasl": {…}}`. `api_key` is one of dump-api's keys.

    It connects when changes are read. Use it in `async with`, or call `close`.
    """

    def __init__(
        self, source: str | Path | Settings, *, kafka: str | Mapping[str, Any] | None = None, api_key: str = ""
    ) -> None:
        self._source = source
        self._api_key = api_key
        self._kafka = {"bootstrap_servers": kafka.split(",")} if isinstance(kafka, str) else dict(kafka or {})
        self._settings: Settings | None = None
        self._api: DumpApi | None = None
        #: what is iterated over
        self.iterations: set[Iteration[Any]] = set()
        self._stores: list[KafkaStore] = []

    def changes(
        self,
        tables: str | Sequence[str] = "*.*",
        *,
        start: Start = "snapshot",
        store: Store | str | Path | None = None,
    ) -> Changes:
        """Return the rows of tables, then every change, in the order of the source.

        `tables` are `schema.table` patterns with `*` and `?`. `store` keeps how far the program is: a store, or the
        path of a file. If it has nothing yet, or without one, `start` says where to begin:

        * `snapshot`: with the rows of a dump, the newest that fits or a new one, and then with the changes after it
        * `latest`: with the next transaction; `earliest`: with what Kafka has
        * a `Position` in the log of the server that is read: after it; a `datetime`: with what was published then
        * `gtid:SET`: with the first transaction that is not in the set of a server's executed GTIDs
        * `saved`: nowhere, it is an error
        """
        chosen = FileStore(store) if isinstance(store, str | Path) else store
        return Changes(self, [tables] if isinstance(tables, str) else list(tables), start, chosen)

    def kafka_store(self, group: str) -> KafkaStore:
        """Return a store that keeps the bookmark as the offsets of a consumer group in the pipeline's Kafka.

        Kafka deletes the offsets if nothing was saved for `offsets.retention.minutes`, by default for 7 days.
        """

        async def settings() -> Settings:
            return (await self.source_of(["*.*"])).settings

        store = KafkaStore(settings, group)
        self._stores.append(store)
        return store

    async def source_of(self, tables: Sequence[str]) -> Source:
        """Return what changes of tables are read from.

        Raises InvalidSettings, DumpApiUnavailable, and DumpUnusable if dump-api refuses the request.
        """
        if self._api is None:
            if isinstance(self._source, str) and "://" in self._source:
                self._api = DumpApi(self._source, api_key=self._api_key)
            else:
                self._api = DumpApi.of(self._loaded().dumps)
        if self._settings is None:
            is_url = isinstance(self._source, str) and "://" in self._source
            described = await self._api.pipeline() if is_url else None
            self._settings = settings_of(described, str(self._source), self._kafka) if described else self._loaded()
        return Source(self._settings, self._api, tables, ChangeTopics(self._settings, tables, FORMATS))

    def _loaded(self) -> Settings:
        settings = self._source if isinstance(self._source, Settings) else load(Path(self._source))
        if self._kafka:
            values = settings.kafka.model_dump() | self._kafka
            settings = settings.model_copy(update={"kafka": type(settings.kafka).model_validate(values)})
        self._settings = settings
        return settings

    def forget(self) -> None:
        """Read the settings again before the next iteration: rules were changed."""
        if not isinstance(self._source, Settings):
            self._settings = None

    async def close(self) -> None:
        """End what is iterated over, also by other tasks, and close the connections."""
        async with AsyncExitStack() as closing:  # in reverse order, each also if another one fails
            if self._api:
                closing.push_async_callback(self._api.close)
            for each in self._stores:
                closing.push_async_callback(each.close)
            for iteration in self.iterations:
                closing.push_async_callback(iteration.close)
            self._api, self._stores = None, []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
