"""What authors need: building notebooks from sources, testing the exercises' tests, making releases and the book."""
