"""A transparency log over the ledger: Merkle tree, checkpoints, proofs, cosignatures (C2SP)."""
