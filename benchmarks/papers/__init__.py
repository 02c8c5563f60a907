"""The papers' numbers beside ours."""
