"""ALTER TABLE."""

from databus.errors import CannotApply
from databus_changes.catalog import charset_of
from databus_changes.ddl.columns import Definition, read_charset, read_collation, read_column, read_definition
from databus_changes.ddl.draft import Draft
from databus_changes.ddl.keys import Key, read_key
from databus_changes.ddl.words import Words

#: what begins options of a table that change none of its columns; a character set may follow
_OPTIONS = {
    "ALGORITHM", "LOCK", "FORCE", "ENGINE", "ROW_FORMAT", "COMMENT", "KEY_BLOCK_SIZE", "AUTO_INCREMENT", "CHECKSUM",
    "AVG_ROW_LENGTH", "COMPRESSION", "CONNECTION", "DATA", "INDEX", "DELAY_KEY_WRITE", "ENCRYPTION", "ENCRYPTED",
    "ENCRYPTION_KEY_ID", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "SECONDARY_ENGINE", "SECONDARY_LOAD",
    "SECONDARY_UNLOAD", "INSERT_METHOD", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM", "PAGE_COMPRESSED",
    "PAGE_COMPRESSION_LEVEL", "PASSWORD", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "TABLESPACE",
    "STORAGE", "TRANSACTIONAL", "UNION", "AUTOEXTEND_SIZE", "DISABLE", "ENABLE", "UPGRADE",
}  # fmt: skip
#: what begins a statement about partitions, rows or files, to its end
_UNSEEN = {
    "PARTITION", "TRUNCATE", "COALESCE", "REORGANIZE", "OPTIMIZE", "ANALYZE", "CHECK", "REBUILD", "REPAIR", "EXCHANGE",
    "DISCARD", "IMPORT", "REMOVE", "ORDER",
}  # fmt: skip


class Alteration:
    """Reads the actions behind the table's name, then applies them to `draft`, in the order that servers do it."""

    def __init__(self, words: Words, draft: Draft, schema: str, schema_charset: str) -> None:
        self._words = words
        self._draft = draft
        self._schema = schema
        self._schema_charset = schema_charset
        #: schema and name afterwards, where they are others
        self.new_name: tuple[str, str] | None = None
        self._charset = self._collation = ""
        self._converts = False
        self._dropped: list[str] = []
        self._renamed: dict[str, str] = {}
        #: definitions with the old names of their columns
        self._placed: list[tuple[str, Definition]] = []
        self._keys: list[Key] = []
        self._dropped_indexes: list[str] = []
        self._renamed_indexes: list[tuple[str, str]] = []
        self._visible: dict[str, bool] = {}

    def apply(self) -> None:
        """Do it. Raises CannotApply."""
        self._read()
        draft = self._draft
        draft.charset = self._default_charset() or draft.charset
        if self._converts:
            draft.convert(draft.charset)
        for name in self._dropped_indexes:
            draft.drop_index(name)
        for old, new in self._renamed_indexes:
            draft.rename_index(old, new)
        draft.change(self._dropped, self._renamed, self._placed)
        for name, visible in self._visible.items():
            draft.set_visible(name, visible=visible)
        draft.add_keys_of(definition for _, definition in self._placed)
        for key in self._keys:
            key.add_to(draft)

    def _default_charset(self) -> str:
        if self._charset == "default":
            if not self._schema_charset:
                raise CannotApply("the character set of the schema is not known")
            return self._schema_charset
        return self._charset or charset_of(self._collation)

    def _read(self) -> None:
        words = self._words
        if words.take("WAIT"):
            words.number()
        words.take("NOWAIT")
        while words.next:
            self._action()
            if not words.take(",") and words.next not in {"", "PARTITION", "REMOVE"}:
                raise words.refusal()

    def _action(self) -> None:
        words = self._words
        if words.take("ADD"):
            self._add()
        elif words.take("DROP"):
            self._drop()
        elif words.take("MODIFY"):
            self._redefine(renames=False)
        elif words.take("CHANGE"):
            self._redefine(renames=True)
        elif words.take("RENAME"):
            self._rename()
        elif words.take("ALTER"):
            self._alter()
        elif words.take("CONVERT", "TO"):
            self._converts = True
            if not self._take_charset():
                raise words.refusal()
            self._take_charset()
        elif words.next in _UNSEEN:
            while words.next:
                words.skip()
        else:
            self._options()

    def _add(self) -> None:
        words = self._words
        if words.take("PARTITION"):
            while words.next:
                words.skip()
            return
        if key := read_key(words):
            self._keys.append(key)
            return
        words.take("COLUMN")
        if_not_exists = words.take("IF", "NOT", "EXISTS")
        several = words.take("(")
        while True:
            if several and (key := read_key(words)):
                self._keys.append(key)
            else:
                definition = read_column(words)
                if not (if_not_exists and self._draft.has(definition.name)):
                    self._placed.append(("", definition))
            if not several or not words.take(","):
                break
        if several:
            words.expect(")")

    def _drop(self) -> None:
        words = self._words
        if words.take("PRIMARY", "KEY"):
            self._dropped_indexes.append("PRIMARY")
        elif words.take("INDEX") or words.take("KEY") or words.take("CONSTRAINT"):
            words.take("IF", "EXISTS")
            self._dropped_indexes.append(words.name())
        elif words.take("FOREIGN", "KEY") or words.take("CHECK"):
            words.take("IF", "EXISTS")
            words.name()
        elif words.take("PARTITION"):
            while words.next:
                words.skip()
        else:
            words.take("COLUMN")
            if_exists = words.take("IF", "EXISTS")
            name = words.name()
            _ = words.take("RESTRICT") or words.take("CASCADE")
            if not if_exists or self._draft.has(name):
                self._dropped.append(name)

    def _redefine(self, *, renames: bool) -> None:
        words = self._words
        words.take("COLUMN")
        if_exists = words.take("IF", "EXISTS")
        old = words.name()
        definition = read_column(words) if renames else read_definition(words, old)
        if not if_exists or self._draft.has(old):
            self._placed.append((old, definition))

    def _rename(self) -> None:
        words = self._words
        if words.take("COLUMN"):
            if_exists = words.take("IF", "EXISTS")
            old = words.name()
            words.expect("TO")
            new = words.name()
            if not if_exists or self._draft.has(old):
                self._renamed[old] = new
        elif words.take("INDEX") or words.take("KEY"):
            words.take("IF", "EXISTS")
            old = words.name()
            words.expect("TO")
            self._renamed_indexes.append((old, words.name()))
        else:
            _ = words.take("TO") or words.take("AS") or words.take("=")
            self.new_name = words.qualified(self._schema)

    def _alter(self) -> None:
        """Read ALTER [COLUMN]: defaults and visibility; of indexes and constraints nothing matters."""
        words = self._words
        if words.take("INDEX") or words.take("KEY") or words.take("CHECK") or words.take("CONSTRAINT"):
            words.skip_item()
            return
        words.take("COLUMN")
        words.take("IF", "EXISTS")
        name = words.name()
        if words.take("SET", "VISIBLE"):
            self._visible[name] = True
            return
        if words.take("SET", "INVISIBLE"):
            self._visible[name] = False
            return
        if not (words.take("SET", "DEFAULT") or words.take("DROP", "DEFAULT")) or not self._draft.has(name):
            raise words.refusal()
        words.skip_item()

    def _options(self) -> None:
        words = self._words
        if words.next not in _OPTIONS and not self._take_charset():
            raise words.refusal()
        while words.next not in {"", ",", "PARTITION", "REMOVE"}:
            if not self._take_charset():
                words.skip()

    def _take_charset(self) -> bool:
        """Read `[DEFAULT] CHARACTER SET` or `COLLATE`."""
        words = self._words
        words.take("DEFAULT")
        if charset := read_charset(words):
            self._charset = charset
        elif collation := read_collation(words):
            self._collation = collation
        else:
            return False
        return True
