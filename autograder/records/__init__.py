"""A class on disk: who is in it, what each submission got, and everything made from that."""
