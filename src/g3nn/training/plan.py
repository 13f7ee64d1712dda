"""A checked plan of a training, and its execution in stacks."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from g3nn.base.errors import DeviceMemoryError, Problems
from g3nn.base.options import check, known_names, pick, rules
from g3nn.base.threads import enough_for
from g3nn.graph.outcomes import OUTCOMES, Outcome
from g3nn.graph.task import NodeTask
from g3nn.model.generative import Channels, GenerativeModel, ModelSpec, registered_options
from g3nn.model.inputs import Inputs, LabelsApartError, Part
from g3nn.model.objective import Objective
from g3nn.model.priors import LabelPrior
from g3nn.model.replicas import Replicas, Sizes
from g3nn.training import checks
from g3nn.training.batch_stack import BatchStack
from g3nn.training.batches.source import BatchSource
from g3nn.training.checkpoint import EVERY, Checkpoints, check_folder, described
from g3nn.training.memory import fits, gib, measured, replicas_that_fit, surely_fits, usable_memory
from g3nn.training.options import LAST, TrainingOptions
from g3nn.training.progress import Course, Watch, monitor
from g3nn.training.result import FitResult, evaluated, joined, member_seeds, mixed, note_divergence, trial_endings
from g3nn.training.stack import Endings, Stack
from g3nn.training.tracking import Runs, Tracker, tracked, tracker
from g3nn.training.workers import Workers

RELEASED_OPTIONS = {"encoder": "relu", "latent_dropout": 0.5}
"""Component options that belong to the authors' code: its latent space model drops inputs and rectifies Ux."""

_TRIED = 64
"""With how many labelled nodes the memory of a batch is measured."""

_REPLICAS_PER_STACK = {"cpu": 32, "cuda": 512}
"""More replicas than this gain nothing: a CPU is busy with a few, a GPU with a few hundred."""
_CACHED = 1 << 25
"""On a CPU parts are faster one after another if an epoch of a stack takes more bytes than this."""


Trained = tuple[Endings, GenerativeModel]
"""How the replicas of a stack ended, and their parameters."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is trained, with which options and seeds, and where. Made by `Plan.check`.

    start: replicas that have been trained before, where these begin, in their unit of labels; None: at random."""

    spec: ModelSpec
    objective: Objective
    objective_name: str
    options: dict[str, object]
    seeds: tuple[int, ...]
    device: torch.device
    start: GenerativeModel | None = None

    @classmethod
    def check(
        cls,
        model: str | ModelSpec,
        objective: str | Objective,
        trials: int,
        seed: int | Sequence[int],
        prior: str | type[LabelPrior],
        device: str,
        options: Mapping[str, object],
        channels: Channels = None,
    ) -> Plan:
        """A plan, or one error that lists every problem."""
        problems = Problems()
        given = {name: checks.plain(value) for name, value in options.items()}
        spec = checks.checked_spec(model, prior, problems, channels)
        preset, own = checks.checked_objective(objective, problems)
        seeds = checks.checked_seeds(trials, seed, problems)
        place = checks.checked_device(device, problems)
        parts = spec.option_groups() if spec is not None else registered_options()
        outcomes = [outcome.Options for outcome in OUTCOMES.values()]  # Which of them apply depends on the task.
        check({**own, **given}, [*parts, Objective, TrainingOptions, *outcomes], problems)
        for name, value in {**own, **given}.items():
            if isinstance(value, tuple) and seeds and len(value) != len(seeds):
                problems.add(name, f"{len(value)} values", f"one number, or one for each of the {len(seeds)} trials")
        problems.raise_if_any()
        assert spec is not None
        if preset == "released":
            declared = known_names(spec.option_groups())
            given = {**{key: value for key, value in RELEASED_OPTIONS.items() if key in declared}, **given}
        changes = {**own, **{name: value for name, value in given.items() if name in rules(Objective)}}
        target = Objective.named("elbo" if preset == checks.CUSTOM else preset, **changes)
        spec = spec.without_clear_channels(given)
        return cls(spec, target, preset, given, seeds, place)

    def for_all_labels(self, epochs: int) -> Plan:
        """The same plan for training on every label, with nothing held back: a fixed number of epochs."""
        return self._trained_with(epochs=epochs, keep=LAST)

    def going_on(self, model: GenerativeModel, epochs: int) -> Plan:
        """The same plan for trained replicas, which need no warm-up: `epochs` more of them, on every label."""
        objective = dataclasses.replace(self.objective, warm_up=0)
        return dataclasses.replace(self.for_all_labels(epochs), start=model, objective=objective)

    def in_batches(self, size: int, fan_out: str | None = None) -> Plan:
        """The same plan with `size` labelled nodes in each step."""
        return self._trained_with(batch=size, fan_out=fan_out or self.training.fan_out)

    def steps(self, task: NodeTask) -> int | None:
        """How many steps over the graph the network takes; None: it needs the whole graph at once."""
        return self.spec.build(Sizes.of(task, self.options), Replicas(self.seeds[:1]), self.options).posterior.steps

    def _trained_with(self, **changes: object) -> Plan:
        return dataclasses.replace(self, options={**self.options, **changes})

    @cached_property
    def training(self) -> TrainingOptions:
        return pick(self.options, TrainingOptions)

    def bytes_of_epoch(self, task: NodeTask) -> int:
        """About how much memory one replica takes on this graph."""
        return measured(lambda: self._stack(task, self._inputs(task), [0]).advance(), self.device)

    def _inputs(self, task: NodeTask, label_weights: np.ndarray | None = None) -> Inputs:
        return Inputs.of(task, self.device, outcome=self._outcome(task, self.options)).weighted(label_weights)

    def fit(
        self,
        task: NodeTask,
        progress: bool | Course | None = None,
        label_weights: np.ndarray | None = None,
        deadline: float | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: float = EVERY,
        track: Tracker | str | None = None,
        apart: Sequence[Part] = (),
    ) -> FitResult:
        """Train and evaluate all trials on a task, as `g3nn.fit` does. progress: also the bar of a whole fit, which has
        its own tracker. label_weights: (n,), how often the label of each node counts. deadline: when to stop, wherever
        training is by then, on the clock of `time.monotonic`. apart: for each trial the same graph with training and
        validation nodes of its own."""
        with Problems() as problems:
            checks.check_workers(task, self.training, self.device, self.workers, problems)
            checkpoints = self._checkpoints(task, checkpoint, checkpoint_every, problems)
            checks.check_outcome(task.outcome, self.spec, self.objective, self.options, problems)
            checks.check_beliefs(task, self.spec, problems)
            checks.check_batches(task, self, problems)
            told = progress.track if isinstance(progress, Course) else tracker(track, problems)
        checks.warn_without_edges(task)
        start = time.perf_counter()
        inputs = self._inputs(task, label_weights)
        inputs = inputs.with_labels_apart(apart) if apart else inputs
        source = self._batches(task, inputs, label_weights) if self.training.batch else inputs
        with (
            enough_for(task.extent, len(self.seeds) * self.training.ensemble),
            self._watched(progress) as watch,
            self._tracked(task, told, inputs.outcome) as runs,
        ):
            waiting = len(self.seeds) * self.training.ensemble

            def over() -> bool:
                return isinstance(progress, Course) and progress.over

            def train(chunk: list[int]) -> Trained:
                nonlocal waiting
                now, share = time.monotonic(), min(len(chunk) / max(waiting, 1), 1.0)
                until = None if deadline is None else now + (deadline - now) * share
                waiting -= len(chunk)
                stack = self._stack(task, source, chunk)
                if checkpoints is not None:
                    checkpoints.resume(stack, chunk[0])
                while not (stack.finished or over()) and (stack.epoch == 0 or self._in_time(until)):
                    before = stack.num_live
                    stack.step()
                    watch(stack, before - stack.num_live)
                    runs.look(stack, chunk)
                    if checkpoints is not None and not stack.finished:
                        checkpoints.save(stack, chunk[0])
                return stack.end(), stack.model

            parts = self._in_stacks(train, self._stack_size(task, source))
            result = self._result(task, inputs, parts, time.perf_counter() - start)
            runs.end(result)
            return result

    def fit_parts(
        self, parts: Sequence[Part], progress: bool | Course | None = None, deadline: float | None = None
    ) -> FitResult:
        """Each trial on a part of its own: parts of one graph that differ in training and validation nodes. In one
        stack where only the loss looks at labels, else one after another, which gives the same."""
        with suppress(LabelsApartError):
            if len(parts) > 1 and self._stacks_parts(parts[0][0]):
                return self.fit(parts[0][0], progress, None, deadline, apart=parts)
        results = []
        for place, (task, weights) in enumerate(parts):
            now = time.monotonic()
            until = None if deadline is None else now + (deadline - now) / (len(parts) - place)
            results.append(self._only([place]).fit(task, progress, weights, until))
        return dataclasses.replace(FitResult.join(results), hyperparameters=self.hyperparameters(parts[0][0].outcome))

    def _stacks_parts(self, task: NodeTask) -> bool:
        """Whether labels are no more to a model than what its loss compares with: they have no unit, no channel, and
        validation nodes keep their edges."""
        plain = self.training.batch == 0 and self.training.ensemble == 1 and self.training.validation == "graph"
        reads = getattr(self.spec.components().get("posterior"), "reads_labels", False) or self.options.get(
            "label_inputs"
        )
        return plain and not reads and task.outcome_model(self.options).exclusive and not self.spec.channels

    @property
    def workers(self) -> Workers:
        """The processes that train: a whole graph is trained in one, whichever others there are."""
        return Workers.current() if self.training.batch else Workers()

    def _checkpoints(
        self, task: NodeTask, folder: str | Path | None, every: float, problems: Problems
    ) -> Checkpoints | None:
        if folder is None:
            return None
        checks.check_kept(self.training, len(self.seeds) * self.training.ensemble, problems)
        with problems.gathered():
            self.workers.told(lambda: check_folder(folder, every))
        own = {**self._choices(task), "seeds": self.seeds, **described(task), "processes": self.workers.size}
        return Checkpoints(Path(folder), own, every, self.workers)

    def _watched(self, progress: bool | Course | None) -> AbstractContextManager[Watch]:
        if isinstance(progress, Course):
            return progress.training(self.training.epochs)
        return monitor(self.spec.name, len(self.seeds), progress if self.workers.leads else False)

    def _tracked(self, task: NodeTask, track: Tracker | None, outcome: Outcome) -> AbstractContextManager[Runs]:
        options = {"dataset": task.name, "setting": task.setting, **self._choices(task)}
        told, live = track if self.workers.leads else None, self.training.ensemble == 1
        return tracked(told, self.seeds, options, self.objective, outcome.score_key, live)

    def _choices(self, task: NodeTask) -> dict[str, object]:
        named = {"model": self.spec.name, "objective": self.objective_name}
        return {**named, **self.hyperparameters(task.outcome)}

    def _batches(self, task: NodeTask, inputs: Inputs, label_weights: np.ndarray | None) -> BatchSource:
        steps = tuple(int(most) for most in self.training.fan_out.split("/"))
        return BatchSource(
            task,
            inputs.outcome,
            steps[: self.steps(task)],
            self.device,
            on_device=fits(task, self.device),
            isolated_nodes=self.objective.isolated_nodes,
            label_weights=label_weights,
        )

    def _in_stacks(self, train: Callable[[list[int]], Trained], largest: int) -> list[Trained]:
        """Train all replicas, in as few stacks of about the same size as memory allows."""
        replicas = range(len(self.seeds) * self.training.ensemble)
        waiting = [chunk.tolist() for chunk in np.array_split(replicas, -(-len(replicas) // largest))]
        parts: list[Trained] = []
        while waiting:
            chunk = waiting.pop(0)
            try:
                parts.append(train(chunk))
            except torch.cuda.OutOfMemoryError:
                # The numbers of a replica do not depend on its stack, so halving it only changes the memory needed.
                if len(chunk) == 1:
                    raise DeviceMemoryError("not even one replica fits on the device; use device='cpu'") from None
                torch.cuda.empty_cache()
                half = len(chunk) // 2
                waiting[:0] = [chunk[:half], chunk[half:]]
        return parts

    def _check_batch(self, task: NodeTask, source: BatchSource) -> None:
        """Raises an error that says how large a batch may be, if those of the plan take more memory than there is."""
        size = self.training.batch
        tried = min(size, _TRIED, len(task.train))
        if surely_fits(task, self.device) or tried == 0 or not any(source.fan_out):
            # With all neighbours no batch takes more than a few times the whole graph, however many labels it has.
            return
        stack = self.in_batches(tried)._stack(task, source, [0])
        assert isinstance(stack, BatchStack)
        each, usable = measured(stack.first_step, self.device) / tried, usable_memory(self.device)
        if each * min(size, len(task.train)) > usable:
            raise DeviceMemoryError(
                f"batch: {size} labelled nodes with {self.training.fan_out} neighbours take about {gib(each * size)} "
                f"of memory, and {gib(usable)} may be used: at most {int(usable / each)} fit. Use a smaller batch or "
                "fan_out"
            )

    def _stack_size(self, task: NodeTask, inputs: Inputs | BatchSource) -> int:
        """As many replicas as fit, judged by one epoch of the first; no more than keep the device busy. In batches one,
        since what a batch holds depends on the seed."""
        if isinstance(inputs, BatchSource):
            self._check_batch(task, inputs)
        if len(self.seeds) * self.training.ensemble == 1 or self.training.batch:
            return 1

        def epoch() -> None:
            self._stack(task, inputs, [0]).advance()

        if isinstance(inputs, Inputs) and inputs.apart and self.device.type == "cpu":
            return max(min(_CACHED, usable_memory(self.device)) // max(measured(epoch, self.device), 1), 1)
        return min(_REPLICAS_PER_STACK[self.device.type], replicas_that_fit(epoch, self.device))

    def _in_time(self, deadline: float | None) -> bool:
        """By the clock of the first process."""
        return deadline is None or self.workers.told(lambda: time.monotonic() < deadline)

    def _only(self, places: Sequence[int]) -> Plan:
        """The plan of the trials at these places."""

        def of(values: Mapping[str, Any]) -> dict[str, Any]:
            return {
                name: tuple(value[place] for place in places) if isinstance(value, tuple) else value
                for name, value in values.items()
            }

        seeds, objective = tuple(self.seeds[place] for place in places), Objective(**of(vars(self.objective)))
        return dataclasses.replace(self, seeds=seeds, options=of(self.options), objective=objective)

    def _stack(self, task: NodeTask, inputs: Inputs | BatchSource, chunk: list[int]) -> Stack:
        """The replicas at these positions, untrained. The own options of a trial hold for all its members."""
        members = self.training.ensemble

        own = self._only([index // members for index in chunk])
        options, objective = own.options, own.objective
        seeds = member_seeds(self.seeds, members)
        replicas = Replicas(tuple(seeds[index] for index in chunk))
        sizes = dataclasses.replace(Sizes.of(task, options), kind=self._outcome(task, options))
        model = self.spec.build(sizes, replicas, options)
        if self.start is not None:
            model.restore({name: tensor.detach().cpu()[chunk] for name, tensor in self.start.state_dict().items()})
        training = pick(options, TrainingOptions)
        if isinstance(inputs, BatchSource):
            return BatchStack(model, objective, inputs, replicas, training, self.workers)
        return Stack(model, objective, inputs.of_replicas(chunk), replicas, training)

    def _outcome(self, task: NodeTask, options: Mapping[str, object]) -> Outcome:
        return task.outcome_model(options) if self.start is None else self.start.posterior.sizes.outcome

    def _result(self, task: NodeTask, inputs: Inputs, parts: list[Trained], seconds: float) -> FitResult:
        answers = self._answered(parts, inputs)
        model = GenerativeModel.join([model for _, model in parts])
        ended = joined([endings for endings, _ in parts])
        if self.training.ensemble > 1 or self.training.batch:
            judged = self.training.validation_inputs(inputs)
            validation_answers = answers if judged is inputs else self._answered(parts, judged)
            emission = model.emission(inputs.outcome, self.training.ensemble)
            ended = trial_endings(ended, validation_answers, inputs, emission, self.training)
        measured: dict[str, Any] = {name: part.numpy() for name, part in ended.items()}
        diverged, never = measured.pop("diverged"), measured["best_epoch"] == 0
        cost, test = (np.where(never, np.nan, values) for values in evaluated(answers, inputs))
        status = tuple(
            "diverged" if bad else "limit" if count >= self.training.epochs else "stopped"
            for bad, count in zip(diverged, measured["epochs"].tolist(), strict=True)
        )
        note_divergence(status, self.seeds)
        return FitResult(
            dataset=task.name,
            setting=task.setting,
            model_name=self.spec.name,
            objective=self.objective_name,
            hyperparameters=self.hyperparameters(task.outcome),
            seeds=self.seeds,
            test_score=test,
            **measured,
            status=status,
            seconds=seconds,
            answers=answers.cpu(),
            model=model.cpu(),
            outcome=inputs.outcome,
            test_log_prob=-cost,
        )

    @torch.no_grad()
    def _answered(self, parts: list[Trained], inputs: Inputs) -> torch.Tensor:
        """(trials, n, width): what all members of a trial answer together."""
        answers = torch.cat([model.predict_log_prob(inputs) for _, model in parts])
        return mixed(answers, self.training.ensemble, inputs.outcome)

    def hyperparameters(self, outcome: str) -> dict[str, object]:
        """Every option with the value it had, defaults included."""
        groups: list[Any] = [
            pick(self.options, group) for group in [*self.spec.option_groups(), OUTCOMES[outcome].Options]
        ]
        values: dict[str, object] = {}
        for group in [*groups, self.objective, self.training]:
            values.update(dataclasses.asdict(group))
        if self.spec.likelihood is not None:
            values["prior"] = self.spec.prior if isinstance(self.spec.prior, str) else self.spec.prior.__name__
        if self.spec.channels:
            values["channels"] = self.spec.channel_names
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
