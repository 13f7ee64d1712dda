"""Labelling by people: questions in a page on this machine, answers on disk at once, a model that learns meanwhile."""
