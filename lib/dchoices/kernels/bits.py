"""Two instructions that Python has no operator for: the lowest set bit of a word, and the high word of a product."""

from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def lowest_bit(word):
        """Return the position of the lowest set bit of `word` > 0."""
        return int(word & -word).bit_length() - 1

    def scaled(word, size):
        """Return ⌊word·size / 2^64⌋: of a random `word` a number below `size`, exact where a double would round."""
        return int(word) * int(size) >> 64

else:

    @intrinsic
    def lowest_bit(typing_context, word):
        """Return the position of the lowest set bit of an int64 `word` > 0."""

        def generate(context, builder, signature, arguments):
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.int64), generate

    @intrinsic
    def scaled(typing_context, word, size):
        """Return ⌊word·size / 2^64⌋: of a random uint64 `word` a number below `size`, without a double's rounding."""

        def generate(context, builder, signature, arguments):
            wide = ir.IntType(128)
            product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
            return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

        return types.int64(types.uint64, types.int64), generate
