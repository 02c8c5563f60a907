"""The policies, one file each; `online.policy.POLICIES` finds every file here."""
