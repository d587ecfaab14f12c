"""The grammar of ALTER TABLE."""

from databus_changes.ddl.charset_clause import CharsetClause
from databus_changes.ddl.columns import read_column, read_definition
from databus_changes.ddl.draft import TableDraft
from databus_changes.ddl.keys import read_key
from databus_changes.ddl.reader import TokenReader
from databus_changes.tables import TableName
from databus_core.errors import CannotApply

#: first words of table options that change no column; options for the character set may follow them
_OPTIONS = {
    "ALGORITHM", "LOCK", "FORCE", "ENGINE", "ROW_FORMAT", "COMMENT", "KEY_BLOCK_SIZE", "AUTO_INCREMENT", "CHECKSUM",
    "AVG_ROW_LENGTH", "COMPRESSION", "CONNECTION", "DATA", "INDEX", "DELAY_KEY_WRITE", "ENCRYPTION", "ENCRYPTED",
    "ENCRYPTION_KEY_ID", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "SECONDARY_ENGINE", "SECONDARY_LOAD",
    "SECONDARY_UNLOAD", "INSERT_METHOD", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM", "PAGE_COMPRESSED",
    "PAGE_COMPRESSION_LEVEL", "PASSWORD", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES", "TABLESPACE",
    "STORAGE", "TRANSACTIONAL", "UNION", "AUTOEXTEND_SIZE", "DISABLE", "ENABLE", "UPGRADE",
}  # fmt: skip
#: first words of actions on partitions, rows or files; such an action is the last one of its statement
_NO_COLUMNS = {
    "PARTITION", "TRUNCATE", "COALESCE", "REORGANIZE", "OPTIMIZE", "ANALYZE", "CHECK", "REBUILD", "REPAIR", "EXCHANGE",
    "DISCARD", "IMPORT", "REMOVE", "ORDER",
}  # fmt: skip


def alter_table(tokens: TokenReader, draft: TableDraft, schema: str, schema_charset: str) -> TableName | None:
    """Read the actions after the table's name into `draft`; return the table's new name if it gets one.

    schema_charset: default character set of the table's schema, "" if it is not known.

    Raises CannotApply.
    """
    actions = _Actions(tokens, draft, schema)
    actions.read()
    if (actions.charset.is_default or actions.conversion.is_default) and not schema_charset:
        raise CannotApply("the character set of the schema is not known")
    if converted := actions.conversion.charset(schema_charset):
        draft.convert_columns(converted)
    draft.charset = actions.charset.charset(schema_charset) or converted or draft.charset
    return actions.new_name


class _Actions:
    def __init__(self, tokens: TokenReader, draft: TableDraft, schema: str) -> None:
        self._tokens = tokens
        self._draft = draft
        self._schema = schema
        self.charset = CharsetClause()
        #: that of CONVERT TO, which MariaDB accepts beside another default for the table
        self.conversion = CharsetClause()
        self.new_name: TableName | None = None

    def read(self) -> None:
        """Read all actions."""
        tokens = self._tokens
        if tokens.take("WAIT"):
            tokens.number()
        tokens.take("NOWAIT")
        while tokens.next:
            self._action()
            if not tokens.take(",") and tokens.next not in {"", "PARTITION", "REMOVE"}:
                raise tokens.unexpected()

    def _action(self) -> None:
        tokens = self._tokens
        if tokens.take("ADD"):
            self._add()
        elif tokens.take("DROP"):
            self._drop()
        elif tokens.take("MODIFY"):
            self._redefine(renames=False)
        elif tokens.take("CHANGE"):
            self._redefine(renames=True)
        elif tokens.take("RENAME"):
            self._rename()
        elif tokens.take("ALTER"):
            self._alter()
        elif tokens.take("CONVERT", "TO"):
            if not self.conversion.take(tokens):
                raise tokens.unexpected()
            self.conversion.take(tokens)  # COLLATE
        elif tokens.next in _NO_COLUMNS:
            tokens.skip_rest()
        else:
            self._options()

    def _add(self) -> None:
        tokens, draft = self._tokens, self._draft
        if tokens.take("PARTITION"):
            tokens.skip_rest()
            return
        if read_key(tokens, draft):
            return
        tokens.take("COLUMN")
        if_not_exists = tokens.take("IF", "NOT", "EXISTS")
        several = tokens.take("(")
        while True:
            if not (several and read_key(tokens, draft)):
                definition = read_column(tokens)
                if not (if_not_exists and draft.has_column(definition.name)):
                    draft.add_column(definition)
            if not several or not tokens.take(","):
                break
        if several:
            tokens.expect(")")

    def _drop(self) -> None:
        tokens = self._tokens
        if tokens.take("PRIMARY", "KEY"):
            self._draft.drop_index("PRIMARY")
        elif tokens.take("INDEX") or tokens.take("KEY") or tokens.take("CONSTRAINT"):
            tokens.take("IF", "EXISTS")
            self._draft.drop_index(tokens.name())
        elif tokens.take("FOREIGN", "KEY") or tokens.take("CHECK"):
            tokens.take("IF", "EXISTS")
            tokens.name()
        elif tokens.take("PARTITION"):
            tokens.skip_rest()
        else:
            tokens.take("COLUMN")
            if_exists = tokens.take("IF", "EXISTS")
            name = tokens.name()
            _ = tokens.take("RESTRICT") or tokens.take("CASCADE")
            if not if_exists or self._draft.has_column(name):
                self._draft.drop_column(name)

    def _redefine(self, *, renames: bool) -> None:
        tokens = self._tokens
        tokens.take("COLUMN")
        if_exists = tokens.take("IF", "EXISTS")
        old = tokens.name()
        definition = read_column(tokens) if renames else read_definition(tokens, old)
        if not if_exists or self._draft.has_column(old):
            self._draft.redefine_column(old, definition)

    def _rename(self) -> None:
        tokens = self._tokens
        if tokens.take("COLUMN"):
            if_exists = tokens.take("IF", "EXISTS")
            old = tokens.name()
            tokens.expect("TO")
            new = tokens.name()
            if not if_exists or self._draft.has_column(old):
                self._draft.rename_column(old, new)
        elif tokens.take("INDEX") or tokens.take("KEY"):
            tokens.take("IF", "EXISTS")
            old = tokens.name()
            tokens.expect("TO")
            self._draft.rename_index(old, tokens.name())
        else:
            _ = tokens.take("TO") or tokens.take("AS") or tokens.take("=")
            self.new_name = tokens.table_name(self._schema)

    def _alter(self) -> None:
        """Read ALTER [COLUMN]: visibility and default. Changes of indexes and constraints do not matter here."""
        tokens = self._tokens
        if tokens.take("INDEX") or tokens.take("KEY") or tokens.take("CHECK") or tokens.take("CONSTRAINT"):
            tokens.skip_item()
            return
        tokens.take("COLUMN")
        if_exists = tokens.take("IF", "EXISTS")
        name = tokens.name()
        if tokens.take("SET", "VISIBLE"):
            self._draft.set_visible(name, visible=True)
            return
        if tokens.take("SET", "INVISIBLE"):
            self._draft.set_visible(name, visible=False)
            return
        if not (tokens.take("SET", "DEFAULT") or tokens.take("DROP", "DEFAULT")):
            raise tokens.unexpected()
        if not if_exists and not self._draft.has_column(name):
            raise CannotApply("it names a column that is not known")
        tokens.skip_item()

    def _options(self) -> None:
        tokens = self._tokens
        if tokens.next not in _OPTIONS and not self.charset.take(tokens):
            raise tokens.unexpected()
        while tokens.next not in {"", ",", "PARTITION", "REMOVE"}:
            if not self.charset.take(tokens):
                tokens.skip()
