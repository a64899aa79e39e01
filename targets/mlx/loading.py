"""The functions of an emitted module that read weights from a safetensors file and bring them into MLX's layout."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ...ir import container
from ...ir.model import Constant
from . import types
from .wrapping import wrapped


def loading(weights: Mapping[str, Constant], prepared: Mapping[str, tuple[str, str]]) -> list[str]:
    """The functions that read weights."""
    if not weights:
        return []
    out = []
    groups: dict[str, list[str]] = {}
    lines = []
    for key, (name, make) in prepared.items():
        if key == name:
            groups.setdefault(make, []).append(key)
        else:
            lines += wrapped(f"w[{json.dumps(key)}] = {make.format(f'w[{json.dumps(name)}]')}", 4)
    for make, keys in groups.items():
        if len(keys) == 1:
            place = f"w[{json.dumps(keys[0])}]"
            lines += wrapped(f"{place} = {make.format(place)}", 4)
        else:
            lines += wrapped(f"for name in ({', '.join(json.dumps(k) for k in keys)}):", 4)
            lines.append(f"        w[name] = {make.format('w[name]')}")
    if lines:
        out.append(
            "\n".join(["def prepare(w):", '    """Weights in the layout that main takes."""', *lines, "    return w"])
        )
    reading = []
    for name, constant in weights.items():
        reading += _decoding(name, constant)
    returned = "prepare(w)" if lines else "w"
    head = ["def load(path):", '    """The weights, from a safetensors file."""']
    first = '    w = mx.load(path, format="safetensors")'
    out.append("\n".join([*head, first, *reading, f"    return {returned}"]))
    return out


def _decoding(name: str, constant: Constant) -> list[str]:
    """Statements that turn what the container stores into what main takes."""
    key, dtype = container.tensor_key(name), constant.dtype
    place, stored = f"w[{json.dumps(name, ensure_ascii=False)}]", f"w[{json.dumps(key, ensure_ascii=False)}]"
    if dtype in container.NATIVE:
        return [] if key == name else wrapped(f"{place} = {stored}", 4)
    dims = ", ".join(map(str, constant.dims)) or "()"
    if dtype.is_integer:
        bits, sign = (1 << dtype.bits) - 1, 1 << (dtype.bits - 1)
        stored = (
            f"({stored} & {bits})" if dtype.kind == "uint" else f"(({stored} & {bits}) ^ {sign}).view(mx.int8) - {sign}"
        )
        stored = stored if dtype.kind == "uint" else f"({stored})"
    elif not types.is_code(dtype):
        stored = f"{stored}.view({types.spelling(dtype)})"
    return wrapped(f"{place} = {stored}.reshape({dims})", 4)
