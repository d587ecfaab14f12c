"""Earlier versions of a mirror, with the state that each had."""

from databus_spark.errors import CannotRebuild
from databus_spark.mirror_state import MirrorState, decode_state
from databus_spark.table import LakeTable


def version_before(table: LakeTable, transaction: int) -> tuple[int, MirrorState] | None:
    """Return version and state of a mirror as it was before a transaction; None if there was none."""
    return next((each for each in _versions(table) if each[1].transaction < transaction), None)


def version_as_of(table: LakeTable, transaction: int) -> tuple[int, MirrorState] | None:
    """Return version and state of the newest version without later changes; None if the mirror began later.

    Raises CannotRebuild if the mirror was loaded from a dump after it: what was between may be missing in the log.
    """
    later: MirrorState | None = None
    for version, state in _versions(table):
        is_newer = state.as_of > transaction or (state.base is not None and state.base.until > transaction)
        if not is_newer and (state.as_of == transaction or not _is_loaded_between(state, later)):
            return version, state
        if not is_newer:
            break
        later = state
    if later and later.base:
        raise CannotRebuild(f"its mirror was loaded from dump {later.base.id}, which is newer")
    return None


def _versions(table: LakeTable) -> list[tuple[int, MirrorState]]:
    """Return the versions that a mirror's table has, the newest first."""
    commits = table.commits() if table.exists else []
    return [(version, decode_state(text)) for version, text in commits if text]


def _is_loaded_between(state: MirrorState, later: MirrorState | None) -> bool:
    return later is not None and later.base is not None and later.base != state.base
