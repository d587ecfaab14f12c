"""`make docs`: write the generated parts of docs/reference."""

from reference import logs, settings

for path, text in [*settings.pages(), logs.page()]:
    path.write_text(text)
