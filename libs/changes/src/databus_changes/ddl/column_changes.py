"""What an ALTER TABLE does to a table's columns: which are renamed, and which are added."""

from dataclasses import dataclass

from databus_changes.ddl.definition import ColumnDefinition


@dataclass(frozen=True, kw_only=True)
class ColumnChanges:
    """Names are in lower case, because names of columns are not case-sensitive."""

    #: new name → old name, without columns that keep their names
    renamed: dict[str, str]
    #: name → definition of each column that is added
    added: dict[str, ColumnDefinition]
    #: new name → definition of each column that has a new one
    redefined: dict[str, ColumnDefinition]
    dropped: frozenset[str]
    #: character set to which CONVERT TO converts all text; "" without CONVERT TO
    converted: str

    @property
    def concern_columns(self) -> bool:
        """Whether a column is added, dropped, renamed, defined again or converted."""
        return bool(self.renamed or self.added or self.redefined or self.dropped or self.converted)

    def source(self, name: str) -> str | None:
        """Return which column of the table before has the values of a column; None if it was added."""
        folded = name.lower()
        if folded in self.renamed:
            return self.renamed[folded]
        is_gone = folded in self.dropped or folded in self.renamed.values()
        return None if is_gone or folded in self.added else folded
