"""Pages to look at, each a single file that needs no network: one of a fitted model, one of a suite of experiments."""

from g3nn.report.model_page import write_model_report
from g3nn.report.page import write_report

__all__ = ["write_model_report", "write_report"]
