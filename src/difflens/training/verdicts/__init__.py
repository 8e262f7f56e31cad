"""How findings become one verdict: what explains what, and how it is put."""
