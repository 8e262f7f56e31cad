"""Files within files: what formats are packed in. Containers know no format."""
