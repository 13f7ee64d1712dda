"""The page of a suite of experiments, a single file that needs no network."""

from g3nn.report.suite_page import write_report

__all__ = ["write_report"]
