"""A local web page: drop a file, check what its columns mean, run the audits, read the report.

Everything stays on this machine. The server listens on the loopback address only, its pages can be asked for only with
a random token, and each audit runs in a process of its own, which writes into a folder of its own.
"""
