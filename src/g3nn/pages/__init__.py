"""The page of a fitted model, a single file that needs no network, and what every page is made of."""

from g3nn.pages.model_page import write_model_report

__all__ = ["write_model_report"]
