"""Models of Git revisions: what a revision holds, its bytes as files, and which commits changed it.

Git is asked by lists of arguments, never through a shell, and nothing that a repository configures
is executed: no hook, no filter, no file-system monitor, no pager, no signature program, no network.
"""
