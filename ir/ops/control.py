"""Control flow, calls, and the operators that bind run-time integers to types: bind_dim, freeze, trap, the late `onnx`."""

from ..attributes import Symbol
from ..operators import ANY, BOOL, EFFECTS, INTEGER, LATE, PURE, AnyValue, AnyValues, Operand, Region, Regions, operator
from ..types import TensorType


@operator("if", family="control", traits=PURE)
class If:
    """The outputs of graph `then` if the scalar predicate is true, of `else` otherwise; only one runs.  Graphs take no inputs.

    Output types of the branches must agree; where a dim differs the result's type has a dim only if both agree, else the
    node must be late.  Purity is that of its graphs: see `passes`' effect query, which looks inside.
    """

    predicate: Operand[BOOL]
    then: Region
    else_: Region


@operator("case", family="control", traits=PURE)
class Case:
    """The outputs of branches[index]; an index outside [0, n) runs the last branch.  Graphs take no inputs."""

    index: Operand[INTEGER]
    branches: Regions


@operator("while", family="control", traits=PURE)
class While:
    """Repeats body while cond holds.  cond(state..) -> bool scalar; body(state..) -> state.. of the same types."""

    inits: AnyValues
    cond: Region
    body: Region


@operator("call", family="control", traits=PURE)
class Call:
    """The outputs of a function of the model; its dims are solved by unification with the arguments' types."""

    xs: AnyValues
    callee: Symbol


@operator("bind_dim", family="control", traits=EFFECTS)
class BindDim:
    """Names the value of an integer scalar as a dim; types and attributes it dominates may mention that dim.  No results.

    The value must be >= 0 at run time.
    """

    x: Operand[INTEGER]
    dim: str


@operator("freeze", family="control", traits=EFFECTS | LATE)
class Freeze:
    """x itself, an integer tensor of at most 64 elements whose values the host reads, so that late nodes can be typed."""

    x: Operand[INTEGER]


@operator("trap", family="control", traits=EFFECTS)
class Trap:
    """Raises the diagnostic when reached.  Its results, zeros of the given types, are never seen."""

    message: str
    results: tuple[TensorType, ...]


@operator("onnx", family="control", traits=EFFECTS | LATE)
class Onnx:
    """An ONNX node that cannot be typed yet (an unknown rank, or integer operands read at run time).

    `attributes` is the node's attributes as (name, literal) pairs; `results` its result types, mostly unranked.
    Legalization at run time replaces it by what the importer would have built.
    """

    xs: AnyValues
    domain: str
    type: str
    version: int
    attributes: object
    results: tuple[TensorType, ...]
    graphs: Regions


@operator("custom_call", family="control", traits=EFFECTS)
class CustomCall:
    """A call of code that irc does not know, by name; result types are given.  Targets refuse names they do not have."""

    xs: AnyValues
    target: str
    results: tuple[TensorType, ...]
