"""Whether an expression can only fall, or only rise, as one fact grows; told from its shape, "no" where in doubt."""

from __future__ import annotations

from hitproof.spec.condition import Arith, Extreme, Negate, Node, Ref, interval, reads

__all__ = ["never_falls", "never_rises"]


def never_rises(node: Node, path: str) -> bool:
    """Surely not larger for a larger value at `path`, all else equal."""
    return _monotone(node, path, rising=False)


def never_falls(node: Node, path: str) -> bool:
    """Surely not smaller for a larger value at `path`, all else equal."""
    return _monotone(node, path, rising=True)


def _monotone(node: Node, path: str, *, rising: bool) -> bool:
    if path not in reads(node):
        return True
    match node:
        case Ref():
            return rising
        case Negate(x=x):
            return _monotone(x, path, rising=not rising)
        case Extreme(op="min" | "max", args=args):
            return all(_monotone(one, path, rising=rising) for one in args)
        case Arith(op="+", left=left, right=right):
            return _monotone(left, path, rising=rising) and _monotone(right, path, rising=rising)
        case Arith(op="-", left=left, right=right):
            return _monotone(left, path, rising=rising) and _monotone(right, path, rising=not rising)
        case Arith(op="*", left=left, right=right):
            return any(
                path not in reads(factor) and interval(factor)[0] >= 0 and _monotone(other, path, rising=rising)
                for factor, other in ((left, right), (right, left))
            )
        case _:
            return False
