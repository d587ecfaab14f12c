"""`make docs`: write the generated parts of docs."""

from reference import chart, dashboards, decisions, logs, metrics, rest, settings

for path, text in [
    *settings.pages(),
    logs.page(),
    metrics.page(),
    rest.page(),
    decisions.page(),
    chart.page(),
    *dashboards.pages(),
]:
    path.write_text(text)
