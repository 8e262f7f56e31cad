"""What every page and text is made with: numbers, tables, templates, documents."""
