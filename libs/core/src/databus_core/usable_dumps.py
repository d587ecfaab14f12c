"""Which dumps a consumer can begin with."""

from collections.abc import Collection, Sequence

from databus_core.errors import RulesDiffer
from databus_core.manifest import Manifest, Mode, State
from databus_core.pipeline_passed import is_from_pipeline_host
from databus_core.progress import Progress
from databus_core.routes import fingerprint
from databus_core.settings import Settings
from databus_core.table_filter import TableFilter


def is_usable(
    manifest: Manifest,
    progress: Progress | None,
    settings: Settings,
    tables: Sequence[str],
    modes: Collection[Mode] = (Mode.VIEW,),
) -> bool:
    """Return whether a dump is of this pipeline as it is now, and has all tables that match these patterns.

    `modes`: those that the consumer can read.
    """
    asked_for = manifest.requested
    return (
        manifest.state is State.COMPLETE
        and manifest.mode in modes
        and manifest.pipeline == settings.name
        and is_from_pipeline_host(manifest, progress)
        and (progress is None or manifest.transaction >= progress.unbroken_after)
        and has_rules(settings, manifest)
        and (asked_for is None or "*.*" in asked_for or set(tables) <= set(asked_for))
        and not TableFilter(tables).unmatched((table.schema, table.name) for table in manifest.tables)
    )


def has_rules(settings: Settings, manifest: Manifest) -> bool:
    """Return whether a dump has rows by the rules of the settings, or does not say by which."""
    return manifest.rules in ("", fingerprint(settings.publisher.rules))


def require_rules(settings: Settings, manifest: Manifest) -> None:
    """Raise RulesDiffer if a dump has rows by other rules than those of the settings."""
    if not has_rules(settings, manifest):
        raise RulesDiffer(f"dump-api has other rules in publisher.routes (dump {manifest.id}): restart it")
