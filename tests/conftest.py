"""Hypothesis profiles: repeatable in continuous integration, random at a desk."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

SLOW_OK = [HealthCheck.too_slow]
settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("desk", deadline=None, suppress_health_check=SLOW_OK)
settings.load_profile("desk" if os.environ.get("SORTEDF_DESK") else "ci")
