"""The policies; importing this package registers them."""

from online.policies import listed, planned

__all__ = ["listed", "planned"]
