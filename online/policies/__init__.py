"""Policies, one file each; `online.policy.POLICIES` imports every module here."""
