"""`make docs`: write the generated parts of docs/reference."""

from reference import logs, rest, settings

for path, text in [*settings.pages(), logs.page(), rest.page()]:
    path.write_text(text)
