"""The common parts of several stores."""
