"""`make docs`: write the generated parts of docs."""

from reference import chart, decisions, logs, metrics, rest, settings

for path, text in [*settings.pages(), logs.page(), metrics.page(), rest.page(), decisions.page(), chart.page()]:
    path.write_text(text)
