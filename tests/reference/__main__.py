"""`make docs`: write the generated parts of docs."""

from reference import chart, decisions, logs, rest, settings

for path, text in [*settings.pages(), logs.page(), rest.page(), decisions.page(), chart.page()]:
    path.write_text(text)
