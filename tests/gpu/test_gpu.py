"""On a machine with CUDA: the Triton kernels against the CPU's, and whole trainings on both devices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import g3nn
from g3nn.kernels import Draw, FreePairs, Pattern, Scales, cpu, dropped_linear, reference
from g3nn.kernels.arguments import Attention, LogisticPairs, NodeAnswers
from g3nn.model.replicas import Noise
from g3nn.studies.executors import make_executor
from g3nn.studies.job import Job
from g3nn.studies.records import Point
from g3nn.training.batches.sampling import GraphRows, Sampler
from g3nn.training.track import Track

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")

R, N, M = 3, 90, 60
SEEDS = torch.tensor([1, -7, 5])


@pytest.fixture(scope="module")
def gpu():
    return pytest.importorskip("g3nn.kernels.gpu")


@pytest.fixture(scope="module")
def pattern() -> Pattern:
    return Pattern.from_scipy(sp.random_array((N, M), density=0.2, format="csr", random_state=0))


@pytest.fixture(scope="module")
def square() -> Pattern:
    return Pattern.from_scipy(sp.csr_array(sp.random_array((N, N), density=0.1, random_state=1) + sp.eye_array(N)))


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def on_gpu(value):
    if isinstance(value, Draw | Attention | LogisticPairs | NodeAnswers | Scales):
        return value._make(on_gpu(entry) for entry in value)
    return value.to("cuda") if isinstance(value, torch.Tensor | Pattern) else value


def assert_same(gpu, name: str, *arguments) -> None:
    """The kernel `name` gives the same on both devices, and the same twice on the GPU."""
    expected = getattr(cpu, name)(*arguments)
    moved = [on_gpu(argument) for argument in arguments]
    found, again = getattr(gpu, name)(*moved), getattr(gpu, name)(*moved)
    as_tuple = lambda result: result if isinstance(result, tuple) else (result,)  # noqa: E731
    for one, two, three in zip(as_tuple(expected), as_tuple(found), as_tuple(again), strict=True):
        assert torch.equal(two, three)
        torch.testing.assert_close(two.cpu(), one, rtol=1e-5, atol=1e-5)


DRAW = Draw(SEEDS, 300, 0.4)


def test_random_bits_are_the_same(gpu):
    for counter in (0, 7, 2**40 + 3):
        assert torch.equal(gpu.uniform_bits(SEEDS.cuda(), counter, 5000).cpu(), cpu.uniform_bits(SEEDS, counter, 5000))
        for high in (7, 19717**2, 10**12 + 7):
            found = gpu.uniform_integers(SEEDS.cuda(), counter, high, 5000).cpu()
            assert torch.equal(found, cpu.uniform_integers(SEEDS, counter, high, 5000))
    assert_same(gpu, "dropout", numbers(R, 5000), DRAW)


WIDTHS = (1, 7, 16, 64, 100)
KINDS = ("shared", "own", "dropped")


@pytest.mark.parametrize(
    ("h", "kind", "transpose"),
    [(h, kind, (a + b) % 2 == 1) for a, h in enumerate(WIDTHS) for b, kind in enumerate(KINDS)],
)
def test_product(gpu, pattern, h, kind, transpose):
    """Each width with each kind of values, and each of both with the matrix and with its transpose."""
    values = numbers(R if kind == "own" else 1, pattern.nnz)
    dense = numbers(R, N if transpose else M, h, seed=1)
    assert_same(gpu, "spmm", pattern, values, dense, DRAW if kind == "dropped" else None, transpose)


@pytest.mark.parametrize("transpose", [False, True])
def test_product_of_nothing(gpu, transpose):
    """Where no node has edges of a type, a matrix has no rows, and its transpose no columns."""
    pattern = Pattern.from_scipy(sp.csr_array((0, M)))
    dense = numbers(R, 0 if transpose else M, 4)
    assert_same(gpu, "spmm", pattern, numbers(1, 0), dense, None, transpose)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("h", WIDTHS)
def test_product_with_values_that_follow_from_rows_and_columns(gpu, square, h, transpose):
    mask = torch.zeros(N, N, dtype=torch.bool)
    mask[square.row.long(), square.col.long()] = True
    both = Pattern.from_scipy(sp.csr_array((mask | mask.T).numpy()), symmetric=True)
    left, right, dense = numbers(N).abs(), numbers(N, seed=1).abs(), numbers(R, N, h, seed=2)
    for scales in (Scales(left, right), Scales(left, None), Scales(None, right)):
        assert_same(gpu, "spmm", both, scales, dense, None, transpose)


def test_rows_and_columns_of_a_pattern_are_those_of_the_cpu(pattern, square):
    for one in (pattern, square):
        for name in ("row", "t_rowptr", "t_col", "perm"):
            assert torch.equal(getattr(one.to("cuda"), name).cpu(), getattr(one, name)), name


def test_a_pattern_that_is_too_long_to_sort_on_a_gpu_is_turned_on_the_cpu(monkeypatch, pattern):
    expected = [part.long() for part in (pattern.t_rowptr, pattern.t_col, pattern.perm)]
    monkeypatch.setattr("g3nn.kernels.pattern._SORTED_THERE", 10)
    there = pattern.to("cuda")
    for part, own in zip((there.t_rowptr, there.t_col, there.perm), expected, strict=True):
        assert part.is_cuda
        assert torch.equal(part.cpu().long(), own)


def test_free_pairs(gpu, square):
    free = FreePairs(square)
    rank = torch.arange(len(free)).view(2, -1) if len(free) % 2 == 0 else torch.arange(len(free)).view(1, -1)
    assert_same(gpu, "unrank_free", rank, square, free._longest)
    n = 3_000_000
    taken = Pattern.from_rows(torch.arange(n + 1), torch.arange(n), n, symmetric=True)
    rank = torch.randint(n * (n - 1), (2, 5000), generator=torch.Generator().manual_seed(0))
    assert_same(gpu, "unrank_free", rank, taken, 1)


@pytest.mark.parametrize("start", [0, 2**32 - 1000, 7 * 2**32 + 5])
def test_dropout_on_values_that_replicas_share(gpu, start):
    assert_same(gpu, "dropout", numbers(1, 5000), DRAW, start)


def test_features_are_dropped_as_on_the_cpu():
    x, weight, grad = numbers(N, 20), numbers(R, 20, 7, seed=1), numbers(R, N, 7, seed=2)
    found = []
    for device in ("cpu", "cuda"):
        own = weight.to(device, copy=True).requires_grad_()
        out = dropped_linear(x.to(device), own, DRAW._replace(seeds=SEEDS.to(device)))
        out.backward(grad.to(device))
        found.append((out.cpu(), own.grad.cpu()))
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(two, one, rtol=1e-4, atol=1e-4)


@pytest.fixture
def room():
    """Some tests need memory for a few tensors of more than 2^31 numbers."""
    torch.cuda.empty_cache()
    if torch.cuda.mem_get_info()[0] < 60 * 2**30:
        pytest.skip("needs 60 GiB of free GPU memory")
    yield
    torch.cuda.empty_cache()


class TestMoreThanTwoToThe31:
    def test_dropout_and_rectifier(self, gpu, room):
        size, h = 2**31 + 4096, 64
        seeds = torch.tensor([5], device="cuda")
        draw = Draw(seeds, 3, 0.4)
        ones = torch.ones(1, size, device="cuda")
        keep = reference.uniform_bits(seeds, 3, 5000, size - 5000) >= draw.threshold
        assert torch.equal(gpu.dropout(ones, draw)[:, -5000:], keep * draw.scale)
        out = gpu.rectify(ones.view(1, -1, h), torch.ones(1, h, device="cuda"), draw)
        assert torch.equal(out.view(1, -1)[:, -5000:], 2 * keep * draw.scale)
        kept = gpu.rectify_backward(ones.view(1, -1, h), out, draw.scale)[0]
        assert torch.equal(kept.view(1, -1)[:, -5000:], keep * draw.scale)

    def test_products_with_rows_beyond(self, gpu, room):
        """One entry in each of many rows, in the last column."""
        n, h = 2**25 + 64, 64
        rowptr, col = torch.arange(n + 1, device="cuda"), torch.arange(n, device="cuda").flip(0)
        pattern = Pattern.from_rows(rowptr, col, n)
        dense = torch.zeros(1, n, h, device="cuda")
        dense[0, -1], dense[0, 0] = 3.0, 5.0
        out = gpu.spmm(pattern, Scales(torch.full((n,), 2.0, device="cuda"), None), dense, None, False)
        assert out[0, 0].tolist() == [6.0] * h
        assert out[0, -1].tolist() == [10.0] * h
        pairs = torch.tensor([n - 1, 0], dtype=torch.int32, device="cuda")
        assert gpu.pair_dot(dense, dense, pairs, pairs.flip(0))[0].tolist() == [15.0 * h] * 2


def test_integer_sums_leave_room_for_any_number_of_summands(gpu):
    for P in (1, 2**26, 2**27, 10**9, 2**33):
        assert P * gpu._units(P) <= 2.0**62
    assert gpu._units(1000) == 2.0**36


@pytest.mark.parametrize("count", [1, 5000, 70_000])
def test_validation_of_many_nodes(gpu, count):
    n = 80_000
    log_q, labels, nodes = numbers(2, n, 7).log_softmax(2), torch.arange(n) % 7, torch.arange(count)
    right = (log_q.argmax(2) == labels).float()[:, nodes]
    expected = torch.stack([-log_q[:, nodes, labels[nodes]].mean(1), right.mean(1)])
    found = gpu.validation(log_q.cuda(), labels.cuda(), nodes.cuda())
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("h", [2, 7, 16])
def test_pairs(gpu, shared, h, kind):
    index = torch.randint(N, (2, 500) if shared else (2, R, 500), generator=torch.Generator().manual_seed(0)).to(kind)
    left, right, grad = numbers(R, N, h), numbers(R, N, h, seed=1), 1e-3 * numbers(R, 500, seed=2)
    assert_same(gpu, "pair_dot", left, right, *index)
    assert_same(gpu, "pair_dot_backward", grad, left, right, *index)
    assert_same(gpu, "scatter_rows", numbers(R, 500, h), index[0], N)
    assert_same(gpu, "pair_sum", left[:, :, 0], right[:, :, 1], *index)


@pytest.mark.parametrize(("H", "F"), [(8, 2), (8, 16), (1, 7), (3, 5)])
@pytest.mark.parametrize("draw", [None, DRAW], ids=["whole", "dropped"])
@pytest.mark.parametrize("weighted", [False, True])
def test_attention(gpu, square, H, F, draw, weighted):
    x, left, right, grad = numbers(R, N, H, F), numbers(R, N, H), numbers(R, N, H, seed=1), numbers(R, N, H, F, seed=2)
    how = Attention(square, 0.2, draw, numbers(square.nnz, seed=3) if weighted else None)
    out, alpha = cpu.attend(x, left, right, how)
    moved = [on_gpu(argument) for argument in (x, left, right)]
    out_gpu, alpha_gpu = gpu.attend(*moved, on_gpu(how))
    torch.testing.assert_close(out_gpu.cpu(), out, rtol=1e-5, atol=1e-5)
    expected = cpu.attend_backward(grad, x, left, right, alpha, how)
    found = gpu.attend_backward(grad.cuda(), *moved, alpha_gpu, on_gpu(how))
    for one, two in zip(expected, found, strict=True):
        torch.testing.assert_close(two.cpu(), one, rtol=1e-4, atol=1e-5)


def test_dense_layers(gpu):
    x, bias, grad = numbers(R, N, 20), numbers(R, 20, seed=1), numbers(R, N, 7, seed=2)
    for draw in (None, DRAW):
        assert_same(gpu, "rectify", x, bias, draw)
    kept = cpu.rectify(x, bias, DRAW)
    assert_same(gpu, "rectify_backward", numbers(R, N, 20, seed=3), kept, DRAW.scale)
    torch.testing.assert_close(gpu.row_products(x.cuda(), grad.cuda()).cpu(), x.mT @ grad, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gpu.column_sums(x.cuda()).cpu(), x.sum(1), rtol=1e-5, atol=1e-5)
    for width in (100, 300):
        wide = numbers(1, 3000, width)
        found = gpu.row_products(wide.cuda(), wide.cuda()).cpu()
        torch.testing.assert_close(found, wide.mT @ wide, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("of_posterior", [True, False])
def test_node_terms(gpu, of_posterior):
    log_q, log_p = (numbers(R, N, 7, seed=seed).log_softmax(2) for seed in (0, 1))
    label = torch.where(torch.arange(N) < 20, torch.arange(N) % 7, -1)
    answers = NodeAnswers(log_q, log_p, label, of_posterior, (0.05, 0.01))
    assert_same(gpu, "node_terms", answers)
    assert_same(gpu, "node_terms_backward", numbers(R, 4, seed=2), numbers(R, N, 7, seed=3), answers)


def test_a_grid_may_have_more_blocks_than_its_second_axis_allows(gpu):
    """65,535; with so many classes a block is a single node."""
    n, K = 70_000, 300
    log_q, log_p = (numbers(1, n, K, seed=seed).log_softmax(2) for seed in (0, 1))
    label = torch.where(torch.arange(n) % 3 == 0, torch.arange(n) % K, -1)
    answers = NodeAnswers(log_q, log_p, label, True, (1 / n, 1 / n))
    assert gpu._rows(K)["ROWS"] == 1
    assert_same(gpu, "node_terms", answers)
    assert_same(gpu, "node_terms_backward", numbers(1, 4, seed=2), numbers(1, n, K, seed=3), answers)


def test_validation(gpu):
    log_q, labels, nodes = numbers(R, N, 7).log_softmax(2), torch.arange(N) % 7, torch.arange(10, 70)
    right = (log_q.argmax(2) == labels).float()[:, nodes]
    expected = torch.stack([-log_q[:, nodes, labels[nodes]].mean(1), right.mean(1)])
    torch.testing.assert_close(gpu.validation(log_q.cuda(), labels.cuda(), nodes.cuda()).cpu(), expected)


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize(("sign", "P", "K"), [(1.0, 500, 7), (-1.0, 500, 7), (1.0, 300, 60), (-1.0, 40, 600)])
def test_expected_logistic(gpu, ends, sign, P, K, monkeypatch):
    # So few that the pairs of many classes come in parts.
    monkeypatch.setattr(gpu, "_MOST_CELLS", 1 << 18)
    left, right = (numbers(R, P, K, seed=seed).softmax(2) for seed in (0, 1))
    target, source = (numbers(R, P, K, seed=seed) if ends else None for seed in (2, 3))
    pairs = LogisticPairs(left, right, numbers(R, P, seed=4), target, source, numbers(R, K, K, seed=5), sign)
    assert_same(gpu, "expected_logistic", pairs)
    grad = numbers(R, P, seed=6)
    expected = cpu.expected_logistic_backward(grad, pairs)
    found = gpu.expected_logistic_backward(grad.cuda(), on_gpu(pairs))
    for one, two in zip(expected, found, strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            torch.testing.assert_close(two.cpu(), one, rtol=1e-4, atol=1e-4)


def test_books_are_kept_as_on_the_cpu():
    device = torch.device("cpu")
    here = Track.start({"w": torch.zeros(4, 2)}, 4, 10, 3, device, torch.float32)
    there = Track.start({"w": torch.zeros(4, 2).cuda()}, 4, 10, 3, torch.device("cuda"), torch.float32)
    for epoch in range(8):
        losses, val_loss, val_accuracy = (numbers(4, seed=3 * epoch + part) for part in range(3))
        losses[1] = torch.nan if epoch == 2 else losses[1]
        val_loss[2] = torch.inf if epoch == 3 else val_loss[2]
        here.update(losses, val_loss, val_accuracy)
        there.update(losses.cuda(), val_loss.cuda(), val_accuracy.cuda())
        for name in ("clock", "best_loss", "best_score", "best_epoch", "epochs", "active", "diverged", "fresh"):
            torch.testing.assert_close(getattr(there, name).cpu(), getattr(here, name), equal_nan=True)


def test_stacks_are_as_large_as_memory_allows(monkeypatch):
    task = g3nn.synthetic(nodes=300, classes=3, degree=5, features=12, seed=2)
    whole = g3nn.fit(task, "sbm-gcn", trials=6, epochs=5, device="cuda")
    monkeypatch.setattr("g3nn.training.memory.free_memory", lambda device: 1)
    split = g3nn.fit(task, "sbm-gcn", trials=6, epochs=5, device="cuda")
    np.testing.assert_allclose(split.val_loss, whole.val_loss, rtol=1e-5)


@pytest.mark.parametrize(
    ("model", "objective"),
    [
        ("gcn", "elbo"),
        ("sbm-gcn", "elbo"),
        ("lsm-gat", "elbo"),
        ("gsbm-appnp", "elbo"),
        ("gsbm-hops", "elbo"),
        ("linkx", "elbo"),
        ("gcn-jaccard", "elbo"),
        ("gcn-svd", "elbo"),
        ("gnnguard", "elbo"),
        ("blsm-mlp", "elbo"),
        ("sbm-gcn", "released"),
        ("lsm-gat", "released"),
    ],
)
def test_training_is_that_of_the_cpu(model, objective):
    task = g3nn.synthetic(nodes=300, classes=3, degree=5, features=12, seed=2)
    one, two = (g3nn.fit(task, model, objective, trials=3, epochs=12, device=device) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(two.history, one.history, rtol=2e-3, atol=2e-4)
    np.testing.assert_array_equal(two.epochs, one.epochs)


@pytest.mark.parametrize("model", ["sbm-gcn", "lsm-gat", "nlsm-sage"])
def test_training_on_weighted_edges_is_that_of_the_cpu(model):
    task = g3nn.synthetic(nodes=300, classes=3, degree=5, features=12, seed=2)
    task = replace(task, weights=np.random.default_rng(0).gamma(1.0, size=task.num_edges))
    options = {"hops": 2, "degrees": True} if model == "nlsm-sage" else {}
    one, two = (g3nn.fit(task, model, trials=3, epochs=12, device=device, **options) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(two.history, one.history, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize(
    ("outcome", "model"),
    [("tags", "tags-gcn"), ("tags", "sbm-gcn"), ("real", "near-gcn"), ("counts", "near-gcn")],
)
def test_training_on_numbers_is_that_of_the_cpu(outcome, model):
    task = g3nn.synthetic_values(outcome, nodes=300, columns=2, labelled=0.2, val=50)
    options = {"trials": 3, "epochs": 12, "refine": True}
    one, two = (g3nn.fit(task, model, device=device, **options) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(two.history, one.history, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(two.predictions, one.predictions, rtol=2e-3, atol=2e-4)


def test_training_on_tags_as_counts_is_that_of_the_cpu():
    task = g3nn.synthetic_values("tags", nodes=300, columns=2, labelled=0.2, val=50)
    options = {"edges": "poisson", "degrees": True, "damping": 0.4, "negatives": "degrees", "p0": 0.03, "p1": 0.03}
    one, two = (g3nn.fit(task, "tags-gcn", trials=3, epochs=12, device=device, **options) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(two.history, one.history, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize(
    ("outcome", "columns", "model", "channels"),
    [
        ("classes", 3, "sbm-gcn", "flips+edges"),
        ("classes", 3, "dcsbm-gcn", "flips+edges"),
        ("classes", 3, "gcn", "flips"),
        ("tags", 1, "tags-gcn", "flips+edges"),
        ("tags", 2, "tags-gcn", "flips+edges"),
        ("real", 2, "near-gcn", "outliers+edges"),
        ("counts", 2, "near-gcn", "outliers+edges"),
    ],
)
def test_training_with_channels_is_that_of_the_cpu_and_repeats_bit_for_bit(outcome, columns, model, channels):
    if outcome == "classes":
        task = g3nn.synthetic(nodes=300, classes=columns, degree=5, features=12, seed=2)
    else:
        task = g3nn.synthetic_values(outcome, nodes=300, columns=columns, labelled=0.2, val=50)
    options = {"trials": 3, "epochs": 12, "channels": channels, "wrong": (0.0, 0.1, 0.3), "calibrated": True}
    one, two, three = (g3nn.fit(task, model, device=device, **options) for device in ("cpu", "cuda", "cuda"))
    np.testing.assert_allclose(two.history, one.history, rtol=2e-3, atol=2e-4)
    np.testing.assert_array_equal(three.history, two.history)


def test_an_ensemble_is_that_of_the_cpu():
    task = g3nn.synthetic(nodes=300, classes=3, degree=5, features=12, seed=2)
    options = {"trials": 2, "ensemble": 3, "epochs": 12, "validation": "isolated", "calibrated": True}
    one, two = (g3nn.fit(task, "sbm-gcn", device=device, **options) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(two.probabilities, one.probabilities, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(two.val_loss, one.val_loss, rtol=2e-3)


@pytest.mark.parametrize("isolated_answer", ["prior", "both"])
def test_nodes_without_edges_are_answered_as_on_the_cpu(isolated_answer):
    task = g3nn.synthetic(nodes=300, classes=3, degree=5, features=12, seed=2)
    task = task.without_edges_of(task.test)
    options = {
        "isolated_answer": isolated_answer,
        "isolated_nodes": "missing",
        "validation": "isolated",
        "trials": 2,
        "epochs": 12,
    }
    one, two = (g3nn.fit(task, "dcsbm-gcn", device=device, **options) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(two.history, one.history, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(two.probabilities, one.probabilities, rtol=2e-3, atol=2e-4)


def test_a_step_of_many_random_draws_is_that_of_the_cpu():
    task = g3nn.synthetic(nodes=300, classes=3, degree=5, features=12, seed=2)
    options = {"layers": 64, "hidden": 4, "samples": 5, "trials": 2, "epochs": 3}
    one, two = (g3nn.fit(task, "sbm-gcnii", device=device, **options) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(two.history, one.history, rtol=2e-3, atol=2e-4)


def test_two_workers_share_a_gpu():
    options = {"epochs": 12, "hidden": 8}
    points = [Point("cora", "standard", model, "elbo", options) for model in ("gcn", "sbm-gcn", "lsm-gcn")]
    jobs = [Job("trial", (point, point), (0, 1)) for point in points]
    found = []
    for workers in (1, 2):
        with make_executor("local", "cuda", workers) as place:
            found.append([record for _, records in place.execute(jobs) for record in records])
    one, two = ({(record.point.key, record.seed): record.val_loss for record in records} for records in found)
    assert len(one) == 6
    assert two == pytest.approx(one, rel=1e-5)


@pytest.mark.parametrize("model", ["lsm-gcn", "sbm-gat", "blsm-appnp"])
def test_training_repeats_bit_for_bit_and_does_not_depend_on_the_stack(model):
    task = g3nn.synthetic(nodes=300, classes=3, degree=5, features=12, seed=2)
    options = {"epochs": 120, "patience": 10, "device": "cuda"}
    whole, again = (g3nn.fit(task, model, trials=6, **options) for _ in range(2))
    np.testing.assert_array_equal(whole.history, again.history)
    alone = g3nn.fit(task, model, trials=1, seed=4, **options)
    assert alone.epochs[0] == whole.epochs[4]
    np.testing.assert_allclose(alone.val_loss[0], whole.val_loss[4], rtol=1e-4)


def test_a_node_without_features_and_other_edges_leaves_the_gradient_as_on_the_cpu():
    task = g3nn.synthetic(nodes=300, classes=3, degree=3, features=12, seed=2)
    features = task.features.copy()
    features[np.unique(task.edges)[:20]] = 0.0
    task = replace(task, features=features)
    options = {"hops": 2, "degrees": True, "trials": 2, "epochs": 12}
    one, two = (g3nn.fit(task, "nlsm-mlp", device=device, **options) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(two.history, one.history, rtol=2e-3, atol=2e-4)


def test_the_first_epochs_of_rgcn_are_those_of_the_cpu():
    """Later ones need not be: the logarithm of a variance next to zero, which a rectifier switches on and off, makes a
    rounding as large as an update."""
    task = g3nn.synthetic(nodes=300, classes=3, degree=5, features=12, seed=2)
    one, two = (g3nn.fit(task, "rgcn", trials=3, epochs=4, device=device) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(two.history, one.history, rtol=2e-3, atol=2e-4)


def test_neighbourhoods_are_drawn_as_on_the_cpu():
    task = g3nn.synthetic(nodes=500, classes=3, degree=8, features=5, seed=4)
    rows = GraphRows.of(task.edges, task.num_nodes, None).pattern
    targets, more = torch.tensor([4, 9, 4, 30]), torch.tensor([9, 2, 2, 58])
    found = []
    for device in ("cpu", "cuda"):
        noise = Noise(torch.tensor([7], device=device), 3)
        found.append(Sampler(rows.to(device)).around(targets, more, (5, 3, 0), noise))
    one, two = found
    assert one.sizes == two.sizes
    for part in ("nodes", "rowptr", "col", "entry"):
        assert torch.equal(getattr(one, part), getattr(two, part).cpu())


@pytest.mark.parametrize("model", ["sage", "sbm-gcn", "lsm-gat"])
def test_training_in_batches_is_that_of_the_cpu(model):
    task = g3nn.synthetic(nodes=300, classes=3, degree=5, features=12, seed=2)
    options = {"epochs": 6, "batch": 20, "fan_out": "4/3"}
    one, two = (g3nn.fit(task, model, device=device, **options) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(two.history, one.history, rtol=2e-3, atol=2e-4)
