"""The Merkle tree of RFC 6962: hashes, proofs and their checks. Pure.

A leaf's data are the 32 bytes of an entry's hash: it fixes the record and tells nothing of it.
Checked against the definition in section 2.1, and against the test vectors of transparency-dev.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

EMPTY = hashlib.sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf; no inner node can pass as one."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of two subtrees."""
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree over leaves in their order; complete subtrees are hashed once.

    Args:
        leaves: data of each leaf.
    """

    leaves: Sequence[bytes]
    _complete: dict[tuple[int, int], bytes] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, hashes: Iterable[str]) -> Tree:
        """Return the tree over the hashes of entries, in hexadecimal."""
        return cls([bytes.fromhex(digest) for digest in hashes])

    def root(self, size: int) -> bytes:
        """Return the root over the first `size` leaves (RFC 6962, 2.1)."""
        return self._hash(0, size) if size else EMPTY

    def inclusion(self, index: int, size: int) -> tuple[bytes, ...]:
        """Return the audit path of leaf `index` among the first `size` (2.1.1), sibling first."""
        low, high, path = 0, size, list[bytes]()
        while high - low > 1:
            middle = low + _largest_power_below(high - low)
            if index < middle:
                path.append(self._hash(middle, high))
                high = middle
            else:
                path.append(self._hash(low, middle))
                low = middle
        return tuple(reversed(path))

    def consistency(self, old: int, new: int) -> tuple[bytes, ...]:
        """Return the proof that the first `new` leaves begin with the first `old` (2.1.2)."""
        if not 0 < old < new:
            return ()
        low, high, path = 0, new, list[bytes]()
        while old != high:
            middle = low + _largest_power_below(high - low)
            if old <= middle:
                path.append(self._hash(middle, high))
                high = middle
            else:
                path.append(self._hash(low, middle))
                low = middle
        return tuple(reversed(path if low == 0 else [*path, self._hash(low, high)]))

    def _hash(self, low: int, high: int) -> bytes:
        """Return the hash of leaves `low` to `high`."""
        digest = self._complete.get((low, high))
        if digest is None:
            if high - low == 1:
                digest = leaf_hash(self.leaves[low])
            else:
                middle = low + _largest_power_below(high - low)
                digest = node_hash(self._hash(low, middle), self._hash(middle, high))
            if (high - low) & (high - low - 1) == 0:
                self._complete[low, high] = digest
        return digest


def is_included(data: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Check an audit path (RFC 9162, 2.1.3.2)."""
    leaf = leaf_hash(data)
    climbed = _climbed(index, size - 1, path, (leaf, leaf), two=False)
    return 0 <= index < size and climbed is not None and climbed[1] == root


def is_consistent(
    old: int, new: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]
) -> bool:
    """Check a consistency proof (RFC 9162, 2.1.4.2). An empty tree proves nothing."""
    if not 0 < old < new:
        return 0 < old == new and old_root == new_root and not path
    first, *rest = path if old & (old - 1) else (old_root, *path)
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    return _climbed(at, last, rest, (first, first), two=True) == (old_root, new_root)


def _climbed(
    at: int, last: int, path: Sequence[bytes], both: tuple[bytes, bytes], *, two: bool
) -> tuple[bytes, bytes] | None:
    """Hash upwards from a node of one level; None if the path is too long or too short."""
    old, new = both
    for sibling in path:
        if not last:
            return None
        if at & 1 or at == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            old, new = old if two else node_hash(old, sibling), node_hash(new, sibling)
        at, last = at >> 1, last >> 1
    return None if last else (old, new)


def _largest_power_below(count: int) -> int:
    """Return the largest power of two below a count of two or more."""
    return 1 << ((count - 1).bit_length() - 1)
