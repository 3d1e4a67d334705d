"""How does time pass: what is due is claimed, run and settled."""
