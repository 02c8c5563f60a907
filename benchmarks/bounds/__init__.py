"""Lower bounds: tightness, growth of their time, checks."""
