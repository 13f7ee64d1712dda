"""A graph in two tables, one row per node and one row per edge: read, checked, and made into features and pairs."""
