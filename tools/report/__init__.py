"""The page of `logstore report`: one HTML file that needs nothing else, no script, no network."""

from .page import page

__all__ = ["page"]
