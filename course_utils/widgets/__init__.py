"""Explorers: figures with controls, each a few lines in a notebook. They need a running kernel; a picture stands in."""
