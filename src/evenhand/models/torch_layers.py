"""The layers of a torch module, read from what it does: its operations are watched while it answers a few rows.

Only what happens to the rows counts, not how the module is written. Products, sums and normalisation by stored
statistics are affine maps and are multiplied out; between them stand rectifiers or another known function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arrays import FloatArray
from evenhand.kernels.flow.perceptron import Perceptron

# Operations that are affine in the argument at one of these places when everything else is constant.
AFFINE = {
    "addmm": (1,), "mm": (0,), "mv": (0,), "add": (0, 1), "sub": (0, 1), "rsub": (0, 1), "mul": (0, 1), "div": (0,),
    "neg": (0,), "select": (0,), "slice": (0,), "index": (0,), "index_select": (0,), "native_batch_norm": (0,),
    "_native_batch_norm_legit_no_training": (0,),
}  # fmt: skip
# Operations that leave values as they are; what they do to the shape is checked.
SAME = ("view", "_unsafe_view", "squeeze", "unsqueeze", "clone", "alias", "_to_copy", "expand")
ACTIVE = {"relu": "relu", "tanh": "tanh", "sigmoid": "logistic"}
ENDS = {"_softmax": "softmax", "_log_softmax": "log_softmax"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layers:
    """A stack of layers, and what is done to its outputs at the end."""

    network: Perceptron
    end: str  # "none", "sigmoid", "softmax" or "log_softmax"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Stack:
    """How one tensor comes from the rows: layers with functions between them, the last of them still open."""

    layers: tuple[tuple[Any, Any], ...]  # matrix (from, to) and offset (to,) of each, in double precision
    active: tuple[str, ...] = ()  # between the layers
    end: str = "none"  # behind the last layer
    fresh: bool = True  # nothing was done since the last function
    flat: bool = False  # one number per row, without an axis for it

    def behind(self, matrix: Any, offset: Any, *, flat: bool) -> _Stack:
        """Return the stack behind one more affine map."""
        *before, (open_matrix, open_offset) = self.layers
        last = (open_matrix @ matrix, open_offset @ matrix + offset)
        idle = matrix.shape == (1, 1) and float(matrix) == 1.0 and float(offset) == 0.0  # picks the only column
        return replace(self, layers=(*before, last), fresh=self.fresh and idle, flat=flat)


def read_layers(call: Callable[[Any], Any], x: Any) -> Layers | None:
    """Return the layers that a function applies to rows; None where it does anything else.

    Parameters
    ----------
    call : callable
        A torch module in evaluation mode, or any function of a tensor. It is called once.
    x : torch.Tensor, shape (rows, inputs)
        Two rows at least, of which the answer should not depend on the others.

    Returns
    -------
    Layers or None
        What was seen for these rows; whether it holds for others is for the caller to check.

    Examples
    --------
    >>> import torch
    >>> weight = torch.ones(2, 1)
    >>> seen = read_layers(lambda x: torch.sigmoid((x / 10 - 1).relu() @ weight), torch.zeros(3, 2))
    >>> seen.network.activation, seen.network.weights[0].tolist(), seen.end
    ('relu', [[0.1, 0.0], [0.0, 0.1]], 'sigmoid')
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    watch = _Watch(x)

    class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # otherwise torch imports its compiler, for a second

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            watch.see(func, args, kwargs or {}, out)
            return out

    with torch.no_grad(), Watching():  # type: ignore[no-untyped-call]
        out = call(x)
    stack = None if watch.decides else watch.stack_of(out)
    return None if stack is None else _finished(stack, x.dtype == torch.float64)


class _Watch:
    """The tensors that come from the rows, with their stacks; None for those that no stack describes."""

    def __init__(self, x: Any) -> None:
        import torch

        wide = x.shape[1]
        eye = torch.eye(wide, dtype=torch.float64, device=x.device)
        start = _Stack(layers=((eye, torch.zeros_like(eye[0])),))
        self.rows, self.decides = x.shape[0], False  # whether a number taken from the rows left the tensors
        # Tensors are kept, so that no other takes the identity of one that is gone.
        self.known: dict[int, tuple[Any, _Stack | None]] = {id(x): (x, start)}

    def stack_of(self, tensor: Any) -> _Stack | None:
        return self.known.get(id(tensor), (None, None))[1]

    def see(self, func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        """Note what an operation made of tensors that come from the rows."""
        import torch

        given = [part for arg in (*args, *kwargs.values()) for part in (arg if isinstance(arg, list) else [arg])]
        if not any(id(part) in self.known for part in given):
            return
        made = out if isinstance(out, (tuple, list)) else (out,)
        self.decides |= not all(isinstance(one, torch.Tensor) for one in made)
        places = [k for k, arg in enumerate(args) if isinstance(arg, torch.Tensor) and id(arg) in self.known]
        stack = self.stack_of(args[places[0]]) if len(places) == 1 else None
        if stack is not None:
            try:
                stack = self._next(stack, func, (args, kwargs), places[0], made[0].shape)
            except (RuntimeError, TypeError, IndexError):  # constants that differ from row to row, for example
                stack = None
        self.known.update((id(one), (one, None)) for one in made)
        self.known[id(made[0])] = (made[0], stack)

    def _next(self, stack: _Stack, func: Any, given: Any, place: int, shape: Any) -> _Stack | None:
        """Return the stack behind one more operation, whose result has this shape."""
        name, overload = func._schema.name.removeprefix("aten::"), func._overloadname
        name = name if name.startswith("_") else name.removesuffix("_")  # in place or not is the same
        args, kwargs = given
        flat = len(shape) == 1
        wide = stack.layers[-1][1].shape[0]
        if len(shape) not in (1, 2) or shape[0] != self.rows:
            return None
        if name in SAME:
            to = kwargs.get("dtype")
            kept = wide == (1 if flat else shape[1]) and (to is None or to.is_floating_point)
            return replace(stack, flat=flat) if kept else None
        if stack.end != "none":
            return None
        if name in ACTIVE or (name == "clamp_min" and args[1] == 0) or (name == "clamp" and args[1:] == (0,)):
            return _activated(stack, ACTIVE.get(name, "relu"))
        if name in ENDS and not flat and args[1] in (1, -1):
            return replace(stack, end=ENDS[name], fresh=False)
        if place not in AFFINE.get(name, ()) or (name == "native_batch_norm" and args[5]):
            return None
        matrix, offset = _affine(getattr(_aten(name), overload), given, place, stack)
        if matrix.shape[-1] != (1 if flat else shape[1]):
            return None
        return stack.behind(matrix, offset, flat=flat)


def _aten(name: str) -> Any:
    import torch

    return getattr(torch.ops.aten, name)


def _activated(stack: _Stack, active: str) -> _Stack:
    import torch

    offset = torch.zeros_like(stack.layers[-1][1])
    same = (torch.eye(len(offset), dtype=offset.dtype, device=offset.device), offset)
    return replace(stack, layers=(*stack.layers, same), active=(*stack.active, active), fresh=True)


def _affine(operation: Any, given: Any, place: int, stack: _Stack) -> tuple[Any, Any]:
    """Return an affine operation as a matrix and an offset: what it makes of zero and of each unit vector."""
    import torch

    args, kwargs = given
    offset = stack.layers[-1][1]
    probe = torch.cat(
        [torch.zeros_like(offset)[None], torch.eye(len(offset), dtype=offset.dtype, device=offset.device)]
    )
    constants = [arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg for arg in args]
    constants[place] = probe[:, 0] if stack.flat else probe
    out = operation(*constants, **kwargs)
    out = out[0] if isinstance(out, tuple) else out
    out = out.reshape(len(probe), -1)
    return out[1:] - out[0], out[0]


def _finished(stack: _Stack, double: bool) -> Layers | None:
    """Return a stack as matrices; None where its functions differ."""
    layers, active, end = stack.layers, stack.active, stack.end
    if active and active[-1] == "logistic" and stack.fresh:
        layers, active, end = layers[:-1], active[:-1], "sigmoid"
    if len(set(active)) > 1:
        return None
    activation = active[0] if active else "relu"
    # Where many steps are made at once (`kernels.flow.rectifier_pieces`) double precision costs nothing.
    double = double or len(layers) == 1 or (len(layers) == 2 and activation == "relu")

    def array(tensor: Any) -> NDArray[Any]:
        kind: Any = np.float64 if double else np.float32
        return np.ascontiguousarray(tensor.cpu().numpy().astype(kind))

    matrices: list[FloatArray] = [array(matrix) for matrix, _ in layers]
    offsets: list[FloatArray] = [array(offset) for _, offset in layers]
    network = Perceptron(weights=tuple(matrices), biases=tuple(offsets), activation=activation)
    return Layers(network=network, end=end)
