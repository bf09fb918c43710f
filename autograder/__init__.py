"""The instructor's side: builds notebooks from their sources, checks them, and prepares releases and courses."""
