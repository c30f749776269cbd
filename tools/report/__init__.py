"""The page of `logstore report`: one HTML file that needs no network, and no script but for searching and sorting."""

from .page import page

__all__ = ["page"]
