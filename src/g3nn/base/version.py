"""The version, stated here and nowhere else: the package metadata, `g3nn.__version__` and every record read it here."""

__version__ = "0.2.0"
