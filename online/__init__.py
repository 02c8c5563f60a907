"""The place for policies and engines; may import `sortedf` and `lp`. Empty so far."""
