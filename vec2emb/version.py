"""The version, which pyproject.toml and the changelog have as well."""

__version__ = "0.1.0"
