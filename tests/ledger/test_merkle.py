"""The Merkle tree against RFC 6962's own definition, and C2SP's texts against worked examples."""

from __future__ import annotations

import pytest
from cosigner import NAME
from hypothesis import given
from hypothesis import strategies as st

from turnstile.ledger.tlog.checkpoints import (
    Proof,
    Verifier,
    parse_checkpoint,
    parse_proof,
    parse_step,
    step_text,
)
from turnstile.ledger.tlog.merkle import (
    EMPTY,
    Tree,
    is_consistent,
    is_included,
    leaf_hash,
    node_hash,
)

# Leaves and roots of transparency-dev/merkle (testonly/constants.go).
LEAVES = [*map(bytes.fromhex, ("", "00", "10", "2021", "3031", "40414243", "5051525354555657"))]
ROOTS = {
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    7: "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
}
A = ROOTS[2]
B = "0298d122906dcfc10892cb53a73992fc5b9f493ea4c9badb27b791b4127a7fe7"
C = "07506a85fd9dd2f120eb694f86011e5bb4662e5c415a62917033d4a9624487e7"
E = "837dbb152e9b079010717e84e865da4ebc0fa198a806d59d31bf15accef22d0e"
MANY = [bytes([n]) for n in range(70)]

LOG = "ledger.example.org/opal+bcc1ba25+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
WITNESS = "witness.example.net/w1+669be294+BCmsuuFBvMrwsi4alNNNC8c2HlJtC/4SyJeUvJMilm3X"
NOTE = """\
ledger.example.org/opal
7
3bib5AOAnjJXUNPSY814kpwpQreUKjS3fhIslZSnTIw=

— ledger.example.org/opal vMG6JRzaQrrq3oht+iXTBrzrgDqUX0Y5LCGQFde50mgP3XrcOnjbguQL7yTUQmpEvuiHlu\
PK+L8e0RGxjRjetVJHFgY=
— witness.example.net/w1 ZpvilAAAAABlU/EAR6s9vJD01Q3w1cFV7aMAZSQt28hUBRxWBK/Bnp07ScTp7prJdhDcaOSD\
BC7hsK3EOhYMoPlQE3VDGD/i4DEBDA==
"""


def defined(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word by word."""
    if len(leaves) == 1:
        return leaf_hash(leaves[0])
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return node_hash(defined(leaves[:k]), defined(leaves[k:]))


def test_roots_and_paths_are_those_of_the_published_vectors() -> None:
    tree = Tree(LEAVES)
    assert {size: tree.root(size).hex() for size in ROOTS} == ROOTS
    assert [node.hex() for node in tree.inclusion(2, 7)] == [C, A, E]
    assert [node.hex() for node in tree.consistency(3, 7)] == [B, C, A, E]
    assert tree.root(0) == EMPTY


@pytest.mark.parametrize("size", range(1, 71))
def test_every_proof_holds_and_no_altered_one_does(size: int) -> None:
    tree = Tree(MANY)
    root = tree.root(size)
    assert root == defined(MANY[:size])
    for older in range(1, size + 1):
        index, old_root = older - 1, tree.root(older)
        path = list(tree.inclusion(index, size))
        assert is_included(MANY[index], index, size, path, root)
        assert not is_included(b"another", index, size, path, root)
        assert not is_included(MANY[index], index, size, [*path, EMPTY], root)
        assert not path or not is_included(MANY[index], index, size, path[:-1], root)
        assert not path or not is_included(MANY[index], index, size, [EMPTY, *path[1:]], root)
        proof = list(tree.consistency(older, size))
        assert is_consistent(older, size, old_root, root, proof)
        assert not is_consistent(older, size, EMPTY, root, proof)
        assert not is_consistent(older, size, old_root, EMPTY, proof)
        assert not is_consistent(older, size, old_root, root, [*proof, EMPTY])
        assert not proof or not is_consistent(older, size, old_root, root, proof[:-1])
    assert not is_consistent(0, size, EMPTY, root, [])
    assert not is_included(MANY[0], size, size, [], root)


def test_a_node_does_not_pass_as_a_leaf() -> None:
    tree = Tree(MANY[:2])
    both = leaf_hash(MANY[0]) + leaf_hash(MANY[1])
    assert not is_included(both, 0, 1, [], tree.root(2))


def test_the_worked_example_verifies_under_both_keys() -> None:
    checkpoint = parse_checkpoint(NOTE)
    assert (checkpoint.origin, checkpoint.size, checkpoint.root.hex()) == (
        "ledger.example.org/opal",
        7,
        ROOTS[7],
    )
    assert checkpoint.is_signed_by(Verifier.of(LOG))
    assert checkpoint.cosigned_at(Verifier.of(WITNESS)) == 1_700_000_000
    assert Verifier.of(WITNESS).name == NAME


def test_a_signature_of_an_unknown_key_is_read_over_and_a_false_one_voids_the_note() -> None:
    checkpoint = parse_checkpoint(NOTE.replace("ledger.example.org/opal v", "somebody.else v"))
    assert not checkpoint.is_signed_by(Verifier.of(LOG))
    false = NOTE.replace("BrzrgDqU", "BrzrgDqV")
    with pytest.raises(ValueError, match="is false"):
        parse_checkpoint(false).is_signed_by(Verifier.of(LOG))
    late = NOTE.replace("ZpvilAAAAABlU/EA", "ZpvilAAAAABlU/EB")
    with pytest.raises(ValueError, match="is false"):
        parse_checkpoint(late).cosigned_at(Verifier.of(WITNESS))


@pytest.mark.parametrize(
    "text",
    [
        NOTE.replace("\n7\n", "\n07\n"),
        NOTE.replace("\n7\n", "\n+7\n"),
        NOTE.replace("\n", "\r\n"),
        NOTE.replace("TIw=", "TI="),
        NOTE.replace("TIw=", "TIx="),
        NOTE.replace("3bib5AOAnjJXUNPSY814kpwpQreUKjS3fhIslZSnTIw=", "3bib5AOA"),
        NOTE.removesuffix("\n"),
        NOTE.replace("— ledger", "- ledger"),
        NOTE.partition("\n\n")[0],
        "",
    ],
)
def test_what_is_not_exactly_a_checkpoint_is_none(text: str) -> None:
    assert parse_checkpoint(NOTE).size == 7
    with pytest.raises(ValueError, match=r".+"):
        parse_checkpoint(text)


def test_a_verifier_key_says_its_own_id() -> None:
    for line in (LOG.replace("bcc1ba25", "bcc1ba26"), LOG.replace("+AQ", "+BA"), "one+two"):
        with pytest.raises(ValueError, match=r".+"):
            Verifier.of(line)


@given(
    index=st.integers(0, 10**12),
    path=st.lists(st.binary(min_size=32, max_size=32), max_size=40).map(tuple),
    data=st.binary(min_size=32, max_size=32),
)
def test_proofs_and_steps_are_read_as_they_were_written(
    index: int, path: tuple[bytes, ...], data: bytes
) -> None:
    proof = Proof(index, data, path, NOTE)
    assert parse_proof(str(proof)) == proof
    assert parse_step(step_text(index, path, NOTE)) == (index, path, NOTE)
    for text in (str(proof).replace("@v1", "@v2"), str(proof).replace("index ", "index 0")):
        with pytest.raises(ValueError, match="no proof"):
            parse_proof(text)
    with pytest.raises(ValueError, match="no step"):
        parse_step(str(proof))
