"""Suites of experiments as data: planning, running, storing and comparing them."""
