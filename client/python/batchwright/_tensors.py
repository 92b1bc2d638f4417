"""Tensors of torch that are given to this package, as NumPy's arrays. torch is not imported."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_tensor(given: Any) -> bool:
    torch = sys.modules.get("torch")  # a program that has a tensor has imported it
    return torch is not None and isinstance(given, torch.Tensor)


def plain_tensor(tensor: Any) -> Any:
    """The tensor without its graph, in memory that NumPy can see. Errors: ValueError, the tensor in
    words."""
    if tensor.device.type != "cpu":
        raise ValueError(f"a tensor on {tensor.device}, which is not the CPU: use .cpu()")
    if tensor.layout != sys.modules["torch"].strided:
        raise ValueError(f"a tensor of layout {tensor.layout}: use .to_dense()")
    return tensor.detach()


def array_of_tensor(tensor: Any) -> np.ndarray:
    """A view of the tensor. Errors: ValueError, the tensor in words."""
    plain = plain_tensor(tensor)
    try:
        return plain.numpy()
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"a tensor that NumPy cannot take: {error}") from error
