"""Words, pages and pictures out: each a pure function of records and a view."""
