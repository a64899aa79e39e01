"""Train the digit classifier with JAX and export it to digits.onnx; needs jax, numpy and onnx, nothing of irc.

The network is a small separable convolution net on f32[batch,1,8,8] images in [0, 1]:

    image [B,1,8,8] -> stem conv 3x3 [B,16,8,8] -> BatchNorm -> ReLU
                    -> depthwise conv 3x3 [B,16,8,8] -> BatchNorm -> ReLU
                    -> pointwise conv 1x1 [B,32,8,8] -> BatchNorm -> ReLU -> max pool 2x2 [B,32,4,4]
                    -> dropout (training only) -> flatten [B,512] -> Gemm [B,10] -> Softmax

The exported file keeps every BatchNormalization as its own node, with inference statistics: that is what exporters
write, and it gives the passes something to fold. Seeds are fixed: two runs on one machine write equal bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent

SEED = 20
EPOCHS = 40
BATCH_SIZE = 64
PEAK_LEARNING_RATE = 4e-3
DROPOUT = 0.25
STATISTICS_MOMENTUM = 0.95
EPSILON = 1e-5

BLOCKS = ("stem", "depthwise", "pointwise")
KERNELS = {"stem": (16, 1, 3, 3), "depthwise": (16, 1, 3, 3), "pointwise": (32, 16, 1, 1)}  # [out, in / groups, h, w]
GROUPS = {"stem": 1, "depthwise": 16, "pointwise": 1}
FEATURES, CLASSES = 32 * 4 * 4, 10

Arrays = dict[str, jax.Array]


class Digits(NamedTuple):
    """Images f32[N,1,8,8] in [0, 1] and labels i32[N], split once and for all into a training and a held-out part."""

    train_images: np.ndarray
    train_labels: np.ndarray
    held_out_images: np.ndarray
    held_out_labels: np.ndarray


def read_digits(path: Path) -> Digits:
    with np.load(path) as archive:
        images = archive["images"][:, None].astype(np.float32) / 16
        labels = archive["labels"].astype(np.int32)
        train, held_out = archive["train"], archive["held_out"]
    return Digits(images[train], labels[train], images[held_out], labels[held_out])


def initialize(key: jax.Array) -> tuple[Arrays, Arrays]:
    """He-normal weights, and running statistics of every BatchNorm (mean 0, variance 1)."""
    weights: Arrays = {}
    statistics: Arrays = {}
    for block in BLOCKS:
        key, key_block = jax.random.split(key)
        shape = KERNELS[block]
        weights[f"{block}.conv.weight"] = jax.random.normal(key_block, shape) * np.sqrt(2 / np.prod(shape[1:]))
        weights[f"{block}.norm.scale"] = jnp.ones(shape[0])
        weights[f"{block}.norm.bias"] = jnp.zeros(shape[0])
        statistics[f"{block}.norm.mean"] = jnp.zeros(shape[0])
        statistics[f"{block}.norm.variance"] = jnp.ones(shape[0])
    weights["classifier.weight"] = jax.random.normal(key, (CLASSES, FEATURES)) * np.sqrt(1 / FEATURES)
    weights["classifier.bias"] = jnp.zeros(CLASSES)
    return weights, statistics


def logits(
    weights: Arrays, statistics: Arrays, images: jax.Array, dropout_key: jax.Array | None = None
) -> tuple[jax.Array, Arrays]:
    """Class scores f32[B,10] and the running statistics.  A dropout key means training: batch statistics, dropout."""
    training = dropout_key is not None
    updated = dict(statistics)
    x = images
    for block in BLOCKS:
        padding = KERNELS[block][-1] // 2
        x = jax.lax.conv_general_dilated(
            x,
            weights[f"{block}.conv.weight"],
            window_strides=(1, 1),
            padding=[(padding, padding)] * 2,
            feature_group_count=GROUPS[block],
            dimension_numbers=("NCHW", "OIHW", "NCHW"),
        )
        mean, variance = statistics[f"{block}.norm.mean"], statistics[f"{block}.norm.variance"]
        if training:
            running, mean, variance = (mean, variance), x.mean((0, 2, 3)), x.var((0, 2, 3))
            for name, old, new in zip(("mean", "variance"), running, (mean, variance), strict=True):
                updated[f"{block}.norm.{name}"] = STATISTICS_MOMENTUM * old + (1 - STATISTICS_MOMENTUM) * new
        scale = weights[f"{block}.norm.scale"] / jnp.sqrt(variance + EPSILON)
        x = (x - mean[:, None, None]) * scale[:, None, None] + weights[f"{block}.norm.bias"][:, None, None]
        x = jax.nn.relu(x)
    x = x.reshape(x.shape[0], 32, 4, 2, 4, 2).max((3, 5)).reshape(x.shape[0], FEATURES)
    if dropout_key is not None:
        x = jnp.where(jax.random.bernoulli(dropout_key, 1 - DROPOUT, x.shape), x / (1 - DROPOUT), 0)
    return x @ weights["classifier.weight"].T + weights["classifier.bias"], updated


def loss(
    weights: Arrays, statistics: Arrays, images: jax.Array, labels: jax.Array, dropout_key: jax.Array
) -> tuple[jax.Array, Arrays]:
    scores, statistics = logits(weights, statistics, images, dropout_key)
    picked = jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], axis=1)
    return -picked.mean(), statistics


class AdamState(NamedTuple):
    weights: Arrays
    statistics: Arrays
    momentum: Arrays
    second_moment: Arrays


@jax.jit
def train_step(
    state: AdamState, step: jax.Array, rate: jax.Array, images: jax.Array, labels: jax.Array, dropout_key: jax.Array
) -> tuple[AdamState, jax.Array]:
    """One Adam step (Kingma and Ba, 2015); step counts from 1."""
    (value, statistics), gradients = jax.value_and_grad(loss, has_aux=True)(
        state.weights, state.statistics, images, labels, dropout_key
    )
    momentum = {name: 0.9 * state.momentum[name] + 0.1 * g for name, g in gradients.items()}
    second = {name: 0.999 * state.second_moment[name] + 0.001 * g * g for name, g in gradients.items()}
    corrected = rate * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    weights = {
        name: w - corrected * momentum[name] / (jnp.sqrt(second[name]) + 1e-8) for name, w in state.weights.items()
    }
    return AdamState(weights, statistics, momentum, second), value


def batches(generator: np.random.Generator, count: int) -> Iterator[np.ndarray]:
    """Shuffled index batches of one epoch; the incomplete last one is left out, so that one shape is compiled."""
    order = generator.permutation(count)
    for start in range(0, count - BATCH_SIZE + 1, BATCH_SIZE):
        yield order[start : start + BATCH_SIZE]


def shifted(generator: np.random.Generator, images: np.ndarray) -> np.ndarray:
    """The images, each moved by at most one pixel in each direction."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    offsets = generator.integers(0, 3, (len(images), 2))
    return np.stack([image[:, y : y + 8, x : x + 8] for image, (y, x) in zip(padded, offsets, strict=True)])


def train(digits: Digits) -> tuple[Arrays, Arrays]:
    generator = np.random.default_rng(SEED)
    weights, statistics = initialize(jax.random.key(SEED))
    zeros = jax.tree.map(jnp.zeros_like, weights)
    state = AdamState(weights, statistics, zeros, zeros)
    dropout_key = jax.random.key(SEED + 1)
    steps = EPOCHS * (len(digits.train_labels) // BATCH_SIZE)
    step = 0
    for epoch in range(EPOCHS):
        for indices in batches(generator, len(digits.train_labels)):
            step += 1
            rate = PEAK_LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            state, value = train_step(
                state,
                jnp.float32(step),
                jnp.float32(rate),
                shifted(generator, digits.train_images[indices]),
                digits.train_labels[indices],
                jax.random.fold_in(dropout_key, step),
            )
        if (epoch + 1) % 5 == 0:
            share = accuracy(state.weights, state.statistics, digits.held_out_images, digits.held_out_labels)
            print(f"epoch {epoch + 1:2d}/{EPOCHS}  loss {float(value):.4f}  held-out accuracy {share:.4f}", flush=True)
    return state.weights, state.statistics


def accuracy(weights: Arrays, statistics: Arrays, images: np.ndarray, labels: np.ndarray) -> float:
    scores, _ = logits(weights, statistics, images)
    return float((np.asarray(scores).argmax(1) == labels).mean())


def to_onnx(weights: Arrays, statistics: Arrays) -> onnx.ModelProto:
    """The inference graph, opset 17: image f32[batch,1,8,8] -> probabilities f32[batch,10]."""
    nodes: list[onnx.NodeProto] = []
    x = "image"

    def append(operator: str, name: str, inputs: list[str], **attributes: object) -> str:
        nodes.append(helper.make_node(operator, inputs, [name], name=f"/{name}", **attributes))
        return name

    for block in BLOCKS:
        padding = KERNELS[block][-1] // 2
        x = append(
            "Conv",
            f"{block}/conv",
            [x, f"{block}.conv.weight"],
            kernel_shape=KERNELS[block][2:],
            pads=[padding] * 4,
            strides=[1, 1],
            group=GROUPS[block],
        )
        parameters = [f"{block}.norm.{name}" for name in ("scale", "bias", "mean", "variance")]
        x = append("BatchNormalization", f"{block}/norm", [x, *parameters], epsilon=EPSILON)
        x = append("Relu", f"{block}/relu", [x])
    x = append("MaxPool", "pool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = append("Flatten", "flatten", [x], axis=1)
    x = append("Gemm", "classifier", [x, "classifier.weight", "classifier.bias"], transB=1)
    nodes.append(helper.make_node("Softmax", [x], ["probabilities"], name="/softmax", axis=1))

    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", CLASSES])],
        initializer=[
            numpy_helper.from_array(np.asarray(value, np.float32), name)
            for name, value in {**weights, **statistics}.items()
        ],
        doc_string="8x8 handwritten digits, pixels in [0, 1]",
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="examples/digits/train.py"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the digit classifier and write it as an ONNX file.")
    parser.add_argument("--output", type=Path, default=HERE / "digits.onnx")
    output: Path = parser.parse_args().output
    digits = read_digits(HERE / "digits.npz")
    weights, statistics = train(digits)
    reached = accuracy(weights, statistics, digits.held_out_images, digits.held_out_labels)
    if reached < 0.97:
        raise SystemExit(f"held-out accuracy {reached:.4f} is below 0.97; {output} is left as it was")
    content = to_onnx(weights, statistics).SerializeToString(deterministic=True)
    output.write_bytes(content)
    print(f"wrote {output.name}: {len(content)} bytes, held-out accuracy {reached:.4f}")


if __name__ == "__main__":
    main()
