"""What is said of training runs, as text, Markdown, a page or plain data."""
