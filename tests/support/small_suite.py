"""A suite of four cells on Cora whose trainings take a few hundredths of a second each."""

SUITE = """
objectives = ["elbo"]

[protocol]
trials = 3
selection_seeds = 2
finalists = 2
finalist_seeds = 3

[fixed]
epochs = 3
patience = 3

[axes]
hidden = [2, 3]
lr = [0.01, 0.1]

[[grids]]
models = ["mlp", "gcn", "sbm-gcn"]
axes = ["hidden", "lr"]

[[tables]]
name = "1"
setting = "standard"
cells = [{ model = "mlp", dataset = "cora" }, { model = "gcn", dataset = "cora" }]

[[tables]]
name = "2"
setting = "missing-edge"
cells = [{ model = "gcn", dataset = "cora" }, { model = "sbm-gcn", dataset = "cora" }]
"""
