"""Matrix operators: references against NumPy and SciPy, decompositions against references, types, errors."""

import itertools

import ml_dtypes
import numpy as np
import pytest
import scipy.linalg

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import AssumptionError, InferenceError
from irc.ir.types import tensor
from irc.testing.operators import assumptions_of, check_composite, facts_of, model_of, run

A, B, K, M, N = map(symbol, "ABKMN")


def random(*dims, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, dims).astype(dtype)
    if np.dtype(dtype).kind == "c":
        return (rng.normal(size=dims) + 1j * rng.normal(size=dims)).astype(dtype)
    return rng.normal(size=dims).astype(dtype)


TYPES = [
    np.float64,
    np.float32,
    np.float16,
    ml_dtypes.bfloat16,
    np.complex64,
    np.int8,
    np.uint8,
    np.int32,
    np.int64,
    np.uint64,
]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: np.dtype(d).name)
def test_dot_general(dtype):
    x, y = random(2, 3, 4, 5, dtype=dtype), random(5, 3, 6, 2, dtype=dtype, seed=1)
    got = run("dot_general", x, y, lhs_batching=(0,), rhs_batching=(3,), lhs_contracting=(3, 1), rhs_contracting=(0, 1))
    kind = np.dtype(dtype).kind
    wide = np.complex128 if kind == "c" else np.dtype(dtype) if kind in "iu" else np.float64
    want = np.einsum("abcd,dbea->ace", x.astype(wide), y.astype(wide))
    if kind in "iu":
        np.testing.assert_array_equal(got, want)
    else:
        eps = 2.0**-23 if kind == "c" else float(ml_dtypes.finfo(dtype).eps)
        np.testing.assert_allclose(got.astype(wide), want, rtol=2 * eps, atol=1e-12)


def test_dot_general_of_bytes_in_i32():
    x, y = random(3, 900, dtype=np.uint8), random(900, 2, dtype=np.int8, seed=1)
    got = run("dot_general", x, y, lhs_contracting=(1,), rhs_contracting=(0,), result=dtypes.i32)
    np.testing.assert_array_equal(got, x.astype(np.int32) @ y.astype(np.int32))
    assert got.dtype == np.int32
    wrapped = run("dot_general", x, x, lhs_contracting=(1,), rhs_contracting=(1,))
    np.testing.assert_array_equal(wrapped, (x.astype(int) @ x.T.astype(int)).astype(np.uint8))


def test_dot_general_over_nothing_is_zero():
    assert (
        run("dot_general", random(2, 0), random(0, 3), lhs_contracting=(1,), rhs_contracting=(0,)).tolist()
        == [[0] * 3] * 2
    )


MATMULS = [
    ((3, 4), (4, 5), ("M K", "K N")),
    ((4,), (4,), ("K", "K")),
    ((4,), (4, 5), ("K", "K N")),
    ((3, 4), (4,), ("M K", "K")),
    ((2, 6, 3, 4), (4, 5), ("A B M K", "K N")),
    ((2, 6, 3, 4), (1, 4, 5), ("A B M K", "1 K N")),
    ((3, 4), (2, 6, 4, 5), ("M K", "A B K N")),
    ((2, 6, 3, 4), (2, 6, 4, 5), ("A B M K", "A B K N")),
    ((2, 1, 3, 4), (1, 6, 4, 5), ("A 1 M K", "1 B K N")),
    ((6, 3, 4), (2, 6, 4, 5), ("B M K", "A B K N")),
    ((2, 6, 3, 4), (2, 6, 4, 5), ("A B M K", "C D K N")),
    ((2, 1, 3, 4), (2, 6, 4, 5), ("A B M K", "C D K N")),
    ((4,), (2, 4, 5), ("K", "A K N")),
    ((2, 3, 4), (4,), ("A M K", "K")),
    ((2, 3, 0), (0, 5), ("A M K", "K N")),
    ((0, 3, 4), (4, 5), ("A M K", "K N")),
    ((1, 3, 4), (1, 1, 4, 5), ("1 M K", "1 1 K N")),
]


@pytest.mark.parametrize("left, right, shapes", MATMULS, ids=str)
def test_matmul(left, right, shapes):
    x, y = random(*left), random(*right, seed=1)
    got = check_composite("MatMul", x, y, shapes=shapes)
    np.testing.assert_allclose(got, np.matmul(x.astype(np.float64), y.astype(np.float64)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: np.dtype(d).name)
def test_matmul_types(dtype):
    check_composite("MatMul", random(2, 3, 4, dtype=dtype), random(2, 4, 2, dtype=dtype), shapes=["A M K", "A K N"])


def test_matmul_uses_equal_batch_dims_without_broadcasting():
    model, _ = model_of(
        "MatMul", random(2, 3, 4), random(2, 4, 5), types=[tensor(dtypes.f32, B, M, K), tensor(dtypes.f32, B, K, N)],
        decompose=True,
    )  # fmt: skip
    assert [n.op.name for n in model.main.body.nodes] == ["dot_general"]


@pytest.mark.parametrize("ta, tb", itertools.product([False, True], repeat=2))
@pytest.mark.parametrize("c", [None, (), (5,), (3, 1), (3, 5), (1, 5)], ids=str)
def test_gemm(ta, tb, c):
    a, b = random(*((4, 3) if ta else (3, 4))), random(*((5, 4) if tb else (4, 5)), seed=1)
    bias = None if c is None else random(*c, seed=2)
    shapes = ["K M" if ta else "M K", "N K" if tb else "K N", *([] if c is None else [None])]
    shapes = None if c in ((5,), (3, 1), (3, 5), (1, 5)) else shapes
    got = check_composite("Gemm", a, b, bias, alpha=0.5, beta=2.0, transpose_a=ta, transpose_b=tb, shapes=shapes)
    want = 0.5 * (a.T if ta else a).astype(float) @ (b.T if tb else b) + (0 if bias is None else 2.0 * bias)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_gemm_of_integers():
    a, b, c = random(3, 4, dtype=np.int32), random(4, 5, dtype=np.int32), random(5, dtype=np.int32)
    got = check_composite("Gemm", a, b, c, alpha=3.0, beta=-1.0, shapes=["M K", "K 5", None])
    np.testing.assert_array_equal(got, 3 * (a @ b) - c)
    with pytest.raises(InferenceError, match="must be whole"):
        facts_of("Gemm", tensor(dtypes.i32, 2, 3), tensor(dtypes.i32, 3, 4), alpha=0.5)


EINSUMS = [
    ("ij,jk->ik", [(3, 4), (4, 5)], ["I J", "J K"]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)], ["B I J", "B J K"]),
    ("i,i", [(4,), (4,)], ["N", "N"]),
    ("ij->ji", [(3, 4)], ["A B"]),
    ("ij", [(3, 4)], ["A B"]),
    ("ba", [(3, 4)], ["A B"]),
    ("ii->i", [(3, 3)], ["N N"]),
    ("ii", [(3, 3)], ["N N"]),
    ("iji->j", [(3, 4, 3)], ["N M N"]),
    ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)], ["B I J", "B J K"]),
    ("...ij,...jk->...ik", [(6, 1, 3, 4), (2, 4, 5)], ["A 1 I J", "B J K"]),
    ("...ij,...jk", [(1, 3, 4), (2, 4, 5)], ["C I J", "B J K"]),
    ("...ij,...jk->...ik", [(1, 3, 4), (1, 4, 5)], ["1 I J", "1 J K"]),
    ("b...->...", [(2, 3, 4)], ["A B C"]),
    ("i,j->ij", [(3,), (4,)], ["A", "B"]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)], ["B H Q D", "B H K D"]),
    ("ij,jk,kl->il", [(3, 4), (4, 5), (5, 2)], ["I J", "J K", "K L"]),
    ("ij,jk,ik->", [(3, 4), (4, 5), (3, 5)], ["I J", "J K", "I K"]),
    ("abc,d->bd", [(2, 3, 4), (5,)], ["A B C", "D"]),
    (" i j , j -> i ", [(3, 4), (4,)], ["I J", "J"]),
    ("Aa,aB->BA", [(3, 4), (4, 5)], ["X Y", "Y Z"]),
]


@pytest.mark.parametrize("equation, dims, shapes", EINSUMS, ids=lambda v: v if isinstance(v, str) else "")
def test_einsum(equation, dims, shapes):
    xs = [random(*d, seed=i) for i, d in enumerate(dims)]
    got = check_composite("Einsum", xs, equation=equation, shapes=shapes)
    want = np.einsum(equation.replace(" ", ""), *(x.astype(float) for x in xs))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    ints = [random(*d, dtype=np.int32, seed=i) for i, d in enumerate(dims)]
    np.testing.assert_array_equal(
        check_composite("Einsum", ints, equation=equation), np.einsum(equation.replace(" ", ""), *ints)
    )


def test_einsum_keeps_nan_out_of_a_diagonal():
    x = np.array([[1, np.nan], [np.inf, 2]], np.float32)
    assert check_composite("Einsum", [x], equation="ii->i").tolist() == [1, 2]


@pytest.mark.parametrize(
    "equation, message",
    [
        ("ij,jk->ik", "has 2 terms for 1 operands"),
        ("ijk->i", "does not fit an operand of rank 2"),
        ("i->i", "does not fit an operand of rank 2"),
        ("ij->ik", "'k' is in no operand"),
        ("ij->ii", "stands twice"),
        ("i1->i", "not made of letters"),
    ],
)
def test_einsum_errors(equation, message):
    with pytest.raises(InferenceError, match=message):
        facts_of("Einsum", (tensor(dtypes.f32, 2, 3),), equation=equation)


@pytest.mark.parametrize(
    "dims, shape", [((4, 4), "N N"), ((2, 3, 5, 5), "A B N N"), ((1, 1), "N N"), ((0, 3, 3), "A N N")], ids=str
)
def test_det(dims, shape):
    x = random(*dims)
    got = check_composite("Det", x, shapes=[shape], ulps=16)
    np.testing.assert_allclose(got, np.linalg.det(x.astype(float)), rtol=1e-4)


def test_det_exchanges_rows_and_finds_singular_matrices():
    x = np.array([[[0, 1], [1, 0]], [[1, 2], [2, 4]], [[0, 0], [0, 3]]], np.float32)
    assert check_composite("Det", x, shapes=["A N N"]).tolist() == [-1, 0, 0]
    assert check_composite("Det", np.zeros((2, 0, 0), np.float32)).tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex64], ids=lambda d: np.dtype(d).name)
def test_cholesky(dtype):
    x = random(2, 4, 4, dtype=dtype)
    a = x @ np.conj(np.swapaxes(x, 1, 2)) + 4 * np.eye(4, dtype=dtype)
    low, high = run("cholesky", a), run("cholesky", a, lower=False)
    np.testing.assert_allclose(low @ np.conj(np.swapaxes(low, 1, 2)), a, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(high, np.conj(np.swapaxes(low, 1, 2)), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(low, np.tril(low))


def test_cholesky_of_a_matrix_that_is_not_positive_definite():
    got = run("cholesky", np.array([[1, 2], [2, 1]], np.float32))
    np.testing.assert_array_equal(got, np.array([[np.nan, 0], [np.nan, np.nan]], np.float32))


@pytest.mark.parametrize("left, lower, unit", itertools.product([False, True], repeat=3))
@pytest.mark.parametrize("transpose", ["none", "transpose", "adjoint"])
def test_triangular_solve(left, lower, unit, transpose):
    a, b = random(2, 4, 4, dtype=np.complex128) + 3 * np.eye(4), random(2, 4, 4, dtype=np.complex128, seed=1)
    got = run("triangular_solve", a, b, left_side=left, lower=lower, unit_diagonal=unit, transpose_a=transpose)
    tri = np.tril(a) if lower else np.triu(a)
    if unit:
        tri = tri * (1 - np.eye(4)) + np.eye(4)
    op = {"none": tri, "transpose": tri.swapaxes(1, 2), "adjoint": np.conj(tri.swapaxes(1, 2))}[transpose]
    np.testing.assert_allclose(op @ got if left else got @ op, b, rtol=1e-10, atol=1e-10)
    if left:
        names = {"none": 0, "transpose": 1, "adjoint": 2}
        want = scipy.linalg.solve_triangular(a[0], b[0], trans=names[transpose], lower=lower, unit_diagonal=unit)
        np.testing.assert_allclose(got[0], want, rtol=1e-10)


def test_types():
    x, y = tensor(dtypes.f16, A, M, K), tensor(dtypes.f16, B, K, N)
    assert str(facts_of("MatMul", x, y).type) == "f16[bcast(A, B),M,N]"
    assert assumptions_of("MatMul", x, y) == ["bcast(A, B)"]
    assert assumptions_of("MatMul", x, tensor(dtypes.f16, A, 4, N)) == ["K == 4"]
    dots = {"lhs_contracting": (2,), "rhs_contracting": (1,), "lhs_batching": (0,), "rhs_batching": (0,)}
    assert str(facts_of("dot_general", x, tensor(dtypes.f16, A, K, N), **dots, result=dtypes.f32).type) == "f32[A,M,N]"


def test_an_assumption_that_breaks_names_the_sizes():
    with pytest.raises(AssumptionError, match="A=3, B=2"):
        run(
            "MatMul", random(3, 2, 4), random(2, 4, 5), types=[tensor(dtypes.f32, A, 2, 4), tensor(dtypes.f32, B, 4, 5)]
        )


@pytest.mark.parametrize(
    "left, right, message",
    [
        ((2, 3), (4, 5), "inner dims of a and b must be equal, got 3 and 4"),
        ((), (3,), "rank 1 or more"),
        ((2, 3, 4), (3, 4, 5), "do not broadcast"),
    ],
)
def test_matmul_errors(left, right, message):
    with pytest.raises(InferenceError, match=message):
        facts_of("MatMul", tensor(dtypes.f32, *left), tensor(dtypes.f32, *right))


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 4, 4), (1, 1), (0, 2, 2), (2, 0, 0)])
def test_inverse(shape):
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    got = check_composite("Inverse", x, ulps=100)  # condition numbers below 100
    assert got.shape == shape
    if x.size:
        np.testing.assert_allclose(x @ got, np.broadcast_to(np.eye(shape[-1]), shape), atol=1e-4)


def test_inverse_of_symbolic_size_and_of_none():
    x = np.array([[[0, 2], [4, 0]], [[1, 2], [3, 4]]], np.float64)
    got = check_composite("Inverse", x, shapes=["B N N"], ulps=8)
    np.testing.assert_allclose(got[0], [[0, 0.25], [0.5, 0]])
    with pytest.raises(InferenceError, match="the last two dims of x must be equal, got 2 and 3"):
        facts_of("Inverse", tensor(dtypes.f32, 2, 3))
