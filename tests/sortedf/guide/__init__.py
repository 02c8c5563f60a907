"""The documents: pages, tutorials, and what they are built into."""
