"""What the renderers of a diff share: rows, findings, drawings, the page."""
