"""The lowest set bit of a word, in one instruction."""

from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def lowest_bit(word):
        """Return the position of the lowest set bit of `word` > 0."""
        return int(word & -word).bit_length() - 1

else:

    @intrinsic
    def lowest_bit(typing_context, word):
        """Return the position of the lowest set bit of an int64 `word` > 0."""

        def generate(context, builder, signature, arguments):
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.int64), generate
