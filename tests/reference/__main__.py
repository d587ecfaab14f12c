"""`make docs`: write what docs/reference has from the code."""

from reference import logs, settings

for path, text in [*settings.pages(), logs.page()]:
    path.write_text(text)
