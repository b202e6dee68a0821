"""Individual audit against inFairness and against a bare torch loop: seconds, and ratios.

    python benchmarks/individual.py [--quick] [--repeat 2]

Needs ``torch==2.13.0`` and ``pip install --no-deps inFairness POT``. All run in one process on one thread each.

Every side makes the same number of steps for each person. Ours is the whole audit: movement, both findings, intervals,
the curve over flow time, ratios per group, errors of the flow. It makes many steps from few gradients where it can: in
the pieces of a network of rectifiers, and in strides where gradients change smoothly; the positions are those of
single steps, which tests check. Networks are timed as they are drawn and after training. inFairness moves people (its
loop also runs the unmoved people through the network in every step) and returns a mean and a bound; it is timed with
plain gradient steps (SGD), the rule of the paper, and with its default, Adam. The bare loop does the arithmetic of the
flow and nothing else. The same network is also written as a module with a forward function of its own, as most are. One
whose layers cannot be read, because something is hooked to it, is followed by autograd.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import torch

import evenhand as eh
from evenhand.audits.individual import audit_individual
from evenhand.kernels.flow.perceptron import Perceptron
from evenhand.models.gradient import GradientModel
from evenhand.models.gradient_torch import TorchGradient
from evenhand.similarity import Discounted

HERE = Path(__file__).parent


def seconds(work: Callable[[], object], repeat: int) -> float:
    """Return the fastest of a few runs."""
    best = float("inf")
    for _ in range(repeat):
        # Processor time on one thread: the same as wall time on an idle machine, and honest on a busy one.
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def case(
    n: int, d: int, hidden: int, unit: type[torch.nn.Module] = torch.nn.ReLU, *, trained: bool = False
) -> dict[str, Any]:
    """Make a network and people for it; two directions should not matter."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = (rng.random(n) < 0.4).astype(np.int64)
    if trained:
        y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n) > 0.3).astype(np.int64)
    net = torch.nn.Sequential(torch.nn.Linear(d, hidden), unit(), torch.nn.Linear(hidden, 2))
    if trained:
        train(net, X, y)
    V = np.linalg.qr(rng.normal(size=(d, 2)))[0]
    first, last = net[0], net[2]
    plain = Perceptron(
        weights=tuple(layer.weight.detach().numpy().T.astype(np.float64) for layer in (first, last)),
        biases=tuple(layer.bias.detach().numpy().astype(np.float64) for layer in (first, last)),
        activation="relu" if unit is torch.nn.ReLU else "tanh",
    )
    data = eh.AuditData.from_arrays(outcome=y, groups={"g": rng.integers(2, size=n)}, features=X)
    return {"X": X, "y": y, "net": net, "plain": plain, "V": V, "data": data}


def train(net: torch.nn.Module, X: np.ndarray, y: np.ndarray) -> None:
    """Fit a network by 300 steps of Adam on batches of 500 people."""
    inputs, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for k in range(300):
        part = torch.arange(500 * k, 500 * k + 500) % len(labels)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(inputs[part]), labels[part]).backward()
        optimizer.step()


class Written(torch.nn.Module):
    """The layers of a network, applied by a forward function of its own."""

    def __init__(self, net: torch.nn.Module) -> None:
        super().__init__()
        self.fc1, self.fc2, self.drop = copy.deepcopy(net[0]), copy.deepcopy(net[2]), torch.nn.Dropout(0.2)
        self.active = torch.nn.functional.relu if isinstance(net[1], torch.nn.ReLU) else torch.tanh

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return two scores for each row."""
        return self.fc2(self.drop(self.active(self.fc1(x))))


def hooked(net: torch.nn.Module) -> TorchGradient:
    """Return a network that only autograd can follow: what is hooked to it may do anything."""
    copied = copy.deepcopy(net)
    copied[0].register_forward_hook(lambda *_: None)
    return TorchGradient(copied)


def ours(c: dict[str, Any], steps: int, model: Any, **options: Any) -> eh.AuditResult:
    return audit_individual(
        c["data"],
        model=model,
        similarity=Discounted(c["V"].T),
        steps=steps,
        step=0.01,
        scale="none",
        limit="none",
        rng=0,
        **options,
    )


def bare_loop(c: dict[str, Any], steps: int, step: float, penalty: float, dtype: torch.dtype) -> torch.Tensor:
    """Do the flow's arithmetic in torch: projection in factored form, summed loss, one backward pass per step."""
    net = copy.deepcopy(c["net"]).to(dtype).requires_grad_(False)
    X0 = torch.tensor(c["X"], dtype=dtype)
    V = torch.tensor(c["V"], dtype=dtype)
    y = torch.tensor(c["y"])
    loss = torch.nn.CrossEntropyLoss(reduction="sum")
    X = X0.clone()
    for _ in range(steps):
        X.requires_grad_(True)
        (g,) = torch.autograd.grad(loss(net(X), y), X)
        with torch.no_grad():
            d = X - X0
            X = X + step * (g - 2 * penalty * (d - (d @ V) @ V.T))
    return X


def in_fairness(c: dict[str, Any], steps: int, optimizer: Any) -> Any:
    from inFairness.auditor import SenSeIAuditor
    from inFairness.distances import MahalanobisDistances, SquaredEuclideanDistance

    d = c["X"].shape[1]
    metric = MahalanobisDistances()
    metric.fit(torch.tensor(np.eye(d) - c["V"] @ c["V"].T, dtype=torch.float32))
    out = SquaredEuclideanDistance()
    out.fit(num_dims=2)
    auditor = SenSeIAuditor(metric, out, num_steps=steps, lr=0.01, max_noise=0.1, min_noise=-0.1)
    return auditor.audit(
        c["net"], torch.tensor(c["X"], dtype=torch.float32), torch.tensor(c["y"]), lambda_param=50.0,
        loss_fn=torch.nn.functional.cross_entropy, confidence=0.95, optimizer=optimizer,
    )  # fmt: skip


def against_in_fairness(rows: int, repeat: int) -> Iterator[dict[str, Any]]:
    in_fairness(case(100, 40, 100), 2, None)  # its imports are not timed
    for unit, trained in product((torch.nn.ReLU, torch.nn.Tanh), (False, True)):
        c = case(rows, 40, 100, unit, trained=trained)
        peers = {
            "inFairness SenSeIAuditor.audit, SGD": lambda c=c: in_fairness(c, 200, torch.optim.SGD),
            "inFairness SenSeIAuditor.audit, Adam (its default)": lambda c=c: in_fairness(c, 200, None),
        }
        theirs = {name: seconds(work, repeat) for name, work in peers.items()}
        ways = {
            "torch module": c["net"],
            "the same with a forward function of its own": Written(c["net"]),
            "the same by autograd": hooked(c["net"]),
        }
        for way, model in ways.items():
            own = seconds(lambda c=c, m=model: ours(c, 200, m), repeat)
            for name, other in theirs.items():
                what = f"{rows} x 40, 200 steps, {'trained ' if trained else ''}MLP of 100 {unit.__name__}: {way}"
                yield {"case": what, "peer": name, "seconds": own, "peer_seconds": other, "ratio": other / own}


def against_bare_loop(rows: int, repeat: int) -> Iterator[dict[str, Any]]:
    for unit in (torch.nn.ReLU, torch.nn.Tanh):
        c = case(rows, 39, 50, unit)
        theirs = {
            kind: seconds(lambda c=c, k=kind: bare_loop(c, 500, 0.01, 50.0, k), repeat)
            for kind in (torch.float32, torch.float64)
        }
        plain = GradientModel(network=c["plain"], link="logit", classes=(0, 1))
        for way, model, kind in (
            ("torch module", c["net"], torch.float32),
            ("the same by autograd", hooked(c["net"]), torch.float32),
            ("MLPClassifier", plain, torch.float64),
        ):
            own = seconds(lambda c=c, m=model: ours(c, 500, m, refits=0), repeat)
            what = f"{rows} x 39, 500 steps, MLP of 50 {unit.__name__}: {way}"
            name = f"bare torch loop, {str(kind).removeprefix('torch.')}"
            yield {
                "case": what,
                "peer": name,
                "seconds": own,
                "peer_seconds": theirs[kind],
                "ratio": theirs[kind] / own,
            }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one repeat; prints only")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each side, of which the fastest counts")
    asked = parser.parse_args()
    quick, repeat = asked.quick, 1 if asked.quick else asked.repeat
    torch.set_num_threads(1)
    rows = []
    for row in (
        *against_in_fairness(1000 if quick else 10_000, repeat),
        *against_bare_loop(905 if quick else 9045, repeat),
    ):
        rows.append(row)
        print(
            f"{row['case']:70} {row['seconds']:8.2f} s   {row['peer']:50} {row['peer_seconds']:8.2f} s   "
            f"ratio {row['ratio']:.2f}",
            flush=True,
        )
    if not quick:
        stored = {"machine": platform.machine(), "python": platform.python_version(), "numpy": np.__version__,
                  "torch": torch.__version__, "torch_threads": torch.get_num_threads(), "repeat": repeat,
                  "rows": rows}  # fmt: skip
        (HERE / "individual.json").write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
