"""For authors: build notebooks from sources, test the exercises' checks, make releases and the book."""
