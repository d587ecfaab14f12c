"""`make docs`: write the generated parts of docs."""

from reference import decisions, logs, metrics, rest, settings

for path, text in [*settings.pages(), logs.page(), metrics.page(), rest.page(), decisions.page()]:
    path.write_text(text)
