"""Web pages and HTTP API of `mergemill serve` (docs/guide/query/serve.md), rendered without outside resources.

Everything a repository brings (statements, patches, names, logs) is foreign text. Templates escape it, `visible_text`
makes control characters visible, and the security headers of `request_guard` forbid inline scripts and other hosts.
"""
