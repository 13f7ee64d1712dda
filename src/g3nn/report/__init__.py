"""Pages to look at, each one file that needs no network, made from stored results alone."""

from g3nn.report.model_page import write_model_report
from g3nn.report.page import page, write_report

__all__ = ["page", "write_model_report", "write_report"]
