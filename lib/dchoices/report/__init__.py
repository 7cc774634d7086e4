"""The report: one template, every number computed, to a page (HTML) and to print (PDF).

``python -m dchoices.report --data data/paper --template report/report.md --out report/build``
"""
