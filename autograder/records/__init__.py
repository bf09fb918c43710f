"""A class on disk: who is in it, what each submission got, and everything that is made from that."""
