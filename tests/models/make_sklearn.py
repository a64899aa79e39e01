"""Writes the scikit-learn fixtures: gradient boosting and text classifiers.  Needs scikit-learn and skl2onnx.

    python tests/models/make_sklearn.py tests/models/fixtures

Tests do not run this; they read what it wrote.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

SENTENCES = {
    "sport": ["the team won the match", "a late goal decided the game", "the striker scored twice",
              "fans sang all match", "the coach praised the team", "a draw in the final game"],
    "cooking": ["simmer the sauce with garlic", "bake the bread until golden", "add salt and pepper to the soup",
                "the oven must be hot", "slice the onion and fry it", "a soup of leek and potato"],
    "travel": ["the train leaves at noon", "we crossed the border by bus", "a hotel near the old harbour",
               "pack light for the long flight", "the museum opens at ten", "a ferry to the island"],
}  # fmt: skip

LINES = ["The striker scored a late goal", "fry garlic and onion", "we pack for the ferry", "", "match bread harbour"]
"""What the text classifiers are asked; scikit-learn's own answers stand beside each file."""


def boosting(out: Path) -> None:
    from skl2onnx import to_onnx
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 6)).astype(np.float32)
    x[rng.random(x.shape) < 0.05] = np.nan
    clean = np.nan_to_num(x)
    y = (clean[:, 0] * clean[:, 1] + np.sin(2 * clean[:, 2]) + clean[:, 4] > 0).astype(int) + (clean[:, 3] > 1)
    trees = GradientBoostingClassifier(n_estimators=8, max_depth=3, random_state=0)
    model = make_pipeline(SimpleImputer(), StandardScaler(), trees)
    model.fit(x, y)
    _write(to_onnx(model, x[:1], options={"zipmap": False}, target_opset={"": 21, "ai.onnx.ml": 3}), out, "boosting")


def text(out: Path, lowercase: bool, name: str) -> None:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import StringTensorType
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    x = [s for group in SENTENCES.values() for s in group]
    y = [topic for topic, group in SENTENCES.items() for _ in group]
    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2), lowercase=lowercase), LogisticRegression(C=10))
    model.fit(x, y)
    types = [("text", StringTensorType([None, 1]))]
    made = to_onnx(model, initial_types=types, options={"zipmap": False}, target_opset={"": 21, "ai.onnx.ml": 3})
    _write(made, out, name)
    rows = [[line, model.predict([line])[0], *model.predict_proba([line])[0].round(7)] for line in LINES]
    (out / f"sklearn_{name}.json").write_text(json.dumps(rows, indent=1) + "\n")


def _write(model: object, out: Path, name: str) -> None:
    path = out / f"sklearn_{name}.onnx"
    path.write_bytes(model.SerializeToString())  # type: ignore[attr-defined]  # a ModelProto
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    boosting(Path(sys.argv[1]))
    text(Path(sys.argv[1]), False, "text")
    text(Path(sys.argv[1]), True, "text_lower")
