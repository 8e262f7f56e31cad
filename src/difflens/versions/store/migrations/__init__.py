"""How a store's schema came to be, step by step: Alembic reads this folder, nobody imports it."""
