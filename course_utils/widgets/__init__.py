"""Explorers: figures with controls, each a few lines in a notebook. Without a kernel, a picture takes their place."""
