"""Fetching memory before it is needed: a walk over the neighbours of nodes reads rows from all over an array, and if
that is larger than the caches, most of the time is spent waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

AHEAD = 4
"""How many rows before its use a row is fetched: enough to arrive in time, and few enough to still be cached."""


@intrinsic
def prefetch(typing: object, array: types.Array, index: types.BaseTuple) -> tuple[Signature, Callable[..., object]]:
    """Has the processor fetch array[index], a number or the beginning of a row, without waiting for it. index: a tuple
    of integers, inside the array."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, places = signature.args
        values = context.make_array(kind)(context, builder, arguments[0])
        given = zip(cgutils.unpack_tuple(builder, arguments[1]), places, strict=True)
        where = [context.cast(builder, place, one, types.intp) for place, one in given]
        where += [context.get_constant(types.intp, 0)] * (kind.ndim - len(where))
        shape, strides = (cgutils.unpack_tuple(builder, sizes) for sizes in (values.shape, values.strides))
        address = cgutils.get_item_pointer2(context, builder, values.data, shape, strides, kind.layout, where)
        address = builder.bitcast(address, cgutils.voidptr_t)
        flag = ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
        instruction = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0")
        # To read, to be kept in all caches, data.
        builder.call(instruction, [address, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, index), code
