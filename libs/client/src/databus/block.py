"""The changes of one record of Kafka, or the rows of one line of a dump, before they become objects of their own."""

from dataclasses import dataclass
from typing import Any

from databus.change import Change, Rows
from databus.origin import Origin
from databus.trail import Trail
from databus_core.events import Action


@dataclass(slots=True)
class Block:
    """Row images with the same action, or one statement."""

    action: Action
    rows: Rows
    origin: Origin
    #: images as `rows` reads them; of updates, those before and after alternate; empty for a statement
    images: list[Any]
    #: text of a statement
    query: str | None = None
    #: changes at the beginning that are done
    done: int = 0

    @property
    def size(self) -> int:
        """Number of the changes, with those that are done."""
        return 1 if self.query is not None else len(self.images) // (2 if self.action is Action.UPDATE else 1)

    def changes(self, trail: Trail) -> list[Change]:
        """Return the changes that are not done, and note in the trail that they are delivered."""
        action, rows, origin, images = self.action, self.rows, self.origin, self.images
        mark = trail.deliver(origin, self.size)
        if self.query is not None:
            changes = [Change(action, rows, origin, mark, 0, query=self.query)]
        elif action is Action.INSERT:
            changes = [Change(action, rows, origin, mark, index, None, image) for index, image in enumerate(images)]
        elif action is Action.DELETE:
            changes = [Change(action, rows, origin, mark, index, image) for index, image in enumerate(images)]
        else:
            pairs = enumerate(zip(images[::2], images[1::2], strict=True))
            changes = [Change(action, rows, origin, mark, index, before, after) for index, (before, after) in pairs]
        return changes[self.done :] if self.done else changes
